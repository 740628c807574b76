"""Matrices as products of factors, and linear models of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.objectives import MatrixModel, WithIntercept
from adafw.objectives.kinds import Linear, model_of
from adafw.steps.corrective.curvature import JointPredictions
from adafw.typing import MatrixLike

Matrix = NDArray[Any]

_SMALL = 200  # the smaller side up to which all singular values are computed


class FactoredView(ABC):
    """A loss of predictions z that are linear in X = L R^T, as steps on the factors see it."""

    #: Of X.
    shape: tuple[int, int]

    @property
    def least(self) -> float:
        """Below this no value can be."""
        return -np.inf

    @abstractmethod
    def predict(self, left: Matrix, right: Matrix) -> Matrix:
        """z at L R^T, without what does not depend on it."""

    @abstractmethod
    def matrix(self, weights: Matrix) -> MatrixLike:
        """sum_i weights_i a_i as a matrix, sparse where samples are entries."""

    @abstractmethod
    def value(self, z: Matrix) -> float:
        """f where the predictions are z."""

    @abstractmethod
    def slopes(self, z: Matrix) -> Matrix:
        """phi' / m."""

    @abstractmethod
    def bends(self, z: Matrix) -> Matrix:
        """phi'' / m, never quite 0: a loss may be flat far out."""

    def bending(self, bends: Matrix) -> Callable[[Matrix], Matrix]:
        """dz -> how slopes change along it."""
        return lambda dz: np.asarray(bends * dz)

    @abstractmethod
    def diagonals(self, bends: Matrix, left: Matrix, right: Matrix) -> tuple[Matrix, Matrix]:
        """Those of the Hessian in L and in R, or numbers of their size."""


class Factored(FactoredView):
    """A linear model of X = L R^T: predictions from the factors, slopes as a matrix.

    Where the samples are single entries the matrix is sparse, and nothing of the size of X exists.
    """

    def __init__(self, f: Linear, shape: tuple[int, int]) -> None:
        self.f = f
        self.model = model_of(f)
        self.shape = shape
        self.entries = None
        if f.rows.places is not None:
            self.entries = np.unravel_index(f.rows.places, shape)

    def predict(self, left: Matrix, right: Matrix) -> Matrix:
        """<a_i, L R^T> for all i; O(entries * rank) where samples are entries."""
        if self.entries is None:
            x = left @ right.T
            return self.f.rows.dot(x.reshape(self.f.rows.shape[1:]).astype(self.f.dtype))
        from adafw.kernels import entries

        rows, cols = self.entries
        out = np.empty(len(rows))
        entries.dots(rows, cols, np.ascontiguousarray(left), np.ascontiguousarray(right), out)
        return out

    def matrix(self, weights: Matrix) -> MatrixLike:
        """sum_i weights_i a_i, sparse where samples are entries."""
        if self.entries is None:
            return self.f.rows.combine(weights).reshape(self.shape).astype(np.float64, copy=False)
        from scipy.sparse import csr_array

        return csr_array((weights, self.entries), shape=self.shape)

    def value(self, z: Matrix) -> float:
        return self.model.value_at(self._shifted(z))

    def slopes(self, z: Matrix) -> Matrix:
        return self.model.slopes_at(self._shifted(z)) / self.f.n_terms

    def bends(self, z: Matrix) -> Matrix:
        """phi'' / m, never quite 0: a loss may be flat far out."""
        bends = self.model.seconds_at(self._shifted(z)) / self.f.n_terms
        return np.maximum(bends, 1e-6 * float(bends.max()))

    def bending(self, bends: Matrix) -> Callable[[Matrix], Matrix]:
        """dz -> how slopes change along it; an intercept takes up its mean."""
        total = float(bends.sum()) if isinstance(self.f, WithIntercept) else 0.0
        if not total > 0:
            return super().bending(bends)
        return lambda dz: np.asarray(bends * (dz - float(bends @ dz) / total))

    def diagonals(self, bends: Matrix, left: Matrix, right: Matrix) -> tuple[Matrix, Matrix]:
        """Those of the Hessian in L and in R, or numbers of their size."""
        if self.entries is not None:
            weights = self.matrix(bends)
        else:  # without products of different entries of a sample
            total = float(bends.sum())
            weights = np.zeros(self.shape)
            if total > 0:
                weights = total * self.f.rows.mean_squares(bends).reshape(self.shape)
        return weights @ right**2, weights.T @ left**2

    def _shifted(self, z: Matrix) -> Matrix:
        return z + self.f.shift(z) if isinstance(self.f, WithIntercept) else z


