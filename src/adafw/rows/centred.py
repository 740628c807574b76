"""Rows of a matrix less their mean, which is never subtracted entry by entry."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.describe import describe
from adafw.rows.base import Rows, Vector
from adafw.rows.csr import CSRRows
from adafw.rows.dense import DenseRows
from adafw.typing import Batch, Plain

#: Entries of the centred matrix that exist at one time where norms of it are asked for.
_SLICE = 1 << 22


def centred(rows: Rows, weights: Vector | None = None) -> tuple[Rows, Vector]:
    """(rows a_i - c, c) with c = sum_i w_i a_i / sum_i w_i, w = 1 if None.

    A dense matrix is centred in a copy, which loses fewer digits; a sparse one, or float32 in
    double precision, which has digits to lose, stays as it is.
    """
    m = rows.shape[0]
    w = np.full(m, 1 / m) if weights is None else weights / weights.sum(dtype=np.float64)
    mean = rows.combine(w.astype(rows.dtype))
    if isinstance(rows, DenseRows) and rows.dtype == rows.array.dtype:
        # A second pass removes what rounding left of the mean in the first.
        array = rows.array - mean
        rest = w.astype(rows.dtype) @ array
        return DenseRows(array - rest), mean + rest
    if isinstance(rows, DenseRows | CSRRows):
        return CentredRows(rows, mean), mean
    raise TypeError(f"{type(rows).__name__} cannot be centred; fit without an intercept.")


class CentredRows(Rows):
    """The rows a_i - c of a matrix, c being their mean in the weights of the problem.

    dot and combine cost O(n) more than those of the rows.
    """

    def __init__(self, rows: DenseRows | CSRRows, mean: Vector) -> None:
        self.rows, self.mean = rows, mean
        self.shape = rows.shape
        self.dtype = rows.dtype

    def dot(self, x: Vector, batch: Batch = None) -> Vector:
        return self.rows.dot(x, batch) - self.mean @ x

    def combine(self, weights: Vector, batch: Batch = None) -> Vector:
        total = weights.sum(dtype=np.float64).astype(weights.dtype)
        return self.rows.combine(weights, batch) - total * self.mean

    def squared_norms(self) -> Vector:
        return self.norms(2) ** 2

    def norms(self, p: float, axis: int = 1) -> Vector:
        parts = (np.linalg.norm(part, p, axis=axis) for part in self._slices())
        if axis == 1:
            return np.concatenate(list(parts))
        return np.linalg.norm(np.array(list(parts)), p, axis=0)  # of norms: of the whole column

    def spectral_norm(self, weights: Vector | None = None) -> tuple[float, bool]:
        # Subtracting the mean is an orthogonal projection of W^(1/2) A: the norm cannot grow.
        return self.rows.spectral_norm(weights)[0], False

    def describe(self) -> Plain:
        inner = self.rows.describe()
        return {**inner, "name": f"centred {inner['name']}", "mean": describe(self.mean)}

    def __str__(self) -> str:
        return f"centred {self.rows}"

    def _slices(self) -> Iterator[NDArray[Any]]:
        m, n = self.shape
        step = max(1, _SLICE // n)
        for start in range(0, m, step):
            part = slice(start, start + step)
            rows = self.rows
            array = rows.array[part] if isinstance(rows, DenseRows) else rows.matrix[part].toarray()
            yield array.astype(float) - self.mean
