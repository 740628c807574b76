"""The updates of AdaSFW and AdamSFW on Box, L1Ball, L2Ball and KSparse, compiled for the CPU.

Same signature and results (up to the order of sums) as the updates they stand in for. As in
`kernels`, a tensor is worked through in slices that stay in the first cache: the last inner step
is done and the next one measured while a slice is there. What a vertex needs of the whole tensor
(a norm, the largest entry, the k-th largest) is gathered on the way; sums are made in float64.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import threading
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from adafw.arrays import float_bits
from adafw.constraints import Box, Constraint, KSparse, L1Ball, L2Ball
from adafw.kernels.jit import jit
from adafw.torch.typing import Options, State
from adafw.typing import Array

SLICE = 2048  # entries
#: Sums within a slice may be made in the order that suits the processor, always the same one.
SUMS = {"reassoc", "nsz"}
_BINS = 1 << 12
_KEPT = 1 << 22  # entries of working memory kept from one step to the next
_memory = threading.local()
_BOX, _L1, _L2, _SPARSE = range(4)


def adasfw(x: Tensor, g: Tensor, state: State, options: Options) -> None:
    """As `Update(adagrad_metric, adaptive)`."""
    point, new = _flat(x), _flat(g)
    grad, h = _rooms(point)
    _adagrad(new, _flat(state["sum_squares"]), grad, h, options["offset"])
    _inner_steps(point, grad, h, options)
    torch.autograd.graph.increment_version(x)


def adamsfw(x: Tensor, g: Tensor, state: State, options: Options) -> None:
    """As `Update(amsgrad_metric, adaptive)`."""
    point, new = _flat(x), _flat(g)
    grad, h = _rooms(point)
    m, s, largest = (_flat(state[name]) for name in ("momentum", "mean_squares", "max_squares"))
    beta_m, beta_s = options["betas"]
    _amsgrad(new, m, s, largest, grad, h, beta_m, beta_s, options["offset"])
    _inner_steps(point, grad, h, options)
    torch.autograd.graph.increment_version(x)


def _flat(x: Tensor) -> Array:
    return (x.detach() if x.requires_grad else x).numpy().reshape(-1)


def _rooms(x: Array) -> tuple[Array, Array]:
    """Room for the gradient of Q and for h, kept from one step to the next unless it is large."""
    kept = cast(dict[np.dtype[Any], tuple[Array, Array]], _memory.__dict__)
    rooms = kept.get(x.dtype)
    if rooms is None or rooms[0].size < x.size:
        rooms = np.empty(x.size, x.dtype), np.empty(x.size, x.dtype)
        if x.size <= _KEPT:
            kept[x.dtype] = rooms
    return rooms[0][: x.size], rooms[1][: x.size]


def _inner_steps(x: Array, grad: Array, h: Array, options: Options) -> None:
    magnitude, _ = float_bits(x.dtype)
    bits = grad.view(f"u{x.itemsize}")
    kind, lower, upper, k = _numbers(options["constraint"], x.size)
    limits = options["lr"], options["inner_steps"], options["max_step"]
    if kind == _BOX:
        _box(x, grad, h, lower, upper, *limits)
    elif kind == _L2:
        _l2(x, grad, h, upper, *limits)
    elif kind == _L1:
        _l1(x, grad, h, bits, magnitude, upper, *limits)
    else:
        shift = 8 * x.itemsize - 1 - 12  # the sign is the first bit, then 12 for the bins
        _k_sparse(x, grad, h, bits, magnitude, shift, upper, k, *limits)


def _numbers(constraint: Constraint, size: int) -> tuple[int, float, float, int]:
    """(kind, lower, upper, k) of a set."""
    if isinstance(constraint, Box):
        return _BOX, float(constraint.lower.value), float(constraint.upper.value), 0
    if isinstance(constraint, L1Ball):
        return _L1, 0.0, constraint.radius, 1
    if isinstance(constraint, L2Ball):
        return _L2, 0.0, constraint.radius, 0
    assert isinstance(constraint, KSparse)
    return _SPARSE, 0.0, constraint.radius, min(constraint.k, size)


@jit
def _adagrad(g, squares, grad, h, offset):
    real = g.dtype.type
    for i in range(g.size):
        squares[i] += g[i] * g[i]
        h[i] = real(offset) + np.sqrt(squares[i])
        grad[i] = g[i]


@jit
def _amsgrad(g, m, s, largest, grad, h, beta_m, beta_s, offset):
    real = g.dtype.type
    keep_m, new_m, keep_s, new_s = real(beta_m), real(1 - beta_m), real(beta_s), real(1 - beta_s)
    for low in range(0, g.size, SLICE):
        high = min(low + SLICE, g.size)
        for i in range(low, high):
            m[i] = keep_m * m[i] + new_m * g[i]
            grad[i] = m[i]
        for i in range(low, high):
            s[i] = keep_s * s[i] + new_s * (g[i] * g[i])
            largest[i] = max(largest[i], s[i])
            h[i] = real(offset) + np.sqrt(largest[i])


@jit
def _short_step(slope, curvature, eta, bound):
    if slope <= 0 or curvature <= 0:
        return 0.0
    return min(eta * (slope / curvature), bound)


@jit(inline="always")
def _corner(q, lower, upper, middle):
    side = lower if q > 0 else upper
    return side if q != 0 else middle


@jit(fastmath=SUMS)
def _advance_box(x, grad, h, lower, upper, gamma, rate):
    """x <- x - gamma d, G <- G - rate h d on a slice, then <G, d> and <d, h d>."""
    middle = lower / 2 + upper / 2
    slope = curvature = x.dtype.type(0)
    for i in range(x.size):
        q, y = grad[i], x[i]
        d = y - _corner(q, lower, upper, middle)
        y = y - gamma * d
        q = q - rate * h[i] * d
        x[i] = y
        grad[i] = q
        d = y - _corner(q, lower, upper, middle)
        slope += q * d
        curvature += h[i] * d * d
    return float(slope), float(curvature)


@jit
def _box(x, grad, h, lower, upper, eta, inner_steps, bound):
    real = x.dtype.type
    gamma = 0.0  # the first time nothing is moved, only measured
    for _ in range(inner_steps + 1):
        slope = curvature = 0.0
        for low in range(0, x.size, SLICE):
            high = min(low + SLICE, x.size)
            a, b = _advance_box(
                x[low:high], grad[low:high], h[low:high],
                real(lower), real(upper), real(gamma), real(gamma / eta),
            )  # fmt: skip
            slope += a
            curvature += b
        gamma = _short_step(slope, curvature, eta, bound)


@jit(fastmath=SUMS)
def _measure_l2(y, q, h):
    """Sums q q, q y, y h y, y h q, q h q in float64, in which squares stay in range."""
    qq = qy = yhy = yhq = qhq = 0.0
    for i in range(y.size):
        a, b, c = np.float64(q[i]), np.float64(y[i]), np.float64(h[i])
        qq += a * a
        qy += a * b
        yhy += b * c * b
        yhq += b * c * a
        qhq += a * c * a
    return qq, qy, yhy, yhq, qhq


@jit
def _l2(x, grad, h, radius, eta, inner_steps, bound):
    """v = -s q with s = radius / ||q||, so that d = y + s q."""
    real = x.dtype.type
    gamma = scale = 0.0
    for k in range(inner_steps + 1):
        step, rate, s = real(gamma), real(gamma / eta), real(scale)
        qq = qy = yhy = yhq = qhq = 0.0
        for low in range(0, x.size, SLICE):
            high = min(low + SLICE, x.size)
            y, q, metric = x[low:high], grad[low:high], h[low:high]
            if k > 0:
                for i in range(y.size):
                    d = y[i] + s * q[i]
                    y[i] = y[i] - step * d
                    q[i] = q[i] - rate * metric[i] * d
            if k < inner_steps:
                a, b, c, e, f = _measure_l2(y, q, metric)
                qq, qy, yhy, yhq, qhq = qq + a, qy + b, yhy + c, yhq + e, qhq + f
        scale = radius / np.sqrt(qq) if qq > 0 else 0.0
        slope = qy + scale * qq
        curvature = yhy + 2 * scale * yhq + scale * scale * qhq
        gamma = _short_step(slope, curvature, eta, bound)


@jit(fastmath=SUMS)
def _measure_l1(y, q, h, bits, magnitude):
    """<q, y>, <y, h y> and the largest |q| of a slice, as bits."""
    qy = yhy = 0.0
    for i in range(y.size):
        qy += float(q[i] * y[i])
        yhy += float(h[i] * y[i] * y[i])
    largest = bits[0] & magnitude
    for i in range(y.size):
        largest = max(largest, bits[i] & magnitude)
    return qy, yhy, largest


@jit
def _first(bits, magnitude, wanted):
    for i in range(bits.size):
        if bits[i] & magnitude == wanted:
            return i
    return 0


@jit
def _l1(x, grad, h, bits, magnitude, radius, eta, inner_steps, bound):
    """v is +- radius at the first largest |q|: d = y but there."""
    real = x.dtype.type
    gamma = value = 0.0
    best = 0
    for k in range(inner_steps + 1):
        step, rate, v = real(gamma), real(gamma / eta), real(value)
        at, qy, yhy = 0, 0.0, 0.0
        largest = bits[0] & magnitude
        for low in range(0, x.size, SLICE):
            high = min(low + SLICE, x.size)
            y, q, metric = x[low:high], grad[low:high], h[low:high]
            if k > 0:
                for i in range(y.size):
                    q[i] = q[i] - rate * metric[i] * y[i]
                    y[i] = y[i] - step * y[i]
                if low <= best < high:
                    y[best - low] += step * v
                    q[best - low] += rate * metric[best - low] * v
            if k < inner_steps:
                a, b, most = _measure_l1(y, q, metric, bits[low:high], magnitude)
                qy, yhy = qy + a, yhy + b
                if most > largest or low == 0:
                    largest, at = most, low
        if k == inner_steps:
            break
        best = at + _first(bits[at : at + SLICE], magnitude, largest)
        top = float(grad[best])
        value = -radius if top > 0 else (radius if top < 0 else top)
        slope = qy - top * value
        curvature = yhy + float(h[best]) * value * (value - 2 * float(x[best]))
        gamma = _short_step(slope, curvature, eta, bound)


@jit
def _chosen(bits, magnitude, shift, count, k):
    """(the k-th largest |q| as bits, the index below which those equal to it are wanted)."""
    above, chosen = 0, 0
    for b in range(count.size - 1, -1, -1):
        if above + count[b] >= k:
            chosen = b
            break
        above += count[b]
    inside, n = np.empty(count[chosen], np.uint64), 0
    # Bounds as unsigned numbers: compared with signed ones, both would become floats.
    one = np.uint64(1)
    first = np.uint64(chosen) << np.uint64(shift)
    last = first + (one << np.uint64(shift)) - one
    for i in range(bits.size):
        value = np.uint64(bits[i] & magnitude)
        if first <= value <= last:
            inside[n] = value
            n += 1
    wanted = k - above
    while first < last:  # bisection: the largest number that enough of them reach
        middle = first + ((last - first + one) >> one)
        reach = 0
        for value in inside:
            reach += value >= middle
        if reach >= wanted:
            first = middle
        else:
            last = middle - one
    least = first
    equal = 0
    for value in inside:
        above += value > least
        equal += value == least
    if equal == k - above:
        return least, bits.size
    for i in range(bits.size):  # ties: the first ones
        if bits[i] & magnitude == least:
            above += 1
            if above == k:
                return least, i + 1
    return least, bits.size


@jit
def _entry(q, size, i, least, limit, radius, zero):
    """The vertex's entry i where the gradient is q and |q| is `size`."""
    v = -radius if q > 0 else (radius if q < 0 else q)
    return v if size > least or (size == least and i < limit) else zero


