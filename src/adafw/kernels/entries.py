"""Entries of a matrix that is a product of factors."""

from typing import Any

from adafw.kernels.jit import jit


@jit
def dots(rows: Any, cols: Any, left: Any, right: Any, out: Any) -> None:
    """out[i] = <left[rows[i]], right[cols[i]]>: entries of left right^T."""
    for i in range(out.size):
        r, c, total = rows[i], cols[i], 0.0
        for k in range(left.shape[1]):
            total += left[r, k] * right[c, k]
        out[i] = total
