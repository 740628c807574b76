"""Projections in a diagonal metric: min sum_i h_i (v_i - x_i)^2 over v in the set.

All are computed in float64 whatever dtype comes in, and take h = None for the Euclidean one.
"""

import math

import numpy as np

from adafw.arrays import (
    LONG,
    argsort_descending,
    cast,
    copy,
    dot,
    double,
    group_sums,
    is_tensor,
    namespace,
    norm,
    unit,
)
from adafw.typing import AnyArray

#: Sums of points far out may overflow to infinity, which compares as it should.
_far_out = np.errstate(over="ignore")


@_far_out
def l1_ball(x: AnyArray, h: AnyArray | None, radius: float) -> AnyArray:
    """Onto {||v||_1 <= radius}: v_i = sign(x_i) max(|x_i| - l / h_i, 0).

    Duchi, Hazan, Singer (2011), section 5.2, with the test of line 2 on the l1 norm of x, as
    corrected by the paper's footnote: a point inside is its own projection.
    """
    xp = namespace(x)
    size = double(xp.abs(x))
    if float(xp.sum(size / radius)) <= 1:
        return copy(x)
    return cast(xp.sign(x) * _shrink_to_sum(size, h, radius), x)


@_far_out
def simplex(x: AnyArray, h: AnyArray | None, radius: float) -> AnyArray:
    """Onto {v >= 0, sum v = radius}: v_i = max(x_i - l / h_i, 0)."""
    return cast(_shrink_to_sum(double(x), h, radius), x)


@_far_out
def unit_simplex(x: AnyArray, h: AnyArray | None, radius: float) -> AnyArray:
    """Onto {v >= 0, sum v <= radius}: the positive part if its sum allows, else the simplex."""
    xp = namespace(x)
    positive = xp.where(x > 0, x, xp.zeros_like(x))
    return positive if float(xp.sum(double(positive))) <= radius else simplex(x, h, radius)


@_far_out
def l2_ball(x: AnyArray, h: AnyArray | None, radius: float) -> AnyArray:
    """Onto {||v||_2 <= radius}: v_i = h_i x_i / (h_i + l). O(n) per Newton step on l.

    ||v(l)||_2 = radius is solved as 1 / ||v(l)||_2 = 1 / radius, whose left side is concave in
    l: Newton's method from a lower bound of l climbs to the root and never passes it (More and
    Sorensen 1983). Rounding ends the climb.
    """
    xp = namespace(x)
    z = double(x)
    length = float(norm(z))
    if length <= radius:
        return copy(x)
    if h is None:
        return cast(z * (radius / length), x)
    # Only the ratios of h matter, and those of x and radius: scaled, nothing over- or underflows.
    largest = xp.max(xp.abs(z))
    z, radius_z = z / largest, radius / float(largest)
    h = double(h)
    h = h / xp.max(h)
    hz = h * z
    shift = max(0.0, float(norm(hz)) / radius_z - 1.0)
    for _ in range(200):  # fewer than 20 for metrics spread over 16 orders of magnitude
        direction, length = unit(hz / (h + shift))
        climb = (float(length) / radius_z - 1.0) / float(dot(direction, direction / (h + shift)))
        if not climb > 1e-16 * shift:  # less than a digit of the shift, or NaN where both are 0
            break
        shift += climb
    return cast(direction * radius, x)


def k_sparse(x: AnyArray, h: AnyArray | None, radius: float, k: int) -> AnyArray:
    """Onto {|v_i| <= radius, ||v||_1 <= k radius}: |v_i| = min(max(|x_i| - l / h_i, 0), radius).

    The sum of |v_i| falls with l, linearly between breakpoints: a continuous quadratic knapsack.
    Newton's method on l, exact once it is on the right piece, kept in a bracket by the median of
    the breakpoints left in it (Cominetti, Mascarenhas, Silva 2014; Kiwiel 2008). O(n) a step.
    """
    xp = namespace(x)
    size, total = double(xp.abs(x)), k * radius
    v = xp.clip(size, None, radius)
    if k >= v.reshape(-1).shape[0] or float(xp.sum(v)) <= total:
        return cast(xp.sign(x) * v, x)
    w = xp.ones_like(size) if h is None else float(xp.max(h)) / double(h)
    part = size
    for _ in range(3):  # again in small numbers, where |x| is so large that l has no digits left
        part = part - _knapsack(part, w, radius, total) * w
    return cast(xp.sign(x) * xp.clip(part, 0, radius), x)


