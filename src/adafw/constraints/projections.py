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
)
from adafw.typing import Array


def l1_ball(x: Array, h: Array | None, radius: float) -> Array:
    """Onto {||v||_1 <= radius}: v_i = sign(x_i) max(|x_i| - l / h_i, 0). O(n log n).

    Duchi, Hazan, Singer (2011), section 5.2, with the test of line 2 on the l1 norm of x, as
    corrected by the paper's footnote: a point inside is its own projection.
    """
    xp = namespace(x)
    size = double(xp.abs(x))
    if float(xp.sum(size)) <= radius:
        return copy(x)
    v = _shrink_to_sum(size, None if h is None else 1 / double(h), radius)
    return cast(xp.sign(x) * v, x)


def simplex(x: Array, h: Array | None, radius: float) -> Array:
    """Onto {v >= 0, sum v = radius}: v_i = max(x_i - l / h_i, 0). O(n log n)."""
    return cast(_shrink_to_sum(double(x), None if h is None else 1 / double(h), radius), x)


def unit_simplex(x: Array, h: Array | None, radius: float) -> Array:
    """Onto {v >= 0, sum v <= radius}: the positive part if its sum allows, else the simplex."""
    xp = namespace(x)
    positive = xp.where(x > 0, x, xp.zeros_like(x))
    return positive if float(xp.sum(double(positive))) <= radius else simplex(x, h, radius)


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
    h = double(h)
    h = h / xp.max(h)
    hz = h * z
    shift = max(0.0, float(norm(hz)) / radius - 1.0)
    for _ in range(200):  # fewer than 20 for metrics spread over 16 orders of magnitude
        v = hz / (h + shift)
        length = float(norm(v))
        climb = (length / radius - 1.0) * length**2 / float(dot(v, v / (h + shift)))
        if not climb > 1e-16 * shift:
            break
        shift += climb
    return cast(v * (radius / length), x)


def _shrink_to_sum(a: Array, w: Array | None, total: float) -> Array:
    """max(a - l w, 0) with the l for which it sums to `total`; w = 1 if None.

    Expected O(n): see `_staying`.
    """
    xp = namespace(a)
    shape, a = a.shape, a.reshape(-1)
    w = xp.ones_like(a) if w is None else w.reshape(-1)
    stays = _staying(a, w, total)
    # The prefix sums have told who stays; l itself is summed anew, which loses fewer digits.
    l = (xp.sum(a[stays]) - total) / xp.sum(w[stays])
    v = xp.zeros_like(a)
    part = a[stays] - l * w[stays]
    part = part - (xp.sum(part) - total) / xp.sum(w[stays]) * w[stays]
    v[stays] = xp.where(part > 0, part, xp.zeros_like(part))
    scale = total / xp.sum(
        v
    )  # where a is huge, cancellation leaves the sum off by more than rounding
    return (v * scale).reshape(shape)


def _staying(a: Array, w: Array, total: float) -> Array:
    """Where max(a - l w, 0) is positive, for the l of `_shrink_to_sum`.

    These are the largest a / w: sorted, the k-th stays if it exceeds the l that the first k need.
    What is below the l that all entries together need, a lower bound, is left out first, again
    and again while that sheds a tenth of them: the sort then sees few (Michelot 1986).
    """
    xp = namespace(a)
    ratio = a / w
    left = None
    while not is_tensor(a):  # on an accelerator, each round would make the host wait
        above = np.flatnonzero(ratio > (a.sum() - total) / w.sum())
        if not 0 < above.size <= 0.9 * ratio.size:
            break
        left = above if left is None else left[above]
        a, w, ratio = a[above], w[above], ratio[above]
    order = argsort_descending(ratio)
    level = (xp.cumsum(a[order], 0) - total) / xp.cumsum(w[order], 0)
    stays = order[: max(int(xp.sum(ratio[order] > level)), 1)]
    return stays if left is None else left[stays]
