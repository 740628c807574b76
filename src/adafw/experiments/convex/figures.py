"""Figures: gap and objective against CPU time, epochs and LMO calls, median and band over seeds."""

from typing import TYPE_CHECKING

from adafw.experiments.convex.measures import lower_bound
from adafw.experiments.drawing import Style, by_case, draw_band, plain
from adafw.experiments.outcome import Outcome
from adafw.experiments.spec import Case, Method
from adafw.experiments.spread import quartile_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure


_COLUMNS = (
    ("cpu_seconds", "CPU time (s)"),
    ("epoch", "epochs"),
    ("lmo_calls", "LMO calls (broken lines: projections)"),
)


def draw(outcome: Outcome) -> "Figure":
    """For each case a row of gaps and a row of objectives."""
    return by_case(outcome, _draw_case)


def _draw_case(
    part: "SubFigure", outcome: Outcome, case: Case[Method], styles: dict[str, Style]
) -> None:
    axes = part.subplots(2, len(_COLUMNS), sharey="row")
    bound = lower_bound(outcome, case)
    for row, (quantity, shift, name) in enumerate(
        (("gap", 0.0, "Frank-Wolfe gap"), ("value", bound, "objective - lower bound"))
    ):
        for axis, (x, label) in zip(axes[row], _COLUMNS, strict=True):
            for curve in outcome.of(case):
                projected = curve.method.family == "projected"
                column = "projections" if projected and x == "lmo_calls" else x
                band = quartile_band(curve.traces.values(), column, quantity, shift)
                draw_band(axis, band, styles[curve.label])
            axis.set(xscale="log", yscale="log", xlabel=label)
            plain(axis)
        axes[row][0].set_ylabel(name)
