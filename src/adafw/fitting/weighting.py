"""Balls of weighted nuclear norms: X = A Y B^T with Y in the nuclear ball."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.fitting.completion import Completion, complete
from adafw.fitting.core import Deadline
from adafw.steps.corrective.factors import FactoredView, balanced
from adafw.steps.corrective.observed import Observed
from adafw.typing import MatrixLike

Matrix = NDArray[Any]

#: Norms whose ball a completion may lie in.
NORMS = ("nuclear", "frequency", "adaptive")
#: The share of a weight that counts alike for all rows, or columns.
_ALIKE = 0.5
#: Of the largest singular value: those below it are as dear as if they were 0.
_FAINT = 0.1
#: How closely the first solution, which only makes the weights, is found.
_FIRST = 3e-2


@dataclass(frozen=True)
class Map:
    """The square matrix diag(scale) (I + U diag(gains - 1) U^T), U having orthonormal columns."""

    scale: Matrix
    vectors: Matrix
    gains: Matrix

    def __matmul__(self, x: Matrix) -> Matrix:
        return (self.scale * self._widened(x).T).T

    def transposed(self, x: Matrix) -> Matrix:
        """Its transpose times x."""
        return self._widened((self.scale * x.T).T)

    def toarray(self) -> Matrix:
        """Written out, to be looked at."""
        return self @ np.eye(len(self.scale))

    def squares(self) -> Matrix:
        """Numbers of the size of the columns' squared lengths, for conditioning."""
        return np.asarray(self.scale**2 * (1 + self.vectors**2 @ (self.gains**2 - 1)))

    def _widened(self, x: Matrix) -> Matrix:
        if not len(self.gains):
            return x
        return np.asarray(x + self.vectors @ (((self.gains - 1) * (self.vectors.T @ x).T).T))


@dataclass(frozen=True)
class _MappedMatrix:
    """A^T G B, as far as products go."""

    inner: MatrixLike
    rows: Map
    cols: Map

    @property
    def shape(self) -> tuple[int, int]:
        m, n = self.inner.shape
        return m, n

    @property
    def T(self) -> "_MappedMatrix":
        return _MappedMatrix(self.inner.T, self.cols, self.rows)

    def __matmul__(self, x: Matrix) -> Matrix:
        return self.rows.transposed(self.inner @ (self.cols @ x))

    def toarray(self) -> Matrix:
        """Written out."""
        return self.cols.transposed(self.rows.transposed(self.inner.toarray()).T).T


class Mapped(FactoredView):
    """Observed entries of A Y B^T, as steps on the factors of Y see them."""

    def __init__(self, seen: Observed, rows: Map, cols: Map) -> None:
        self.seen, self.rows, self.cols, self.shape = seen, rows, cols, seen.shape

    @property
    def least(self) -> float:
        """Below this no value can be."""
        return self.seen.least

    def predict(self, left: Matrix, right: Matrix) -> Matrix:
        return self.seen.predict(self.rows @ left, self.cols @ right)

    def matrix(self, weights: Matrix) -> MatrixLike:
        return _MappedMatrix(self.seen.matrix(weights), self.rows, self.cols)

    def value(self, z: Matrix) -> float:
        return self.seen.value(z)

    def slopes(self, z: Matrix) -> Matrix:
        return self.seen.slopes(z)

    def bends(self, z: Matrix) -> Matrix:
        return self.seen.bends(z)

    def diagonals(self, bends: Matrix, left: Matrix, right: Matrix) -> tuple[Matrix, Matrix]:
        up, down = self.seen.diagonals(bends, self.rows @ left, self.cols @ right)
        return self.rows.squares()[:, None] * up, self.cols.squares()[:, None] * down


@dataclass(frozen=True)
class Weighted:
    """A completion in entries of X, and the maps of its ball; None where they are identities."""

    found: Completion
    rows: Map | None = None
    cols: Map | None = None


def by_frequency(seen: Observed) -> Mapped:
    """Rows and columns count by how often they were seen: what was seen is what is predicted.

    The norm is that of diag(p)^1/2 X diag(q)^1/2, p and q being mixed of the shares of the
    observations and of equal ones: the smoothed weighted trace norm of Foygel, Salakhutdinov,
    Shamir and Srebro (2011).
    """
    maps = []
    for which, size in ((seen.rows, seen.shape[0]), (seen.cols, seen.shape[1])):
        share = size * np.bincount(which, minlength=size) / len(seen.y)
        scale = 1 / np.sqrt((1 - _ALIKE) * share + _ALIKE)
        maps.append(Map(scale, np.zeros((size, 0)), np.zeros(0)))
    return Mapped(seen, *maps)


#: (L, R) of X = L R^T.
Factors = tuple[Matrix, Matrix]


def by_solution(first: Mapped, found: Completion, radius: float) -> tuple[Mapped, Factors | None]:
    """The ball in which directions that `found` uses are cheap, and the start that `found` is.

    One step of reweighting (Fazel, Hindi and Boyd 2003; for lasso: Zou 2006): a direction of
    singular value s counts as s / (s + a tenth of the largest), so that what is large is not
    shrunk and what is small is. The unit of the radius is such that `found` lies on the boundary.
    """
    s = np.linalg.norm(found.left, axis=0) * np.linalg.norm(found.right, axis=0)
    if not len(s):
        return first, None
    gains = np.sqrt(s / (_FAINT * float(s.max())) + 1)
    unit = math.sqrt(float((s / gains**2).sum()) / radius)
    u, v = (side / np.sqrt(s) for side in (found.left, found.right))
    rows = Map(unit * first.rows.scale, u, gains)
    cols = Map(unit * first.cols.scale, v, gains)
    start = found.left / (unit * gains), found.right / (unit * gains)
    return Mapped(first.seen, rows, cols), start


def solve(
    seen: Observed, norm: str, radius: float, tol: float, deadline: Deadline, max_iter: int,
    start: Factors | None = None,
) -> tuple[Weighted, Factors]:  # fmt: skip
    """The completion in the ball, and factors where one of a larger radius may start."""
    view: Observed | Mapped = seen if norm == "nuclear" else (mapped := by_frequency(seen))
    before = 0
    if norm == "adaptive":
        # Always from 0: so loosely solved, it would hardly leave a start, nor would the weights.
        first = complete(view, radius, max(tol, _FIRST), deadline, max_iter=max_iter)
        view, start = by_solution(mapped, first, radius)
        before = first.n_iter
    found = complete(view, radius, tol, deadline, start=start, max_iter=max_iter)
    ended, found = (found.left, found.right), replace(found, n_iter=before + found.n_iter)
    if isinstance(view, Observed):
        return Weighted(found), ended
    left, right = balanced(view.rows @ found.left, view.cols @ found.right, math.inf)
    return Weighted(replace(found, left=left, right=right), view.rows, view.cols), ended


def walk(
    seen: Observed, norm: str, radii: Sequence[float], tol: float, deadline: Deadline, max_iter: int
) -> Iterator[Weighted]:
    """Completions from small to large radii, each begun where the last ended."""
    start = None
    for radius in radii:
        if deadline.left == 0:
            return
        found, start = solve(seen, norm, radius, tol, deadline, max_iter, start)
        yield found
