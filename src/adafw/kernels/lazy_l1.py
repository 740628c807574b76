"""CSFW and AdaCSFW on the l1 ball without any pass over the n coordinates.

An iteration changes g on the features of its batch only. So AdaGrad's accumulator of a feature
that was not touched for some iterations lacks as many times g_j^2, which is added when it is next
needed. The largest |g_j| comes from a list of candidates that holds every feature with
|g_j| >= threshold: a feature that rises to the threshold joins when it is touched, the list is
thinned when it gets long, and made anew, the one pass over n, when no coordinate reaches the
threshold any more.

`Ledger.table` has a row for each feature, so that touching it costs one cache miss:
x_j, g_j, the accumulator, and 2 * (first iteration not in the accumulator) + (is a candidate).
`stamps` is the same memory as unsigned integers, in which the last column is written; `alpha` the
slopes of the rows; `room` the candidates that thinning leaves at most; `work` what was done.
"""

import math

import numpy as np

from adafw.kernels.codes import ADAPTIVE
from adafw.kernels.jit import jit
from adafw.kernels.l1 import NEGLIGIBLE, advance, insert, steepest
from adafw.kernels.losses import slope
from adafw.kernels.parts import (
    Active,
    Batches,
    Ledger,
    Listed,
    Point,
    Steps,
    Stored,
    Terms,
    Word,
)
from adafw.kernels.rows import ONE
from adafw.typing import Array

X, G, SQUARES, STAMP = 0, 1, 2, 3
LISTED = np.uint64(1)
#: The least threshold: all features with g_j != 0 are candidates.
ALL = 5e-324
#: The least |g_j| with an infinite square: no accumulator takes it.
LARGE = math.nextafter(math.sqrt(np.finfo(np.float64).max), math.inf)
#: What was done, for tests and for those who tune `room`.
STALE, THINNED, REBUILT = 0, 1, 2


@jit
def reaching(table: Array, listed: Listed, threshold: float) -> int:
    """How many candidates are not below the threshold (NaN is not)."""
    candidates, count, _ = listed
    reached = 0
    for k in range(count):
        reached += not (abs(table[candidates[k], G]) < threshold)
    return reached


@jit
def thin(ledger: Ledger, listed: Listed, size: int) -> Listed:
    """Forgets candidates below the threshold, which is raised if too many would be left.

    That is more than `room` beside the `size` active coordinates, which may all be among the
    largest (at an optimum they are) and must not crowd out the others. Then at least half the
    room and at most all of it is left to these, more only if they are equal: those stay or go
    together.
    """
    table, stamps, _, room, _ = ledger
    candidates, count, threshold = listed
    least, most = size + room // 2, size + room
    if reaching(table, listed, threshold) > most:
        high = 0.0
        for k in range(count):
            high = max(high, abs(table[candidates[k], G]))
        for _ in range(60):  # bisection down to rounding error
            middle = (threshold + high) / 2
            left = reaching(table, listed, middle)
            if left < least:
                high = middle
            else:
                threshold = middle
            if least <= left <= most:
                break
    kept = 0
    for k in range(count):
        j = candidates[k]
        if abs(table[j, G]) < threshold:
            stamps[j, STAMP] &= ~LISTED
        else:
            candidates[kept] = j
            kept += 1
    return Listed(candidates, kept, threshold)


@jit
def longer(candidates: Array, count: int, size: int | np.int64) -> Array:
    """A list of that size with the same first `count` candidates."""
    other = np.empty(size, candidates.dtype)
    for k in range(count):
        other[k] = candidates[k]
    return other


@jit
def rebuild(ledger: Ledger, listed: Listed, index: Array, size: int) -> Listed:
    """The candidates from scratch: all with |g_j| at least half of the largest one not active.

    Thinned at once if these are many. The active coordinates are index[:size].
    """
    table, stamps, _, _, _ = ledger
    candidates, count, _ = listed
    for k in range(count):
        stamps[candidates[k], STAMP] &= ~LISTED
    top, p = 0.0, 0
    for j in range(table.shape[0]):
        if p < size and index[p] == j:
            p += 1
        else:
            top = max(top, abs(table[j, G]))
    threshold = max(top / 2, ALL)
    capacity, count = candidates.size, 0
    for j in range(table.shape[0]):
        if abs(table[j, G]) >= threshold:
            if count == candidates.size:
                candidates = longer(candidates, count, 2 * count)
            candidates[count] = j
            stamps[j, STAMP] |= LISTED
            count += 1
    kept = thin(ledger, Listed(candidates, count, threshold), size)
    if kept.size <= capacity < candidates.size:
        return Listed(longer(candidates, kept.size, capacity), kept.size, kept.threshold)
    return kept


