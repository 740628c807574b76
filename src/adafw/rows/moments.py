"""Second moments of some rows of a dense array, in single precision: a guess at those of all."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Rows multiplied at a time: what is summed in single precision, and stays in cache.
_ROWS = 1024


def moments(
    array: NDArray[np.floating[Any]], step: int, weights: NDArray[np.float64],
    lengths: NDArray[np.float64], centred: bool,
) -> NDArray[np.float64]:  # fmt: skip
    """sum_k w_k a_k a_k^T over every `step`-th row, w >= 0; less their weighted mean if `centred`.

    Columns are divided by `lengths`, about their size, before they lose digits, so that their
    units do not matter; centres are subtracted in the precision of the array.
    """
    from adafw.kernels.dense import scaled

    n = array.shape[1]
    centre, roots = np.zeros(n), 1 / lengths
    total = float(weights.sum())
    if centred and total > 0:
        centre = np.asarray(weights.astype(array.dtype) @ array[::step], np.float64) / total
    shares = np.sqrt(weights / (float(weights.max()) or 1.0))
    room = np.empty((min(_ROWS, weights.size), n), np.float32)
    found = np.zeros((n, n))
    for first in range(0, weights.size, _ROWS):
        part = room[: min(_ROWS, weights.size - first)]
        scaled(array, step, first, shares, centre, roots, part)
        found += part.T @ part
    return found * (float(weights.max()) * np.outer(lengths, lengths))
