"""What is read off traces of `minimize`: bounds on the minimum, times to a gap, last iterates."""

import math

import numpy as np

from adafw.experiments.outcome import Curve, Outcome
from adafw.experiments.spec import Case, Method
from adafw.experiments.spread import Column, quartiles
from adafw.recorder import AnyRecords, Trace
from adafw.typing import JsonTable

#: The roles of runs that are not compared: one is there for the lower bound alone, one counts how
#: often bounds on the inner step sizes would have been active.
REFERENCE, AUDIT = "reference", "audit"

_FINAL = (
    "gap", "value", "epoch", "iteration", "lmo_calls", "projections", "cpu_seconds", "nonzeros",
    "violation",
)  # fmt: skip


def lower_bound(outcome: Outcome, case: Case[Method]) -> float:
    """The best lower bound on the minimum that any run proved."""
    return float(np.nanmax([trace["lower_bound"].max() for trace in _traces(outcome, case)]))


def doubt(outcome: Outcome, case: Case[Method]) -> float:
    """How far above that bound the minimum may lie: where the best run got, or rounding."""
    bound = lower_bound(outcome, case)
    least = float(np.nanmin([trace["value"].min() for trace in _traces(outcome, case)]))
    # Nobody knows a minimum better than its last digit, and 0 has no place on a log axis.
    return max(least - bound, 1e-15 * abs(bound))


def lower_bounds(outcome: Outcome) -> JsonTable:
    """Both, for summary.json."""
    cases = outcome.spec.cases
    return {
        "lower_bound": {case.name: lower_bound(outcome, case) for case in cases},
        "minimum_above_it_by_at_most": {case.name: doubt(outcome, case) for case in cases},
    }


def _traces(outcome: Outcome, case: Case[Method]) -> list[AnyRecords]:
    """All that ran on the case, the reference run included."""
    found = [trace for curve in outcome.of(case) for trace in curve.traces.values()]
    extra = outcome.extras.get(REFERENCE, {}).get(case.name)
    if extra is not None:
        found.append(Trace([tuple(row) for row in extra["records"]]))
    return [trace for trace in found if len(trace)]


def seconds_to(curve: Curve, gap: float) -> float:
    """Median CPU seconds until the gap is at most this; inf where most runs never got there."""
    return float(np.median(each_seconds_to(curve, gap)))


def each_seconds_to(curve: Curve, gap: float) -> Column:
    """CPU seconds until the gap is at most this, one for each seed; inf if never.

    Between two records the logarithm of the gap is taken to fall evenly.
    """
    return np.array([_time_to(trace, gap) for trace in curve.traces.values()])


def _time_to(trace: AnyRecords, gap: float) -> float:
    below = np.flatnonzero(trace["gap"] <= gap)
    if not below.size:
        return math.inf
    i, seconds, gaps = int(below[0]), trace["cpu_seconds"], trace["gap"]
    if i == 0 or not 0 < gaps[i] < gaps[i - 1] < math.inf:
        return float(seconds[i])
    share = math.log(gaps[i - 1] / gap) / math.log(gaps[i - 1] / gaps[i])
    return float(seconds[i - 1] + share * (seconds[i] - seconds[i - 1]))


def last_iterate(curve: Curve) -> dict[str, dict[str, float]]:
    """Median and quartiles over seeds at the end of the runs."""
    return {name: quartiles(curve.final(name)) for name in _FINAL}
