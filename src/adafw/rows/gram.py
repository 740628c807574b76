"""Second moments of rows: the weighted Gram matrix, and the columns' variances."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.rows.base import Rows, Vector
from adafw.rows.centred import CentredRows
from adafw.rows.csr import CSRRows
from adafw.rows.dense import DenseRows

_SLICE = 1 << 20  # entries scaled at a time, so that no second matrix of that size exists


def gram(rows: Rows, weights: Vector) -> NDArray[Any]:
    """sum_i w_i a_i a_i^T, a dense n x n matrix in the dtype of the rows. O(m n^2), dense rows."""
    if isinstance(rows, DenseRows):
        n = rows.shape[1]
        total = np.zeros((n, n), rows.dtype)
        step = max(1, _SLICE // n)
        for start in range(0, rows.shape[0], step):
            part = rows.array[start : start + step]
            total += (part * weights[start : start + step, None]).T @ part
        return total
    if isinstance(rows, CSRRows):
        scaled = rows.matrix.copy()
        scaled.data = scaled.data * np.repeat(weights, np.diff(scaled.indptr))
        return np.asarray((scaled.T @ rows.matrix).toarray())
    if isinstance(rows, CentredRows):
        c, s = rows.mean, rows.rows.combine(weights)
        mixed = np.outer(c, s)
        return gram(rows.rows, weights) - mixed - mixed.T + weights.sum() * np.outer(c, c)
    raise TypeError(f"{type(rows).__name__} has no Gram matrix.")


def column_variances(rows: Rows, weights: Vector) -> NDArray[Any]:
    """sum_i w_i (a_ij - c_j)^2 / sum_i w_i for every column, c_j its mean; float64, O(nnz)."""
    if isinstance(rows, CentredRows):
        return column_variances(rows.rows, weights)
    w = weights / weights.sum(dtype=np.float64)
    if isinstance(rows, DenseRows):
        mean, square = rows.combine(w), np.zeros(rows.shape[1])
        step = max(1, _SLICE // rows.shape[1])
        for start in range(0, rows.shape[0], step):
            part = slice(start, start + step)
            square += w[part] @ (rows.array[part] - mean) ** 2
        return square
    if isinstance(rows, CSRRows):
        A = rows.matrix
        each = np.repeat(w, np.diff(A.indptr))
        sums = np.bincount(A.indices, each * A.data, rows.shape[1])
        squares = np.bincount(A.indices, each * A.data.astype(np.float64) ** 2, rows.shape[1])
        return np.maximum(squares - sums**2, 0.0)
    raise TypeError(f"{type(rows).__name__} has no column variances.")
