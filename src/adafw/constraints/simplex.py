"""Non-negative vectors with a given, or a bounded, sum."""

import math
from dataclasses import dataclass

from adafw import arrays, checks
from adafw.arrays import finite, namespace
from adafw.called import Called
from adafw.constraints import projections
from adafw.constraints.base import RadialSet, along, check_order, excess, metric_like
from adafw.typing import AnyArray, AnyDType, Shape


@dataclass(frozen=True, eq=False)
class Simplex(RadialSet):
    """{x : x >= 0, sum_i x_i = radius}, whose vertices are radius e_i.

    lmo: radius e_i at the first smallest g_i; O(n).
    project: any metric, about 10 passes (Michelot 1986).
    """

    called = Called("simplex", "x >= 0 of sum radius", per_column=True)
    radius: float = 1.0
    projection = "metric"

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", checks.radius(self.radius))

    def lmo(self, g: AnyArray) -> AnyArray:
        g = finite(g, "g")
        return arrays.basis(g, namespace(g).argmin(g), self.radius)

    def gap(self, x: AnyArray, g: AnyArray) -> float:
        g = finite(g, "g")  # without the vertex, two vectors of the length of x
        return along(g, x) - self.radius * float(g.min())

    def start(self, shape: Shape, dtype: AnyDType = float) -> AnyArray:
        return arrays.basis(arrays.zeros(shape, dtype), 0, self.radius)

    def diameter(self, shape: Shape, p: float = 2) -> float:
        n = math.prod(arrays.as_shape(shape))
        return self.radius * float(2 ** (1 / check_order(p))) if n > 1 else 0.0

    def violation(self, x: AnyArray) -> float:
        off = abs(float(arrays.double(x).sum()) - self.radius)
        return max(excess(-x.min(), self.radius), excess(off, self.radius))

    def project(self, x: AnyArray, h: AnyArray | None = None) -> AnyArray:
        x = finite(x, "x")
        return projections.simplex(x, metric_like(h, x), self.radius)


@dataclass(frozen=True, eq=False)
class UnitSimplex(RadialSet):
    """{x : x >= 0, sum_i x_i <= radius}, whose vertices are 0 and radius e_i.

    lmo: radius e_i at the first smallest g_i if that is negative, else 0; O(n).
    project: any metric, about 10 passes (Michelot 1986).
    """

    called = Called("unit_simplex", "x >= 0 of sum <= radius", per_column=True)
    radius: float = 1.0
    projection = "metric"

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", checks.radius(self.radius))

    def lmo(self, g: AnyArray) -> AnyArray:
        g = finite(g, "g")
        xp = namespace(g)
        i = xp.argmin(g)
        least = xp.take(g, i)
        # A number of g's dtype: radius * (least < 0) would have torch's default one, float32.
        return arrays.basis(g, i, self.radius * xp.sign(xp.clip(-least, 0, None)))

    def gap(self, x: AnyArray, g: AnyArray) -> float:
        g = finite(g, "g")
        return along(g, x) - self.radius * min(0.0, float(g.min()))

    def start(self, shape: Shape, dtype: AnyDType = float) -> AnyArray:
        return arrays.zeros(shape, dtype)

    def diameter(self, shape: Shape, p: float = 2) -> float:
        n = math.prod(arrays.as_shape(shape))
        return self.radius * float(2 ** (1 / check_order(p))) if n > 1 else self.radius

    def violation(self, x: AnyArray) -> float:
        over = float(arrays.double(x).sum()) - self.radius
        return max(excess(-x.min(), self.radius), excess(over, self.radius))

    def project(self, x: AnyArray, h: AnyArray | None = None) -> AnyArray:
        x = finite(x, "x")
        return projections.unit_simplex(x, metric_like(h, x), self.radius)
