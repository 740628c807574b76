"""CSFW and AdaCSFW on the l1 ball without any pass over the n coordinates.

An iteration changes g on the features of its batch only. So AdaGrad's accumulator of a feature
that was not touched for some iterations lacks as many times g_j^2, which is added when it is next
needed. The largest |g_j| comes from a list of candidates that holds every feature with
|g_j| >= threshold: a feature that rises to the threshold joins when it is touched, the list is
thinned when it gets long, and made anew, the one pass over n, when no coordinate reaches the
threshold any more.

`table` has a row for each feature, so that touching it costs one cache miss:
x_j, g_j, the accumulator, and 2 * (first iteration not in the accumulator) + (is a candidate).
`stamps` is the same memory as unsigned integers, in which the last column is written.
"""

import math
from typing import Any

import numpy as np

from adafw.kernels.jit import jit
from adafw.kernels.l1 import ADAPTIVE, NEGLIGIBLE, advance, insert, steepest
from adafw.kernels.losses import slope
from adafw.kernels.rows import ONE

X, G, SQUARES, STAMP = 0, 1, 2, 3
LISTED = np.uint64(1)
#: The least threshold: all features with g_j != 0 are candidates.
ALL = 5e-324
#: The least |g_j| with an infinite square: no accumulator takes it.
LARGE = math.nextafter(math.sqrt(np.finfo(np.float64).max), math.inf)
#: What was done, for tests and for those who tune `room`.
STALE, THINNED, REBUILT = 0, 1, 2


@jit
def reaching(table: Any, candidates: Any, count: int, threshold: float) -> int:
    """How many candidates are not below the threshold (NaN is not)."""
    reached = 0
    for k in range(count):
        reached += not (abs(table[candidates[k], G]) < threshold)
    return reached


@jit
def thin(
    table: Any, stamps: Any, candidates: Any, count: int, threshold: float, size: int, room: int
) -> Any:
    """Forgets candidates below the threshold, which is raised if too many would be left.

    That is more than `room` beside the `size` active coordinates, which may all be among the
    largest (at an optimum they are) and must not crowd out the others. Then at least half the
    room and at most all of it is left to these, more only if they are equal: those stay or go
    together. Returns (count, threshold).
    """
    least, most = size + room // 2, size + room
    if reaching(table, candidates, count, threshold) > most:
        high = 0.0
        for k in range(count):
            high = max(high, abs(table[candidates[k], G]))
        for _ in range(60):  # bisection down to rounding error
            middle = (threshold + high) / 2
            left = reaching(table, candidates, count, middle)
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
    return kept, threshold


@jit
def longer(candidates: Any, count: int, size: int) -> Any:
    """A list of that size with the same first `count` candidates."""
    other = np.empty(size, candidates.dtype)
    for k in range(count):
        other[k] = candidates[k]
    return other


@jit
def rebuild(
    table: Any, stamps: Any, candidates: Any, count: int, active: Any, size: int, room: int
) -> Any:
    """The candidates from scratch: all with |g_j| at least half of the largest one not active.

    Thinned at once if these are many. Returns (candidates, count, threshold).
    """
    index = active[0]
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
    count, threshold = thin(table, stamps, candidates, count, threshold, size, room)
    if count <= capacity < candidates.size:
        candidates = longer(candidates, count, capacity)
    return candidates, count, threshold


@jit
def is_active(index: Any, size: int, j: int) -> bool:
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
    table: Any, candidates: Any, count: int, active: Any, size: int, refused: float,
    best: Any, found: Any,
) -> bool:  # fmt: skip
    """The candidates of largest |g_j| that are not active, in order, lowest index first if equal.

    Fills best (values) and found (features; -1 beyond the last); whether all are below `refused`.
    """
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
        if is_active(active[0], size, j):
            continue
        p = last
        while p > 0 and (value > best[p - 1] or (value == best[p - 1] and j < found[p - 1])):
            best[p], found[p] = best[p - 1], found[p - 1]
            p -= 1
        best[p], found[p] = value, j
    return finite


@jit
def touch(
    rows: Any, i: Any, change: float, t: int, table: Any, stamps: Any, candidates: Any, count: int,
    threshold: float, work: Any,
) -> int:  # fmt: skip
    """g += change * a_i; accumulators are brought up to date first, risen features listed.

    NaN is listed too, as it is not below the threshold. There must be room for all of the row.
    """
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
def metric(table: Any, stamps: Any, j: int, t: int, offset: float) -> float:
    """h_j of iteration t, whose own g_j^2 counts; the accumulator itself stays as it is."""
    g, since = table[j, G], stamps[j, STAMP] >> ONE
    return offset + math.sqrt(table[j, SQUARES] + np.float64(np.uint64(t + 1) - since) * (g * g))


