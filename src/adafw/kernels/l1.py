"""Steps on the l1 ball that touch little more than the support of x.

Off the support of x and the vertices met, y = x = 0 and the gradient of Q_t is g itself. So one
pass over g finds the largest entry of every block of it, and the K inner steps of Template 3 work
on the active coordinates alone.
"""

import math

import numpy as np

from adafw.kernels.codes import ADAPTIVE
from adafw.kernels.estimates import estimate
from adafw.kernels.jit import jit
from adafw.kernels.parts import Active, Batches, Bits, Estimate, Point, Steps, Support, Terms, Word
from adafw.typing import Array

BLOCK = 512
#: The level of the last projection, times this, is where the search for the next one begins.
CAUTION = 0.9
#: A coordinate below this share of the radius is dropped: the support never shrinks by itself.
NEGLIGIBLE = 1e-18


@jit
def largest(bits: Array, magnitude: Word) -> Word:
    """The largest |g_j| of some of g, as bits."""
    peak = bits[0] & magnitude
    for j in range(bits.size):
        peak = max(peak, bits[j] & magnitude)
    return peak


@jit
def sweep(g: Array, bits: Bits, sum_squares: Array) -> Word:
    """sum_squares += g^2 (unless it is empty), peaks = largest |g_j| of each block, as bits.

    Integers are compared many at a time, and NaN counts as larger than infinity. Returns the
    largest of all.
    """
    words, magnitude, _, peaks = bits
    top = words[0] & magnitude
    for b in range(peaks.size):
        # Slices, since an index that starts at 0 is known not to be negative.
        block = slice(b * BLOCK, (b + 1) * BLOCK)
        part, squares = g[block], sum_squares[block]
        for j in range(squares.size):
            squares[j] += part[j] * part[j]
        peaks[b] = largest(words[block], magnitude)
        top = max(top, peaks[b])
    return top


@jit
def first_largest(bits: Bits) -> int:
    """The lowest index of a largest |g_j|."""
    words, magnitude, _, peaks = bits
    block = 0
    for b in range(1, peaks.size):
        if peaks[b] > peaks[block]:
            block = b
    # Blocks before this one have lower peaks, so that the first hit in it is the lowest index.
    j = block * BLOCK
    while words[j] & magnitude != peaks[block]:
        j += 1
    return j


@jit
def hide(j: int, g: Array, bits: Bits) -> None:
    """g_j = 0: coordinate j has become active, and the others are searched without it."""
    words, magnitude, _, peaks = bits
    g[j] = 0
    b = j // BLOCK
    peaks[b] = largest(words[b * BLOCK : (b + 1) * BLOCK], magnitude)


@jit
def insert(active: Active, size: int, j: int, g: float, h: float) -> int:
    """Makes coordinate j, where x = y = 0, active; returns its position."""
    index, gs, hs, xs, ys, qs = active
    k = size
    # Few are active: moving them up costs less than a sort, and keeps the order that sums need.
    while k > 0 and index[k - 1] > j:
        index[k], gs[k], hs[k] = index[k - 1], gs[k - 1], hs[k - 1]
        xs[k], ys[k], qs[k] = xs[k - 1], ys[k - 1], qs[k - 1]
        k -= 1
    index[k], gs[k], hs[k], xs[k], ys[k], qs[k] = j, g, h, 0.0, 0.0, g
    return k


@jit
def steepest(active: Active, size: int, eta: float) -> int:
    """Line 6 on the active coordinates: q = g + h (y - x) / eta; where |q| is largest, or -1."""
    _, gs, hs, xs, ys, qs = active
    best, where = -1.0, -1
    for k in range(size):
        qs[k] = gs[k] + hs[k] * (ys[k] - xs[k]) / eta
        if abs(qs[k]) > best:
            best, where = abs(qs[k]), k
    return where


@jit
def advance(active: Active, size: int, where: int, radius: float, eta: float, bound: float) -> None:
    """Lines 7 to 9: y moves towards the vertex at position `where`."""
    _, _, hs, _, ys, qs = active
    vertex = -radius * np.sign(qs[where])
    slope = curvature = 0.0
    for k in range(size):
        d = (vertex if k == where else 0.0) - ys[k]
        slope -= qs[k] * d
        curvature += d * hs[k] * d
    # Written so that NaN stops, too: neither 0 / 0 nor inf * 0 is formed.
    if not (slope > 0 and curvature > 0):
        return
    gamma = min(eta * (slope / curvature), bound)
    for k in range(size):
        ys[k] += gamma * ((vertex if k == where else 0.0) - ys[k])


