"""Figures of trained networks: losses and accuracies against epochs and CPU time."""

from typing import TYPE_CHECKING

from adafw.experiments.drawing import Style, by_case, draw_band, plain
from adafw.experiments.outcome import Outcome
from adafw.experiments.spec import Case, Method
from adafw.experiments.spread import deviation_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure


_ROWS = (("epoch", "epochs"), ("cpu_seconds", "CPU time (s)"))
_COLUMNS = ("train_loss", "train_accuracy", "test_loss", "test_accuracy")


def draw(outcome: Outcome) -> "Figure":
    """For each case a row against epochs and one against CPU time; mean, standard deviation."""
    return by_case(outcome, _draw_case)


def _draw_case(
    part: "SubFigure", outcome: Outcome, case: Case[Method], styles: dict[str, Style]
) -> None:
    axes = part.subplots(len(_ROWS), len(_COLUMNS))
    # Where an epoch is some of the data only, steps tell more.
    first = ("iteration", "steps") if "epoch_rows" in case.data else _ROWS[0]
    for row, (x, label) in zip(axes, (first, _ROWS[1]), strict=True):
        for axis, quantity in zip(row, _COLUMNS, strict=True):
            for curve in outcome.of(case):
                band = deviation_band(curve.traces.values(), x, quantity)
                draw_band(axis, band, styles[curve.label])
            axis.set(xlabel=label, ylabel=quantity.replace("_", " "))
            axis.set(yscale="log" if quantity.endswith("loss") else "linear")
            plain(axis)
