"""Completing a matrix of which some entries were observed."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adafw import checks
from adafw.arrays import finite
from adafw.losses import Squared
from adafw.objectives.linear_model import LinearModel
from adafw.rows import EntryRows
from adafw.typing import Shape


def MatrixCompletion(
    rows: ArrayLike, cols: ArrayLike, values: ArrayLike, shape: Shape
) -> LinearModel:
    """f(X) = (1/m) sum_i (X[r_i, c_i] - values_i)^2 over m observed entries of a matrix X.

    It is the linear model whose samples are a_i = e_r e_c^T, so every gradient estimator takes
    it, CSFW included; value and gradient cost O(m), a batch O(b), beside the zeros of a gradient.

    Parameters
    ----------
    rows, cols : r_i and c_i, integers counted from 0; an entry observed twice counts twice.
    values : what was observed; float32 and float64 are kept.
    shape : (number of rows, number of columns) of X, whose dtype is that of `values`.
    """
    if not isinstance(shape, tuple | list) or len(shape) != 2:
        raise ValueError(f"shape must be a pair of integers >= 1, got {shape!r}.")
    height, width = (checks.integer(n, "each number of shape", 1) for n in shape)
    v = finite(np.asarray(values), "values")
    r, c = _indices(rows, height, "rows"), _indices(cols, width, "cols")
    if not len(r) == len(c) == v.size or v.ndim != 1:
        raise ValueError(
            "rows, cols and values must be vectors of one length, got shapes "
            f"{r.shape}, {c.shape} and {v.shape}."
        )
    return LinearModel(EntryRows(r, c, (height, width), v.dtype), v, Squared())


def _indices(values: ArrayLike, size: int, name: str) -> NDArray[np.integer[Any]]:
    indices = np.asarray(values)
    if indices.ndim != 1 or not np.issubdtype(indices.dtype, np.integer):
        raise TypeError(
            f"{name} must be a vector of integers, got {indices.dtype} of shape {indices.shape}."
        )
    if indices.size and not (indices.min() >= 0 and indices.max() < size):
        raise ValueError(
            f"{name} must lie between 0 and {size - 1}, got {indices.min()} to {indices.max()}."
        )
    return indices
