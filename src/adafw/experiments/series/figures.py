"""The figure of series: the advantage against the dimension, and the curves behind it."""

from typing import TYPE_CHECKING, Any, cast

from adafw.experiments.drawing import Style, draw_band, plain, verbatim
from adafw.experiments.outcome import Outcome
from adafw.experiments.series.advantage import Size, sizes
from adafw.experiments.spread import quartile_band

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


#: Colours that colour-blind readers tell apart, and marks for those who see none.
_COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d", "#6a51a3")
_MARKS = "osD^vP*X"
_OURS: Style = {"color": "#d55e00", "linewidth": 1.9}
_THEIRS: Style = {"color": "#000000", "linewidth": 1.4, "linestyle": "-."}


def draw(outcome: Outcome) -> "Figure":
    """A row of ratios, one axis a goal; then a row for each series, one axis a size."""
    from matplotlib.figure import Figure

    series = sizes(outcome)
    figure = Figure(figsize=(13, 5.2 + 2.35 * len(series) + 1.6), layout="constrained")
    top, bottom = cast(Any, figure).subfigures(2, 1, height_ratios=[5.2, 2.35 * len(series)])
    _draw_ratios(top, outcome, series)
    _draw_curves(bottom, outcome, series)
    return figure


def _draw_ratios(part: "SubFigure", outcome: Outcome, series: dict[str, list[Size]]) -> None:
    from matplotlib.lines import Line2D

    axes = part.subplots(1, len(outcome.spec.goals), sharey=True, squeeze=False)[0]
    for i, (axis, goal) in enumerate(zip(axes, outcome.spec.goals, strict=True)):
        axis.axhline(1.0, color="#999999", linewidth=0.9)
        for number, row in enumerate(series.values()):
            _draw_series(axis, row, i, _COLOURS[number % 8], _MARKS[number % 8])
        axis.set(xscale="log", yscale="log", xlabel="dimension (entries of x)")
        axis.set_title(f"to a relative gap of {goal:g}", fontsize=10)
        plain(axis)
    axes[0].set_ylabel("CPU time, projected / Frank-Wolfe")
    handles = [
        Line2D(
            [], [], color=_COLOURS[k % 8], marker=_MARKS[k % 8], label=verbatim(name), linewidth=1.6
        )
        for k, name in enumerate(series)
    ]
    handles += [
        Line2D([], [], color="#444444", marker=mark, linestyle="", label=text)
        for mark, text in (("$\\uparrow$", "at least: projection\nnever got there"),
                           ("$\\downarrow$", "at most: Frank-Wolfe\nnever got there"))
    ]  # fmt: skip
    part.legend(handles=handles, loc="outside right center", frameon=False, fontsize=8.5)
    part.suptitle("Advantage: above 1 the Frank-Wolfe method is faster", fontsize=10.5)


def _draw_series(axis: "Axes", row: list[Size], i: int, colour: str, mark: str) -> None:
    known = [(size.n, size.ratios[i]) for size in row if size.ratios[i].known]
    if not known:
        return
    n = [n for n, _ in known]
    middle, lower, upper = (
        [ratio.ratio[key] for _, ratio in known] for key in ("median", "lower", "upper")
    )
    axis.fill_between(n, lower, upper, color=colour, alpha=0.16, linewidth=0)
    axis.plot(n, middle, color=colour, marker=mark, markersize=5, linewidth=1.6)
    for n_k, ratio in known:
        if ratio.bound:
            arrow = "$\\uparrow$" if ratio.bound == ">=" else "$\\downarrow$"
            above = 1.35 if ratio.bound == ">=" else 1 / 1.35
            axis.plot(n_k, ratio.ratio["median"] * above, color=colour, marker=arrow, markersize=8)


def _draw_curves(part: "SubFigure", outcome: Outcome, series: dict[str, list[Size]]) -> None:
    from matplotlib.lines import Line2D

    most = max(len(row) for row in series.values())
    axes = part.subplots(len(series), most, squeeze=False)
    for row_axes, (name, row) in zip(axes, series.items(), strict=True):
        for axis in row_axes[len(row) :]:
            axis.set_visible(False)
        for axis, size in zip(row_axes, row, strict=False):
            _draw_size(axis, outcome, size)
            axis.set_title(f"{verbatim(name)}, n = {size.n}", fontsize=9, pad=3)
        row_axes[0].set_ylabel("relative gap", fontsize=9)
    for axis in axes[-1]:
        axis.set_xlabel("CPU time (s)", fontsize=9)
    first = next(iter(series.values()))[0]
    handles = [
        Line2D([], [], label=verbatim(curve.label), **style)
        for curve, style in ((first.ours, _OURS), (first.theirs, _THEIRS))
    ]
    handles.append(Line2D([], [], color="#555555", linewidth=0.9, linestyle=":", label="goals"))
    part.legend(handles=handles, loc="outside right upper", frameon=False, fontsize=8.5)


def _draw_size(axis: "Axes", outcome: Outcome, size: Size) -> None:
    from matplotlib.ticker import NullFormatter

    for curve, style in ((size.ours, _OURS), (size.theirs, _THEIRS)):
        band = quartile_band(curve.traces.values(), "cpu_seconds", "gap")
        if band is not None:
            x, middle, lower, upper = band
            scaled = (x, middle / size.scale, lower / size.scale, upper / size.scale)
            draw_band(axis, scaled, style)
    for goal in outcome.spec.goals:
        axis.axhline(goal, color="#555555", linewidth=0.9, linestyle=":")
    axis.set(xscale="log", yscale="log", ylim=(min(outcome.spec.goals) / 10, None))
    axis.xaxis.set_minor_formatter(NullFormatter())  # over less than a decade they would collide
    axis.tick_params(labelsize=8)
    plain(axis)
