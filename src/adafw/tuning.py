"""The paper's search for a learning rate (section 3.6)."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from adafw import checks
from adafw.algorithm import Algorithm
from adafw.constraints.base import Constraint
from adafw.minimize import minimize
from adafw.objectives.base import FiniteSum

#: A seed that no experiment judges by.
TUNING_SEED = 9_001

Measure = Literal["gap", "value"]


@dataclass(frozen=True)
class Trial:
    """One run of the search: exponent i, eta = 10^(i/2), what it reached, and why it stopped."""

    exponent: int
    learning_rate: float
    value: float
    gap: float
    status: str


@dataclass(frozen=True)
class Tuning:
    """The search and its outcome: `learning_rate`, `best` and all `trials` in the order tried."""

    best: Trial
    trials: tuple[Trial, ...]
    measure: str
    settled: bool

    @property
    def learning_rate(self) -> float:
        """eta of the best trial."""
        return self.best.learning_rate

    def __str__(self) -> str:
        has_gaps = not all(math.isnan(t.gap) for t in self.trials)  # networks are judged without
        head = f"{'eta':>9} {'i':>4} {'value':>14} {'gap':>11}  status"
        lines = [head if has_gaps else head.replace(f" {'gap':>11}", "")]
        for t in sorted(self.trials, key=lambda t: t.exponent):
            gap = f" {t.gap:>11.4e}" if has_gaps else ""
            mark = f"  <- best by {self.measure}" if t is self.best else ""
            eta = power_of_ten(t.exponent)
            lines.append(f"{eta:>9} {t.exponent:>4} {t.value:>14.8g}{gap}  {t.status}{mark}")
        if not self.settled:
            lines.append("stopped at the limit on trials or time; the best is at an end")
        return "\n".join(lines)

    __repr__ = __str__


def tune(
    f: FiniteSum,
    constraint: Constraint,
    make_algorithm: Callable[[float], Algorithm],
    *,
    measure: Measure = "gap",
    seed: int = TUNING_SEED,
    max_trials: int = 15,
    report: Callable[[Trial], None] | None = None,
    total_seconds: float = math.inf,
    **budget: Any,
) -> Tuning:
    """Searches eta in {10^(i/2)}: from i in {-2, 0, 2} to the neighbours of the best, and on.

    While the best of all trials lacks a neighbour i - 1 or i + 1, those are run; this narrows the
    start set and extends it at an end by one rule. Runs are deterministic under a budget of
    iterations, epochs or LMO calls. A diverged run counts as worst; ties go to the smaller eta.

    Parameters
    ----------
    make_algorithm : learning rate -> algorithm, e.g. `lambda eta: adafw.AdaCSFW(eta)`.
    measure : what the last iterate is judged by, "gap" or "value".
    seed : of the index stream; the default is used by no experiment, as one must not judge by it.
    max_trials : bound on the runs.
    report : called after every run.
    total_seconds : when so many have passed, the search ends with the best so far.
    budget : limits of a run, e.g. max_epochs=20, or anything else that `minimize` takes.
    """
    if measure not in ("gap", "value"):
        raise ValueError(f'measure must be "gap" or "value", got {measure!r}.')
    checks.integer(max_trials, "max_trials", 3)
    if not budget:
        raise ValueError("tune needs a budget for each run, for instance max_epochs=20.")

    end = time.monotonic() + checks.real(total_seconds, "total_seconds", 0, infinite=True)
    limits = dict(budget)
    of_each = limits.pop("max_seconds", None)

    def run(i: int, learning_rate: float) -> Trial:
        left = max(0.0, end - time.monotonic())
        seconds = left if of_each is None else min(of_each, left)
        algorithm = make_algorithm(learning_rate)
        result = minimize(f, constraint, algorithm, seed=seed, max_seconds=seconds, **limits)
        return Trial(i, learning_rate, result.value, result.gap, result.status)

    return search(run, measure, max_trials, report, lambda: time.monotonic() >= end)


def search(
    run: Callable[[int, float], Trial],
    measure: Measure,
    max_trials: int = 15,
    report: Callable[[Trial], None] | None = None,
    over: Callable[[], bool] = lambda: False,
    first: tuple[int, ...] = (-2, 0, 2),
    exactly: bool = False,
) -> Tuning:
    """The search of `tune` over any runs: run(i, 10^(i/2)) is asked for what that rate reached.

    Once `over` says so, no further run begins. `first`: the exponents to begin with. `exactly`:
    `max_trials` are made in any case, the next ones as near to the best as there are.
    """
    trials: dict[int, Trial] = {}
    wanted = list(first)
    while True:
        for i in wanted:
            # One run at least, so that there is a best one.
            if trials and over():
                break
            trials[i] = run(i, 10.0 ** (i / 2))
            if report is not None:
                report(trials[i])
        best = min(trials.values(), key=lambda t: (_rank(t, measure), t.exponent))
        missing = [i for i in (best.exponent - 1, best.exponent + 1) if i not in trials]
        # Both neighbours known and none better: a minimum along the grid.
        left = max_trials - len(trials)
        if exactly and left > 0 and not missing:
            around = (
                best.exponent + d * sign for d in range(2, max_trials + 2) for sign in (-1, 1)
            )
            wanted = [next(i for i in around if i not in trials)]
        else:
            wanted = missing[: max(0, left)]
        if not wanted or over():
            return Tuning(best, tuple(trials.values()), measure, settled=not missing)


def _rank(trial: Trial, measure: str) -> float:
    """What is minimised; inf for a run that diverged or has no number to show."""
    reached = float(getattr(trial, measure))
    return math.inf if trial.status == "diverged" or math.isnan(reached) else reached


def power_of_ten(exponent: int) -> str:
    """10^(i/2) as the paper writes it: 10^-3/2."""
    return f"10^{exponent}/2" if exponent % 2 else f"10^{exponent // 2}"
