"""Some columns of a sparse matrix, picked from its rows."""

import numpy as np

from adafw.kernels.jit import jit
from adafw.kernels.parts import OUTSIDE, Csr
from adafw.typing import Array

ONE = np.uint64(1)


@jit
def count(columns: Array, counts: Array) -> None:
    """counts_j += entries in column j."""
    for k in range(columns.size):
        counts[columns[k]] += 1


@jit
def pick(rows: Csr, place: Array, done: int, values: Array, columns: Array, starts: Array) -> int:
    """Appends the entries of columns that have a place; returns how many there are then.

    The place of a column that is not wanted is OUTSIDE. `done` entries are there already;
    starts[i + 1] becomes the end of row i. An entry is written
    before it is known to stay, and written over if it does not, so that nothing branches: `values`
    and `columns` have room for one more.
    """
    data, indices, begins = rows
    size = np.uint64(done)
    for i in range(begins.size - 1):
        for k in range(begins[i], begins[i + 1]):
            where = place[indices[k]]
            values[size] = data[k]
            columns[size] = where
            size += ONE if where != OUTSIDE else np.uint64(0)
        starts[i + 1] = size
    return int(size)
