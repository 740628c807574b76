"""One linear model under a constraint, fitted to a relative gap."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw import checks
from adafw.algorithms import Algorithm
from adafw.arrays import dot
from adafw.constraints.base import Constraint
from adafw.fitting.choice import SAMPLE, Choice, choose, search
from adafw.fitting.problem import Problem, make_problem
from adafw.gradients import Full
from adafw.losses import Loss, Poisson
from adafw.minimize import Callback, minimize
from adafw.objectives import FiniteSum, WithIntercept
from adafw.recorder import Record, Trace, as_record
from adafw.result import Result
from adafw.rows import Rows, as_rows, in_double
from adafw.solver import State
from adafw.typing import Array

#: The smallest value that a tolerance is relative to.
FLOOR = 1e-12
#: A run with exact gradients has stalled when so many records brought no progress.
PATIENCE = 50


@dataclass(frozen=True)
class Settings:
    """What to fit and how far; see `adafw.sklearn.FrankWolfeClassifier` for each."""

    loss: Loss
    constraint: Constraint
    algorithm: Any = "auto"
    learning_rate: Any = "auto"
    fit_intercept: bool = True
    tol: float = 1e-4
    max_epochs: float = 1000.0
    max_seconds: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        checks.real(self.tol, "tol", 0)
        checks.real(self.max_epochs, "max_epochs", 0, above=True)


@dataclass(frozen=True)
class Fit:
    """Coefficients, intercept, and what is certified about them.

    No coefficients of the set with any intercept have a mean loss below value - gap, nor below
    `lower_bound`. `gap` is the exact Frank-Wolfe gap, or the value where that is smaller: no loss
    but Poisson's is below 0. Where the gap stays above the tolerance, or float32 coefficients are
    rounded, the value less the best bound of all records counts, too.
    `status` is "converged", the name of a limit, "stalled" (rounding allows no more
    progress), "interrupted" or "diverged". `state` and `batch_intercept` are what `resume` takes.
    """

    coef: NDArray[Any]
    intercept: float
    value: float
    gap: float
    lower_bound: float
    violation: float
    n_iter: int
    status: str
    trace: Trace = field(repr=False)
    algorithm: str = ""
    learning_rate: float = math.nan
    state: State | None = field(default=None, repr=False)
    batch_intercept: float = 0.0
    #: False if ten times the radius would certainly lower the value by less than 1 %.
    radius_matters: bool = True

    @property
    def tolerance_reached(self) -> float:
        """gap / max(|value|, 1e-12): what `tol` is compared with."""
        return self.gap / max(abs(self.value), FLOOR)


@dataclass(frozen=True)
class Resume:
    """Where an earlier run was: with it, a fit goes on bit for bit."""

    state: State
    learning_rate: float
    batch_intercept: float


def fit_linear(
    A: Any,
    y: NDArray[Any],
    settings: Settings,
    *,
    sample_weight: NDArray[Any] | None = None,
    start: Array | None = None,
    resume: Resume | None = None,
    watch: Callable[[State, Record, "Progress"], bool | None] | None = None,
) -> Fit:
    """Minimises the mean loss over the set until gap <= tol * max(|value|, 1e-12).

    Parameters
    ----------
    A, y : rows and targets as the loss takes them (labels -1 and +1).
    start : coefficients to start from; projected onto the set, or ignored if outside a set that
        cannot project.
    resume : state of an earlier run of the same problem; limits count from its beginning.
    watch : called at every record; returning True stops.
    """
    rows, constraint = as_rows(A), settings.constraint

    def problem_on(rows: Rows) -> Problem:
        return make_problem(rows, y, settings.loss, sample_weight, settings.fit_intercept)

    # Exact steps come near the minimum, where float32 iterates would be rounding error: float32
    # data stay what they are, and the iterates are float64 until the end.
    problem = problem_on(in_double(rows))

    def find_rate(make: Callable[..., Algorithm]) -> float:
        if resume is not None:
            return resume.learning_rate
        return search(_sample(A, y, sample_weight, settings), constraint, make)

    choice = choose(problem, constraint, settings.algorithm, settings.learning_rate, find_rate)
    if not isinstance(choice.algorithm.gradient, Full) and rows.dtype != problem.f.dtype:
        problem = problem_on(rows)
    every = _record_every(choice.algorithm, rows.shape[0])
    progress = Progress(problem, constraint, settings.tol, every, choice, rows.dtype)
    calls: list[Callback] = [progress]
    if watch is not None:
        calls.append(lambda s, record: watch(s, record, progress))
    if resume is not None:
        progress.restore(resume)
        how: dict[str, Any] = {"state": resume.state}
    else:
        x0 = _inside(start, constraint, problem.f)
        how = {"x0": x0, "seed": settings.seed}
    result = minimize(
        problem.f, constraint, choice.algorithm, max_epochs=settings.max_epochs,
        max_seconds=settings.max_seconds, record_every=every, callbacks=calls, progress=False,
        **how,
    )  # fmt: skip
    return _fit(result, problem, progress, constraint)


@dataclass(frozen=True)
class Certificate:
    """Coefficients and intercept as they are returned, and what is known about them."""

    coef: NDArray[Any]
    intercept: float
    value: float
    gap: float


class Progress:
    """At every record: refreshes the intercept of the batches, and says when to stop and why."""

    def __init__(
        self, problem: Problem, constraint: Constraint, tol: float, every: int, choice: Choice,
        dtype: np.dtype[Any],
    ) -> None:  # fmt: skip
        self.problem, self.constraint, self.tol, self.every = problem, constraint, tol, every
        self.algorithm, self.learning_rate = choice.algorithm, choice.learning_rate
        self.dtype = dtype
        self.exact = isinstance(choice.algorithm.gradient, Full)
        self.verdict = ""
        self.best_value = self.best_gap = math.inf
        self.idle = 0

    def __call__(self, s: State, record: Record) -> bool:
        # Only where every run of this length would record: what follows must not depend on stops.
        scheduled = record.iteration % self.every == 0
        if scheduled and not self.exact:
            self.set_intercept(self.problem.intercept(s.x))
        if self.small(record.value, self._least(record)) and self._reached(s.x, record):
            self.verdict = "converged"
        elif scheduled and self._stalled(record):
            self.verdict = "stalled"
        return bool(self.verdict)

    def restore(self, resume: "Resume") -> None:
        """As it was when that state was recorded."""
        self.set_intercept(resume.batch_intercept)
        for row in resume.state.records:
            if row[0] % self.every == 0:
                self._stalled(as_record(row))

    def set_intercept(self, b: float) -> None:
        """The intercept that batches use."""
        if isinstance(self.problem.f, WithIntercept):
            self.problem.f.intercept = b

    @property
    def batch_intercept(self) -> float:
        """What `set_intercept` set last."""
        f = self.problem.f
        return f.intercept if isinstance(f, WithIntercept) else 0.0

    def certificate(self, x: Array, record: Record) -> Certificate:
        """What is returned at the last record: rounded to the data's dtype, and measured so."""
        b = self.problem.intercept(x)
        if x.dtype == self.dtype:
            return Certificate(x, b, record.value, self._least(record))
        coef, b = x.astype(self.dtype), float(self.dtype.type(b))
        x = coef.astype(x.dtype)
        best, value = self.problem.f.value(x), self.problem.value_at(x, b)
        gap = self.constraint.gap(x, self.problem.f.gradient(x)) + value - best
        return Certificate(coef, b, value, min(max(0.0, gap), self.above(value, record)))

    def above(self, value: float, record: Record) -> float:
        """How far a value can be above the minimum, by the best bound so far; rounding included."""
        lower = record.lower_bound if self._signed else max(record.lower_bound, 0.0)
        noise = 4 * float(np.finfo(np.float64).eps) * abs(value)
        return max(0.0, value - lower) + (noise if lower != 0 else 0.0)

    def _least(self, record: Record) -> float:
        """A bound on the suboptimality: the gap, or the value where no loss is below 0."""
        return record.gap if self._signed else min(record.gap, record.value)

    @property
    def _signed(self) -> bool:
        f = self.problem.f
        return isinstance(f.model.loss if isinstance(f, WithIntercept) else f.loss, Poisson)

    def small(self, value: float, gap: float) -> bool:
        """Whether a gap is within the tolerance."""
        return gap <= self.tol * max(abs(value), FLOOR)

    def _reached(self, x: Array, record: Record) -> bool:
        """Whether what would be returned is as good as the record, which rounding may prevent."""
        now = self.certificate(x, record)
        return self.small(now.value, now.gap)

    def _stalled(self, record: Record) -> bool:
        lower = record.value < self.best_value - 1e-9 * abs(self.best_value)
        tighter = record.gap < 0.99 * self.best_gap
        self.idle = 0 if lower or tighter or not self.exact else self.idle + 1
        self.best_value = min(self.best_value, record.value)
        self.best_gap = min(self.best_gap, record.gap)
        return self.idle >= PATIENCE


