"""Projected gradients whose step length is the curvature just seen."""

import math
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from adafw import checks
from adafw.arrays import Constant, dot
from adafw.constraints.base import Constraint
from adafw.gradients import Full, GradientEstimator
from adafw.objectives.base import FiniteSum
from adafw.objectives.line import Line
from adafw.steps.base import Step
from adafw.typing import AnyArray, Array

#: Share of the descent that the slope promises which a step must reach (Armijo).
_ARMIJO = 1e-4


class Seen(TypedDict, total=False):
    """x_{t-1}, g_{t-1}, the last a, and the values looked back on; nothing before t = 0."""

    x: Array
    g: Array
    length: float
    values: NDArray[np.float64]


@dataclass(frozen=True)
class SpectralStep(Step[Seen]):
    """d = P(x - a g / h) - x, x <- x + gamma d, with a = <s, h s> / <s, y> from the last step.

    s = x_t - x_{t-1} and y = g_t - g_{t-1} (Barzilai and Borwein 1988): 1 / a is the curvature of
    f met on the way. gamma is 1, or less until f(x + gamma d) is below the largest of the last
    `memory` values by the Armijo share (Birgin, Martinez, Raydan 2000, algorithm 2.2). P projects
    in the fixed metric `scale` (h; None means 1): with the features' variances, the method does
    not feel their units. One gradient and one projection an iteration; no learning rate.
    """

    scale: AnyArray | Constant | None = None
    memory: int = 10

    def __post_init__(self) -> None:
        object.__setattr__(self, "memory", checks.integer(self.memory, "memory", 1))
        if self.scale is not None and not isinstance(self.scale, Constant):
            scale = Constant(self.scale, "scale")
            if not (scale.value > 0).all():
                raise ValueError("scale must be positive in every entry: it is a metric.")
            object.__setattr__(self, "scale", scale)

    def check(self, f: FiniteSum, constraint: Constraint, gradient: GradientEstimator) -> None:
        if not isinstance(gradient, Full):
            raise TypeError(
                f"SpectralStep needs exact gradients, got those of {type(gradient).__name__}."
            )
        needed = ("metric",) if self.scale is not None else ("metric", "euclidean")
        if constraint.projection not in needed:
            raise TypeError(
                f"SpectralStep needs a set with a projection, which {constraint!r} has not"
                f"{' in a metric' if self.scale is not None else ''}; use a Frank-Wolfe step."
            )

    def init(self, x: Array) -> Seen:
        return {}

    def update(
        self, f: FiniteSum, constraint: Constraint, x: Array, g: Array, t: int,
        state: Seen,
    ) -> tuple[Array, Seen]:  # fmt: skip
        if not g.any():
            return x, state
        h = None if self.scale is None else self.scale.like(x)
        length = self._length(constraint, x, g, h, state)
        d = constraint.project(x - (length * g if h is None else length * g / h), h) - x
        # <g, d> <= -<d, h d> / a for any projection; near the minimum <g, d> itself is what
        # rounding leaves of large terms that cancel, and of any sign.
        slope = min(float(dot(g, d)), -float(dot(d, d if h is None else h * d)) / length)
        if not slope < 0:  # x is its own projection
            return x, state
        line = f.along(x, d)
        values = np.append(state.get("values", []), line.value(0.0))[-self.memory :]
        gamma = backtrack(line, float(values[-1]), float(values.max()), slope, x.dtype)
        return x + gamma * d, {"x": x, "g": g, "length": length, "values": values}

    @property
    def most_lmo_calls(self) -> int:
        return 0

    def _length(
        self, constraint: Constraint, x: Array, g: Array, h: Array | None, state: Seen
    ) -> float:
        """a; at first, and where f bends down or not at all, a step across the set."""
        across = constraint.scale / float(np.abs(g if h is None else g / h).max())
        if not state:
            return min(across, 1e300)
        s, y = x - state["x"], g - state["g"]
        bend, square = float(dot(s, y)), float(dot(s, s if h is None else h * s))
        if not (bend > 0 and square > 0):
            return min(across, 1e300)
        # Far beyond the set all lengths project to the same point, but for rounding.
        return min(square / bend, 1e10 * across, 1e300)


def backtrack(
    line: Line, value: float, reference: float, slope: float, dtype: np.dtype[Any]
) -> float:
    """gamma <= 1 by minimising parabolas until f is low enough, or as low as rounding lets it."""
    gamma, noise = 1.0, 4 * float(np.finfo(dtype).eps) * abs(value)
    # Halving so often leads below rounding.
    for _ in range(60):
        new = line.value(gamma)
        if new <= reference + _ARMIJO * gamma * slope + noise:
            return gamma
        bend = new - value - gamma * slope
        guess = -slope * gamma**2 / (2 * bend) if math.isfinite(bend) and bend > 0 else 0.0
        # A parabola far from f may ask for hardly a change, or for next to nothing.
        gamma = guess if 0.1 * gamma <= guess <= 0.9 * gamma else gamma / 2
    return 0.0
