"""The last iterates, as tables of a report."""

import math
from html import escape

from adafw.experiments.convex.measures import doubt, lower_bound
from adafw.experiments.html import case_heading, comparison_rule, count_cell
from adafw.experiments.outcome import Curve, Outcome
from adafw.experiments.spec import Case, Method
from adafw.experiments.spread import median, quartiles
from adafw.page import html_table

RULE = comparison_rule("medians over seeds and the quartile bands are apart")

_HEAD = ["Algorithm", "Gap", "Objective - bound", "CPU s", "Epochs", "Iterations", "LMO calls",
         "Projections", "Non-zeros", "Ended by"]  # fmt: skip
_COUNTS = ("cpu_seconds", "epoch", "iteration", "lmo_calls", "projections", "nonzeros")


def final_numbers(outcome: Outcome) -> list[str]:
    """A table for each case."""
    return [
        "<h2>Final numbers</h2>",
        "<p>Last iterate of every run: median over seeds [quartiles]. The objective is shown above "
        "the best lower bound that any run proved. Highlighted: smallest median gap.</p>",
        *[_table(outcome, case) for case in outcome.spec.cases],
    ]


def _table(outcome: Outcome, case: Case[Method]) -> str:
    curves = outcome.of(case)
    best = min(curves, key=lambda curve: median(curve.final("gap")))
    bound = lower_bound(outcome, case)
    rows = [
        [
            escape(curve.label),
            _spread(curve, "gap"),
            _spread(curve, "value", bound),
            *(count_cell(curve, name) for name in _COUNTS),
            escape(", ".join(sorted(set(curve.statuses.values())))),
        ]
        for curve in curves
    ]
    known = (
        f'<p class="quiet">The minimum is at least {bound:.10g}, the bound, and at most '
        f"{doubt(outcome, case):.1e} above it.</p>"
    )
    table = html_table(_HEAD, rows, numbers=range(1, 9), best=curves.index(best))
    return case_heading(outcome, case) + table + known


def _spread(curve: Curve, column: str, shift: float = 0.0) -> str:
    q = quartiles(curve.final(column) - shift)
    if math.isinf(q["median"]):
        return "diverged"
    return f"{q['median']:.2e}<br><small>[{q['lower']:.1e}, {q['upper']:.1e}]</small>"
