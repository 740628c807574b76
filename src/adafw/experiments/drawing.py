"""What all figures share: colours and dashes by family of methods, legends, bands."""

import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adafw.experiments.outcome import Curve, Outcome
from adafw.experiments.spec import Case, Method
from adafw.experiments.spread import Band

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D


#: Colours that colour-blind readers tell apart (after Wong 2011), by family of methods.
_PALETTES = {
    "frank-wolfe": ("#8c8c8c", "#56b4e9", "#0072b2", "#009e73", "#6a51a3", "#4d4d4d"),
    "adaptive": ("#d55e00", "#e69f00", "#c43c6e"),
    "corrective": ("#f0a000", "#b15928"),
    "projected": ("#000000", "#cc79a7", "#117733", "#882255", "#7a9a01", "#aa4499"),
    "other": ("#000000", "#c43c6e", "#117733"),
}

#: Keywords of matplotlib's `plot`.
Style = dict[str, Any]


def by_case(
    outcome: Outcome,
    draw_case: "Callable[[SubFigure, Outcome, Case[Method], dict[str, Style]], None]",
) -> "Figure":
    """A figure with a part for each case, drawn by `draw_case(part, outcome, case, styles)`."""
    from matplotlib.figure import Figure

    cases = outcome.spec.cases
    figure = Figure(figsize=(13, 6.8 * len(cases) + 1.9), layout="constrained")
    parts = figure.subfigures(len(cases), 1, squeeze=False)[:, 0]
    for part, case in zip(parts, cases, strict=True):
        styles = styles_of(outcome.of(case))
        draw_case(part, outcome, case, styles)
        _explain(part, outcome, case, styles)
    return figure


def draw_band(axis: "Axes", band: Band | None, style: Style) -> None:
    """A curve (x, middle, lower, upper) and its band; nothing for None."""
    if band is None:  # nothing positive to show on a logarithmic axis
        return
    x, middle, lower, upper = band
    axis.fill_between(x, lower, upper, color=style["color"], alpha=0.16, linewidth=0)
    axis.plot(x, middle, **style)


def verbatim(text: str) -> str:
    """Text of a user's as matplotlib shows it: a dollar sign begins no formula."""
    return text.replace("$", r"\$")


def plain(axis: "Axes") -> None:
    """A light grid, no frame."""
    axis.grid(True, which="major", color="#e4e4e4", linewidth=0.7)
    axis.spines[["top", "right"]].set_visible(False)


def _explain(
    part: "SubFigure", outcome: Outcome, case: Case[Method], styles: dict[str, Style]
) -> None:
    """The legend of a case's axes, and a title that says what the data are."""
    handles = [_handle(curve, styles[curve.label]) for curve in outcome.of(case)]
    part.legend(handles=handles, loc="outside right center", frameon=False, fontsize=8.5)
    about = outcome.data[case.name]
    colour = "#b00020" if about["is_stand_in"] else "#222222"
    text = textwrap.fill(f"{about['label']}; {case.words}", 165)
    part.suptitle(verbatim(text), fontsize=9.5, color=colour)


def _handle(curve: Curve, style: Style) -> "Line2D":
    from matplotlib.lines import Line2D

    table = curve.method.options
    rate = "\N{GREEK SMALL LETTER GAMMA}" if curve.method.family == "frank-wolfe" else "η"
    shown = (("learning_rate", rate), ("inner_steps", "K"))
    words = [f"{sign} = {table[key]}" for key, sign in shown if key in table]
    setting = ", ".join(word for word in words if word not in curve.label)
    text = verbatim(curve.label)
    return Line2D([], [], label=f"{text}\n   {setting}" if setting else text, **style)


def styles_of(curves: list[Curve]) -> dict[str, Style]:
    """Colour by family and place in it; thick for the paper's method, broken for projections.

    Where the adaptive method varies in one setting, its colours go from dark to light.
    """
    families = [curve.method.family for curve in curves]
    palettes = dict(_PALETTES)
    varied = families.count("adaptive") > len(palettes["adaptive"])
    if varied:
        palettes["adaptive"] = _ramp(families.count("adaptive"))
    styles = {}
    for place, (curve, family) in enumerate(zip(curves, families, strict=True)):
        number = families[:place].count(family)
        main = family == "adaptive" and number == 0 and not varied
        styles[curve.label] = {
            "color": palettes[family][number % len(palettes[family])],
            "linestyle": _dashes(curve),
            "linewidth": 2.4 if main else 1.4,
        }
    return styles


def _ramp(n: int) -> tuple[str, ...]:
    """n colours from dark violet to yellow."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return tuple(to_hex(colormaps["plasma"](0.9 * i / (n - 1))) for i in range(n))


def _dashes(curve: Curve) -> str:
    """Solid without projections, dashed with, dash-dotted if gradients are more than minibatch."""
    if curve.method.family == "projected":
        return "--" if curve.method.estimator == "Minibatch" else "-."
    return ":" if curve.method.family == "other" else "-"
