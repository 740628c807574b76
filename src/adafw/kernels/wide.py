"""Products of sparse rows with a matrix: several columns for one pass over the data.

Rows are (values, columns, starts) of a CSR matrix, unsigned and read-only, as in `kernels.rows`; an
empty batch stands for all rows.
"""

import numpy as np

from adafw.kernels.jit import jit
from adafw.kernels.parts import Csr
from adafw.typing import Array

ONE = np.uint64(1)


@jit
def dot(rows: Csr, batch: Array, first: int, last: int, x: Array, out: Array) -> None:
    """out[k] = a_i X with i = batch[k], for first <= k < last; X has one row a column of A."""
    values, columns, starts = rows
    width = x.shape[1]
    for k in range(first, last):
        i = batch[k] if batch.size else np.uint64(k)
        row = out[k]
        row[:] = 0.0
        for j in range(starts[i], starts[i + ONE]):
            value, other = values[j], x[columns[j]]
            for c in range(width):
                row[c] += value * other[c]


@jit
def combine(rows: Csr, batch: Array, weights: Array, out: Array) -> None:
    """out += sum over the batch of a_i^T weights[k]: one row a column of A."""
    values, columns, starts = rows
    width = weights.shape[1]
    for k in range(weights.shape[0]):
        i = batch[k] if batch.size else np.uint64(k)
        row = weights[k]
        for j in range(starts[i], starts[i + ONE]):
            value, other = values[j], out[columns[j]]
            for c in range(width):
                other[c] += value * row[c]
