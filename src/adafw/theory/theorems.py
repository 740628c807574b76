"""Theorems 3.1, 3.3, 3.5 and 3.7: algorithms with the parameters they name, and their bounds."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from adafw import checks, gradients
from adafw.algorithm import Algorithm
from adafw.arrays import dot
from adafw.constraints.base import Constraint
from adafw.metrics import AdaGrad, Clipped, Metric
from adafw.objectives import SeparableSum
from adafw.objectives.base import FiniteSum
from adafw.schedules import BatchSizeLike, OpenLoop, Power, Scaled, as_schedule, at
from adafw.steps import AdaptiveStep
from adafw.theory.problem_constants import (
    Constants,
    DataConstants,
    check_known,
    check_problem,
    constants,
    data_constants,
)
from adafw.typing import Array, ScheduleLike


@dataclass(frozen=True)
class Guarantee:
    """An algorithm as a theorem asks for it, and what the theorem says of it.

    `algorithm` is for `minimize`; `bound(t)` is the right side of the theorem's inequality, at
    iteration t, and `quantity` its left side; `constants` and `kappa` = lambda_0^+ / lambda_0^-
    are what both were made of.
    """

    theorem: str
    quantity: str
    algorithm: Algorithm
    constants: Constants | DataConstants
    kappa: float
    bound: Callable[[int], float]


def theorem_3_1(
    f: FiniteSum,
    constraint: Constraint,
    *,
    lower: ScheduleLike,
    upper: ScheduleLike,
    metric: Metric = AdaGrad(),
    inner_steps: int = 5,
    constants: Constants | None = None,
) -> Guarantee:
    """AdaSFW for convex f: E f(x_t) - min f <= 2 L D^2 (K + 1 + kappa) / (t + 1), t >= 1.

    b_t = (G (t + 2) / (L D))^2 rounded up, without a cap; eta_t = lower_t / L;
    gamma_t = 2 / (t + 2). `lower` and `upper` (lambda_t^-, lambda_t^+) clip the `metric`,
    `inner_steps` (K); `constants` are computed from f and the set unless given.
    """
    _check_convex(f, constraint, "3.1")
    c = _constants(f, constraint, constants)
    LD = c.smoothness * c.diameter
    gradient = gradients.Minibatch(Power((c.gradient_bound / LD) ** 2, 2, shift=2))
    clipped, kappa = _clipped(metric, lower, upper)
    step = _step(clipped, c.smoothness, OpenLoop(), inner_steps)

    def bound(t: int) -> float:
        return 2 * LD * c.diameter * (inner_steps + 1 + kappa) / (_at(t, 1) + 1)

    algorithm = Algorithm(gradient, step, "AdaSFW as in Theorem 3.1")
    return Guarantee("3.1", "E f(x_t) - min f", algorithm, c, kappa, bound)


def theorem_3_3(
    f: FiniteSum,
    constraint: Constraint,
    *,
    lower: ScheduleLike,
    upper: ScheduleLike,
    nu: float = 0.05,
    horizon: int | None = None,
    x0: Array | None = None,
    initial_error: float | None = None,
    metric: Metric = AdaGrad(),
    inner_steps: int = 5,
    constants: Constants | None = None,
) -> Guarantee:
    """AdaSFW for any smooth f: a bound on E g(X_t), X_t being any of x_0 .. x_t, g the gap.

    With C = L D^2 (K + 1 + kappa / 2) and e = f(x_0) - min f, the two settings are:
    b_t = (G / (L D))^2 (t + 1), gamma_t = (t + 1)^-(1/2 + nu), nu in ]0, 1/2[, where
    E g(X_t) <= (e + C S) / (t + 1)^(1/2 - nu) with S = sum_s (s + 1)^-(1 + nu); and for a given
    `horizon` (T) b_t = (G / (L D))^2 T, gamma_t = 1 / sqrt(T), where
    E g(X_t) <= sqrt(T) / (t + 1) e + C / sqrt(T): the theorem's at t = T - 1, and the same proof
    stopped earlier at t < T - 1. eta_t = lower_t / L in both.

    `initial_error` (e) may be any upper bound; None takes the gap at `x0`, or at the set's start,
    plus L D^2 / 2 if f is not convex. Other parameters as in Theorem 3.1.
    """
    c = _constants(f, constraint, constants)
    nu = checks.real(nu, "nu", 0, 0.5, above=True, below=True)
    if initial_error is None:
        initial_error = _initial_error(f, constraint, x0, c)
    error = checks.real(initial_error, "initial_error", 0)
    LD = c.smoothness * c.diameter
    ratio = (c.gradient_bound / LD) ** 2
    clipped, kappa = _clipped(metric, lower, upper)
    C = LD * c.diameter * (checks.integer(inner_steps, "inner_steps", 1) + 1 + kappa / 2)
    batch_size, max_step, bound = (
        _open_end(ratio, nu, error, C)
        if horizon is None
        else _fixed_end(ratio, checks.integer(horizon, "horizon", 1), error, C)
    )
    step = _step(clipped, c.smoothness, max_step, inner_steps)
    algorithm = Algorithm(gradients.Minibatch(batch_size), step, "AdaSFW as in Theorem 3.3")
    return Guarantee("3.3", "E g(X_t)", algorithm, c, kappa, bound)


def theorem_3_5(
    f: FiniteSum,
    constraint: Constraint,
    *,
    lower: ScheduleLike,
    upper: ScheduleLike,
    k0: int = 0,
    metric: Metric = AdaGrad(),
    inner_steps: int = 5,
    constants: Constants | None = None,
) -> Guarantee:
    """AdaSVRF for convex f: E f(x_t) - min f <= 2 L D^2 (K + 1 + kappa) / (t + 2), t >= 1.

    Snapshots at 2^(k + k0) - 2^k0, b_t = 8 (2^(k0 + 1) + 1) (K + 1 + kappa) (t + 2) rounded up,
    without a cap (Remark 3.6; the theorem is k0 = 0); eta_t = lower_t / L; gamma_t = 2 / (t + 2).
    Other parameters as in Theorem 3.1.
    """
    _check_convex(f, constraint, "3.5")
    c = _constants(f, constraint, constants)
    clipped, kappa = _clipped(metric, lower, upper)
    k0 = checks.integer(k0, "k0", 0)
    step = _step(clipped, c.smoothness, OpenLoop(), inner_steps)
    growth = 8 * (2 ** (k0 + 1) + 1) * (inner_steps + 1 + kappa)

    def bound(t: int) -> float:
        return 2 * c.smoothness * c.diameter**2 * (inner_steps + 1 + kappa) / (_at(t, 1) + 2)

    gradient = gradients.SVRF(Power(growth, 1, shift=2), k0)
    algorithm = Algorithm(gradient, step, "AdaSVRF as in Theorem 3.5")
    return Guarantee("3.5", "E f(x_t) - min f", algorithm, c, kappa, bound)


def theorem_3_7(
    f: FiniteSum,
    constraint: Constraint,
    *,
    lower: ScheduleLike,
    upper: ScheduleLike,
    batch_size: int | None = None,
    x0: Array | None = None,
    metric: Metric = AdaGrad(),
    inner_steps: int = 5,
    constants: DataConstants | None = None,
) -> Guarantee:
    """AdaCSFW for convex f of terms phi_i(<a_i, x>), with batches of constant size b.

    E f(x_t) - min f <= 2 L / (t + 1) (4 K (K + 1) D_1 D_inf (1/b - 1/m) + kappa ||A||_2^2 D^2 / m)
    + 2 (K + 1) D_inf (m/b)^2 / (t (t + 1)) (E ||f'(x_0) - alpha_0||_1 + 16 K L D_1 / b), t >= 1.
    eta_t = m lower_t / (L ||A||_2^2); gamma_t = 2 / (t + 2). L is the curvature of the loss.

    The theorem is proved for batches without repeats. Ours are drawn independently and hold
    `effective_batch(b, m)` different terms on average, which takes the place of b in the bound.
    `batch_size` (b): m // 100 if None; `x0`: the set's start if None, where alpha_0 comes from.
    Other parameters as in Theorem 3.1.
    """
    _check_convex(f, constraint, "3.7")
    check_known(constants, DataConstants, "constants")
    gradients.CSFW().check(f)
    c = data_constants(f, constraint) if constants is None else constants
    clipped, kappa = _clipped(metric, lower, upper)
    m, K = f.n_terms, checks.integer(inner_steps, "inner_steps", 1)
    b = max(1, m // 100) if batch_size is None else checks.integer(batch_size, "batch_size", 1)
    step = _step(clipped, c.curvature * c.operator_norm**2 / m, OpenLoop(), K)
    be = effective_batch(b, m)
    slopes = cast(SeparableSum, f).slopes(_start(f, constraint, x0))
    # alpha_0 is 0 off the first batch, which misses a term with probability 1 - be / m.
    initial = (1 - be / m) * float(np.abs(slopes).sum(dtype=np.float64)) / m
    L, D1, Dinf = c.curvature, c.data_diameter_1, c.data_diameter_inf
    noise = 4 * K * (K + 1) * D1 * Dinf * (1 / be - 1 / m)
    curved = kappa * c.operator_norm**2 * c.diameter**2 / m
    stale = 2 * (K + 1) * Dinf * (m / be) ** 2 * (initial + 16 * K * L * D1 / be)

    def bound(t: int) -> float:
        return (2 * L * (noise + curved) + stale / _at(t, 1)) / (t + 1)

    algorithm = Algorithm(gradients.CSFW(b), step, "AdaCSFW as in Theorem 3.7")
    return Guarantee("3.7", "E f(x_t) - min f", algorithm, c, kappa, bound)


def effective_batch(batch_size: int, n_terms: int) -> float:
    """b_e = m (1 - (1 - 1/m)^b): how many different terms b independent draws hold on average."""
    if n_terms == 1:
        return 1.0
    return -n_terms * math.expm1(batch_size * math.log1p(-1 / n_terms))


def _open_end(
    ratio: float, nu: float, error: float, C: float
) -> tuple[BatchSizeLike, ScheduleLike, Callable[[int], float]]:
    """b_t, gamma_t and the bound of the first setting of Theorem 3.3."""
    from scipy.special import zeta

    top = error + C * float(zeta(1 + nu))

    def bound(t: int) -> float:
        return top / (_at(t, 0) + 1) ** (0.5 - nu)

    return Power(ratio, 1), Power(1.0, -(0.5 + nu)), bound


def _fixed_end(
    ratio: float, T: int, error: float, C: float
) -> tuple[BatchSizeLike, ScheduleLike, Callable[[int], float]]:
    """b_t, gamma_t and the bound of the second setting of Theorem 3.3."""

    def bound(t: int) -> float:
        if _at(t, 0) >= T:
            raise ValueError(f"t must be < horizon = {T}, got {t}.")
        return math.sqrt(T) / (t + 1) * error + C / math.sqrt(T)

    return ratio * T, 1 / math.sqrt(T), bound


def _clipped(metric: Metric, lower: ScheduleLike, upper: ScheduleLike) -> tuple[Clipped, float]:
    """The metric between its bounds, and kappa."""
    clipped = Clipped(metric, lower, upper)
    if clipped.momentum:
        raise ValueError(
            f"the theorems are about steps without momentum, which {metric!r} has; use AdaGrad, "
            "RMSProp or AdaDelta."
        )
    return clipped, at(clipped.upper, 0) / at(clipped.lower, 0)


def _step(clipped: Clipped, L: float, max_step: ScheduleLike, inner_steps: int) -> AdaptiveStep:
    """Template 3 with eta_t = lambda_t^- / L."""
    lower = as_schedule(clipped.lower, "lower", 0, above=True)
    return AdaptiveStep(Scaled(lower, 1 / L), inner_steps, max_step, clipped)


def _constants(f: FiniteSum, constraint: Constraint, given: Constants | None) -> Constants:
    check_problem(f, constraint)
    check_known(given, Constants, "constants")
    return constants(f, constraint) if given is None else given


def _initial_error(
    f: FiniteSum, constraint: Constraint, x0: ArrayLike | None, c: Constants
) -> float:
    """f(x_0) - min f <= the gap at x_0 for convex f (Fact C.1), L D^2 / 2 more for any other."""
    x = _start(f, constraint, x0)
    g = f.gradient(x)
    gap = max(0.0, float(dot(g, x - constraint.lmo(g))))
    return gap if f.convex else gap + c.smoothness * c.diameter**2 / 2


def _start(f: FiniteSum, constraint: Constraint, x0: ArrayLike | None) -> Array:
    if x0 is not None:
        return np.asarray(x0, f.dtype)
    shape = constraint.shape if f.shape is None else f.shape
    if shape is None:
        raise ValueError(
            f"x0 must be given: neither {f!r} nor {constraint!r} knows the shape of x."
        )
    return constraint.start(shape, f.dtype)


def _check_convex(f: FiniteSum, constraint: Constraint, theorem: str) -> None:
    check_problem(f, constraint)
    if not f.convex:
        raise ValueError(f"Theorem {theorem} is about convex objectives; use theorem_3_3.")


def _at(t: int, first: int) -> int:
    return checks.integer(t, "t", first)
