"""One linear model under a constraint, fitted to a relative gap."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.algorithm import Algorithm
from adafw.constraints.base import Constraint
from adafw.fitting.choice import SAMPLE, Preset, choose, search
from adafw.fitting.design import Design, Intercept
from adafw.fitting.judge import FLOOR, Judge
from adafw.fitting.settings import Plan
from adafw.gradients import Full
from adafw.minimize import Callback, minimize
from adafw.objectives import FiniteSum
from adafw.objectives.base import Unavailable
from adafw.random import Blocks
from adafw.recorder import Record, Trace
from adafw.result import Result
from adafw.solver import State
from adafw.typing import Array, StateDict


@dataclass(frozen=True)
class Fit:
    """Coefficients, intercept, and what is certified about them.

    Of a model fitted jointly, `coef` has one column, `intercept` one entry a class or target.

    No coefficients of the set with any intercept have a mean loss below value - gap, nor below
    `lower_bound`. `gap` is the exact Frank-Wolfe gap, or where that is smaller the value less what
    the loss is never below. Where the gap stays above the tolerance, or float32 coefficients are
    rounded, the value less the best bound of all records counts, too.
    `status` is "converged", the name of a limit, "rounding" (which allows no more progress),
    "stalled" (there was none, though rounding would allow it), "interrupted", "diverged" or
    "not started".
    """

    coef: NDArray[Any]
    intercept: Intercept
    value: float
    gap: float
    lower_bound: float
    violation: float
    n_iter: int
    status: str
    trace: Trace = field(repr=False)
    algorithm: str = ""
    learning_rate: float = math.nan
    #: False if ten times the radius would certainly lower the value by less than 1 %.
    radius_matters: bool = True
    #: Where to go on from; None in a fit read from a checkpoint.
    resume: "Resume | None" = field(default=None, repr=False)

    @property
    def tolerance_reached(self) -> float:
        """gap / max(|value|, 1e-12): what `tol` is compared with."""
        return self.gap / max(abs(self.value), FLOOR)


@dataclass(frozen=True)
class Resume:
    """Where an earlier run was: with it, a fit goes on bit for bit."""

    state: State
    learning_rate: float
    batch_intercept: Intercept


#: Called at every record with what would resume there; returning True stops.
Watch = Callable[[Record, Resume], bool | None]


def fit_linear(
    design: Design,
    y: NDArray[Any],
    plan: Plan,
    *,
    start: Array | None = None,
    resume: Resume | None = None,
    watch: Watch | None = None,
    seconds: float = math.inf,
) -> Fit:
    """Minimises the mean loss over the set until gap <= tol * max(|value|, 1e-12).

    Parameters
    ----------
    y : targets as the loss takes them (labels -1 and +1; class numbers for `Softmax`).
    start : coefficients to start from; projected onto the set, or ignored if outside a set that
        cannot project.
    resume : where an earlier run of the same problem was; epochs count from its beginning.
    seconds : that may pass from now on.
    """
    settings, constraint = plan.settings, plan.constraint

    def find_rate(preset: Preset) -> float:
        if resume is not None:
            return resume.learning_rate
        # On a part of the rows: rates carry over, and the search must not cost more than the fit.
        part, y_part = design.sample(y, SAMPLE, settings.seed)
        f = part.risk(y_part, plan.loss, settings.fit_intercept).f
        return search(f, constraint, preset, seconds)

    choice = choose(design.doubled, plan, find_rate)
    # Exact steps come near the minimum, where float32 iterates would be rounding error: float32
    # data stay what they are, and the iterates are float64 until the end.
    exact = isinstance(choice.algorithm.gradient, Full)
    risk = (design.doubled if exact else design).risk(y, plan.loss, settings.fit_intercept)
    every = _record_every(choice.algorithm, design.rows.shape[0])
    judge = Judge(risk, constraint, settings.tol, every, choice, design.rows.dtype)
    calls: list[Callback] = [judge]
    if watch is not None:
        calls.append(lambda s, record: watch(record, _resume(s, judge)))
    if resume is not None:
        judge.restore(resume.state, resume.batch_intercept)
        how: StateDict = {"state": resume.state}
    else:
        x0 = _inside(start, constraint, risk.f)
        # Scattered rows of a disk cost a read each.
        blocks = design.rows.streamed and not exact
        how = {"x0": x0, "seed": Blocks(settings.seed) if blocks else settings.seed}
    # Limits of `minimize` count from the very beginning; the deadline is about this call.
    used = 0.0 if resume is None else resume.state.wall_seconds
    try:
        result = minimize(
            risk.f, constraint, choice.algorithm, max_epochs=settings.max_epochs,
            max_seconds=used + seconds, record_every=every, callbacks=calls, progress=False, **how,
        )  # fmt: skip
    except Unavailable as lost:
        if lost.state is not None:
            lost.resume = _resume(lost.state, judge)
        raise
    return _fit(result, judge)


def _fit(result: Result, judge: Judge) -> Fit:
    status = judge.verdict if result.status == "callback" else result.status
    length, now = result.state.step.get("length"), judge.certificate(result.x, result.trace[-1])
    gap = now.gap
    if status != "converged":
        # An earlier iterate may have had the better bound: where only rounding keeps the last
        # one's gap up, that is enough.
        gap = min(gap, judge.above(now.value, result.trace[-1]))
        status = "converged" if judge.small(now.value, gap) else status
    return Fit(
        coef=now.coef,
        intercept=now.intercept,
        value=now.value,
        gap=gap,
        # Rounded coefficients may be outside the set, and below all in it, by their last digit.
        lower_bound=min(now.value, max(result.lower_bound, now.value - gap)),
        violation=judge.constraint.violation(now.coef),
        n_iter=result.trace[-1].iteration,
        status=status or "callback",
        trace=result.trace,
        algorithm=str(judge.choice.algorithm),
        learning_rate=judge.choice.learning_rate if length is None else float(length),
        radius_matters=judge.radius_matters(result.x, result.value),
        resume=_resume(result.state, judge),
    )


def _resume(s: State, judge: Judge) -> Resume:
    return Resume(s, judge.choice.learning_rate, judge.batch_intercept)


def _record_every(algorithm: Algorithm, m: int) -> int:
    """Iterations between records: 1 for Newton, 5 with exact gradients, else about an epoch."""
    if isinstance(algorithm.gradient, Full):
        return 1 if algorithm.name in ("Newton", "Corrective") else 5
    evaluations = [algorithm.gradient.evaluations(t, m) for t in range(1, 101)]
    return max(1, min(100, math.ceil(100 * m / sum(evaluations))))


def _inside(start: Array | None, constraint: Constraint, f: FiniteSum) -> Array | None:
    if start is None or start.shape != f.shape:
        return None
    x = np.array(start, dtype=f.dtype)
    if constraint.contains(x):
        return x
    return constraint.project(x) if constraint.projection is not None else None