def _knapsack(size: AnyArray, w: AnyArray, radius: float, total: float) -> float:
    """The l for which min(max(size - l w, 0), radius) sums to `total`, or one just below."""
    xp = namespace(size)
    ends = xp.concatenate([(size / w).reshape(-1), ((size - radius) / w).reshape(-1)])
    l, low, high, over = 0.0, float(xp.min(ends)), float(xp.max(ends)), math.inf
    least, best = math.inf, 0.0
    for _ in range(200):  # about 10, and 50 for metrics spread over 16 orders of magnitude
        part = size - l * w
        before, over = abs(over), float(xp.sum(xp.clip(part, 0, radius))) - total
        low, high = (l, high) if over > 0 else (low, l)
        least, best = (abs(over), l) if abs(over) < least else (least, best)
        slope = float(xp.sum(xp.where((part > 0) & (part < radius), w, xp.zeros_like(w))))
        new = l + over / slope if slope > 0 else math.inf
        if over == 0 or new == l:
            return l
        if 0.5 * before < abs(over) <= 1e-13 * total:
            break  # all that is left is rounding
        if not low < new < high:
            inside = ends[(ends > low) & (ends < high)]
            new = float(xp.median(inside)) if len(inside) else low + (high - low) / 2
            if not low < new < high:
                break
        l = new
    # Where l has no digits for that, one that is too small: what is left is for the next search.
    return best if least <= 1e-12 * total else low


def group_ball(
    x: AnyArray, h: AnyArray | None, radius: float, labels: AnyArray, count: int
) -> AnyArray:
    """Onto {sum of the l2 norms of the groups <= radius}.

    Euclidean: the norms go onto the simplex. In a metric, a group of norm rho > 0 has
    v_i = h_i x_i rho / (h_i rho + l) with sum_i (h_i x_i / (h_i rho + l))^2 = 1, and is 0 if
    ||h x||_2 <= l. Newton's method on the rho at a given l, which 1 / sqrt of that sum, concave
    in rho, makes safe (More and Sorensen 1983), inside Newton's method on l from the left, rho
    being convex in l. O(n) a step.
    """
    xp = namespace(x)
    z = double(x) / radius
    norms = xp.sqrt(group_sums(z * z, labels, count))
    if float(xp.sum(norms)) <= 1:
        return copy(x)
    zero, one = xp.zeros_like(norms), xp.ones_like(norms)
    if h is None:
        factor = simplex(norms, None, 1.0) / xp.where(norms > 0, norms, one)
        return cast(radius * factor[labels] * z, x)
    h = double(h) / float(xp.max(h))
    hz = h * z
    dies_at = xp.sqrt(group_sums(hz * hz, labels, count))
    l, rho, least, stalls = 0.0, norms, math.inf, 0
    for _ in range(1000):  # about 20, and 60 for metrics spread over 16 orders of magnitude
        alive = dies_at > l
        below = xp.where(alive[labels], h * rho[labels] + l, 1)
        share = (hz / below) ** 2
        sum2 = xp.where(alive, group_sums(share, labels, count), one)
        sum3 = xp.where(alive, group_sums(share * (h / below), labels, count), one)
        climb = sum2 * (xp.sqrt(sum2) - 1) / sum3
        rho = xp.where(alive, xp.clip(rho + climb, 0, None), zero)
        missed, over = float(xp.sum(xp.abs(climb))), float(xp.sum(rho)) - 1
        error = missed + abs(over)
        least, stalls = (error, 0) if error < 0.5 * least else (least, stalls + 1)
        if error <= 1e-12 and stalls >= 10:  # all that is left is rounding
            break
        if missed > 1e-15 and missed > 0.01 * abs(over):
            continue  # the rho do not belong to this l yet
        fall = xp.where(alive, group_sums(share / below, labels, count) / sum3, zero)
        step = over / float(xp.sum(fall))
        if abs(step) <= 1e-16 * l or abs(over) <= 2e-16:  # neither can be told from rounding
            break
        l, rho = max(0.0, l + step), rho - step * fall  # below 0 it is rounding
        rho = xp.where(rho > 0, rho, zero)
    rho = rho[labels]
    # A dead group has rho = 0, and with l = 0 (x outside by rounding only) it would divide by 0.
    v = hz * rho / xp.where(rho > 0, h * rho + l, 1)
    length = float(xp.sum(xp.sqrt(group_sums(v * v, labels, count))))
    return cast(v * (radius / length), x)


