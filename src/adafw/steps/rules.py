"""Step sizes of Template 1 that look at the objective: short steps, line search, backtracking.

All need the exact gradient: with an estimate in its place none of them is sure to descend.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, TypedDict

import numpy as np

from adafw import checks
from adafw.arrays import dot
from adafw.gradients import Full, GradientEstimator
from adafw.gradients.base import Nothing
from adafw.objectives.base import FiniteSum
from adafw.objectives.line import Line
from adafw.typing import Array, S


class StepRule(ABC, Generic[S]):
    """Chooses gamma in [0, 1] for x + gamma d, where d = v - x comes from the LMO at g = grad f(x).

    To add one: a frozen dataclass with `__call__`. Its state is a dict of arrays and numbers,
    empty before the first call, which it may change in place; a TypedDict S says which.
    """

    def check(self, f: FiniteSum, gradient: GradientEstimator) -> None:
        """Refuses another gradient than the full one, before any work."""
        if not isinstance(gradient, Full):
            raise TypeError(
                f"{type(self).__name__} needs exact gradients, got those of "
                f"{type(gradient).__name__}; use FW, or a schedule such as 2 / (t + 2)."
            )

    @abstractmethod
    def __call__(
        self, f: FiniteSum, x: Array, g: Array, d: Array, t: int, state: S
    ) -> tuple[float, S]:
        """(gamma, state)."""


@dataclass(frozen=True)
class ShortStep(StepRule[Nothing]):
    """gamma = min(-<g, d> / (L ||d||_2^2), 1): the minimiser of the upper bound by smoothness.

    `L` > 0 bounds the change of the gradient, ||grad f(x) - grad f(y)||_2 <= L ||x - y||_2. None
    takes `f.smoothness`, for a LinearModel curvature * ||A||_2^2 / m, computed once. Demyanov and
    Rubinov (1970).
    """

    L: float | None = None

    def __post_init__(self) -> None:
        if self.L is not None:
            object.__setattr__(self, "L", checks.real(self.L, "L", 0, above=True))

    def check(self, f: FiniteSum, gradient: GradientEstimator) -> None:
        super().check(f, gradient)
        self._constant(f)

    def __call__(
        self, f: FiniteSum, x: Array, g: Array, d: Array, t: int, state: Nothing
    ) -> tuple[float, Nothing]:
        return _short(-float(dot(g, d)), self._constant(f) * float(dot(d, d))), state

    def _constant(self, f: FiniteSum) -> float:
        return f.smoothness if self.L is None else self.L


@dataclass(frozen=True)
class LineSearch(StepRule[Nothing]):
    """A minimiser of f(x + gamma d) over gamma in [0, 1].

    A formula where f is quadratic along d; else a root of the derivative, to rounding, by false
    position with bisection as a safeguard. Some ten points on the line, each O(m) for a
    LinearModel. Where f is not convex, a local minimiser whose value is not above f(x).
    """

    def __call__(
        self, f: FiniteSum, x: Array, g: Array, d: Array, t: int, state: Nothing
    ) -> tuple[float, Nothing]:
        line, slope = f.along(x, d), float(dot(g, d))
        if line.curvature is not None:
            return _short(-slope, line.curvature), state
        return _search(line, slope, f.convex, float(np.finfo(x.dtype).eps)), state


class Searched(TypedDict, total=False):
    """The last M, and f(x_{t-1}); nothing before the first search."""

    M: float
    value: float


@dataclass(frozen=True)
class Backtracking(StepRule[Searched]):
    """A short step with an estimate M of L, raised until f descends as it says.

    gamma = min(-<g, d> / (M ||d||^2), 1) is taken if f(x + gamma d) <= f(x) + gamma <g, d> +
    gamma^2 M ||d||^2 / 2, else M grows by the factor `increase` > 1 (tau). The first M is the
    curvature of f along d between gamma = 0 and 1/1000; from then on, a search starts with
    <g, d>^2 / (2 (f(x_{t-1}) - f(x_t)) ||d||^2), clipped to [`decrease` M, M] for the last M and
    `decrease` (eta) in ]0, 1]. Pedregosa, Negiar, Askari, Jaggi (2020), algorithm 2.
    """

    increase: float = 2.0
    decrease: float = 0.9

    def __post_init__(self) -> None:
        increase = checks.real(self.increase, "increase", 1, above=True)
        decrease = checks.real(self.decrease, "decrease", 0, 1, above=True)
        object.__setattr__(self, "increase", increase)
        object.__setattr__(self, "decrease", decrease)

    def __call__(
        self, f: FiniteSum, x: Array, g: Array, d: Array, t: int, state: Searched
    ) -> tuple[float, Searched]:
        slope, square = float(dot(g, d)), float(dot(d, d))
        if not (slope < 0 and square > 0):
            return 0.0, state
        line = f.along(x, d)
        value = line.value(0.0)
        M = self._first(line, slope, square, value, state)
        # Below this, a difference of two values of f is rounding and no sign of an ascent.
        noise = 4 * float(np.finfo(x.dtype).eps) * abs(value)
        for _ in range(200):  # doubling so often leads from any float to any other
            gamma = _short(-slope, M * square)
            promised = gamma * slope + gamma**2 * M * square / 2
            if line.value(gamma) <= value + promised + noise:
                break
            M *= self.increase
        return gamma, {"M": M, "value": value}

    def _first(
        self, line: Line, slope: float, square: float, value: float, state: Searched
    ) -> float:
        """The M that a search starts from; -slope / square, a step to v, where f is flat."""
        if not state:
            curvature = line.curvature
            if curvature is None:
                # Near enough to be local, far enough for the difference to keep most of its digits.
                curvature = (line.slope(1e-3) - line.slope(0.0)) / 1e-3
            usable = math.isfinite(curvature) and curvature > 0
            return (curvature if usable else -slope) / square
        descent = state["value"] - value
        promising = slope**2 / (2 * descent * square) if descent > 0 else math.inf
        return max(self.decrease * state["M"], min(promising, state["M"]))


def _short(descent: float, curvature: float) -> float:
    """The minimiser of -descent gamma + curvature gamma^2 / 2 over [0, 1]."""
    if not descent > 0:
        return 0.0
    return descent / curvature if descent < curvature else 1.0


def _search(line: Line, slope: float, convex: bool, eps: float) -> float:
    """A gamma in [0, 1] where the derivative turns positive, approached from below.

    The bracket [low, high] always has a falling f at `low`, and at `high` a rising one, or a value
    above f(x). The next guess is where the chord of the two slopes is 0, the slope of an end that
    stays put being halved (Illinois); where there is no such chord, the middle.
    """
    # Relative to gamma; f, flat around a minimum, tells points apart down to eps^(1/2) only.
    narrow = eps**0.75
    if not slope < 0:
        return 0.0
    start = math.inf if convex else line.value(0.0)

    def too_far(gamma: float, slope: float) -> bool:
        return not slope <= 0 or (not convex and not line.value(gamma) <= start)

    low, high, slope_low, slope_high = 0.0, 1.0, slope, line.slope(1.0)
    if not too_far(high, slope_high):
        return 1.0
    moved_high: bool | None = None
    width, stale = 1.0, 0  # the bracket when it was last halved, and the guesses since then
    while high - low > narrow * high and high > eps:  # a step below eps is lost in rounding x
        guess = low + (high - low) / 2
        if 0 < slope_high < math.inf and stale < 3:
            chord = low + (high - low) * (slope_low / (slope_low - slope_high))
            # Never nearer to an end than this, so that a good end gets the other one beside it.
            margin = narrow * high / 2
            guess = min(max(chord, low + margin), high - margin)
        now = line.slope(guess)
        if too_far(guess, now):
            high, slope_high = guess, now
            slope_low = slope_low / 2 if moved_high is True else slope_low
            moved_high = True
        else:
            low, slope_low = guess, now
            slope_high = slope_high / 2 if moved_high is False else slope_high
            moved_high = False
        halved = high - low <= width / 2
        width, stale = (high - low, 0) if halved else (width, stale + 1)
    return low
