"""Minimisers of Q_t on the l1 ball, the projections in the metric, without a pass over n.

Shrunk by level / h, u = x - eta g / h leaves of the coordinates off the support of x those with
eta |g_j| > level. The list of candidates of kernels/lazy_l1.py holds every |g_j| >= threshold, so
it holds all of them if level >= eta * threshold; if not, it is made anew, the one pass over n.
"""

import numpy as np

from adafw.kernels.jit import jit
from adafw.kernels.l1 import CAUTION, excess, shrink
from adafw.kernels.lazy_l1 import (
    ALL,
    LARGE,
    LISTED,
    REBUILT,
    STAMP,
    G,
    X,
    longer,
    metric,
    refresh,
)
from adafw.kernels.parts import Active, Batches, Ledger, Listed, Point, Steps, Support, Terms
from adafw.typing import Array

#: A new list reaches this far below what is needed now, so that it serves for a while.
DEPTH = 0.7
#: Levels tried before 0, at which every g_j != 0 is a candidate.
TRIES = 40


@jit
def roomier(active: Active, size: int, capacity: int) -> Active:
    """Room for so many coordinates, the first `size` of the index kept."""
    index = np.empty(capacity, np.int64)
    for k in range(size):
        index[k] = active.index[k]
    other = np.empty((5, capacity))
    return Active(index, other[0], other[1], other[2], other[3], other[4])


@jit
def list_down_to(ledger: Ledger, listed: Listed, threshold: float) -> Listed:
    """The candidates from scratch: all with |g_j| >= threshold, and room for as many more."""
    table, stamps, _, room, work = ledger
    candidates, count, _ = listed
    work[REBUILT] += 1
    # Bounded, or a list made anew for the thousandth time would have grown a thousand times.
    spare = min(candidates.size - count, 4 * room)
    for k in range(count):
        stamps[candidates[k], STAMP] &= ~LISTED
    count = 0
    for j in range(table.shape[0]):
        if abs(table[j, G]) >= threshold:
            if count == candidates.size:
                candidates = longer(candidates, count, 2 * count + 1)
            candidates[count] = j
            stamps[j, STAMP] |= LISTED
            count += 1
    # `refresh` thins a list without room for a row, and would raise the threshold again at once.
    if candidates.size < 2 * count + spare:
        candidates = longer(candidates, count, 2 * count + spare)
    return Listed(candidates, count, threshold)


@jit
def collect(
    ledger: Ledger, listed: Listed, steps: Steps, k: int, t: int, size: int, active: Active,
    start: float,
) -> tuple[int, bool]:  # fmt: skip
    """The support and the candidates with eta |g_j| > start, as `excess` and `shrink` take them.

    Returns (their number, whether all is finite).
    """
    index, sizes, widths, us, _, _ = active
    table, eta, finite = ledger.table, steps.sizes[k], True
    count = size
    for p in range(listed.size):
        j = listed.features[p]
        value = abs(table[j, G])
        finite &= value < LARGE
        if eta * value > start and table[j, X] == 0:
            index[count] = j
            count += 1
    for p in range(count):
        j = index[p]
        h = metric(ledger, j, t, steps.offset)
        finite &= h < np.inf
        us[p] = table[j, X] - eta * table[j, G] / h
        sizes[p], widths[p] = abs(us[p]), 1.0 / h
    return count, finite


@jit
def settle(ledger: Ledger, point: Point, active: Active, count: int, ys: Array) -> int:
    """x = y on the collected coordinates; those that are not 0 stay in the index, in order."""
    index, kept = active.index, 0
    for p in range(count):
        j = index[p]
        ledger.table[j, X] = point.x[j] = ys[p]
        if ys[p] != 0:
            # The support comes first and is sorted: few have far to go.
            q = kept
            while q > 0 and index[q - 1] > j:
                index[q] = index[q - 1]
                q -= 1
            index[q] = j
            kept += 1
    return kept


@jit
def project(
    ledger: Ledger, listed: Listed, steps: Steps, k: int, t: int, point: Point, support: Support
) -> tuple[Listed, Support, bool, bool]:
    """x to the minimiser of Q_t; returns (candidates, support, all finite, whether g is not 0)."""
    active, size, level = support
    eta, radius = steps.sizes[k], point.radius
    start, tries = CAUTION * level, 0
    while True:
        # Below this the list may lack a coordinate.
        known = 0.0 if listed.threshold <= ALL else eta * listed.threshold
        start = max(start, known)
        if active.index.size < size + listed.size:
            active = roomier(active, size, 2 * (size + listed.size))
        count, finite = collect(ledger, listed, steps, k, t, size, active, start)
        if not finite:
            return listed, Support(active, size, level), False, True
        total, width, left = excess(active, count, start)
        if total > radius or start == 0:
            break
        # The tangent at a level too high ends below the level sought: the norm is convex in it.
        start = max(0.0, start + (total - radius) / width) if left else start / 4
        if tries:  # rounding may hold it where it is
            start = DEPTH * start if tries < TRIES else 0.0
        tries += 1
        if start < known:
            listed = list_down_to(ledger, listed, max(DEPTH * start / eta, ALL))
    if total > radius:
        level = shrink(active, count, start, radius)
        size = settle(ledger, point, active, count, active.y)
        return listed, Support(active, size, level), True, True
    moves = False  # inside the ball: u is its own projection, and all of g has been seen
    for p in range(count):
        moves |= ledger.table[active.index[p], G] != 0
    if moves:
        size = settle(ledger, point, active, count, active.x)
    return listed, Support(active, size, 0.0), True, moves


@jit
def run(
    terms: Terms, batches: Batches, ledger: Ledger, listed: Listed, steps: Steps, point: Point,
    support: Support,
) -> tuple[int, int, Support, Listed]:  # fmt: skip
    """One iteration for each batch; x follows the table.

    Returns (iterations done, minimisers, support, candidates); fewer iterations than asked for if
    g or h became infinite or NaN.
    """
    count, solved = batches.ends.size - 1, 0
    for k in range(count):
        listed = refresh(terms, batches, k, ledger, listed, support.size)
        listed, support, finite, moved = project(
            ledger, listed, steps, k, batches.t + k, point, support
        )
        if not finite:
            return k, solved, support, listed
        solved += moved
    return count, solved, support, listed
