"""The estimates of CSFW, SAGA, SVRF and LSVRG for linear models: line 2 of both templates."""

import numpy as np

from adafw.kernels.codes import CSFW, SAGA
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
def distinct(batches: Batches, k: int, seen: Array) -> int:
    """How many different rows the k-th batch holds."""
    _, batch, ends = batches
    count = 0
    for p in range(ends[k], ends[k + 1]):
        count += seen[batch[p]] != k + 1
        seen[batch[p]] = k + 1
    return count


@jit
def estimate(terms: Terms, batches: Batches, k: int, x: Array, into: Estimate) -> None:
    """g of the k-th batch at x, in place.

    An index that stands twice in a batch changes nothing the second time in CSFW and SAGA, as
    alpha_i is fresh already.
    """
    kind, memory, base, g, seen = into
    _, batch, ends = batches
    first, last = ends[k], ends[k + 1]
    changes = np.empty(TILE)
    if kind != CSFW:
        for j in range(g.size):
            g[j] = base[j]
    scale = memory.size / distinct(batches, k, seen) if kind == SAGA else 1.0
    for start in range(first, last, TILE):
        end = min(start + TILE, last)
        slopes(terms, batch, start, end, x, changes)
        for p in range(start, end):
            i = batch[p]
            if kind in (CSFW, SAGA):
                before = memory[i]
                memory[i] = changes[p - start] / memory.size
                changes[p - start] = memory[i] - before  # as stored: float32 rounds alpha
            else:
                changes[p - start] = (changes[p - start] - memory[i]) / (last - first)
        if kind == SAGA:
            add_rows(terms.rows, batch, start, end, changes, base)
            for p in range(end - start):
                changes[p] *= scale
        add_rows(terms.rows, batch, start, end, changes, g)
