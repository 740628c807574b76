"""The estimates of CSFW and SVRF for linear models: line 2 of both templates.

`terms` is (rows, y, weights, loss, intercept): the matrix, one target a row, the weights of the
terms (empty for equal ones), the number of the loss, and what is added to every prediction.
"""

from typing import Any

import numpy as np

from adafw.kernels.jit import jit
from adafw.kernels.losses import slope
from adafw.kernels.rows import add_rows, row_dots

CSFW, SVRF = 0, 1
#: Rows whose products are taken together, so that they are still in the cache when they are added.
TILE = 16


@jit
def slopes(terms: Any, batch: Any, first: int, last: int, x: Any, out: Any) -> None:
    """out[k - first] = phi_i'(<a_i, x> + b) with i = batch[k], for first <= k < last."""
    rows, y, weights, loss, intercept = terms
    row_dots(rows, batch, first, last, x, out)
    for k in range(first, last):
        i = batch[k]
        value = slope(loss, out[k - first] + intercept, y[i])
        out[k - first] = value * weights[i] if weights.size else value


@jit
def estimate(
    kind: int, terms: Any, batch: Any, first: int, last: int, x: Any, memory: Any, base: Any, g: Any
) -> None:
    """g_t at x from the rows batch[first:last].

    CSFW: `memory` is alpha; g, which holds sum alpha_i a_i, follows its changes. An index that
    stands twice changes nothing the second time, as alpha_i is fresh already.
    SVRF: `memory` holds the slopes at the snapshot, `base` the gradient there; g is made anew.
    """
    changes = np.empty(TILE)
    if kind == SVRF:
        for j in range(g.size):
            g[j] = base[j]
    for start in range(first, last, TILE):
        end = min(start + TILE, last)
        slopes(terms, batch, start, end, x, changes)
        for k in range(start, end):
            i = batch[k]
            if kind == CSFW:
                before = memory[i]
                memory[i] = changes[k - start] / memory.size
                changes[k - start] = memory[i] - before  # as stored: float32 rounds alpha
            else:
                changes[k - start] = (changes[k - start] - memory[i]) / (last - first)
        add_rows(terms[0], batch, start, end, changes, g)
