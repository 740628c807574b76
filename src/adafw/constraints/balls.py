"""Norm balls of vectors: {||x|| <= radius} in the l1, l2 and linf norm."""

import math
from dataclasses import dataclass
from typing import Any

from adafw import arrays, checks
from adafw.arrays import finite, namespace
from adafw.constraints import projections
from adafw.constraints.base import Constraint, check_order, excess, metric_like
from adafw.typing import Array, Shape


@dataclass(frozen=True, eq=False)
class L1Ball(Constraint):
    """{x : sum_i |x_i| <= radius}, whose vertices are +- radius e_i.

    lmo: -radius sign(g_i) e_i at the first largest |g_i|, 0 if g = 0; O(n).
    project: any metric, about 10 passes (Michelot 1986; Duchi, Hazan, Singer 2011, section 5.2).
    """

    radius: float
    projection = "metric"

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", checks.real(self.radius, "radius", 0, above=True))

    def lmo(self, g: Array) -> Array:
        g = arrays.floating(g, "g")
        i = arrays.first_largest(g)
        xp = namespace(g)
        return arrays.basis(g, i, self.radius * xp.sign(-xp.take(g, i)))

    def start(self, shape: Shape, dtype: Any = float) -> Array:
        return arrays.zeros(shape, dtype)

    def diameter(self, shape: Shape, p: float = 2) -> float:
        check_order(p)  # the same in every norm
        return 2 * self.radius

    def violation(self, x: Array) -> float:
        return excess(abs(arrays.double(x)).sum() - self.radius, self.radius)

    def project(self, x: Array, h: Array | None = None) -> Array:
        x = finite(x, "x")
        return projections.l1_ball(x, metric_like(h, x), self.radius)


@dataclass(frozen=True, eq=False)
class L2Ball(Constraint):
    """{x : ||x||_2 <= radius}.

    lmo: -radius g / ||g||_2, 0 if g = 0; O(n).
    project: any metric, by Newton's method on the multiplier, O(n) a step.
    """

    radius: float
    projection = "metric"

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", checks.real(self.radius, "radius", 0, above=True))

    def lmo(self, g: Array) -> Array:
        direction, _ = arrays.unit(finite(g, "g"))
        return (-self.radius) * direction + 0.0  # the sum turns -0 into 0

    def start(self, shape: Shape, dtype: Any = float) -> Array:
        return arrays.zeros(shape, dtype)

    def diameter(self, shape: Shape, p: float = 2) -> float:
        n = math.prod(arrays.as_shape(shape))
        return 2 * self.radius * n ** max(0.0, 1 / check_order(p) - 1 / 2)

    def violation(self, x: Array) -> float:
        return excess(arrays.norm(arrays.double(x)) - self.radius, self.radius)

    def project(self, x: Array, h: Array | None = None) -> Array:
        x = finite(x, "x")
        return projections.l2_ball(x, metric_like(h, x), self.radius)


@dataclass(frozen=True, eq=False)
class LInfBall(Constraint):
    """{x : max_i |x_i| <= radius}.

    lmo: -radius sign(g_i) in every entry, 0 where g_i = 0; O(n).
    project: clipping, the same in every metric; O(n).
    """

    radius: float
    projection = "metric"

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", checks.real(self.radius, "radius", 0, above=True))

    def lmo(self, g: Array) -> Array:
        g = finite(g, "g")
        return self.radius * namespace(g).sign(-g)  # not -radius * 0, which is -0

    def start(self, shape: Shape, dtype: Any = float) -> Array:
        return arrays.zeros(shape, dtype)

    def diameter(self, shape: Shape, p: float = 2) -> float:
        n = math.prod(arrays.as_shape(shape))
        return 2 * self.radius * float(n ** (1 / check_order(p)))

    def violation(self, x: Array) -> float:
        return excess(abs(x).max() - self.radius, self.radius)

    def project(self, x: Array, h: Array | None = None) -> Array:
        x = finite(x, "x")
        metric_like(
            h, x
        )  # clipping is nearest in every diagonal metric, but a bad h is still refused
        return namespace(x).clip(x, -self.radius, self.radius)
