"""The tables of a report on the zoo."""

import math
from html import escape

from adafw.experiments.html import case_heading
from adafw.experiments.outcome import Curve, Outcome
from adafw.experiments.spec import Case, Method
from adafw.experiments.spread import median
from adafw.experiments.zoo.case import FAMILIES, family_of
from adafw.experiments.zoo.ranking import (
    HIGH,
    LOW,
    WORK,
    best,
    of_family,
    reached,
    scale_of,
    work_to,
)
from adafw.page import html_table

RULE = (
    f"Accuracy is f - the best lower bound proved, over the same at x₀: {LOW:g} is low, {HIGH:g} "
    "high. A method is the best to a level if it takes the least work to it, median over seeds; a "
    "claim fails if another family's is, and is undecided if nobody gets there."
)


def zoo_tables(outcome: Outcome) -> list[str]:
    """The best of each family, then all methods, for each problem."""
    return [
        "<h2>The best of each family</h2>",
        *[_leaders(outcome, case) for case in outcome.spec.cases],
        "<h2>All methods</h2>",
        "<p>Work to low and to high accuracy, and what the last iterates reached within the "
        'budget; medians over seeds. Every learning rate is "auto".</p>',
        *[_all(outcome, case) for case in outcome.spec.cases],
    ]


def _leaders(outcome: Outcome, case: Case[Method]) -> str:
    scale, rows = scale_of(outcome, case), []
    for family in FAMILIES:
        curves = of_family(outcome, case, family)
        if curves:
            cells = [
                _leader(best(curves, column, level, scale), column, level, scale)
                for level in (LOW, HIGH) for column in ("cpu_seconds", "epoch")
            ]  # fmt: skip
            nearest = min(curves, key=lambda curve: median(curve.final("gap")))
            gap = f"{escape(nearest.label)}: {median(nearest.final('gap')):.1e}"
            rows.append([family, *cells, gap])
    head = ["Family", *(f"{level:g}, {WORK[column]}" for level in (LOW, HIGH)
                        for column in ("cpu_seconds", "epoch")), "smallest final gap"]  # fmt: skip
    return case_heading(outcome, case) + html_table(head, rows, numbers=())


def _leader(curve: Curve, column: str, level: float, scale: tuple[float, float]) -> str:
    work = work_to(curve, column, level, scale)
    return f"{escape(curve.label)}: {work:.3g}" if math.isfinite(work) else "never"


def _all(outcome: Outcome, case: Case[Method]) -> str:
    scale = scale_of(outcome, case)
    rows = [
        [
            escape(curve.label), family_of(curve.method), escape(curve.path),
            *(_number(work_to(curve, column, level, scale))
              for column in WORK for level in (LOW, HIGH)),
            f"{reached(curve, scale):.1e}", f"{median(curve.final('gap')):.1e}",
        ]
        for curve in outcome.of(case)
    ]  # fmt: skip
    head = ["Algorithm", "Family", "Code", *(f"{word} to {level:g}" for word in WORK.values()
            for level in (LOW, HIGH)), "reached", "final gap"]  # fmt: skip
    return case_heading(outcome, case) + html_table(head, rows, numbers=range(3, 11))


def _number(work: float) -> str:
    return f"{work:.3g}" if math.isfinite(work) else "-"