@jit
def refresh(
    terms: Any, batch: Any, first: int, last: int, t: int, alpha: Any, table: Any, stamps: Any,
    candidates: Any, count: int, threshold: float, size: int, room: int, work: Any,
) -> Any:  # fmt: skip
    """CSFW's estimate from the rows batch[first:last]; returns (candidates, count, threshold)."""
    rows, y, weights, loss, intercept = terms
    values, columns, starts = rows
    for k in range(first, last):
        i = batch[k]
        z = 0.0
        for p in range(starts[i], starts[i + ONE]):
            z += values[p] * table[columns[p], X]
        fresh = slope(loss, z + intercept, y[i])
        before = alpha[i]
        alpha[i] = (fresh * weights[i] if weights.size else fresh) / alpha.size
        change = alpha[i] - before  # as stored: float32 rounds alpha
        if change == 0:
            continue
        length = np.int64(starts[i + ONE] - starts[i])
        if count + length > candidates.size:
            work[THINNED] += 1
            count, threshold = thin(table, stamps, candidates, count, threshold, size, room)
            if 2 * (count + length) > candidates.size:  # ties keep many: make room, not haste
                candidates = longer(candidates, count, 4 * (count + length))
        count = touch(rows, i, change, t, table, stamps, candidates, count, threshold, work)
    return candidates, count, threshold


@jit
def activate(
    table: Any, stamps: Any, active: Any, size: int, step: int, t: int, offset: float
) -> bool:
    """The values of the support of x, where an iteration starts from; whether h is finite."""
    index, gs, hs, xs, ys, _ = active
    finite = True
    for k in range(size):
        j = index[k]
        gs[k], xs[k], ys[k] = table[j, G], table[j, X], table[j, X]
        hs[k] = metric(table, stamps, j, t, offset) if step == ADAPTIVE else 0.0
        finite = finite and hs[k] < np.inf
    return finite


@jit
def move(active: Any, size: int, where: int, radius: float, gamma: float) -> None:
    """Line 4 of Template 1: y moves by gamma towards the vertex at position `where`."""
    ys, qs = active[4], active[5]
    vertex = -radius * np.sign(qs[where])
    for k in range(size):
        ys[k] += gamma * ((vertex if k == where else 0.0) - ys[k])


@jit
def settle(active: Any, size: int, table: Any, x: Any, smallest: float) -> int:
    """x = y on the active coordinates; those that are negligible become 0 and inactive."""
    index, _, _, _, ys, _ = active
    kept = 0
    for k in range(size):
        j = index[k]
        y = ys[k] if abs(ys[k]) >= smallest else 0.0
        table[j, X] = x[j] = y
        if y != 0:
            index[kept] = j
            kept += 1
    return kept


@jit
def run(
    terms: Any, batches: Any, ends: Any, t: int, alpha: Any, table: Any, stamps: Any, x: Any,
    active: Any, size: int, candidates: Any, count: int, threshold: float, room: int,
    radius: float, step: int, rates: Any, caps: Any, inner_steps: int, offset: float, work: Any,
) -> Any:  # fmt: skip
    """Iterations t, t + 1, .. with the batches that end at ends[1:]; x follows the table.

    Returns (iterations done, size of the support, candidates, their number, threshold); fewer
    iterations than asked for if g or h became infinite or NaN.
    """
    index, qs = active[0], active[5]
    refused = LARGE if step == ADAPTIVE else np.inf
    best, found = np.empty(inner_steps), np.empty(inner_steps, np.int64)
    for i in range(ends.size - 1):
        candidates, count, threshold = refresh(
            terms, batches, ends[i], ends[i + 1], t + i, alpha, table, stamps,
            candidates, count, threshold, size, room, work,
        )  # fmt: skip
        finite = activate(table, stamps, active, size, step, t + i, offset)
        if not leaders(table, candidates, count, active, size, refused, best, found):
            finite = False
        eta = rates[i] if step == ADAPTIVE else np.inf
        nth = 0
        for _ in range(inner_steps):
            where = steepest(active, size, eta)
            top = abs(qs[where]) if where >= 0 else -1.0
            if max(top, best[nth]) < threshold and threshold > ALL:
                work[REBUILT] += 1
                candidates, count, threshold = rebuild(
                    table, stamps, candidates, count, active, size, room
                )
                if not leaders(table, candidates, count, active, size, refused, best, found):
                    finite = False
                nth = 0
            other = found[nth]
            if best[nth] > top or (other >= 0 and best[nth] == top and other < index[where]):
                h = metric(table, stamps, other, t + i, offset) if step == ADAPTIVE else 0.0
                finite = finite and h < np.inf
                where = insert(active, size, other, table[other, G], h)
                size, nth = size + 1, nth + 1
            if not finite or where < 0 or qs[where] == 0:
                break  # grad Q = 0: no step moves y any more
            if step == ADAPTIVE:
                advance(active, size, where, radius, eta, caps[i])
            else:
                move(active, size, where, radius, rates[i])
        if not finite:
            return i, size, candidates, count, threshold
        size = settle(active, size, table, x, NEGLIGIBLE * radius)
    return ends.size - 1, size, candidates, count, threshold