@jit
def is_active(index: Array, size: int, j: int) -> bool:
    """Whether j is among the first `size` of the sorted index."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        if index[middle] < j:
            low = middle + 1
        else:
            high = middle
    return low < size and index[low] == j


@jit
def leaders(
    table: Array,
    listed: Listed,
    index: Array,
    size: int,
    refused: float,
    leading: tuple[Array, Array],
) -> bool:
    """The candidates of largest |g_j| that are not active, in order, lowest index first if equal.

    Fills leading, which is (values, features; -1 beyond the last); whether all are below `refused`.
    """
    candidates, count, _ = listed
    best, found = leading
    for k in range(best.size):
        best[k], found[k] = -1.0, -1
    last = best.size - 1
    finite = True
    for k in range(count):
        j = candidates[k]
        value = abs(table[j, G])
        finite = finite and value < refused
        if value < best[last] or (value == best[last] and j > found[last]):
            continue
        if is_active(index, size, j):
            continue
        p = last
        while p > 0 and (value > best[p - 1] or (value == best[p - 1] and j < found[p - 1])):
            best[p], found[p] = best[p - 1], found[p - 1]
            p -= 1
        best[p], found[p] = value, j
    return finite


@jit
def touch(rows: Stored, i: Word, change: float, t: int, ledger: Ledger, listed: Listed) -> int:
    """g += change * a_i; accumulators are brought up to date first, risen features listed.

    NaN is listed too, as it is not below the threshold. There must be room for all of the row.
    Returns the number of candidates.
    """
    table, stamps, _, _, work = ledger
    candidates, count, threshold = listed
    values, columns, starts = rows
    now = np.uint64(2 * t)
    stale = 0
    for k in range(starts[i], starts[i + ONE]):
        j = columns[k]
        g, stamp = table[j, G], stamps[j, STAMP]
        # Frequent features are up to date, rare ones behind: no branch, as none would be foreseen.
        behind = (now - (stamp & ~LISTED)) >> ONE
        table[j, SQUARES] += np.float64(behind) * (g * g)
        stale += behind > ONE
        g += change * values[k]
        table[j, G] = g
        stamp = now | (stamp & LISTED)
        below, unlisted = abs(g) < threshold, stamp & LISTED == 0
        if unlisted & (not below):
            stamp |= LISTED
            candidates[count] = j
            count += 1
        stamps[j, STAMP] = stamp
    work[STALE] += stale
    return count


@jit
def metric(ledger: Ledger, j: int, t: int, offset: float) -> float:
    """h_j of iteration t, whose own g_j^2 counts; the accumulator itself stays as it is."""
    table, stamps = ledger.table, ledger.stamps
    g, since = table[j, G], stamps[j, STAMP] >> ONE
    return offset + math.sqrt(table[j, SQUARES] + np.float64(np.uint64(t + 1) - since) * (g * g))


@jit
def refresh(
    terms: Terms, batches: Batches, k: int, ledger: Ledger, listed: Listed, size: int
) -> Listed:
    """CSFW's estimate from the k-th batch; returns the candidates."""
    rows, y, weights, loss, intercept = terms
    values, columns, starts = rows
    table, _, alpha, _, work = ledger
    t, batch, ends = batches
    for p in range(ends[k], ends[k + 1]):
        i = batch[p]
        z = 0.0
        for q in range(starts[i], starts[i + ONE]):
            z += values[q] * table[columns[q], X]
        fresh = slope(loss, z + intercept, y[i])
        before = alpha[i]
        alpha[i] = (fresh * weights[i] if weights.size else fresh) / alpha.size
        change = alpha[i] - before  # as stored: float32 rounds alpha
        if change == 0:
            continue
        length = np.int64(starts[i + ONE] - starts[i])
        if listed.size + length > listed.features.size:
            work[THINNED] += 1
            listed = thin(ledger, listed, size)
            needed = listed.size + length
            if 2 * needed > listed.features.size:  # ties keep many: make room, not haste
                wider = longer(listed.features, listed.size, 4 * needed)
                listed = Listed(wider, listed.size, listed.threshold)
        count = touch(rows, i, change, t + k, ledger, listed)
        listed = Listed(listed.features, count, listed.threshold)
    return listed


