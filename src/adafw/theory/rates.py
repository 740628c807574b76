"""Rates of sliding, and of Frank-Wolfe steps with estimates whose variance is reduced."""

import math
from dataclasses import dataclass

from adafw import checks, gradients
from adafw.algorithm import Algorithm
from adafw.constraints.base import Constraint
from adafw.gradients import GradientEstimator
from adafw.objectives.base import FiniteSum
from adafw.schedules import OpenLoop, Power, Stages, as_schedule, at
from adafw.steps import FrankWolfeStep, HazanLuo, LanZhou, SlidingStep
from adafw.theory.problem_constants import (
    Constants,
    check_known,
    check_problem,
    constants,
)
from adafw.theory.theorems import Guarantee, effective_batch
from adafw.typing import ScheduleLike


def sliding(
    f: FiniteSum,
    constraint: Constraint,
    *,
    stochastic: bool = False,
    known: Constants | None = None,
) -> Guarantee:
    """CGS and SCGS for convex f (Lan and Zhou 2016, corollaries 2.2 and 3.2).

    f(x_t) - min f <= 15 L D^2 / (2 (t + 1) (t + 2)); with `stochastic` estimates from batches of
    (G / (L D))^2 (t + 3)^3, the mean is <= 6 L D^2 / (t + 2)^2 + 9 L D^2 / (2 (t + 1) (t + 2)).
    """
    c = _known(f, constraint, known)
    scale = c.smoothness * c.diameter**2
    step = SlidingStep(LanZhou(stochastic), c.smoothness, c.diameter)

    def bound(t: int) -> float:
        last = (checks.integer(t, "t", 1) + 1) * (t + 2)
        return scale * (6 / (t + 2) ** 2 + 4.5 / last if stochastic else 7.5 / last)

    if not stochastic:
        algorithm = Algorithm(gradients.Full(), step, "CGS as in its corollary 2.2")
        return Guarantee("Lan and Zhou 2.2", "f(x_t) - min f", algorithm, c, 1.0, bound)
    ratio = c.gradient_bound / (c.smoothness * c.diameter)
    batch_size = Power(ratio**2, 3, shift=3)
    algorithm = Algorithm(gradients.Minibatch(batch_size), step, "SCGS as in its corollary 3.2")
    return Guarantee("Lan and Zhou 3.2", "E f(x_t) - min f", algorithm, c, 1.0, bound)


@dataclass(frozen=True)
class _StorcBatch:
    """t -> 700 N + 24 N G (k + 1) / (L D), k counted within a stage of N iterations."""

    ratio: float

    def __call__(self, t: int) -> float:
        begin, length = Stages().around(t)
        return length * (700 + 24 * self.ratio * (t - begin + 2))


def storc(f: FiniteSum, constraint: Constraint, *, known: Constants | None = None) -> Guarantee:
    """STORC for convex f: E f(x_t) - min f <= L D^2 / 2^(s + 1) where stage s ends.

    Batches of 700 N + 24 N G (k + 1) / (L D) (Hazan and Luo 2016, theorem 2, case b). The proof
    in docs/theory.md, summed by `tests/theory/test_rates.py`, holds with a third of both. It asks
    for a start with f(x_0) - min f <= L D^2 / 2: any `set.lmo(f.gradient(x))` with x in the set.
    `bound(t)` is that of the last stage that has ended, for the x where it did.
    """
    c = _known(f, constraint, known)
    ratio = c.gradient_bound / (c.smoothness * c.diameter)
    step = SlidingStep(HazanLuo(), c.smoothness, c.diameter)
    algorithm = Algorithm(gradients.StagedSVRG(_StorcBatch(ratio)), step, "STORC as in theorem 2")

    def bound(t: int) -> float:
        stage, end = 0, 0
        while end + (length := math.ceil(2 ** ((stage + 1) / 2 + 2))) <= checks.integer(t, "t", 0):
            end, stage = end + length, stage + 1
        return c.smoothness * c.diameter**2 / 2 ** (stage + 1)

    return Guarantee("Hazan and Luo 2", "E f(x_t) - min f", algorithm, c, 1.0, bound)


