"""How the advantage over projection changes with the dimension: times to goals, their ratios.

A goal is a Frank-Wolfe gap relative to f(x_0) - f_low, f_low being the best lower bound that any
run on the problem proved. The advantage is the projected method's CPU time to the goal over that of
the adaptive Frank-Wolfe method, seed by seed. Where only one of them gets there, the time that the
other one spent gives a bound on it.
"""

import math
from dataclasses import dataclass
from typing import cast

import numpy as np

from adafw.experiments.convex.measures import each_seconds_to, lower_bound
from adafw.experiments.outcome import Curve, Outcome
from adafw.experiments.series.case import SeriesCase
from adafw.experiments.spread import Column, quartiles
from adafw.experiments.verdicts import UNDECIDED, UNTESTED, Claim
from adafw.typing import JsonTable

#: The one claim on series, as files name it.
GROWS_CLAIM = "advantage grows with dimension"

GROWS, DOES_NOT_GROW, NOT_MONOTONE = "grows", "does not grow", "not monotone"
NO_ADVANTAGE, REVERSED = "no advantage", "reversed"


@dataclass(frozen=True, eq=False)
class Ratio:
    """The advantage at a goal: quartiles over seeds; `bound` is ">=" or "<=" if some are bounds."""

    goal: float
    ours: dict[str, float]
    theirs: dict[str, float]
    ratio: dict[str, float]
    bound: str

    @property
    def known(self) -> bool:
        """Whether either side got there, in most seeds."""
        return math.isfinite(self.ratio["median"])

    @property
    def ends(self) -> tuple[float, float]:
        """The band, open on the side on which only a bound is known."""
        low = 0.0 if self.bound == "<=" else self.ratio["lower"]
        return low, math.inf if self.bound == ">=" else self.ratio["upper"]

    def __str__(self) -> str:
        if not self.known:
            return "not reached"
        sign = {"": "", ">=": "≥ ", "<=": "≤ "}[self.bound]
        return f"{sign}{self.ratio['median']:.2g}"


@dataclass(frozen=True, eq=False)
class Size:
    """One problem of a series."""

    name: str
    n: int
    scale: float
    ours: Curve
    theirs: Curve
    ratios: tuple[Ratio, ...]

    def table(self) -> JsonTable:
        """Plain numbers, for summary.json."""
        return {
            "problem": self.name,
            "dimension": self.n,
            "first_objective_above_lower_bound": self.scale,
            **{
                side: {
                    "algorithm": curve.label,
                    "seconds_per_iteration": quartiles(per_iteration(curve)),
                    "seconds_per_step_alone": quartiles(step_costs(curve)),
                }
                for side, curve in (("frank_wolfe", self.ours), ("projected", self.theirs))
            },
            "goals": [
                {
                    "relative_gap": r.goal,
                    "frank_wolfe_seconds": r.ours,
                    "projected_seconds": r.theirs,
                    "ratio": r.ratio,
                    "bound": r.bound,
                }
                for r in self.ratios
            ],
        }


def per_iteration(curve: Curve) -> Column:
    """CPU seconds an iteration, gradient included, one for each seed."""
    return curve.final("cpu_seconds") / np.maximum(1, curve.final("iteration"))


def step_costs(curve: Curve) -> Column:
    """CPU seconds of a step alone, one for each seed that ran to its end; NaN if none did.

    They are those of generic code: of a run of compiled code they would tell nothing.
    """
    generic = curve.path != "compiled"
    return np.array((list(curve.step_seconds.values()) if generic else []) or [math.nan])


def sizes(outcome: Outcome) -> dict[str, list[Size]]:
    """For each series its problems, smallest first."""
    found: dict[str, list[Size]] = {}
    cases = cast(tuple[SeriesCase, ...], outcome.spec.cases)
    for case in cases:
        by_label = {curve.label: curve for curve in outcome.of(case)}
        ours, theirs = (by_label[method.label] for method in case.pair)
        first = next(iter(ours.traces.values()))["value"][0]
        scale = float(first - lower_bound(outcome, case))
        ratios = tuple(_ratio(ours, theirs, scale, goal) for goal in outcome.spec.goals)
        n = int(outcome.data[case.name]["shape"][1])
        size = Size(case.name, n, scale, ours, theirs, ratios)
        found.setdefault(case.series, []).append(size)
    return {name: sorted(row, key=lambda size: size.n) for name, row in found.items()}


def _ratio(ours: Curve, theirs: Curve, scale: float, goal: float) -> Ratio:
    mine, other = (each_seconds_to(curve, goal * scale) for curve in (ours, theirs))
    spent_mine, spent_other = ours.final("cpu_seconds"), theirs.final("cpu_seconds")
    at_least, at_most = np.isinf(other) & np.isfinite(mine), np.isinf(mine) & np.isfinite(other)
    reached = np.isfinite(mine) | np.isfinite(other)
    ratio = np.full(len(mine), math.nan)
    np.divide(
        np.where(at_least, spent_other, other), np.where(at_most, spent_mine, mine), out=ratio,
        where=reached,
    )  # fmt: skip
    half = len(ratio) / 2
    bound = ">=" if at_least.any() else "<=" if at_most.any() else ""
    if np.isnan(ratio).sum() > half or (at_least.any() and at_most.any()):
        spread = dict.fromkeys(("median", "lower", "upper"), math.nan)
    else:
        spread = quartiles(ratio[~np.isnan(ratio)])
    return Ratio(goal, quartiles(mine), quartiles(other), spread, bound)


def verdict(ratios: list[Ratio]) -> str:
    """On "the advantage grows with the dimension", from the ratios at one goal, smallest n first.

    It grows if at the largest n the adaptive method is faster, by a factor whose band lies above
    that at the smallest n, and no band lies below that of a smaller n; with such a dip it is not
    monotone. Where projection is faster at the largest n, there is no advantage, and the conjecture
    is reversed if the ratio has also fallen. A bound is a band without an end.
    """
    first, last = ratios[0], ratios[-1]
    if not last.known:
        return UNTESTED
    if last.ends[1] < 1:
        return REVERSED if first.known and last.ends[1] < first.ends[0] else NO_ADVANTAGE
    if not first.known:
        return UNTESTED
    if last.ends[0] > max(1.0, first.ends[1]):
        known = [ratio for ratio in ratios if ratio.known]
        dips = any(b.ends[1] < a.ends[0] for i, a in enumerate(known) for b in known[i + 1 :])
        return NOT_MONOTONE if dips else GROWS
    # With the other end of its band a ratio might still have grown.
    might = last.ends[1] > first.ratio["upper"] or first.ends[0] < last.ratio["lower"]
    return UNDECIDED if (first.bound or last.bound) and might else DOES_NOT_GROW


def judge_series(outcome: Outcome) -> list[Claim]:
    """A verdict for every series and goal."""
    found = []
    for name, row in sizes(outcome).items():
        for i, goal in enumerate(outcome.spec.goals):
            ratios = [size.ratios[i] for size in row]
            statement = (
                "The advantage over projection in CPU time grows with the dimension: "
                f"to a relative gap of {goal:g}."
            )
            listed = ", ".join(
                f"{ratio} at n = {size.n}" for size, ratio in zip(row, ratios, strict=True)
            )
            evidence = f"projected / Frank-Wolfe time: {listed}"
            decided = verdict(ratios) if len(outcome.spec.seeds) > 1 else UNDECIDED
            found.append(Claim(name, statement, "section 5", decided, evidence))
    return found
