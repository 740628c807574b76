"""The ball of an lp norm, for every p in [1, inf]."""

import math
from dataclasses import dataclass

from adafw import arrays, checks
from adafw.arrays import finite, namespace
from adafw.called import NEEDED, Called
from adafw.constraints import projections
from adafw.constraints.balls import L1Ball, L2Ball, LInfBall
from adafw.constraints.base import Constraint, RadialSet, check_order, excess, metric_like
from adafw.typing import AnyArray, AnyDType, Shape


@dataclass(frozen=True, eq=False)
class LpBall(RadialSet):
    """{x : ||x||_p <= radius}; p = 1, 2, inf are L1Ball, L2Ball, LInfBall.

    lmo: v_i = -radius sign(g_i) |g_i|^(q - 1) / || |g|^(q - 1) ||_p with 1/p + 1/q = 1, 0 if
    g = 0; O(n).
    project: any metric, iterative, to rounding; O(n) a step.
    """

    called = Called("lp", "p-norm <= radius", {"p": NEEDED})
    radius: float
    p: float
    projection = "metric"

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", checks.radius(self.radius))
        object.__setattr__(self, "p", check_order(self.p))

    @property
    def _classical(self) -> Constraint | None:
        """The ball with formulas of its own that this one is, if it is one."""
        if self.p == 1:
            return L1Ball(self.radius)
        if self.p == 2:
            return L2Ball(self.radius)
        return LInfBall(self.radius) if math.isinf(self.p) else None

    def lmo(self, g: AnyArray) -> AnyArray:
        if self._classical is not None:
            return self._classical.lmo(g)
        g = finite(g, "g")
        xp = namespace(g)
        # Scaled by the largest entry, so that no power overflows and the largest are not lost.
        largest = xp.max(xp.abs(g))
        a = xp.abs(g) / xp.where(largest > 0, largest, xp.ones_like(largest))
        v = a ** (1 / (self.p - 1))
        length = xp.sum(a * v) ** (1 / self.p)
        return xp.sign(-g) * (v * (self.radius / xp.where(length > 0, length, 1)))

    def start(self, shape: Shape, dtype: AnyDType = float) -> AnyArray:
        return arrays.zeros(shape, dtype)

    def diameter(self, shape: Shape, p: float = 2) -> float:
        n = math.prod(arrays.as_shape(shape))
        return 2 * self.radius * float(n ** max(0.0, 1 / check_order(p) - 1 / self.p))

    def violation(self, x: AnyArray) -> float:
        if self._classical is not None:
            return self._classical.violation(x)
        length = projections.lp_norm(abs(arrays.double(x)), self.p)
        return excess(length - self.radius, self.radius)

    def project(self, x: AnyArray, h: AnyArray | None = None) -> AnyArray:
        if self._classical is not None:
            return self._classical.project(x, h)
        x = finite(x, "x")
        return projections.lp_ball(x, metric_like(h, x), self.radius, self.p)