def frank_wolfe(
    f: FiniteSum,
    constraint: Constraint,
    gradient: GradientEstimator,
    *,
    step_size: ScheduleLike = OpenLoop(),
    known: Constants | None = None,
) -> Guarantee:
    """Template 1 with SAGA, LSVRG, PAGE or Momentum for convex f: E f(x_t) - min f <= h_t.

    h_{t+1} = (1 - gamma_t) h_t + gamma_t D s_t + gamma_t^2 L D^2 / 2 with s_t^2 a bound on
    E ||g_t - grad f(x_t)||^2, which obeys a recursion of its own, that of `variances`. These are
    the inequalities that the published rates solve with constants to spare (Reddi et al. 2016,
    Mokhtari et al. 2020, Beznosikov et al. 2024, Nazykov et al. 2024); here they are summed.
    """
    c = _known(f, constraint, known)
    _check_estimate(gradient)
    gamma = as_schedule(step_size, "step_size", 0, 1)
    LD = c.smoothness * c.diameter

    def bound(t: int) -> float:
        # f(x_0) - min f <= <grad f(x_0), x_0 - x*> <= G D
        h = c.gradient_bound * c.diameter
        squares = variances(gradient, gamma, c, f.n_terms, checks.integer(t, "t", 0))
        for k in range(t):
            step = gamma(k)
            h = (1 - step) * h + step * c.diameter * math.sqrt(squares[k])
            h += step**2 * LD * c.diameter / 2
        return h

    algorithm = Algorithm(gradient, FrankWolfeStep(step_size))
    return Guarantee("the sum of inequalities", "E f(x_t) - min f", algorithm, c, 1.0, bound)


def variances(
    gradient: GradientEstimator, gamma: ScheduleLike, c: Constants, n_terms: int, steps: int
) -> list[float]:
    """Bounds on E ||g_t - grad f(x_t)||^2 for t = 0 .. steps - 1, steps being <= gamma_t D long.

    a = L D gamma_{t-1} bounds the change of every term's gradient, y the root of the mean square
    of grad f_i(x_t) less what is kept of it. SAGA: y^2 <- q a^2 + (1 - q) (y + a)^2 with q the
    chance of a refresh, from y = G; s^2 = y^2 / b. LSVRG: the same with q = p, from 0, and
    s^2 = (1 - p) y^2 / b. PAGE: s^2 <- (1 - p) (s^2 + a^2 / b). Momentum:
    s^2 <- (1 - rho)^2 (s + a)^2 + rho^2 G^2 / b.
    """
    _check_estimate(gradient)
    rule = as_schedule(gamma, "step_size", 0, 1)
    m, found = n_terms, []
    square = 0.0
    for t in range(steps):
        a = c.smoothness * c.diameter * rule(t - 1) if t else 0.0
        if isinstance(gradient, gradients.SAGA):
            b = gradient.b(t, m)
            q = effective_batch(gradient.b(t - 1, m), m) / m if t else 1.0
            kept = (math.sqrt(square) + a) ** 2
            square = q * a**2 + (1 - q) * kept if t else c.gradient_bound**2
            found.append(square / b)
        elif isinstance(gradient, gradients.LSVRG):
            b = gradient.b(t, m)
            last = _chance(gradient, t - 1, m, gradient.b(t - 1, m) / m) if t else 1.0
            square = last * a**2 + (1 - last) * (math.sqrt(square) + a) ** 2
            found.append(0.0 if t == 0 else (1 - _chance(gradient, t, m, b / m)) * square / b)
        elif isinstance(gradient, gradients.PAGE):
            b = gradient.b(t, m)
            p = _chance(gradient, t, m, b / (m + b))
            square = (1 - p) * (square + a**2 / b) if t else 0.0
            found.append(square)
        elif isinstance(gradient, gradients.Momentum):
            rho, b = at(gradient.forgetting, t), gradient.b(t, m)
            noise = rho**2 * c.gradient_bound**2 / b
            # d_{-1} = 0: with rho_0 < 1, what is missing of the gradient is at most G.
            before = c.gradient_bound if t == 0 else math.sqrt(square) + a
            square = (1 - rho) ** 2 * before**2 + noise
            found.append(square)
    return found


def _check_estimate(gradient: object) -> None:
    known = gradients.SAGA | gradients.LSVRG | gradients.PAGE | gradients.Momentum
    if not isinstance(gradient, known):
        raise TypeError(f"gradient must be SAGA, LSVRG, PAGE or Momentum, got {gradient!r}.")


def _chance(gradient: gradients.LSVRG | gradients.PAGE, t: int, m: int, default: float) -> float:
    """p_t, 1 at t = 0, where the gradient is exact whatever the coin says."""
    if t == 0:
        return 1.0
    return min(1.0, default) if gradient.probability is None else at(gradient.probability, t)


def _known(f: FiniteSum, constraint: Constraint, known: Constants | None) -> Constants:
    check_problem(f, constraint)
    check_known(known, Constants, "known")
    if not f.convex:
        raise ValueError("these rates are about convex objectives; use theorem_3_3.")
    return constants(f, constraint) if known is None else known