@jit
def _untied(q, size, least, radius, zero):
    """The same where all entries equal to the least are wanted: no index, hence many at once."""
    v = -radius if q > 0 else (radius if q < 0 else q)
    return v if size >= least else zero


@jit(fastmath=SUMS)
def _measure_sparse(x, grad, h, least, limit, radius):
    slope = curvature = x.dtype.type(0)
    zero = x.dtype.type(0)
    if limit >= x.size:
        for i in range(x.size):
            d = x[i] - _untied(grad[i], abs(grad[i]), least, radius, zero)
            slope += grad[i] * d
            curvature += h[i] * d * d
    else:
        for i in range(x.size):
            d = x[i] - _entry(grad[i], abs(grad[i]), i, least, limit, radius, zero)
            slope += grad[i] * d
            curvature += h[i] * d * d
    return float(slope), float(curvature)


@jit
def _advance_sparse(x, grad, h, least, limit, radius, gamma, rate):
    zero = x.dtype.type(0)
    if limit >= x.size:
        for i in range(x.size):
            d = x[i] - _untied(grad[i], abs(grad[i]), least, radius, zero)
            x[i] = x[i] - gamma * d
            grad[i] = grad[i] - rate * h[i] * d
    else:
        for i in range(x.size):
            d = x[i] - _entry(grad[i], abs(grad[i]), i, least, limit, radius, zero)
            x[i] = x[i] - gamma * d
            grad[i] = grad[i] - rate * h[i] * d


