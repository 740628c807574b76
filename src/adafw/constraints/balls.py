"""Norm balls of vectors: {||x|| <= radius} in the l1, l2 and linf norm."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw import arrays, checks
from adafw.arrays import finite, namespace
from adafw.called import Called
from adafw.constraints import projections
from adafw.constraints.base import RadialSet, along, check_order, excess, metric_like
from adafw.typing import AnyArray, AnyDType, Shape


@dataclass(frozen=True, eq=False)
class L1Ball(RadialSet):
    """{x : sum_i |x_i| <= radius}, whose vertices are +- radius e_i.

    lmo: -radius sign(g_i) e_i at the first largest |g_i|, 0 if g = 0; O(n).
    project: any metric, about 10 passes (Michelot 1986; Duchi, Hazan, Singer 2011, section 5.2).
    """

    called = Called("l1", "sum of |x_i| <= radius: few features")
    radius: float
    projection = "metric"

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", checks.radius(self.radius))

    def lmo(self, g: AnyArray) -> AnyArray:
        g = arrays.floating(g, "g")
        i = arrays.first_largest(g)
        xp = namespace(g)
        return arrays.basis(g, i, self.radius * xp.sign(-xp.take(g, i)))

    def gap(self, x: AnyArray, g: AnyArray) -> float:
        # Without the vertex, two vectors of the length of x.
        g = arrays.floating(g, "g")
        steepest = abs(namespace(g).take(g, arrays.first_largest(g)))
        return along(g, x) + self.radius * float(steepest)

    def start(self, shape: Shape, dtype: AnyDType = float) -> AnyArray:
        return arrays.zeros(shape, dtype)

    def diameter(self, shape: Shape, p: float = 2) -> float:
        check_order(p)  # the same in every norm
        return 2 * self.radius

    def violation(self, x: AnyArray) -> float:
        return excess(abs(arrays.double(x)).sum() - self.radius, self.radius)

    def project(self, x: AnyArray, h: AnyArray | None = None) -> AnyArray:
        x = finite(x, "x")
        return projections.l1_ball(x, metric_like(h, x), self.radius)


@dataclass(frozen=True, eq=False)
class L2Ball(RadialSet):
    """{x : ||x||_2 <= radius}.

    lmo: -radius g / ||g||_2, 0 if g = 0; O(n).
    project: any metric, by Newton's method on the multiplier, O(n) a step.
    """

    called = Called("l2", "Euclidean norm <= radius")
    radius: float
    projection = "metric"

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", checks.radius(self.radius))

    def lmo(self, g: AnyArray) -> AnyArray:
        direction, _ = arrays.unit(finite(g, "g"))
        return (-self.radius) * direction + 0.0  # the sum turns -0 into 0

    def start(self, shape: Shape, dtype: AnyDType = float) -> AnyArray:
        return arrays.zeros(shape, dtype)

    def diameter(self, shape: Shape, p: float = 2) -> float:
        n = math.prod(arrays.as_shape(shape))
        return 2 * self.radius * n ** max(0.0, 1 / check_order(p) - 1 / 2)

    def violation(self, x: AnyArray) -> float:
        return excess(arrays.norm(arrays.double(x)) - self.radius, self.radius)

    def project(self, x: AnyArray, h: AnyArray | None = None) -> AnyArray:
        x = finite(x, "x")
        return projections.l2_ball(x, metric_like(h, x), self.radius)

    def minimise_quadratic(
        self, centre: AnyArray, linear: AnyArray, matrix: NDArray[Any]
    ) -> NDArray[Any] | None:
        """(H + s) y = H x - g, with s >= 0 such that ||y|| = radius, or s = 0 and ||y|| below.

        s by Newton's method on 1 / ||y||, monotone from below (More and Sorensen 1983); O(n^3).
        """
        sizes, basis = np.linalg.eigh(matrix)
        # Where there is hardly any curvature y stays near x: H knows nothing of what is there.
        sizes = np.maximum(sizes, 1e-13 * float(sizes[-1]))
        target = sizes * (basis.T @ centre) - basis.T @ linear
        least = 1e-15 * float(sizes[-1]) + 1e-300  # > 0 even if H = 0: sizes + s is divided by
        s = max(float(np.linalg.norm(target)) / self.radius - float(sizes[-1]), least)
        # A bound that is never met: on a concave function Newton's method cannot pass the root.
        for _ in range(100):
            y = target / (sizes + s)
            norm = float(np.linalg.norm(y))
            bend = max(float(np.sum(y**2 / (sizes + s))), 1e-300)
            rise = (norm / self.radius - 1) * norm**2 / bend
            if not rise > 1e-15 * s:  # reached, or inside already at the least s
                break
            s += rise
        return np.asarray(basis @ y)


@dataclass(frozen=True, eq=False)
class LInfBall(RadialSet):
    """{x : max_i |x_i| <= radius}.

    lmo: -radius sign(g_i) in every entry, 0 where g_i = 0; O(n).
    project: clipping, the same in every metric; O(n).
    """

    called = Called("linf", "every |x_i| <= radius")
    radius: float
    projection = "metric"

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", checks.radius(self.radius))

    def lmo(self, g: AnyArray) -> AnyArray:
        g = finite(g, "g")
        return self.radius * namespace(g).sign(-g)  # not -radius * 0, which is -0

    def start(self, shape: Shape, dtype: AnyDType = float) -> AnyArray:
        return arrays.zeros(shape, dtype)

    def diameter(self, shape: Shape, p: float = 2) -> float:
        n = math.prod(arrays.as_shape(shape))
        return 2 * self.radius * float(n ** (1 / check_order(p)))

    def violation(self, x: AnyArray) -> float:
        return excess(abs(x).max() - self.radius, self.radius)

    def project(self, x: AnyArray, h: AnyArray | None = None) -> AnyArray:
        x = finite(x, "x")
        metric_like(
            h, x
        )  # clipping is nearest in every diagonal metric, but a bad h is still refused
        return namespace(x).clip(x, -self.radius, self.radius)
