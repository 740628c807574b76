"""What the fast paths ask of a problem, and its parts as the kernels take them."""

import math
from typing import Any, TypeGuard, cast

import numpy as np

from adafw import gradients
from adafw.algorithm import Algorithm
from adafw.constraints import L1Ball, LInfBall
from adafw.constraints.base import Constraint
from adafw.kernels import codes
from adafw.kernels.parts import Active, Batches, Steps, Terms
from adafw.losses import Logistic, Squared, SquaredHinge
from adafw.metrics import AdaGrad
from adafw.objectives import LinearModel, WithIntercept
from adafw.objectives.base import FiniteSum
from adafw.objectives.kinds import Linear as Linear
from adafw.rows import CSRRows, DenseRows, StreamedRows
from adafw.schedules import Schedule
from adafw.solver import State
from adafw.steps import AdaptiveStep, FrankWolfeStep, ProjectedStep
from adafw.typing import Array

#: Entries of a batch of rows on a disk up to which it is read as a whole.
_GATHERED = 1e8

_LOSSES: dict[type, int] = {
    Squared: codes.SQUARED,
    Logistic: codes.LOGISTIC,
    SquaredHinge: codes.SQUARED_HINGE,
}
#: LSVRG's estimate is SVRF's, with snapshots at other times.
_ESTIMATES: dict[type, int] = {
    gradients.CSFW: codes.CSFW,
    gradients.SAGA: codes.SAGA,
    gradients.SVRF: codes.SVRF,
    gradients.LSVRG: codes.SVRF,
}
_STEPS: dict[type, int] = {
    FrankWolfeStep: codes.FRANK_WOLFE,
    AdaptiveStep: codes.ADAPTIVE,
    ProjectedStep: codes.PROJECTED,
}


def is_known(f: FiniteSum, constraint: Constraint, algorithm: Algorithm) -> TypeGuard[Linear]:
    """Whether there are kernels for the objective, the set and the algorithm."""
    if not _is_linear(f) or type(constraint) not in (L1Ball, LInfBall):
        return False
    if type(f) is WithIntercept and estimate_code(algorithm) == codes.SVRF:
        return False  # at a snapshot the intercept is the best one, at a batch the last one set
    return _is_compiled(algorithm) and (not f.rows.streamed or _is_gathered(f, algorithm))


def linear(f: FiniteSum) -> Linear:
    """f, which `is_known` has let pass."""
    assert isinstance(f, LinearModel | WithIntercept)
    return f


def _is_gathered(f: Linear, algorithm: Algorithm) -> bool:
    """Whether batches of rows on a disk, a call's or one, can be in memory as sparse rows."""
    gradient, rows = algorithm.gradient, f.rows
    if type(gradient) is not gradients.CSFW or type(rows) is not StreamedRows or not rows.sparse:
        return False
    most = max(gradient.b(t, f.n_terms) for t in (1, 10**3, 10**6))
    return bool(most * row_length(f) <= _GATHERED)


def _is_linear(f: FiniteSum) -> TypeGuard[Linear]:
    """Whether f is a linear model, its intercept aside, on plain rows with a loss known."""
    model = f.model if type(f) is WithIntercept else f
    return (
        type(model) is LinearModel
        and type(model.rows) in (CSRRows, DenseRows, StreamedRows)
        and type(model.loss) in _LOSSES
    )


def _is_compiled(algorithm: Algorithm) -> bool:
    """Whether the kernels know the estimate and the step."""
    step = algorithm.step
    if type(algorithm.gradient) not in _ESTIMATES:
        return False
    # Rules that look at f cannot be followed inside a kernel.
    if type(step) is FrankWolfeStep:
        return type(step.step_size) is Schedule and step.averaging is None
    # The number of inner steps would depend on the data, and the kernels make room beforehand.
    if type(step) is AdaptiveStep and step.inner_gap is not None:
        return False
    if type(step) is AdaptiveStep and step.corrective:
        rule = step.rate.rule if isinstance(step.rate, Schedule) else None
        if step.inner_steps is not None or not isinstance(rule, float) or math.isinf(rule):
            return False
    return type(step) in _STEPS and type(step.metric) is AdaGrad  # type: ignore[attr-defined]


def is_projected(algorithm: Algorithm) -> bool:
    """Whether x goes to the minimiser of Q_t itself, which is the projection in the metric."""
    step = algorithm.step
    return type(step) is ProjectedStep or (type(step) is AdaptiveStep and step.corrective)


def calls(algorithm: Algorithm) -> int:
    """LMO calls that every iteration makes; those of corrective steps are counted as they occur."""
    return 0 if is_projected(algorithm) else algorithm.step.most_lmo_calls


def count_minimisers(constraint: Constraint, algorithm: Algorithm, s: State, solved: int) -> None:
    """Counts so many minimisations of Q_t: as projections, or as what `subproblem` calls."""
    if type(algorithm.step) is ProjectedStep:
        s.projections += solved
    else:
        s.lmo_calls += solved * (1 if type(constraint) is LInfBall else 2)


def is_sparse(f: Linear) -> bool:
    """Whether the rows are those of a CSR matrix."""
    return type(f.rows) is CSRRows or (type(f.rows) is StreamedRows and f.rows.sparse)


def row_length(f: Linear) -> float:
    """Stored entries of a row, on average."""
    return float(f.rows.stored / f.rows.shape[0])


def terms(f: Linear, batches: Batches) -> Terms:
    """The terms of f, right for these batches: rows on a disk are read here."""
    model, b = (f.model, f.intercept) if isinstance(f, WithIntercept) else (f, 0.0)
    rows = cast(
        CSRRows | DenseRows | StreamedRows, model.rows
    )  # one of the three kinds that `is_known` lets pass
    arrays = rows.arrays_of(batches.indices) if type(rows) is StreamedRows else rows.arrays
    return Terms(arrays, model.y, model.term_weights, _LOSSES[type(model.loss)], float(b))


def estimate_code(algorithm: Algorithm) -> int | None:
    """The number of the estimate, if there is a kernel for it."""
    return _ESTIMATES.get(type(algorithm.gradient))


def steps(algorithm: Algorithm, t: int, count: int, squares: Array) -> Steps:
    """The step, with the values of its schedules for `count` iterations from t."""
    step: Any = algorithm.step
    kind = codes.PROJECTED if is_projected(algorithm) else _STEPS[type(step)]
    none = np.empty(0)
    if kind == codes.FRANK_WOLFE:
        return Steps(kind, _values(step.step_size, t, count), none, 1, 0.0, squares)
    etas, offset = _values(step.learning_rate, t, count), step.metric.offset
    if kind == codes.PROJECTED:
        return Steps(kind, etas, none, 0, offset, squares)
    return Steps(kind, etas, _values(step.max_step, t, count), step.inner_steps, offset, squares)


def active(support: Array, more: int, n: int) -> Active:
    """Room for the active coordinates: the support, and as many more as may join, at most n."""
    size = min(n, support.size + more)
    index = np.empty(size, np.int64)
    index[: support.size] = support
    return Active(index, *np.empty((5, size)))


def _values(schedule: Schedule, t: int, count: int) -> Array:
    if isinstance(schedule.rule, float):
        return np.full(count, schedule.rule)
    return np.array([schedule(t + k) for k in range(count)], dtype=np.float64)
