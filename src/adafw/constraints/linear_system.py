"""The rows of linear constraints, and Newton's equations of an interior-point method on them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]
Solver = Callable[[Vector], Vector]
#: (q, q_slack, primal) -> (dv, ds, dy), the solution of Newton's equations
#: dv / w + A^T dy = q, ds / slack + dy = q_slack in the inequality rows, A dv + ds = -primal.
Newton = Callable[[Vector, Vector, Vector], tuple[Vector, Vector, Vector]]


class LinearSystem(ABC):
    """The rows of A; `inequality` marks those that read <= b, the others read = b."""

    inequality: Mask

    @abstractmethod
    def dot(self, v: Vector) -> Vector:
        """A v."""

    @abstractmethod
    def combine(self, y: Vector) -> Vector:
        """A^T y."""

    @property
    @abstractmethod
    def absolute(self) -> "LinearSystem":
        """The rows of |A|, which tell what A v and A^T y are rounded relative to."""

    @abstractmethod
    def face(self, active: Mask) -> "LinearSystem":
        """The active rows as equalities; its `newton` takes w = 0 where v may not move."""

    @abstractmethod
    def newton(self, w: Vector, slack: Vector) -> Newton:
        """Solves Newton's equations; slack is 0 in the equality rows."""


def dense_rows(A: NDArray[Any], inequality: Mask) -> LinearSystem:
    """Any matrix: O(m^2 n) an iteration for m <= n rows, O(m n^2) for more."""
    return (_Wide if len(A) <= A.shape[1] else _Tall)(A, inequality)


class _Wide(LinearSystem):
    def __init__(self, A: NDArray[Any], inequality: Mask) -> None:
        self.A, self.inequality = A, inequality

    def dot(self, v: Vector) -> Vector:
        return np.asarray(self.A @ v)

    def combine(self, y: Vector) -> Vector:
        return np.asarray(y @ self.A)

    @property
    def absolute(self) -> LinearSystem:
        return _Wide(np.abs(self.A), self.inequality)

    def face(self, active: Mask) -> LinearSystem:
        return _Wide(self.A[active], np.zeros(int(active.sum()), dtype=bool))

    def newton(self, w: Vector, slack: Vector) -> Newton:
        normal = spd_solver((self.A * w) @ self.A.T + np.diag(slack))
        return by_normal_equations(self, normal, w, slack)


class _Tall(_Wide):
    def newton(self, w: Vector, slack: Vector) -> Newton:
        less = self.inequality
        G, E, weight = self.A[less], self.A[~less], 1 / slack[less]
        inner = spd_solver(np.diag(1 / w) + (G.T * weight) @ G)
        outer = spd_solver(E @ np.stack([inner(row) for row in E], axis=1)) if len(E) else None

        def solve(q: Vector, q_slack: Vector, primal: Vector) -> tuple[Vector, Vector, Vector]:
            ds, dy = np.zeros_like(primal), np.zeros_like(primal)
            dv = inner(q - G.T @ (q_slack[less] + weight * primal[less]))
            if outer is not None:
                dy[~less] = outer(E @ dv + primal[~less])
                dv = dv - inner(E.T @ dy[~less])
            # From the rows, so that they hold to rounding; the other way digits would cancel.
            ds[less] = -primal[less] - G @ dv
            dy[less] = q_slack[less] - weight * ds[less]
            return dv, ds, dy

        return solve


def by_normal_equations(rows: LinearSystem, normal: Solver, w: Vector, slack: Vector) -> Newton:
    """Newton's equations by (A diag(w) A^T + diag(slack)) dy = r, refined once."""

    def solve(q: Vector, q_slack: Vector, primal: Vector) -> tuple[Vector, Vector, Vector]:
        r = rows.dot(w * q) + slack * q_slack + primal
        dy = normal(r)
        dy = dy + normal(r - rows.dot(w * rows.combine(dy)) - slack * dy)
        return w * (q - rows.combine(dy)), slack * (q_slack - dy), dy

    return solve


def spd_solver(matrix: NDArray[Any]) -> Solver:
    """r -> the solution of a positive definite system, scaled to a unit diagonal first.

    Where rounding or dependent rows leave the matrix singular, the diagonal is raised as little
    as lets it be factored; a row of zeros gets the solution 0.
    """
    from scipy import linalg

    diagonal = np.diag(matrix)
    d = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
    scaled = matrix * d[:, None] * d
    # What rounding may take from an eigenvalue of a matrix with a unit diagonal.
    shift = 1e-16 * len(scaled)
    while True:
        try:
            factor = linalg.cho_factor(
                scaled + shift * np.eye(len(scaled)), lower=True, check_finite=False
            )
            break
        except linalg.LinAlgError:
            shift *= 10

    def solve(r: Vector) -> Vector:
        return np.asarray(d * linalg.cho_solve(factor, d * r, check_finite=False))

    return solve
