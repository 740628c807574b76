"""Products with all rows of a large dense matrix, four at a time: memory is what they wait for.

Sums over a row have no order that is written down: a processor adds as many entries at once as it
can. It is the same order each time, whichever of the kernels asks.
"""

import numpy as np

from adafw.kernels.curves import BLOCK, block
from adafw.kernels.jit import jit
from adafw.typing import Array

#: Entries that are read twice from the cache next to a core.
_NEAR = 1 << 13
#: Rows that are read twice at a time, a multiple of four.
_FEW = 32
_ANY_ORDER = {"reassoc", "nsz", "contract"}


@jit(fastmath=_ANY_ORDER)
def dots(rows: Array, first: int, last: int, x: Array, out: Array) -> None:
    """out[i] = <a_i, x> for first <= i < last."""
    n, i, zero = np.uint64(x.size), first, out.dtype.type(0)
    while i + 4 <= last:
        a, b, c, d = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        one = two = three = four = zero
        for j in range(n):
            one += a[j] * x[j]
            two += b[j] * x[j]
            three += c[j] * x[j]
            four += d[j] * x[j]
        out[i], out[i + 1], out[i + 2], out[i + 3] = one, two, three, four
        i += 4
    while i < last:
        a, one = rows[i], zero
        for j in range(n):
            one += a[j] * x[j]
        out[i] = one
        i += 1


@jit(fastmath=_ANY_ORDER)
def adds(rows: Array, first: int, last: int, weights: Array, out: Array) -> None:
    """out += sum of weights[i] a_i over first <= i < last."""
    n, i = np.uint64(out.size), first
    while i + 4 <= last:
        a, b, c, d = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        one, two, three, four = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
        for j in range(n):
            out[j] += (one * a[j] + two * b[j]) + (three * c[j] + four * d[j])
        i += 4
    while i < last:
        a, one = rows[i], weights[i]
        for j in range(n):
            out[j] += one * a[j]
        i += 1


@jit
def curve(
    rows: Array, first: int, last: int, weights: Array, d: Array, move: Array, bent: Array,
    out: Array,
) -> None:  # fmt: skip
    """move[i] = <a_i, d>, bent[i] = weights[i] move[i], out += bent[i] a_i for first <= i < last.

    A few rows are in cache when they are added: one pass over the matrix in place of two.
    """
    step = 4 * max(1, _NEAR // (4 * d.size))
    for i in range(first, last, step):
        end = min(i + step, last)
        dots(rows, i, end, d, move)
        for k in range(i, end):
            bent[k] = weights[k] * move[k]
        adds(rows, i, end, bent, out)


@jit
def narrow_curve(
    rows: Array, first: int, last: int, weights: Array, d: Array, single: Array, move: Array,
    bent: Array, out: Array,
) -> None:  # fmt: skip
    """`curve` of `single`, into which the rows are copied: in the same pass."""
    n, step = np.uint64(d.size), 4 * max(1, _NEAR // (4 * d.size))
    for i in range(first, last, step):
        end = min(i + step, last)
        for k in range(i, end):
            a, s = rows[k], single[k]
            for j in range(n):
                s[j] = a[j]
        curve(single, i, end, weights, d, move, bent, out)


@jit
def risk(
    loss: int, rows: Array, first: int, last: int, x: Array, y: Array, weights: Array, z: Array,
    slopes: Array, bends: Array, values: Array, out: Array,
) -> None:  # fmt: skip
    """Predictions z of the rows first .. last - 1, `curves` there, and out += slopes[i] a_i.

    `first` is a multiple of BLOCK; values[k] is the loss of the k-th block.
    """
    share = 1.0 / y.size
    plain, e = np.empty(BLOCK), np.empty(BLOCK)
    for start in range(first, last, BLOCK):
        end = min(start + BLOCK, last)
        b = slice(start, end)
        dots(rows, start, end, x, z)
        values[start // BLOCK] = block(
            loss, z[b], y[b], weights[b], share, slopes[b], bends[b], plain, e
        )
        adds(rows, start, end, slopes, out)


@jit
def squares(rows: Array, first: int, last: int, out: Array) -> None:
    """out += sum of a_i^2 over first <= i < last, in float64."""
    n, i = np.uint64(out.size), first
    while i + 2 <= last:
        a, b = rows[i], rows[i + 1]
        for j in range(n):
            one, two = np.float64(a[j]), np.float64(b[j])
            out[j] += one * one + two * two
        i += 2
    if i < last:
        a = rows[i]
        for j in range(n):
            one = np.float64(a[j])
            out[j] += one * one


@jit
def survey(rows: Array, first: int, last: int, weights: Array, long: Array, out: Array) -> None:
    """`squares` into `long` and `adds` into `out`: a few rows are in cache for the second."""
    for i in range(first, last, _FEW):
        end = min(i + _FEW, last)
        adds(rows, i, end, weights, out)
        squares(rows, i, end, long)


@jit
def scaled(
    rows: Array, step: int, first: int, shares: Array, centre: Array, scale: Array, out: Array
) -> None:
    """out[k] = shares[i] (a_j - centre) scale, i = first + k and j = step i."""
    n = np.uint64(out.shape[1])
    for k in range(out.shape[0]):
        a, to, share = rows[step * (first + k)], out[k], shares[first + k]
        for j in range(n):
            to[j] = share * ((a[j] - centre[j]) * scale[j])


@jit
def count(rows: Array, first: int, last: int, out: Array) -> None:
    """out[i] = the entries of a_i that are not 0, for first <= i < last."""
    for i in range(first, last):
        a, found = rows[i], 0
        for j in range(a.size):
            found += a[j] != 0
        out[i] = found


@jit
def list_entries(
    rows: Array, first: int, last: int, starts: Array, values: Array, columns: Array
) -> None:
    """Entries that are not 0, and their columns, from starts[i] on, for first <= i < last.

    Each is written, and stays if it is not 0: no branch that a processor could not foresee.
    """
    for i in range(first, last):
        a, k, end = rows[i], starts[i], starts[i + 1]
        for j in range(a.size):
            if k == end:
                break
            values[k], columns[k] = a[j], j
            k += a[j] != 0
