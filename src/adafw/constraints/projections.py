"""Projections in a diagonal metric: min sum_i h_i (v_i - x_i)^2 over v in the set.

All are computed in float64 whatever dtype comes in, and take h = None for the Euclidean one.
"""

import numpy as np

from adafw.arrays import (
    argsort_descending,
    cast,
    copy,
    dot,
    double,
    is_tensor,
    namespace,
    norm,
    unit,
)
from adafw.typing import Array

#: Sums of points far out may overflow to infinity, which compares as it should.
_far_out = np.errstate(over="ignore")


@_far_out
def l1_ball(x: Array, h: Array | None, radius: float) -> Array:
    """Onto {||v||_1 <= radius}: v_i = sign(x_i) max(|x_i| - l / h_i, 0). O(n log n).

    Duchi, Hazan, Singer (2011), section 5.2, with the test of line 2 on the l1 norm of x, as
    corrected by the paper's footnote: a point inside is its own projection.
    """
    xp = namespace(x)
    size = double(xp.abs(x))
    if float(xp.sum(size / radius)) <= 1:
        return copy(x)
    return cast(xp.sign(x) * _shrink_to_sum(size, h, radius), x)


@_far_out
def simplex(x: Array, h: Array | None, radius: float) -> Array:
    """Onto {v >= 0, sum v = radius}: v_i = max(x_i - l / h_i, 0). O(n log n)."""
    return cast(_shrink_to_sum(double(x), h, radius), x)


@_far_out
def unit_simplex(x: Array, h: Array | None, radius: float) -> Array:
    """Onto {v >= 0, sum v <= radius}: the positive part if its sum allows, else the simplex."""
    xp = namespace(x)
    positive = xp.where(x > 0, x, xp.zeros_like(x))
    return positive if float(xp.sum(double(positive))) <= radius else simplex(x, h, radius)


@_far_out
def l2_ball(x: Array, h: Array | None, radius: float) -> Array:
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
        if not climb > 1e-16 * shift:
            break
        shift += climb
    return cast(direction * radius, x)


def _shrink_to_sum(a: Array, h: Array | None, total: float) -> Array:
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
    near = xp.where(h * a > (a[top] - total) * h[top])[0]
    part = a[near] - _level(a[near], h[near], total) / h[near]
    v = xp.zeros_like(a)
    v[near] = xp.where(part > 0, part, xp.zeros_like(part))
    return (v * (total / xp.sum(v))).reshape(shape)


def _level(a: Array, h: Array, total: float) -> Array:
    """The l for which max(a - l / h, 0) sums to `total`.

    The entries that stay positive are those with the largest h a: sorted, the k-th of them stays
    if it exceeds the l that the first k would need.
    """
    xp = namespace(a)
    a, h = _without_small(a, h, total)
    order = argsort_descending(h * a)
    a, w, ratio = a[order], 1 / h[order], (h * a)[order]
    count = max(1, int(xp.sum(ratio > (xp.cumsum(a, 0) - total) / xp.cumsum(w, 0))))
    # The prefix sums have told who stays; l itself is summed anew, which loses fewer digits.
    return (xp.sum(a[:count]) - total) / xp.sum(w[:count])


def _without_small(a: Array, h: Array, total: float) -> tuple[Array, Array]:
    """Drops entries below the l that all entries together need, which is a lower bound of l.

    Again and again while that sheds a tenth of them: a sort then sees few (Michelot 1986). On an
    accelerator each round would make the host wait, so tensors are sorted as they are.
    """
    while not is_tensor(a):
        above = np.flatnonzero(h * a > (a.sum() - total) / (1 / h).sum())
        if not 0 < above.size <= 0.9 * a.size:
            break
        a, h = a[above], h[above]
    return a, h


#: Entries of a metric this much smaller than the largest are taken to be this small.
_SMALLEST = 1e-200
