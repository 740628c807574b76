"""The ball of the nuclear norm, the sum of the singular values."""

from dataclasses import dataclass

import numpy as np

from adafw import arrays, checks
from adafw.arrays import at_least_single, finite, singular_values, svd
from adafw.called import NEEDED, Called
from adafw.constraints import projections, spectral_newton, spectral_projection
from adafw.constraints.base import RadialSet, check_order, excess, metric_like
from adafw.constraints.lanczos import leading_triplet, spectral_norm_bound
from adafw.constraints.matrices import as_matrix, check_point_shape, matrix_shape
from adafw.typing import AnyArray, AnyDType, AnyNumber, Shape

#: The smaller side up to which all singular values are computed where one is needed.
_SMALL = 200


@dataclass(frozen=True, eq=False, init=False, repr=False)
class NuclearBall(RadialSet):
    """{X : sum_i s_i(X) <= radius} over matrices; over vectors that stand for them, with `shape`.

    lmo: -radius u v^T with the first singular vectors of g, 0 if g = 0. Where both sides are
    longer than 200 by a Lanczos method, O(m n) a step, to a relative 1e-10; else, or if `exact`,
    by a singular value decomposition, O(m n min(m, n)). `gap` is certified in either case.
    project: Euclidean by shrinking the singular values, O(m n min(m, n)); in a metric iterative,
    some hundred decompositions, to about 1e-10 of the radius, at worst to a duality gap of 1e-8 of
    the squared distance.
    """

    called = Called("nuclear", "singular values of sum <= radius", {"shape": NEEDED})
    radius: float
    matrix: tuple[int, int] | None
    exact: bool
    projection = "metric"

    def __init__(
        self, radius: float, shape: tuple[int, int] | None = None, exact: bool = False
    ) -> None:
        object.__setattr__(self, "radius", checks.radius(radius))
        object.__setattr__(self, "matrix", matrix_shape(shape))
        object.__setattr__(self, "exact", bool(exact))

    @property
    def shape(self) -> tuple[int, ...] | None:
        return None if self.matrix is None else (self.matrix[0] * self.matrix[1],)

    def lmo(self, g: AnyArray) -> AnyArray:
        g = finite(g, "g")
        a = as_matrix(g, self.matrix, "NuclearBall")
        u, s, v = self._leading(a)
        factor = -self.radius if s > 0 else 0.0
        return arrays.cast((factor * u)[:, None] * v[None, :], g).reshape(g.shape)

    def _leading(self, a: AnyArray) -> tuple[AnyArray, float, AnyArray]:
        if self.exact or min(a.shape) <= _SMALL:
            u, s, vt = svd(a)
            return u[:, 0], float(s[0]), vt[0]
        return leading_triplet(at_least_single(a))

    def gap(self, x: AnyArray, g: AnyArray) -> float:
        a = as_matrix(g, self.matrix, "NuclearBall")
        if self.exact or min(a.shape) <= _SMALL:
            return super().gap(x, g)
        # max <g, x - v> = <g, x> + radius s_1(g): s_1 from above, as Lanczos finds it from below.
        a = arrays.host(a)
        u, _, v = leading_triplet(a)
        largest = spectral_norm_bound(a, float(u @ a @ v))
        return float(np.vdot(arrays.host(x), a)) + self.radius * largest

    def start(self, shape: Shape, dtype: AnyDType = float) -> AnyArray:
        check_point_shape(shape, self.matrix, "NuclearBall")
        return arrays.zeros(shape, dtype)

    def diameter(self, shape: Shape, p: float = 2) -> float:
        m, n = check_point_shape(shape, self.matrix, "NuclearBall")
        return 2 * self.radius * float((m * n) ** max(0.0, 1 / check_order(p) - 0.5))

    def violation(self, x: AnyArray) -> float:
        a = as_matrix(x, self.matrix, "NuclearBall")
        if not arrays.all_finite(a):
            return float("nan")
        return excess(singular_values(a).sum() - self.radius, self.radius)

    def project(self, x: AnyArray, h: AnyArray | None = None) -> AnyArray:
        x = finite(x, "x")
        h = metric_like(h, x)
        a = as_matrix(x, self.matrix, "NuclearBall")
        if self.violation(x) == 0:
            return arrays.copy(x)
        if h is None or bool((h == h.reshape(-1)[0]).all()):
            u, s, vt = svd(arrays.double(a))
            v = (u * projections.simplex(s, None, self.radius)) @ vt
            return arrays.cast(v, x).reshape(x.shape)
        weights, unit = arrays.host(h).reshape(a.shape), arrays.host(a) / self.radius
        v = spectral_newton.project(unit, weights, Shrinking(1.0), "NuclearBall")
        return arrays.like(self.radius * v, x).reshape(x.shape)

    def __repr__(self) -> str:
        shape = "" if self.matrix is None else f", shape={self.matrix}"
        exact = ", exact=True" if self.exact else ""
        return f"NuclearBall(radius={self.radius}{shape}{exact})"


@dataclass(frozen=True)
class Shrinking(spectral_projection.SingularValueBall):
    """The ball as it acts on singular values: their sum is at most the radius."""

    radius: float

    def shrink(self, s: AnyArray) -> tuple[AnyArray, AnyNumber]:
        if s.sum() <= self.radius:
            return s, np.eye(len(s))
        shrunk = projections.simplex(s, None, self.radius)
        kept = (shrunk > 0).astype(float)
        return shrunk, np.diag(kept) - np.outer(kept, kept) / kept.sum()

    def support(self, s: AnyArray) -> float:
        return self.radius * float(s[0])