@jit
def keep(index: Array, size: int, x: Array) -> int:
    """Forgets the coordinates where x = 0; returns how many are left."""
    kept = 0
    for k in range(size):
        if x[index[k]] != 0:
            index[kept] = index[k]
            kept += 1
    return kept


@jit
def adaptive_step(
    g: Array, bits: Bits, steps: Steps, t: int, point: Point, active: Active, size: int
) -> int:
    """Template 3 with AdaGrad's metric; returns the size of the support, -1 if g is not finite."""
    x, radius = point
    index, gs, hs, xs, ys, qs = active
    words, magnitude, refused, _ = bits
    eta, bound, offset = steps.sizes[t], steps.bounds[t], steps.offset
    sum_squares = steps.sum_squares
    finite = True
    for k in range(size):
        j = index[k]
        sum_squares[j] += g[j] * g[j]
        gs[k], hs[k] = g[j], offset + math.sqrt(sum_squares[j])
        xs[k] = ys[k] = x[j]
        finite = finite and words[j] & magnitude < refused and hs[k] < np.inf
        g[j] = 0  # hidden from the sweep, which is about the other coordinates
    top = sweep(g, bits, sum_squares)
    if not finite or top >= refused:
        return -1
    other = first_largest(bits)
    for _ in range(steps.inner_steps):
        where = steepest(active, size, eta)
        best = abs(qs[where]) if where >= 0 else -1.0
        # The LMO over all coordinates: the best inactive against the best active one, ties to the
        # lower index. Off the active ones y = x = 0, and grad Q is g itself.
        if abs(g[other]) > best or (abs(g[other]) == best and other < index[where]):
            if g[other] == 0:
                break  # grad Q = 0: no step moves y any more
            h = offset + math.sqrt(sum_squares[other])
            if h == np.inf:
                return -1
            where = insert(active, size, other, g[other], h)
            size += 1
            hide(other, g, bits)
            other = first_largest(bits)
        advance(active, size, where, radius, eta, bound)
    for k in range(size):
        # What was hidden comes back: g is the state's, and the next estimate builds on it.
        g[index[k]] = gs[k]
        x[index[k]] = ys[k] if abs(ys[k]) >= NEGLIGIBLE * radius else 0.0
    return keep(index, size, x)


@jit
def frank_wolfe_step(
    g: Array, bits: Bits, gamma: float, point: Point, active: Active, size: int
) -> int:
    """Template 1; returns the size of the support, -1 if g is not finite."""
    x, radius = point
    index = active.index
    if sweep(g, bits, g[:0]) >= bits.refused:
        return -1
    j = first_largest(bits)
    if g[j] == 0:
        return size
    k = 0
    while k < size and index[k] < j:
        k += 1
    if k == size or index[k] != j:
        insert(active, size, j, 0.0, 0.0)
        size += 1
    for k in range(size):
        i = index[k]
        vertex = -radius * np.sign(g[i]) if i == j else 0.0
        y = x[i] + gamma * (vertex - x[i])
        x[i] = y if abs(y) >= NEGLIGIBLE * radius else 0.0
    return keep(index, size, x)


@jit
def gather(
    g: Array,
    bits: Bits,
    steps: Steps,
    t: int,
    x: Array,
    support: Array,
    active: Active,
    level: float,
) -> tuple[int, float]:
    """The coordinates of u = x - eta g / h that may stay non-zero when shrunk by level / h.

    Off the support these are the coordinates with eta |g_j| > level, so that h is not needed to
    tell. Fills `active` with (index, |u|, 1 / h, u); returns their number (-1 if an h is infinite),
    and the level as rounded.
    """
    index, sizes, widths, us, _, _ = active
    words, magnitude, _, peaks = bits
    eta, offset, sum_squares = steps.sizes[t], steps.offset, steps.sum_squares
    cut = np.empty(1, g.dtype)
    cut[0] = level / eta
    # Compared as bits, as the peaks are; rounded to the dtype of g first, hence the level returned.
    least = cut.view(words.dtype)[0] & magnitude
    count = p = 0
    for b in range(peaks.size):
        first, last = b * BLOCK, min((b + 1) * BLOCK, g.size)
        if peaks[b] > least:
            for j in range(first, last):
                if words[j] & magnitude > least or x[j] != 0:
                    index[count] = j
                    count += 1
        # The support stays in whatever |g_j| is; in a block looked through it is in already.
        while p < support.size and support[p] < last:
            if peaks[b] <= least:
                index[count] = support[p]
                count += 1
            p += 1
    for k in range(count):
        j = index[k]
        h = offset + math.sqrt(sum_squares[j])
        if h == np.inf:
            return -1, level
        us[k] = x[j] - eta * g[j] / h
        sizes[k], widths[k] = abs(us[k]), 1.0 / h
    return count, eta * cut[0]


