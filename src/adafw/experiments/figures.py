"""figure.svg and figure.png: what the kind draws, under the title and over the settings."""

import io
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from adafw.experiments.drawing import verbatim
from adafw.experiments.kinds import kind_of
from adafw.experiments.outcome import Outcome
from adafw.experiments.spec import Spec
from adafw.io.atomic import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(outcome: Outcome) -> "Figure":
    """A matplotlib figure."""
    spec = outcome.spec
    figure = kind_of(spec).draw(outcome)
    title = spec.title if spec.form == "full" else f"{spec.title} ({spec.form} form)"
    figure.suptitle(verbatim(title), weight="bold", fontsize=13)
    figure.supxlabel(verbatim(_foot(spec)), fontsize=8.5, color="#444444", x=0.01, ha="left")
    return figure


def _foot(spec: Spec) -> str:
    """The settings and notes."""
    budget = ", ".join(f"{key} = {value}" for key, value in spec.budget.items())
    head = (
        f"Each run: {budget}. {kind_of(spec).spread} over {len(spec.seeds)} seeds"
        f"{f' of {spec.repeats} repeats' if spec.repeats > 1 else ''}, one thread a process. "
        "Time without measuring."
    )
    return "\n".join(textwrap.fill(note, 190) for note in (head, *spec.notes))


def svg(figure: "Figure") -> str:
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