def lp_ball(x: AnyArray, h: AnyArray | None, radius: float, p: float) -> AnyArray:
    """Onto {||v||_p <= radius}, 1 < p < inf, p != 2: v_i + (l / h_i) v_i^(p - 1) = |x_i|.

    Iterative, to rounding: for each l the entries are roots of scalar equations, found by
    Newton's method on convex functions; log ||v||_p falls with log l, whose root is found by
    Newton's method kept in a bracket. O(n) a step, about 30 steps, a power in each.
    """
    xp = namespace(x)
    a = double(xp.abs(x)) / radius
    length = lp_norm(a, p)
    if length <= 1:
        return copy(x)
    w = xp.ones_like(a) if h is None else float(xp.max(h)) / double(h)
    v = a / length
    l = float(xp.sum(v * (a - v) / w))  # sum_i h_i v_i (x_i - v_i) equals l at the solution
    # l is 0 where x is outside by rounding alone; any small one will do to begin with.
    t, low, high = math.log(l or 1e-16), -math.inf, math.inf
    u = xp.full_like(a, math.inf)
    for _ in range(200):  # about 6, each with about 4 steps of the inner search
        v, pull, u = _lp_roots(a, math.exp(t) * w, p, u)
        length = lp_norm(v, p)
        low, high = (t, high) if length > 1 else (low, t)
        step = -math.inf  # where p is near 1 and l too large, all powers may vanish
        if length > 0:
            fall = (v / length) ** p * (pull / xp.where(v > 0, v + (p - 1) * pull, 1))
            step = math.log(length) / float(xp.sum(fall))
        if min(abs(step), high - low) <= 4e-16 * max(1.0, abs(t)) or t < -100:
            break  # below -100 nothing is pulled at all: x was outside by rounding only
        t = _kept_inside(t + step, t, low, high)
    return cast(xp.sign(x) * (v * (radius / length)), x)


def lp_norm(a: AnyArray, p: float) -> float:
    """||a||_p of an a >= 0, safe from overflow."""
    largest = float(a.max())
    if largest == 0 or not math.isfinite(largest):
        return largest
    return largest * float(((a / largest) ** p).sum()) ** (1 / p)