class JointFactored(FactoredView):
    """Several outputs at once: X = L R^T has one row a feature, R one row an output.

    Predictions are (A L) R^T: as many products with A as the rank, whatever the outputs.
    """

    def __init__(self, f: MatrixModel) -> None:
        self.f, self.shape = f, (f.rows.shape[1], f.n_outputs)
        self.seen = JointPredictions(f)
        self._last: tuple[Matrix | None, Matrix | None] = (None, None)

    def predict(self, left: Matrix, right: Matrix) -> Matrix:
        low = self.f.rows.dot_matrix(np.ascontiguousarray(left, self.f.dtype))
        return np.asarray(low @ right.T)

    def matrix(self, weights: Matrix) -> MatrixLike:
        return self.f.rows.combine_matrix(weights).astype(np.float64, copy=False)

    def value(self, z: Matrix) -> float:
        return self.f.value_at(self._shifted(z))

    def slopes(self, z: Matrix) -> Matrix:
        return self.f.slopes_at(self._shifted(z)) / self.f.n_terms

    def bends(self, z: Matrix) -> Matrix:
        """s of `JointLoss.second`."""
        return self.f.seconds_at(self._shifted(z))

    def bending(self, bends: Matrix) -> Callable[[Matrix], Matrix]:
        return self.seen.bending(bends)

    def diagonals(self, bends: Matrix, left: Matrix, right: Matrix) -> tuple[Matrix, Matrix]:
        totals = self.seen.totals(bends)
        low = self.f.rows.dot_matrix(np.ascontiguousarray(left, self.f.dtype))
        size = (self.seen.term_weights * (low - low.mean(axis=0)) ** 2).sum(axis=0)
        return self.spread[:, None] * (totals @ right**2), totals[:, None] * size

    @cached_property
    def spread(self) -> Matrix:
        """What a feature weighs in the predictions."""
        return self.seen.spread()

    def _shifted(self, z: Matrix) -> Matrix:
        """z + b(z), remembered for the last z: value, slopes and bends are asked for in turn."""
        if self._last[0] is not z:
            self._last = (z, z + self.f.shift(z))
        return np.asarray(self._last[1])


def leading(slopes: MatrixLike, count: int, tol: float = 1e-10) -> tuple[Matrix, Matrix, Matrix]:
    """(U, s, V) with the largest singular values, falling; columns of U and V are the vectors."""
    if min(slopes.shape) <= _SMALL:
        dense = slopes if isinstance(slopes, np.ndarray) else slopes.toarray()
        u, s, vt = np.linalg.svd(dense, full_matrices=False)
        return u[:, :count], s[:count], vt[:count].T
    from scipy.sparse.linalg import svds

    start = np.random.default_rng(0).standard_normal(min(slopes.shape))
    if abs(slopes).max() == 0:  # Lanczos' method would divide by the length of 0
        return np.zeros((slopes.shape[0], 1)), np.zeros(1), np.zeros((slopes.shape[1], 1))
    u, s, vt = svds(slopes, k=count, v0=start, tol=tol)
    order = np.argsort(-s)
    return u[:, order], s[order], vt[order].T


def as_factors(x: Matrix, radius: float) -> tuple[Matrix, Matrix]:
    """L and R with x = L R^T, as short as they can be."""
    if not x.any():
        return np.zeros((x.shape[0], 0)), np.zeros((x.shape[1], 0))
    u, s, vt = np.linalg.svd(x.astype(np.float64), full_matrices=False)
    return _scaled(u, s, vt.T, radius)


def balanced(left: Matrix, right: Matrix, radius: float) -> tuple[Matrix, Matrix]:
    """The same product from factors as short as they can be, inside the ball, of full rank."""
    if left.shape[1] == 0:
        return left, right
    ql, rl = np.linalg.qr(left)
    qr, rr = np.linalg.qr(right)
    u, s, vt = np.linalg.svd(rl @ rr.T)
    k = min(u.shape[1], vt.shape[0])
    return _scaled(ql @ u[:, :k], s[:k], qr @ vt[:k].T, radius)


def _scaled(u: Matrix, s: Matrix, v: Matrix, radius: float) -> tuple[Matrix, Matrix]:
    kept = s > 1e-13 * max(float(s[0]), 1e-300)
    s = s[kept] * min(1.0, radius / float(s[kept].sum()))
    # Rows in order, as in a state that was copied: products of another order round otherwise.
    left, right = u[:, kept] * np.sqrt(s), v[:, kept] * np.sqrt(s)
    return np.ascontiguousarray(left), np.ascontiguousarray(right)
