"""The estimates of CSFW and SVRF for linear models: line 2 of both templates."""

import numpy as np

from adafw.kernels.codes import CSFW, SVRF
from adafw.kernels.jit import jit
from adafw.kernels.losses import slope
from adafw.kernels.parts import Batches, Estimate, Terms
from adafw.kernels.rows import add_rows, row_dots
from adafw.typing import Array

#: Rows whose products are taken together, so that they are still in the cache when they are added.
TILE = 16


@jit
def slopes(terms: Terms, batch: Array, first: int, last: int, x: Array, out: Array) -> None:
    """out[k - first] = phi_i'(<a_i, x> + b) with i = batch[k], for first <= k < last."""
    rows, y, weights, loss, intercept = terms
    row_dots(rows, batch, first, last, x, out)
    for k in range(first, last):
        i = batch[k]
        value = slope(loss, out[k - first] + intercept, y[i])
        out[k - first] = value * weights[i] if weights.size else value


@jit
def estimate(terms: Terms, batches: Batches, k: int, x: Array, into: Estimate) -> None:
    """g of the k-th batch at x, in place.

    An index that stands twice in a batch changes nothing the second time in CSFW, as alpha_i is
    fresh already.
    """
    kind, memory, base, g = into
    _, batch, ends = batches
    first, last = ends[k], ends[k + 1]
    changes = np.empty(TILE)
    if kind == SVRF:
        for j in range(g.size):
            g[j] = base[j]
    for start in range(first, last, TILE):
        end = min(start + TILE, last)
        slopes(terms, batch, start, end, x, changes)
        for p in range(start, end):
            i = batch[p]
            if kind == CSFW:
                before = memory[i]
                memory[i] = changes[p - start] / memory.size
                changes[p - start] = memory[i] - before  # as stored: float32 rounds alpha
            else:
                changes[p - start] = (changes[p - start] - memory[i]) / (last - first)
        add_rows(terms.rows, batch, start, end, changes, g)