@jit
def excess(active: Active, count: int, level: float) -> tuple[float, float, int]:
    """(sum of |u| - level / h, sum of 1 / h, number) over the coordinates where it is positive."""
    _, sizes, widths, _, _, _ = active
    total = width = 0.0
    left = 0
    for k in range(count):
        if sizes[k] > level * widths[k]:
            total += sizes[k] - level * widths[k]
            width += widths[k]
            left += 1
    return total, width, left


@jit
def shrink(active: Active, count: int, level: float, radius: float) -> float:
    """y = sign(u) max(|u| - l / h, 0) with ||y||_1 = radius, for the l >= level; returns l.

    The norm is convex in l, so Newton's method climbs from a level below l and never passes it;
    it ends when no further coordinate falls out.
    """
    _, sizes, widths, us, ys, _ = active
    total, width, left = excess(active, count, level)
    before = left + 1
    while left < before:
        level += (total - radius) / width
        before = left
        total, width, left = excess(active, count, level)
    # What rounding has left is spread once more, then scaled away.
    level += (total - radius) / width
    total = 0.0
    for k in range(count):
        ys[k] = max(0.0, sizes[k] - level * widths[k])
        total += ys[k]
    for k in range(count):
        ys[k] = math.copysign(ys[k] * (radius / total), us[k])
    return level


@jit
def projected_step(
    g: Array,
    bits: Bits,
    steps: Steps,
    t: int,
    level: float,
    point: Point,
    active: Active,
    size: int,
) -> tuple[int, float]:
    """Algorithm 2, lines 3 and 4; returns the size of the support (-1: not finite) and the level.

    The level is sought from a little below the last one. If it turns out to be lower, the tangent
    there gives a bound below it; if all else fails, the search starts from 0 and sees all of g.
    """
    x, radius = point
    index, _, _, us, ys, _ = active
    if sweep(g, bits, steps.sum_squares) >= bits.refused:
        return -1, level
    # `gather` writes over the index while it still reads the old support.
    support = index[:size].copy()
    start = CAUTION * level
    for attempt in range(3):
        count, start = gather(g, bits, steps, t, x, support, active, start)
        if count < 0:
            return -1, level
        total, width, left = excess(active, count, start)
        if total > radius or start == 0:
            break
        start = max(0.0, start + (total - radius) / width) if left and attempt == 0 else 0.0
    if total > radius:
        level = shrink(active, count, start, radius)
    else:
        level = 0.0  # inside: u is its own projection
        for k in range(count):
            ys[k] = us[k]
    for k in range(support.size):
        x[support[k]] = 0
    for k in range(count):
        x[index[k]] = ys[k]
    return keep(index, count, x), level


@jit
def run(
    terms: Terms, batches: Batches, into: Estimate, bits: Bits, steps: Steps, point: Point,
    support: Support,
) -> tuple[int, int]:  # fmt: skip
    """One iteration for each batch, with Frank-Wolfe or adaptive steps.

    Returns the iterations done, fewer than asked for if g or h became infinite or NaN, and the
    size of the support.
    """
    count, active, size = batches.ends.size - 1, support.active, support.size
    for t in range(count):
        estimate(terms, batches, t, point.x, into)
        if steps.kind == ADAPTIVE:
            size = adaptive_step(into.g, bits, steps, t, point, active, size)
        else:
            size = frank_wolfe_step(into.g, bits, steps.sizes[t], point, active, size)
        if size < 0:
            return t, size
    return count, size


@jit
def run_projected(
    terms: Terms, batches: Batches, into: Estimate, bits: Bits, steps: Steps, point: Point,
    support: Support,
) -> tuple[int, int, int, float]:  # fmt: skip
    """`run` with projections; returns their number, too, and the level of the last one."""
    active, size, level = support
    count, projections = batches.ends.size - 1, 0
    for t in range(count):
        estimate(terms, batches, t, point.x, into)
        if largest(bits.g, bits.magnitude) == 0:
            continue  # nothing to move for, and projecting x again would only round it
        size, level = projected_step(into.g, bits, steps, t, level, point, active, size)
        if size < 0:
            return t, size, projections, level
        projections += 1
    return count, size, projections, level
