"""How far every method got, and how much work it took to low and to high accuracy."""

import math

import numpy as np

from adafw.experiments.convex.measures import lower_bound
from adafw.experiments.outcome import Curve, Outcome
from adafw.experiments.spec import Case, Method
from adafw.experiments.spread import median
from adafw.experiments.zoo.case import FAMILIES, family_of
from adafw.recorder import AnyRecords
from adafw.typing import JsonTable

#: Shares of f(x_0) - min f that count as low and as high accuracy.
LOW, HIGH = 1e-2, 1e-6
#: What work is counted in.
WORK = {"cpu_seconds": "CPU s", "epoch": "epochs", "lmo_calls": "LMO calls"}


def scale_of(outcome: Outcome, case: Case[Method]) -> tuple[float, float]:
    """(the best lower bound proved, f(x_0) above it): what suboptimality is measured by."""
    bound = lower_bound(outcome, case)
    start = next(t["value"][0] for c in outcome.of(case) for t in c.traces.values())
    return bound, float(start) - bound


def work_to(curve: Curve, column: str, level: float, scale: tuple[float, float]) -> float:
    """The median over seeds of what was used up when the level was reached; inf if it never was."""
    found = [_first(trace, column, level, scale) for trace in curve.traces.values()]
    # Of an even number the larger of the middle two: between a number and inf there is none.
    return float(np.quantile(found, 0.5, method="higher"))


def _first(trace: AnyRecords, column: str, level: float, scale: tuple[float, float]) -> float:
    bound, height = scale
    below = np.flatnonzero(trace["value"] - bound <= level * height)
    return float(trace[column][below[0]]) if below.size else math.inf


def reached(curve: Curve, scale: tuple[float, float]) -> float:
    """The median suboptimality of the last iterates, as a share of the first."""
    return float(np.median((curve.final("value") - scale[0]) / scale[1]))


def of_family(outcome: Outcome, case: Case[Method], *families: str) -> list[Curve]:
    """The curves of these families, all if none is named."""
    wanted = families or FAMILIES
    return [curve for curve in outcome.of(case) if family_of(curve.method) in wanted]


def best(curves: list[Curve], column: str, level: float, scale: tuple[float, float]) -> Curve:
    """That with the least work to the level; of those that never got there the lowest."""
    return min(curves, key=lambda c: (work_to(c, column, level, scale), reached(c, scale)))


def ranking(outcome: Outcome) -> list[JsonTable]:
    """Family, work to both levels, and where the last iterates are, of all methods by problems."""
    rows = []
    for case in outcome.spec.cases:
        scale = scale_of(outcome, case)
        for curve in outcome.of(case):
            work = {
                column: {
                    f"{level:g}": work_to(curve, column, level, scale) for level in (LOW, HIGH)
                }
                for column in WORK
            }
            rows.append({
                "problem": case.name, "algorithm": curve.label, "family": family_of(curve.method),
                "work": work, "reached": reached(curve, scale), "gap": median(curve.final("gap")),
            })  # fmt: skip
    return rows
