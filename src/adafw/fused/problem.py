"""What the fast paths ask of a problem, and its parts as the kernels take them."""

from typing import Any

import numpy as np

from adafw import gradients
from adafw.algorithms import Algorithm
from adafw.constraints import L1Ball, LInfBall
from adafw.losses import Logistic, Squared, SquaredHinge
from adafw.metrics import AdaGrad
from adafw.objectives import LinearModel, WithIntercept
from adafw.rows import CSRRows, DenseRows
from adafw.schedules import Schedule
from adafw.steps import AdaptiveStep, FrankWolfeStep, ProjectedStep

#: Numbers of kernels/losses.py, kernels/estimates.py and kernels/l1.py.
_LOSSES = {Squared: 0, Logistic: 1, SquaredHinge: 2}
_ESTIMATES = {gradients.CSFW: 0, gradients.SVRF: 1}
_STEPS = {FrankWolfeStep: 0, AdaptiveStep: 1, ProjectedStep: 2}


def is_linear(f: Any) -> bool:
    """Whether f is a linear model, its intercept aside, on plain rows with a loss known."""
    model = f.model if type(f) is WithIntercept else f
    return (
        type(model) is LinearModel
        and type(model.rows) in (CSRRows, DenseRows)
        and type(model.loss) in _LOSSES
    )


def is_known(constraint: Any, algorithm: Algorithm) -> bool:
    """Whether the kernels know the set, the estimate and the step. Exact types only: a subclass
    may do anything."""
    step = algorithm.step
    if type(constraint) not in (L1Ball, LInfBall) or type(algorithm.gradient) not in _ESTIMATES:
        return False
    if type(step) is FrankWolfeStep:
        return type(step.step_size) is Schedule and step.averaging is None
    if type(step) is ProjectedStep and type(algorithm.gradient) is not gradients.CSFW:
        return False
    if type(step) is AdaptiveStep and step.inner_gap is not None:
        return False
    return type(step) in _STEPS and type(step.metric) is AdaGrad  # type: ignore[attr-defined]


def is_sparse_l1(f: Any, constraint: Any, algorithm: Algorithm) -> bool:
    """Whether the lazy path takes a known problem: CSR rows, l1 ball, CSFW without projection."""
    return (
        type(f.rows) is CSRRows
        and type(constraint) is L1Ball
        and type(algorithm.gradient) is gradients.CSFW
        and type(algorithm.step) is not ProjectedStep
    )


def terms(f: Any) -> tuple[Any, Any, Any, int, float]:
    """(rows, y, weights, number of the loss, intercept); no weights are an empty array."""
    model: Any = f.model if type(f) is WithIntercept else f
    b = f.intercept if type(f) is WithIntercept else 0.0
    return model.rows.arrays, model.y, model.term_weights, _LOSSES[type(model.loss)], float(b)


def numbers(algorithm: Algorithm) -> tuple[int, int]:
    """The numbers of the estimate and of the step."""
    return _ESTIMATES[type(algorithm.gradient)], _STEPS[type(algorithm.step)]


def rates(step: Any, t: int, count: int) -> tuple[Any, Any, int, float]:
    """(eta_t or gamma_t, bounds on the inner steps, K, offset) for `count` iterations from t."""
    if type(step) is FrankWolfeStep:
        return _values(step.step_size, t, count), np.empty(0), 1, 0.0
    etas, offset = _values(step.learning_rate, t, count), step.metric.offset
    if type(step) is ProjectedStep:
        return etas, np.empty(0), 0, offset
    return etas, _values(step.max_step, t, count), step.inner_steps, offset


def room(support: Any, more: int, n: int) -> tuple[Any, ...]:
    """Arrays for the active coordinates: the support, and as many more as may join, at most n."""
    size = min(n, support.size + more)
    index = np.empty(size, np.int64)
    index[: support.size] = support
    return index, *(np.empty(size) for _ in range(5))


def _values(schedule: Schedule, t: int, count: int) -> Any:
    if isinstance(schedule.rule, float):
        return np.full(count, schedule.rule)
    return np.array([schedule(t + k) for k in range(count)], dtype=np.float64)


def warm_up(f: Any, algorithm: Algorithm) -> None:
    """Compiles the products and passes over long vectors that solver.run asks for."""
    if type(f) in (LinearModel, WithIntercept):
        first, zero = np.zeros(1, np.int64), np.zeros(f.rows.shape[1:], f.dtype)
        f.combine(f.slopes(zero, first), first)
        metric: Any = getattr(algorithm.step, "metric", None)
        if type(metric) is AdaGrad:
            metric.update(zero, 0, metric.init(zero))
