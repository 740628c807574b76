"""Entries of a matrix that is a product of factors."""

from adafw.kernels.jit import jit
from adafw.typing import Array


@jit
def dots(rows: Array, cols: Array, left: Array, right: Array, out: Array) -> None:
    """out[i] = <left[rows[i]], right[cols[i]]>: entries of left right^T."""
    rank = left.shape[1]
    whole = rank - rank % 4
    for i in range(out.size):
        r, c = rows[i], cols[i]
        a, b, d, e = 0.0, 0.0, 0.0, 0.0  # four sums: additions do not wait for one another
        for k in range(0, whole, 4):
            a += left[r, k] * right[c, k]
            b += left[r, k + 1] * right[c, k + 1]
            d += left[r, k + 2] * right[c, k + 2]
            e += left[r, k + 3] * right[c, k + 3]
        for k in range(whole, rank):
            a += left[r, k] * right[c, k]
        out[i] = (a + b) + (d + e)
