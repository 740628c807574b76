"""The updates of AdaSFW and AdamSFW on LInfBalls, compiled for plain CPU tensors.

Same results (up to the order of sums) as the updates they stand in for; one call for all tensors
of an optimizer, see `lists`. A tensor is worked through in slices that stay in the first cache, one
pass per inner step: the pass does the last step and measures the next. The slices' sums are added
in float64.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, call-arg"

import threading
from typing import Any, TypeAlias, cast

import numpy as np

from adafw.kernels.addresses import array_at
from adafw.kernels.jit import jit
from adafw.typing import Array

SLICE = 2048  # entries
#: Sums within a slice may be made in the order that suits the processor, always the same one.
SUMS = {"reassoc", "nsz"}
_KEPT = 1 << 22  # entries of working memory kept from one step to the next
_memory = threading.local()

#: offset, radius, eta, K and the bound on gamma: what the inner steps of Template 3 need to know.
Inner: TypeAlias = tuple[float, float, float, int, float]
#: m, s, the largest s, and the rates of both: lines 5 to 8 of Algorithm 7.
Moments: TypeAlias = tuple[Array, Array, Array, float, float]
#: Working memory for the gradient of Q and for h.
Room: TypeAlias = tuple[Array, Array]


def workspace(size: int, dtype: np.dtype[Any]) -> Room:
    """Kept from one step to the next, as fresh pages are dear, unless it is large."""
    kept = cast(dict[np.dtype[Any], Room], _memory.__dict__)
    rooms = kept.get(dtype)
    if rooms is None or rooms[0].size < size:
        rooms = np.empty(size, dtype), np.empty(size, dtype)
        if size <= _KEPT:
            kept[dtype] = rooms
    return rooms


@jit
def adasfw(table, numbers, room):
    """As `Update(adagrad_metric, adaptive)` for tensors listed by rows.

    table : size, addresses of x, g and the sums of squares. numbers : see `Inner`.
    """
    like = room[0]
    for i in range(len(table)):
        size, row = table[i, 0], numbers[i]
        x, g = array_at(table[i, 1], size, like), array_at(table[i, 2], size, like)
        squares = array_at(table[i, 3], size, like)
        inner = (row[0], row[1], row[2], int(row[3]), row[4])
        _adasfw(x, g, squares, room, inner)


@jit
def adamsfw(table, numbers, room):
    """As `Update(amsgrad_metric, adaptive)` for tensors listed by rows.

    table : size, addresses of x, g, m, s and the largest s. numbers : see `Inner`, then betas.
    """
    like = room[0]
    for i in range(len(table)):
        size, row = table[i, 0], numbers[i]
        x, g = array_at(table[i, 1], size, like), array_at(table[i, 2], size, like)
        m, s = array_at(table[i, 3], size, like), array_at(table[i, 4], size, like)
        moments = (m, s, array_at(table[i, 5], size, like), row[5], row[6])
        inner = (row[0], row[1], row[2], int(row[3]), row[4])
        _adamsfw(x, g, moments, room, inner)


@jit
def _adasfw(x, g, squares, room, inner):
    real, (_, h) = x.dtype.type, room
    offset, radius = real(inner[0]), real(inner[1])
    slope = curvature = 0.0
    for low in range(0, x.size, SLICE):
        high = min(low + SLICE, x.size)
        new, total = g[low:high], squares[low:high]
        for i in range(new.size):
            total[i] += new[i] * new[i]
        a, b = _measure(x[low:high], new, total, h[low:high], offset, radius)
        slope += a
        curvature += b
    _inner_steps(x, g, room, inner, slope, curvature)


@jit
def _adamsfw(x, g, moments, room, inner):
    real, (_, h) = x.dtype.type, room
    offset, radius = real(inner[0]), real(inner[1])
    m, s, largest, beta_m, beta_s = moments
    slope = curvature = 0.0
    keep_m, new_m = real(beta_m), real(1 - beta_m)
    keep_s, new_s = real(beta_s), real(1 - beta_s)
    for low in range(0, x.size, SLICE):
        high = min(low + SLICE, x.size)
        new, mean, square, most = g[low:high], m[low:high], s[low:high], largest[low:high]
        for i in range(new.size):
            mean[i] = keep_m * mean[i] + new_m * new[i]
        for i in range(new.size):
            value = keep_s * square[i] + new_s * (new[i] * new[i])
            square[i] = value
            most[i] = max(most[i], value)
        a, b = _measure(x[low:high], mean, most, h[low:high], offset, radius)
        slope += a
        curvature += b
    _inner_steps(x, m, room, inner, slope, curvature)


@jit
def _inner_steps(x, m, room, inner, slope, curvature):
    """The K inner steps, the first of which is measured already."""
    real = x.dtype.type
    grad, h = room
    _, radius, eta, inner_steps, bound = inner
    r = real(radius)
    gamma = _short_step(slope, curvature, eta, bound)
    for k in range(inner_steps - 1):
        slope = curvature = 0.0
        for low in range(0, x.size, SLICE):
            high = min(low + SLICE, x.size)
            if k == 0:
                grad[low:high] = m[low:high]
            a, b = _advance(
                x[low:high], grad[low:high], h[low:high],
                r, real(gamma), real(gamma / eta),
            )  # fmt: skip
            slope += a
            curvature += b
        gamma = _short_step(slope, curvature, eta, bound)
    last = m if inner_steps == 1 else grad
    for low in range(0, x.size, SLICE):
        y, q = x[low : low + SLICE], last[low : low + SLICE]
        for i in range(y.size):
            y[i] = y[i] - real(gamma) * _away(y[i], q[i], r)


@jit(inline="always")
def _away(y, q, radius):
    """d = y - v, v = -radius sign(q)."""
    return y + (radius if q > 0 else (-radius if q < 0 else q))


@jit(fastmath=SUMS)
def _measure(x, grad, squares, h, offset, radius):
    """h = offset + sqrt(squares), <G, d> and <d, h d> of a slice."""
    for i in range(x.size):
        h[i] = offset + np.sqrt(squares[i])
    slope = curvature = x.dtype.type(0)
    for i in range(x.size):
        d = _away(x[i], grad[i], radius)
        slope += grad[i] * d
        curvature += h[i] * d * d
    return float(slope), float(curvature)


@jit(fastmath=SUMS)
def _advance(x, grad, h, radius, gamma, rate):
    """x <- x - gamma d, G <- G - rate h d on a slice, and the two sums at the new point."""
    slope = curvature = x.dtype.type(0)
    for i in range(x.size):
        q, y = grad[i], x[i]
        d = _away(y, q, radius)
        y = y - gamma * d
        q = q - rate * h[i] * d
        x[i] = y
        grad[i] = q
        d = _away(y, q, radius)
        slope += q * d
        curvature += h[i] * d * d
    return float(slope), float(curvature)


@jit
def _short_step(slope, curvature, eta, bound):
    if slope <= 0 or curvature <= 0:
        return 0.0
    return min(eta * (slope / curvature), bound)