def _fit(result: Result, problem: Problem, progress: Progress, constraint: Constraint) -> Fit:
    status = progress.verdict if result.status == "callback" else result.status
    length, now = result.state.step.get("length"), progress.certificate(result.x, result.trace[-1])
    gap = now.gap
    if status != "converged":
        # An earlier iterate may have had the better bound: where only rounding keeps the last
        # one's gap up, that is enough.
        gap = min(gap, progress.above(now.value, result.trace[-1]))
        status = "converged" if progress.small(now.value, gap) else status
    return Fit(
        coef=now.coef,
        intercept=now.intercept,
        value=now.value,
        gap=gap,
        # Rounded coefficients may be outside the set, and below all in it, by their last digit.
        lower_bound=min(now.value, max(result.lower_bound, now.value - gap)),
        violation=constraint.violation(now.coef),
        n_iter=result.trace[-1].iteration,
        status=status or "callback",
        trace=result.trace,
        algorithm=str(progress.algorithm),
        learning_rate=progress.learning_rate if length is None else float(length),
        state=result.state,
        batch_intercept=progress.batch_intercept,
        radius_matters=_radius_matters(result.x, result.value, problem, constraint),
    )


def _radius_matters(x: Array, value: float, problem: Problem, constraint: Constraint) -> bool:
    """Whether x touches the boundary, or a gap over ten times the set is above 1 % of the value."""
    if not hasattr(constraint, "radius") or constraint.violation(1.01 * x) > 0:
        return True
    g = problem.f.gradient(x)
    larger_gap = float(dot(g, x - 10 * constraint.lmo(g)))
    return larger_gap > 0.01 * max(abs(value), FLOOR)


