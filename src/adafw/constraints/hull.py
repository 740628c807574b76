"""The convex hull of finitely many points."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw import arrays
from adafw.arrays import Constant, finite, namespace
from adafw.called import NEEDED, Called
from adafw.constraints.base import (
    Constraint,
    Stalled,
    check_order,
    check_shape,
    check_sizes,
    excess,
    metric_like,
)
from adafw.typing import AnyArray, AnyDType, Shape


@dataclass(frozen=True, eq=False, repr=False)
class Hull(Constraint):
    """{sum_j w_j a_j : w >= 0, sum_j w_j = 1}, a_j being the rows of `vertices`.

    lmo: the first row of least <g, a_j>; O(m n) for m rows.
    project: any metric, iterative: the active-set method of Lawson and Hanson (1974), finite and
    to rounding; O(m n) a step, about as many steps as rows take part.
    violation: the Euclidean distance relative to the largest entry, so a projection as well.
    """

    called = Called("hull", "mixtures of given vertices", {"vertices": NEEDED}, per_column=True)
    vertices: AnyArray
    projection = "metric"

    def __post_init__(self) -> None:
        vertices = Constant(self.vertices, "vertices")
        if vertices.value.ndim < 2:
            raise ValueError(
                f"vertices must have a point in each row, got shape {vertices.value.shape}."
            )
        object.__setattr__(self, "vertices", vertices)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.vertices.value.shape[1:])

    @property
    def scale(self) -> float:
        return float(np.abs(self.vertices.value).max()) or 1.0

    def lmo(self, g: AnyArray) -> AnyArray:
        g = finite(g, "g")
        check_shape(g, self.shape, "Hull")
        xp, rows = namespace(g), self.vertices.like(g)
        # Both of size one, so that no product overflows or vanishes; the order stays.
        largest = xp.max(xp.abs(g))
        unit = g / xp.where(largest > 0, largest, xp.ones_like(largest))
        scores = rows.reshape(len(rows), -1) @ (unit / self.scale).reshape(-1)
        return arrays.copy(rows[xp.argmin(scores)])

    def start(self, shape: Shape, dtype: AnyDType = float) -> AnyArray:
        point = arrays.zeros(shape, dtype)
        check_shape(point, self.shape, "Hull")
        return arrays.like(np.array(self.vertices.value[0]), point)

    def diameter(self, shape: Shape, p: float = 2) -> float:
        check_sizes(shape, self.shape, "Hull")
        p = check_order(p)
        if p not in self._diameters:  # all pairs: steps that ask in every iteration would wait
            self._diameters[p] = self._diameter(p)
        return self._diameters[p]

    @cached_property
    def _diameters(self) -> dict[float, float]:
        return {}

    def _diameter(self, p: float) -> float:
        from scipy.spatial.distance import cdist

        rows = self.vertices.value.reshape(len(self.vertices.value), -1)
        kind: dict[str, str | float] = {"metric": "minkowski", "p": p}
        if np.isinf(p):
            kind = {"metric": "chebyshev"}
        # A slice of the rows at a time: all distances at once could fill the memory.
        step = max(1, 10**7 // len(rows))
        return max(
            float(cdist(rows[i : i + step], rows, **kind).max()) for i in range(0, len(rows), step)
        )

    def violation(self, x: AnyArray) -> float:
        check_shape(x, self.shape, "Hull")
        point = arrays.host(x)
        if not np.isfinite(point).all():
            return float("nan")
        off = point - self._nearest(point, np.ones_like(point))
        return excess(np.linalg.norm(off), self.scale)

    def project(self, x: AnyArray, h: AnyArray | None = None) -> AnyArray:
        x = finite(x, "x")
        check_shape(x, self.shape, "Hull")
        h = metric_like(h, x)
        point = arrays.host(x)
        weights = np.ones_like(point) if h is None else arrays.host(h)
        return arrays.like(self._nearest(point, weights), x)

    def _nearest(self, x: NDArray[Any], h: NDArray[Any]) -> NDArray[Any]:
        """The point of the hull nearest to x in the norm of diag(h)."""
        rows = self.vertices.value.reshape(len(self.vertices.value), -1)
        return np.asarray(self.weights(x, h) @ rows).reshape(x.shape)

    def weights(self, x: NDArray[Any], h: NDArray[Any] | None = None) -> NDArray[np.float64]:
        """The w of the point of the hull nearest to x in the norm of diag(h); h = 1 if None.

        With q_j = sqrt(h) (a_j - x), the w >= 0 that minimises ||sum_j w_j q_j||^2 +
        (1 - sum_j w_j)^2 is the wanted one up to a factor: for w = t u with sum u = 1 the best u
        does not depend on t.
        """
        rows = self.vertices.value.reshape(len(self.vertices.value), -1)
        q = rows - x.ravel() if h is None else np.sqrt(h.ravel()) * (rows - x.ravel())
        size = float(np.linalg.norm(q, axis=1).max())
        if size == 0:  # all vertices are x
            return np.eye(1, len(q))[0]
        q /= size
        for solve in (_by_active_set, _by_bounds):
            w = solve(np.vstack([q.T, np.ones(len(q))]), np.append(np.zeros(q.shape[1]), 1.0))
            nearest = w @ q
            gap = float(nearest @ nearest) - float((q @ nearest).min())
            # The sums are rounded relative to the q_j, of size one, however near to x the hull is.
            if gap <= 1e-8 * float(nearest @ nearest) + 1e-15:
                return w
        raise Stalled(
            f"the projection onto this Hull stalled at a duality gap of {gap:.1e} of its "
            "squared size: rescale h, or use a step that needs no projection."
        )

    def __repr__(self) -> str:
        m, *shape = self.vertices.value.shape
        return f"Hull({m} vertices of shape {tuple(shape)})"


def _by_active_set(A: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float64]:
    """The w >= 0 that minimises ||A w - b||, divided by its sum."""
    from scipy.optimize import nnls

    try:
        w, _ = nnls(A, b, maxiter=30 * A.shape[1])
    except RuntimeError:  # too many iterations
        w = np.ones(A.shape[1])
    return np.asarray(w / w.sum())


def _by_bounds(A: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float64]:
    """The same; where that of SciPy 1.15 ends at points that are none."""
    from scipy.optimize import lsq_linear

    w = np.maximum(lsq_linear(A, b, (0, np.inf), method="bvls", tol=1e-15).x, 0.0)
    return np.asarray(w / w.sum())
