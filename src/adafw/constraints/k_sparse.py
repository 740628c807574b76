"""The convex hull of vectors with at most k entries, all +- radius."""

import math
from dataclasses import dataclass

from adafw import arrays, checks
from adafw.arrays import finite, namespace
from adafw.called import Called
from adafw.constraints import projections
from adafw.constraints.base import RadialSet, check_order, excess, metric_like
from adafw.typing import AnyArray, AnyDType, Shape


@dataclass(frozen=True, eq=False)
class KSparse(RadialSet):
    """{x : max_i |x_i| <= radius, sum_i |x_i| <= k radius}.

    lmo: -radius sign(g_i) at the k largest |g_i|, of equal ones the first, 0 elsewhere and where
    g_i = 0; O(n).
    project: any metric, by a Newton search for the multiplier, O(n) a step.
    """

    called = Called("ksparse", "|x_i| <= radius, their sum <= k radius", {"k": 10})
    radius: float
    k: int
    projection = "metric"

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", checks.radius(self.radius))
        object.__setattr__(self, "k", checks.integer(self.k, "k", 1))

    def lmo(self, g: AnyArray) -> AnyArray:
        g = finite(g, "g")
        xp = namespace(g)
        v = self.radius * xp.sign(-g)  # not -radius * 0, which is -0
        size = xp.abs(g).reshape(-1)
        if self.k >= len(size):
            return v
        least = arrays.kth_largest(size, self.k)
        above, equal = size > least, size == least
        room = self.k - xp.sum(above)
        chosen = above | (equal & (xp.cumsum(equal, 0) <= room))
        return xp.where(chosen.reshape(g.shape), v, xp.zeros_like(v))

    def start(self, shape: Shape, dtype: AnyDType = float) -> AnyArray:
        return arrays.zeros(shape, dtype)

    def diameter(self, shape: Shape, p: float = 2) -> float:
        n = math.prod(arrays.as_shape(shape))
        return 2 * self.radius * float(min(self.k, n) ** (1 / check_order(p)))

    def violation(self, x: AnyArray) -> float:
        size = abs(arrays.double(x))
        total = self.k * self.radius
        return max(excess(size.max() - self.radius, self.radius), excess(size.sum() - total, total))

    def project(self, x: AnyArray, h: AnyArray | None = None) -> AnyArray:
        x = finite(x, "x")
        return projections.k_sparse(x, metric_like(h, x), self.radius, self.k)
