"""The figure of the zoo: families by colour, the best of each thick and named."""

from typing import TYPE_CHECKING

from adafw.experiments.drawing import plain, verbatim
from adafw.experiments.outcome import Curve, Outcome
from adafw.experiments.spec import Case, Method
from adafw.experiments.spread import quartile_band
from adafw.experiments.zoo.case import EXACT, FAMILIES, PROJECTED, STOCHASTIC, family_of
from adafw.experiments.zoo.ranking import HIGH, LOW, WORK, best, of_family, scale_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_COLOURS = dict(zip(FAMILIES, ("#0072b2", "#8c8c8c", "#d55e00", "#009e73"), strict=True))
_WORDS = {EXACT: "exact gradients", STOCHASTIC: "stochastic Frank-Wolfe", PROJECTED: "projected"}


def draw(outcome: Outcome) -> "Figure":
    """A row for each problem: suboptimality against time, epochs and LMO calls."""
    from matplotlib.figure import Figure

    cases = outcome.spec.cases
    figure = Figure(figsize=(13, 3.9 * len(cases) + 1.2), layout="constrained")
    axes = figure.subplots(len(cases), len(WORK), squeeze=False)
    for row, case in zip(axes, cases, strict=True):
        for axis, (column, label) in zip(row, WORK.items(), strict=True):
            _draw_axis(axis, outcome, case, column)
            axis.set(xscale="log", yscale="log", ylim=(1e-9, 2), xlabel=label)
            plain(axis)
        row[0].set_ylabel("(f - bound) / (f(x₀) - bound)")
        about = outcome.data[case.name]
        row[1].set_title(verbatim(f"{about['label']}; {case.words}"), fontsize=9)
    _legend(axes[0][0])
    return figure


def _draw_axis(axis: "Axes", outcome: Outcome, case: Case[Method], column: str) -> None:
    scale = scale_of(outcome, case)
    for level in (LOW, HIGH):
        axis.axhline(level, color="#bbbbbb", linewidth=0.8, linestyle=":")
    for family in FAMILIES:
        curves = of_family(outcome, case, family)
        if not curves or (family == PROJECTED and column == "lmo_calls"):
            continue
        leader = best(curves, column, HIGH, scale)
        for curve in curves:
            _draw_curve(axis, curve, column, scale, curve is leader)


def _draw_curve(
    axis: "Axes", curve: Curve, column: str, scale: tuple[float, float], named: bool
) -> None:
    band = quartile_band(curve.traces.values(), column, "value", scale[0])
    if band is None:
        return
    x, middle = band[0], band[1] / scale[1]
    colour = _COLOURS[family_of(curve.method)]
    axis.plot(x, middle, color=colour, linewidth=2.2 if named else 0.8, alpha=1 if named else 0.5,
              zorder=3 if named else 2)  # fmt: skip
    if named:
        # Curves that have left the axes below would all be named at one place.
        place = FAMILIES.index(family_of(curve.method))
        axis.annotate(verbatim(curve.label), (x[-1], max(middle[-1], 1.3e-9 * 4**place)),
                      color=colour, fontsize=8, ha="right", va="bottom")  # fmt: skip


def _legend(axis: "Axes") -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=_COLOURS[family], linewidth=2.2, label=_WORDS.get(family, family))
        for family in FAMILIES
    ]
    axis.legend(handles=handles, loc="lower left", frameon=False, fontsize=8)