def no_effect(radius: float) -> str:
    """The sentence for fits whose radius does not matter."""
    return (
        f"the radius {radius:g} has no effect: ten times it would lower the objective by less than "
        "1 %; lower the radius, or take the model as one without a constraint."
    )


def _record_every(algorithm: Algorithm, m: int) -> int:
    """Iterations between records: 1 for Newton, 5 with exact gradients, else about an epoch."""
    if isinstance(algorithm.gradient, Full):
        return 1 if algorithm.name == "Newton" else 5
    evaluations = [algorithm.gradient.evaluations(t, m) for t in range(1, 101)]
    return max(1, min(100, math.ceil(100 * m / sum(evaluations))))


def _inside(start: Array | None, constraint: Constraint, f: FiniteSum) -> Array | None:
    if start is None or start.shape != f.shape:
        return None
    x = np.array(start, dtype=f.dtype)
    if constraint.contains(x):
        return x
    return constraint.project(x) if constraint.projection is not None else None


def _sample(
    A: Any, y: NDArray[Any], sample_weight: NDArray[Any] | None, settings: Settings
) -> Problem:
    """The problem on at most 10 000 rows, both labels among them."""
    m = A.shape[0]
    if m <= SAMPLE:
        return make_problem(A, y, settings.loss, sample_weight, settings.fit_intercept)
    rng = np.random.default_rng(settings.seed)
    chosen = rng.choice(m, SAMPLE, replace=False)
    # With the extreme targets in it, no label is missing and a count above 0 is there.
    chosen[0], chosen[1] = int(np.argmin(y)), int(np.argmax(y))
    chosen = np.unique(chosen)
    weight = None if sample_weight is None else sample_weight[chosen]
    if weight is not None and not weight.any():
        weight = None
    return make_problem(A[chosen], y[chosen], settings.loss, weight, settings.fit_intercept)


def one_against_rest(labels: NDArray[Any], classes: Sequence[Any]) -> list[NDArray[Any]]:
    """Targets -1 and +1 of each binary problem: one for two classes, else one a class."""
    positive = classes[1:] if len(classes) == 2 else classes
    return [np.where(labels == c, 1.0, -1.0) for c in positive]