def _lp_roots(
    a: AnyArray, c: AnyArray, p: float, u: AnyArray
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """v >= 0 with v + c v^(p - 1) = a, entry by entry, with c v^(p - 1) and the u it came from.

    With u = v (p > 2) or u = v^(p - 1) (p < 2) it reads b u + e u^q = a with q > 1, convex in u:
    Newton's method descends to the root from any u above it, the last one or a bound at most
    twice too large, and from one below it jumps above it first.
    """
    xp = namespace(a)
    one = xp.ones_like(a)
    b, e, q = (one, c, p - 1) if p > 2 else (c, one, 1 / (p - 1))
    bound = xp.minimum(a / b, (a / e) ** (1 / q))
    u = xp.minimum(u, bound)
    for _ in range(100):
        power = e * u**q
        new = u * (((q - 1) * power + a) / xp.where(u > 0, b * u + q * power, one))
        new = xp.minimum(new, bound)
        # In float64, with digits to spare: see below.
        done = not bool((xp.abs(new - u) > 1e-10 * u).any())
        u = new
        if done:  # the error is squared by the last step, so that new is exact
            break
    return (u, e * u**q, u) if p > 2 else (u**q, b * u, u)


def _kept_inside(new: float, old: float, low: float, high: float) -> float:
    """`new` if it lies in ]low, high[, else the middle, or 8 further on where there is no end."""
    if low < new < high and abs(new - old) <= 8:
        return new
    if math.isinf(high):
        return old + 8
    return old - 8 if math.isinf(low) else low + (high - low) / 2


def _shrink_to_sum(a: AnyArray, h: AnyArray | None, total: float) -> AnyArray:
    """max(a - l / h, 0) with the l for which it sums to `total`; h = 1 if None.

    Solved twice: l for a, then the correction of l for a - l / h. Of entries far outside, the
    first l keeps only the leading digits; what is left after the shift is of the size of `total`.
    """
    xp = namespace(a)
    shape, a = a.shape, a.reshape(-1)
    if h is None:
        h = xp.ones_like(a)
    else:
        h = double(h).reshape(-1)
        h = xp.clip(h / xp.max(h), _SMALLEST, 1)
    scale = max(float(xp.max(xp.abs(a))), total)
    a = a - _level(a / scale, h, total / scale) * scale / h
    # No entry but those at least this close to the first can stay: the others need no sorting.
    top = xp.argmax(h * a)
    near = xp.where(h * a >= (a[top] - total) * h[top])[0]  # itself, where `total` is rounded off
    part = a[near] - _level(a[near], h[near], total) / h[near]
    v = xp.zeros_like(a)
    v[near] = xp.where(part > 0, part, xp.zeros_like(part))
    # So far out that `total` is lost beside any entry, the first has it all.
    v[top] = xp.where(xp.sum(v) > 0, v[top], xp.ones_like(v[top]))
    return (v * (total / xp.sum(v))).reshape(shape)


def _level(a: AnyArray, h: AnyArray, total: float) -> AnyArray:
    """The l for which max(a - l / h, 0) sums to `total`.

    Entries below the l that all entries together need cannot stay; without them l rises, until
    none falls out (Michelot 1986): about 10 rounds, each cheaper than the one before. Where that
    takes many, and on an accelerator, whose host would wait in every round, the largest h a are
    sorted: the k-th stays if it exceeds the l that the first k would need.
    """
    if is_tensor(a):
        return _level_by_sorting(a, 1 / h, total)
    w, level, left = 1 / h, 0.0, a.size
    if a.size >= LONG:
        from adafw.kernels import vectors

        a = a.copy()
        level, left = vectors.shed(a, w, total, _ROUNDS)
        if left == 0:
            return level
        a, w = a[:left], w[:left]
    else:
        for _ in range(_ROUNDS):
            level = (a.sum() - total) / w.sum()
            above = (a > level * w).nonzero()[0]
            if above.size in (0, a.size):
                return level
            a, w = a[above], w[above]
    return _level_by_sorting(a, w, total)


def _level_by_sorting(a: AnyArray, w: AnyArray, total: float) -> AnyArray:
    xp = namespace(a)
    order = argsort_descending(a / w)
    a, w = a[order], w[order]
    count = max(1, int(xp.sum(a / w > (xp.cumsum(a, 0) - total) / xp.cumsum(w, 0))))
    # The prefix sums have told who stays; l itself is summed anew, which loses fewer digits.
    return (xp.sum(a[:count]) - total) / xp.sum(w[:count])


#: Rounds of Michelot's algorithm before a sort takes over.
_ROUNDS = 30

#: Entries of a metric this much smaller than the largest are taken to be this small.
_SMALLEST = 1e-200
