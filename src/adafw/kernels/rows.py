"""Products with some rows of a matrix, dense or sparse.

`rows` is a C-contiguous array, or the tuple (values, columns, starts) of a CSR matrix whose
columns and starts are unsigned: numba then needs no test for negative indices, which makes the
gathers 1.3 to 2 times faster. The arrays of a matrix are passed read-only, so that memory-mapped
and ordinary ones share the compiled code. `batch` holds unsigned row numbers; an empty one stands
for all rows in their order.
"""

import numpy as np
from numba import types
from numba.extending import overload

from adafw.kernels.jit import jit
from adafw.kernels.parts import Csr, Stored
from adafw.typing import Array

ONE, TWO = np.uint64(1), np.uint64(2)


def row_dots(rows: Stored, batch: Array, first: int, last: int, x: Array, out: Array) -> None:
    """out[k - first] = <a_i, x> with i = batch[k], for first <= k < last."""
    product = _csr_dots if isinstance(rows, tuple) else _dense_dots
    product(rows, batch, first, last, x, out)


def add_rows(rows: Stored, batch: Array, first: int, last: int, weights: Array, out: Array) -> None:
    """out += sum of weights[k - first] a_i with i = batch[k], over first <= k < last."""
    add = _csr_add_rows if isinstance(rows, tuple) else _dense_add_rows
    add(rows, batch, first, last, weights, out)


# Numba wants the annotations that the functions below have, though it is given types of its own.
@overload(row_dots)
def _row_dots(rows: Stored, batch: Array, first: int, last: int, x: Array, out: Array) -> object:
    return _csr_dots if isinstance(rows, types.BaseTuple) else _dense_dots


@overload(add_rows)
def _add_rows(
    rows: Stored, batch: Array, first: int, last: int, weights: Array, out: Array
) -> object:
    return _csr_add_rows if isinstance(rows, types.BaseTuple) else _dense_add_rows


def _csr_dots(rows: Stored, batch: Array, first: int, last: int, x: Array, out: Array) -> None:
    values, columns, starts = rows
    for k in range(first, last):
        i = batch[k] if batch.size else np.uint64(k)
        a = b = 0.0  # two sums, so that one addition need not wait for the last
        j, end = starts[i], starts[i + ONE]
        while j + ONE < end:
            a += values[j] * x[columns[j]]
            b += values[j + ONE] * x[columns[j + ONE]]
            j += TWO
        if j < end:
            a += values[j] * x[columns[j]]
        out[k - first] = a + b


def _csr_add_rows(
    rows: Stored, batch: Array, first: int, last: int, weights: Array, out: Array
) -> None:
    values, columns, starts = rows
    for k in range(first, last):
        i = batch[k] if batch.size else np.uint64(k)
        weight = weights[k - first]
        if weight == 0:  # frequent: a row that does not meet the support of x keeps its slope
            continue
        for j in range(starts[i], starts[i + ONE]):
            out[columns[j]] += weight * values[j]


def _dense_dots(rows: Stored, batch: Array, first: int, last: int, x: Array, out: Array) -> None:
    for k in range(first, last):
        out[k - first] = np.dot(rows[batch[k] if batch.size else np.uint64(k)], x)


def _dense_add_rows(
    rows: Stored, batch: Array, first: int, last: int, weights: Array, out: Array
) -> None:
    for k in range(first, last):
        row = rows[batch[k] if batch.size else np.uint64(k)]
        weight = weights[k - first]
        for j in range(out.size):
            out[j] += weight * row[j]


@jit
def dot(rows: Stored, batch: Array, first: int, last: int, x: Array, out: Array) -> None:
    """out[k] = <a_i, x> with i = batch[k], for first <= k < last."""
    row_dots(rows, batch, first, last, x, out[first:])


@jit
def combine(rows: Stored, batch: Array, first: int, last: int, weights: Array, out: Array) -> None:
    """out += sum of weights[k] a_i with i = batch[k], over first <= k < last."""
    add_rows(rows, batch, first, last, weights[first:], out)


@jit
def curve(
    rows: Csr, first: int, last: int, weights: Array, d: Array, move: Array, out: Array
) -> None:
    """move[i] = <a_i, d> and out += weights[i] move[i] a_i for first <= i < last; CSR rows.

    A row is in cache when it is added: one pass over the matrix in place of two.
    """
    values, columns, starts = rows
    for i in range(np.uint64(first), np.uint64(last)):
        a = b = 0.0  # two sums, so that one addition need not wait for the last
        start, end = starts[i], starts[i + ONE]
        j = start
        while j + ONE < end:
            a += values[j] * d[columns[j]]
            b += values[j + ONE] * d[columns[j + ONE]]
            j += TWO
        if j < end:
            a += values[j] * d[columns[j]]
        move[i] = a + b
        weight = weights[i] * (a + b)
        if weight == 0:
            continue
        for j in range(start, end):
            out[columns[j]] += weight * values[j]


@jit
def moments(rows: Csr, weights: Array, sums: Array, squares: Array) -> None:
    """sums += sum_i weights_i a_i and squares += sum_i weights_i a_i^2 for all rows, CSR."""
    values, columns, starts = rows
    for i in range(np.uint64(0), np.uint64(weights.size)):
        weight = weights[i]
        for j in range(starts[i], starts[i + ONE]):
            value = np.float64(values[j])
            sums[columns[j]] += weight * value
            squares[columns[j]] += weight * value * value