@jit
def _k_sparse(x, grad, h, bits, magnitude, shift, radius, k, eta, inner_steps, bound):
    """v is +- radius at the k largest |q|, of equal ones the first."""
    real, word = x.dtype.type, bits.dtype.type
    r, move = real(radius), word(shift)
    limit, gamma = 0, 0.0
    count, least = np.zeros(_BINS, np.int64), np.zeros(1, bits.dtype)
    room = least.view(x.dtype)  # the same as a float: bits and gradient share their memory
    for t in range(inner_steps + 1):
        count[:] = 0
        for low in range(0, x.size, SLICE):
            high = min(low + SLICE, x.size)
            size = bits[low:high]
            if t > 0:
                _advance_sparse(
                    x[low:high], grad[low:high], h[low:high], room[0], limit - low,
                    r, real(gamma), real(gamma / eta),
                )  # fmt: skip
            if t < inner_steps:
                for i in range(size.size):
                    count[(size[i] & magnitude) >> move] += 1
        if t == inner_steps:
            break
        least[0], limit = _chosen(bits, magnitude, move, count, k)
        slope = curvature = 0.0
        for low in range(0, x.size, SLICE):
            high = min(low + SLICE, x.size)
            a, b = _measure_sparse(
                x[low:high], grad[low:high], h[low:high], room[0], limit - low, r,
            )  # fmt: skip
            slope += a
            curvature += b
        gamma = _short_step(slope, curvature, eta, bound)
