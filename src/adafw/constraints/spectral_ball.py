"""The ball of the spectral norm, the largest singular value."""

from dataclasses import dataclass

import numpy as np

from adafw import arrays, checks
from adafw.arrays import finite, namespace, singular_values, svd
from adafw.called import NEEDED, Called
from adafw.constraints import spectral_newton, spectral_projection
from adafw.constraints.base import RadialSet, check_order, excess, metric_like
from adafw.constraints.matrices import as_matrix, check_point_shape, matrix_shape
from adafw.typing import AnyArray, AnyDType, AnyNumber, Shape


@dataclass(frozen=True, eq=False, init=False, repr=False)
class SpectralBall(RadialSet):
    """{X : s_1(X) <= radius} over matrices; over vectors that stand for them, with `shape`.

    lmo: -radius U V^T over the singular values s_i > eps s_1 max(rows, columns) of g, 0 if g = 0;
    an exact singular value decomposition, O(m n min(m, n)).
    project: Euclidean by clipping the singular values, the same cost; in a metric iterative, some
    hundred decompositions, to about 1e-10 of the radius, at worst to a duality gap of 1e-8 of the
    squared distance.
    """

    called = Called("spectral", "singular values <= radius", {"shape": NEEDED})
    radius: float
    matrix: tuple[int, int] | None
    projection = "metric"

    def __init__(self, radius: float, shape: tuple[int, int] | None = None) -> None:
        object.__setattr__(self, "radius", checks.radius(radius))
        object.__setattr__(self, "matrix", matrix_shape(shape))

    @property
    def shape(self) -> tuple[int, ...] | None:
        return None if self.matrix is None else (self.matrix[0] * self.matrix[1],)

    def lmo(self, g: AnyArray) -> AnyArray:
        g = finite(g, "g")
        xp, a = namespace(g), as_matrix(g, self.matrix, "SpectralBall")
        u, s, vt = svd(a)
        # Below this a singular value is rounding, and the vectors that belong to it are noise.
        kept = s > float(xp.finfo(s.dtype).eps) * s[0] * max(a.shape)
        v = (u * xp.where(kept, xp.full_like(s, -self.radius), xp.zeros_like(s))) @ vt
        return arrays.cast(v, g).reshape(g.shape)

    def start(self, shape: Shape, dtype: AnyDType = float) -> AnyArray:
        check_point_shape(shape, self.matrix, "SpectralBall")
        return arrays.zeros(shape, dtype)

    def diameter(self, shape: Shape, p: float = 2) -> float:
        """Exact for p >= 2, else an upper bound.

        It is attained where a matrix of signs has orthogonal rows or columns (Hadamard).
        """
        m, n = check_point_shape(shape, self.matrix, "SpectralBall")
        p = check_order(p)
        rank = float(min(m, n))
        largest = rank ** (1 / p) if p >= 2 else rank**0.5 * (m * n) ** (1 / p - 0.5)
        return 2 * self.radius * largest

    def violation(self, x: AnyArray) -> float:
        a = as_matrix(x, self.matrix, "SpectralBall")
        if not arrays.all_finite(a):
            return float("nan")
        return excess(singular_values(a)[0] - self.radius, self.radius)

    def project(self, x: AnyArray, h: AnyArray | None = None) -> AnyArray:
        x = finite(x, "x")
        h = metric_like(h, x)
        a = as_matrix(x, self.matrix, "SpectralBall")
        if self.violation(x) == 0:
            return arrays.copy(x)
        if h is None or bool((h == h.reshape(-1)[0]).all()):
            u, s, vt = svd(arrays.double(a))
            v = (u * namespace(s).clip(s, None, self.radius)) @ vt
            return arrays.cast(v, x).reshape(x.shape)
        weights, unit = arrays.host(h).reshape(a.shape), arrays.host(a) / self.radius
        v = spectral_newton.project(unit, weights, Clipping(1.0), "SpectralBall")
        return arrays.like(self.radius * v, x).reshape(x.shape)

    def __repr__(self) -> str:
        shape = "" if self.matrix is None else f", shape={self.matrix}"
        return f"SpectralBall(radius={self.radius}{shape})"


@dataclass(frozen=True)
class Clipping(spectral_projection.SingularValueBall):
    """The ball as it acts on singular values: each is at most the radius."""

    radius: float

    def shrink(self, s: AnyArray) -> tuple[AnyArray, AnyNumber]:
        return np.minimum(s, self.radius), np.diag((s < self.radius).astype(float))

    def support(self, s: AnyArray) -> float:
        return self.radius * float(s.sum())