@jit
def activate(ledger: Ledger, active: Active, size: int, steps: Steps, t: int) -> bool:
    """The values of the support of x, where an iteration starts from; whether h is finite."""
    table = ledger.table
    index, gs, hs, xs, ys, _ = active
    finite = True
    for k in range(size):
        j = index[k]
        gs[k], xs[k], ys[k] = table[j, G], table[j, X], table[j, X]
        hs[k] = metric(ledger, j, t, steps.offset) if steps.kind == ADAPTIVE else 0.0
        finite = finite and hs[k] < np.inf
    return finite


@jit
def move(active: Active, size: int, where: int, radius: float, gamma: float) -> None:
    """Line 4 of Template 1: y moves by gamma towards the vertex at position `where`."""
    ys, qs = active.y, active.q
    vertex = -radius * np.sign(qs[where])
    for k in range(size):
        ys[k] += gamma * ((vertex if k == where else 0.0) - ys[k])


@jit
def settle(active: Active, size: int, table: Array, point: Point) -> int:
    """x = y on the active coordinates; those that are negligible become 0 and inactive."""
    x, radius = point
    index, _, _, _, ys, _ = active
    kept = 0
    for k in range(size):
        j = index[k]
        y = ys[k] if abs(ys[k]) >= NEGLIGIBLE * radius else 0.0
        table[j, X] = x[j] = y
        if y != 0:
            index[kept] = j
            kept += 1
    return kept


@jit
def inner_loop(
    ledger: Ledger, listed: Listed, steps: Steps, k: int, t: int, radius: float, active: Active,
    size: int,
) -> tuple[Listed, int, bool]:  # fmt: skip
    """Lines 5 to 10 of Template 3, or line 4 of Template 1, on y; t is the k-th iteration's.

    Returns (candidates, number of active coordinates, whether all is finite).
    """
    table, index, qs = ledger.table, active.index, active.q
    kind, sizes, bounds, inner_steps, offset, _ = steps
    refused = LARGE if kind == ADAPTIVE else np.inf
    eta = sizes[k] if kind == ADAPTIVE else np.inf
    best, found = np.empty(inner_steps), np.empty(inner_steps, np.int64)
    finite = activate(ledger, active, size, steps, t)
    finite &= leaders(table, listed, index, size, refused, (best, found))
    nth = 0
    for _ in range(inner_steps):
        where = steepest(active, size, eta)
        top = abs(qs[where]) if where >= 0 else -1.0
        if max(top, best[nth]) < listed.threshold and listed.threshold > ALL:
            ledger.work[REBUILT] += 1
            listed = rebuild(ledger, listed, index, size)
            finite &= leaders(table, listed, index, size, refused, (best, found))
            nth = 0
        other = found[nth]
        if best[nth] > top or (other >= 0 and best[nth] == top and other < index[where]):
            h = metric(ledger, other, t, offset) if kind == ADAPTIVE else 0.0
            finite &= h < np.inf
            where = insert(active, size, other, table[other, G], h)
            size, nth = size + 1, nth + 1
        if not finite or where < 0 or qs[where] == 0:
            break  # grad Q = 0: no step moves y any more
        if kind == ADAPTIVE:
            advance(active, size, where, radius, eta, bounds[k])
        else:
            move(active, size, where, radius, sizes[k])
    return listed, size, finite


@jit
def run(
    terms: Terms, batches: Batches, ledger: Ledger, listed: Listed, steps: Steps, point: Point,
    active: Active, size: int,
) -> tuple[int, int, Listed]:  # fmt: skip
    """One iteration for each batch; x follows the table.

    Returns (iterations done, size of the support, candidates); fewer iterations than asked for if
    g or h became infinite or NaN.
    """
    count = batches.ends.size - 1
    for k in range(count):
        listed = refresh(terms, batches, k, ledger, listed, size)
        listed, size, finite = inner_loop(
            ledger, listed, steps, k, batches.t + k, point.radius, active, size
        )
        if not finite:
            return k, size, listed
        size = settle(active, size, ledger.table, point)
    return count, size, listed


@jit
def publish(ledger: Ledger, t: int, g: Array, sum_squares: Array) -> None:
    """g and the accumulators as they are before iteration t; the table stays as it is.

    Where there are no accumulators, `sum_squares` is empty.
    """
    table, stamps = ledger.table, ledger.stamps
    for j in range(g.size):
        g[j] = table[j, G]
    for j in range(sum_squares.size):
        behind = np.uint64(t) - (stamps[j, STAMP] >> ONE)
        sum_squares[j] = table[j, SQUARES] + np.float64(behind) * (table[j, G] * table[j, G])
