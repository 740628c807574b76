"""Cells and headings of a report's tables."""

from html import escape

from adafw.experiments.outcome import Curve, Outcome
from adafw.experiments.spec import Case, Method
from adafw.experiments.spread import median

_COMPARISON = (
    "A comparison holds if it does for the {}, fails if the opposite does, and is undecided if the "
    "bands overlap. All at the same budget."
)


def comparison_rule(what: str) -> str:
    """When a claim that compares holds, the middle and the bands being `what`."""
    return _COMPARISON.format(what)


def case_heading(outcome: Outcome, case: Case[Method]) -> str:
    """The name of a case, where there are several."""
    return f"<h3>{escape(case.name)}</h3>" if len(outcome.spec.cases) > 1 else ""


def count_cell(curve: Curve, column: str) -> str:
    """The median of a column's last entries, large ones in groups of three digits."""
    middle = median(curve.final(column))
    return f"{middle:,.0f}".replace(",", "\u202f") if middle >= 100 else f"{middle:.3g}"
