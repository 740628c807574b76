"""Figures: gap and objective against CPU time, epochs and LMO calls, median and band over seeds."""

import io
import textwrap
from pathlib import Path
from typing import Any

from adafw.experiments import scaling_figures
from adafw.experiments.drawing import draw_line, plain
from adafw.experiments.results import Line, Outcome, band
from adafw.experiments.spec import AnyProblem, Problem, Spec, form
from adafw.io.atomic import replacing

_COLUMNS = (
    ("cpu_seconds", "CPU time (s)"),
    ("epoch", "epochs"),
    ("lmo_calls", "LMO calls (broken lines: projections)"),
)

#: Colours that colour-blind readers tell apart (after Wong 2011), by family of methods.
_FRANK_WOLFE = ("#8c8c8c", "#56b4e9", "#0072b2", "#009e73", "#6a51a3", "#4d4d4d")
_ADAPTIVE = ("#d55e00", "#e69f00", "#c43c6e")
_PROJECTED = ("#000000", "#cc79a7", "#117733", "#882255", "#7a9a01", "#aa4499")
_OTHER = ("#117733", "#4d4d4d", "#0072b2")


def draw(outcome: Outcome) -> Any:
    """A matplotlib figure: for each problem a row of gaps and a row of objectives."""
    from matplotlib.figure import Figure

    from adafw.experiments.networks import figures as networks

    spec = outcome.spec
    if spec.scaling:
        figure = scaling_figures.draw(outcome)
        _frame(figure, spec)
        return figure
    draw_problem: Any = networks.draw_problem if spec.networks else _draw_problem
    rows = 2 * len(spec.problems)
    figure = Figure(figsize=(13, 3.4 * rows + 1.9), layout="constrained")
    parts = figure.subfigures(len(spec.problems), 1, squeeze=False)[:, 0]
    for part, problem in zip(parts, spec.problems, strict=True):
        draw_problem(part, outcome, problem)
    _frame(figure, spec)
    return figure


def _frame(figure: Any, spec: Spec) -> None:
    """The title, and the settings as the foot."""
    figure.suptitle(
        spec.title + (f" ({form(spec)} form)" if spec.quick or spec.reduced else ""),
        weight="bold",
        fontsize=13,
    )
    figure.supxlabel(_settings(spec), fontsize=8.5, color="#444444", x=0.01, ha="left")


def _draw_problem(part: Any, outcome: Outcome, problem: Problem) -> None:
    axes = part.subplots(2, len(_COLUMNS), sharey="row")
    lines = outcome.of(problem)
    styles = styles_of(lines)
    reference = outcome.reference(problem)
    for row, (quantity, shift, name) in enumerate(
        (("gap", 0.0, "Frank-Wolfe gap"), ("value", reference, "objective - lower bound"))
    ):
        for axis, (x, label) in zip(axes[row], _COLUMNS, strict=True):
            for line in lines:
                column = "projections" if (x, line.family) == ("lmo_calls", "projected") else x
                draw_line(axis, band(line, column, quantity, shift), styles[line.label])
            axis.set(xscale="log", yscale="log", xlabel=label)
            plain(axis)
        axes[row][0].set_ylabel(name)
    explain(part, outcome, problem, styles)


def explain(
    part: Any, outcome: Outcome, problem: AnyProblem, styles: dict[str, dict[str, Any]]
) -> None:
    """The legend of a problem's axes, and a title that says what the data are."""
    handles = [_handle(line, styles[line.label]) for line in outcome.of(problem)]
    part.legend(handles=handles, loc="outside right center", frameon=False, fontsize=8.5)
    about = outcome.data[problem.name]
    colour = "#b00020" if about["is_stand_in"] else "#222222"
    text = textwrap.fill(f"{about['label']}; {problem.words}", 165)
    part.suptitle(text, fontsize=9.5, color=colour)


def _handle(line: Line, style: dict[str, Any]) -> Any:
    from matplotlib.lines import Line2D

    table = line.spec.options
    rate = "\N{GREEK SMALL LETTER GAMMA}" if line.family == "frank-wolfe" else "η"
    shown = (("learning_rate", rate), ("inner_steps", "K"))
    words = [f"{sign} = {table[key]}" for key, sign in shown if key in table]
    setting = ", ".join(word for word in words if word not in line.label)
    return Line2D([], [], label=f"{line.label}\n   {setting}" if setting else line.label, **style)


def styles_of(lines: list[Line]) -> dict[str, dict[str, Any]]:
    """Colour by family and place in it; thick for the paper's method, broken for projections.

    Where the adaptive method varies in one setting, its colours go from dark to light.
    """
    palettes = {
        "frank-wolfe": _FRANK_WOLFE, "adaptive": _ADAPTIVE, "projected": _PROJECTED,
        "other": _OTHER,
    }  # fmt: skip
    families = [line.family for line in lines]
    varied = families.count("adaptive") > len(_ADAPTIVE)
    if varied:
        palettes["adaptive"] = _ramp(families.count("adaptive"))
    styles = {}
    for place, line in enumerate(lines):
        number = families[:place].count(line.family)
        palette = palettes[line.family]
        main = line.family == "adaptive" and number == 0 and not varied
        styles[line.label] = {
            "color": palette[number % len(palette)],
            "linestyle": _dashes(line),
            "linewidth": 2.4 if main else 1.4,
        }
    return styles


def _ramp(n: int) -> tuple[str, ...]:
    """n colours from dark violet to yellow."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return tuple(to_hex(colormaps["plasma"](0.9 * i / (n - 1))) for i in range(n))


def _dashes(line: Line) -> str:
    """Solid without projections, dashed with, dash-dotted if gradients are more than minibatch."""
    if line.family == "projected":
        return "--" if line.minibatch else "-."
    return ":" if line.family == "other" else "-"


def _settings(spec: Spec) -> str:
    """The settings as the foot of the figure."""
    budget = ", ".join(f"{key} = {value}" for key, value in spec.budget.items())
    spread = "Mean and standard deviation" if spec.networks else "Median and quartiles"
    head = (
        f"Each run: {budget}. {spread} over {len(spec.seeds)} seeds"
        f"{f' of {spec.repeats} repeats' if spec.repeats > 1 else ''}, one thread a process. "
        "Time without measuring."
    )
    return "\n".join(textwrap.fill(line, 190) for line in (head, *spec.notes))


def svg(figure: Any) -> str:
    """The figure as SVG text with a fixed salt, so that the same data give the same bytes."""
    import matplotlib

    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "adafw", "svg.fonttype": "path"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def save(outcome: Outcome, folder: Path) -> str:
    """Writes figure.svg and figure.png; returns the SVG text for the report."""
    figure = draw(outcome)
    text = svg(figure)
    with replacing(folder / "figure.svg") as partial:
        partial.write_text(text, encoding="utf-8")
    with replacing(folder / "figure.png") as partial:
        figure.savefig(partial, format="png", dpi=110)
    return text
