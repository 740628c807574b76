"""The Birkhoff polytope: doubly stochastic matrices."""

from dataclasses import dataclass

import numpy as np

from adafw import arrays
from adafw.arrays import finite
from adafw.called import Called
from adafw.constraints import interior_point
from adafw.constraints.base import Constraint, check_order, excess, metric_like
from adafw.constraints.linear_system import (
    LinearSystem,
    Mask,
    Newton,
    Vector,
    by_normal_equations,
    spd_solver,
)
from adafw.typing import AnyArray, AnyDType, Shape


@dataclass(frozen=True, eq=False)
class Birkhoff(Constraint):
    """{X of shape (n, n) : X >= 0, every row and every column sums to 1}.

    Its vertices are the permutation matrices (Birkhoff 1946).

    lmo: the cheapest assignment (Crouse 2016, scipy), the identity if g = 0; O(n^3).
    project: any metric, iterative, to rounding; 5 to 10 steps of O(n^3) by Newton's method on the
    dual, or about 20 of an interior-point method where the metric is too uneven for that.
    """

    called = Called("birkhoff", "doubly stochastic matrices", matrices=True)
    projection = "metric"

    def lmo(self, g: AnyArray) -> AnyArray:
        from scipy.optimize import linear_sum_assignment

        g = finite(g, "g")
        n = _check_square(g.shape)
        cost = arrays.host(g)
        # Costs of size one: the dual variables of huge ones would overflow.
        rows, columns = linear_sum_assignment(cost / (np.abs(cost).max() or 1.0))
        v = np.zeros((n, n))
        v[rows, columns] = 1
        return arrays.like(v, g)

    def start(self, shape: Shape, dtype: AnyDType = float) -> AnyArray:
        n = _check_square(arrays.as_shape(shape))
        point = arrays.zeros((n, n), dtype)
        point[range(n), range(n)] = 1
        return point

    def diameter(self, shape: Shape, p: float = 2) -> float:
        n = _check_square(arrays.as_shape(shape))
        return float((2 * n) ** (1 / check_order(p))) if n > 1 else 0.0

    def violation(self, x: AnyArray) -> float:
        _check_square(x.shape)
        x = arrays.double(x)
        off = max(excess(abs(x.sum(axis) - 1).max(), 1.0) for axis in (0, 1))
        return max(off, excess(-x.min(), 1.0))

    def project(self, x: AnyArray, h: AnyArray | None = None) -> AnyArray:
        x = finite(x, "x")
        n = _check_square(x.shape)
        h = metric_like(h, x)
        point = arrays.host(x).ravel()
        weights = np.ones(n * n) if h is None else arrays.host(h).ravel()
        rows = _RowAndColumnSums(n)
        bounds = np.zeros(n * n), np.full(n * n, np.inf)
        b = np.ones(2 * n - 1)
        v = interior_point.project(point, weights, *bounds, rows, b, "Birkhoff polytope")
        return arrays.like(v.reshape(n, n), x)


def _check_square(shape: tuple[int, ...]) -> int:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"Birkhoff holds square matrices, got shape {tuple(shape)}.")
    return int(shape[0])


class _RowAndColumnSums(LinearSystem):
    """All row sums, and all column sums but the last, which follows from the others."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.inequality = np.zeros(2 * n - 1, dtype=bool)

    @property
    def absolute(self) -> "_RowAndColumnSums":
        return self

    def dot(self, v: Vector) -> Vector:
        matrix = v.reshape(self.n, self.n)
        return np.concatenate([matrix.sum(1), matrix.sum(0)[:-1]])

    def combine(self, y: Vector) -> Vector:
        return np.add.outer(y[: self.n], np.append(y[self.n :], 0.0)).ravel()

    def face(self, active: Mask) -> LinearSystem:
        return self

    def newton(self, w: Vector, slack: Vector) -> Newton:
        n, W = self.n, w.reshape(self.n, self.n)
        total = np.where(W.sum(1) > 0, W.sum(1), 1.0)
        # The Schur complement of the row sums is the Laplacian of a graph on the columns; its
        # diagonal is the sum of the other entries, which a subtraction would lose.
        links = (W.T / total) @ W
        np.fill_diagonal(links, 0.0)
        inner = spd_solver((np.diag(links.sum(1)) - links)[:-1, :-1])

        def normal(r: Vector) -> Vector:
            columns = inner(r[n:] - W.T[:-1] @ (r[:n] / total))
            return np.concatenate([(r[:n] - W[:, :-1] @ columns) / total, columns])

        return by_normal_equations(self, normal, w, slack)
