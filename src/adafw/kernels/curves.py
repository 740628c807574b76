"""Losses with both derivatives in one pass over the predictions: what second-order steps ask for.

One exponential serves value, slope and second derivative of the logistic loss.
"""

import math

import numpy as np

from adafw.kernels.codes import LOGISTIC, SQUARED, SQUARED_HINGE
from adafw.kernels.exponential import exponential
from adafw.kernels.jit import jit
from adafw.kernels.parts import Stored
from adafw.kernels.rows import add_rows, row_dots
from adafw.typing import Array

BLOCK = 128


@jit
def curve(loss: int, z: float, y: float) -> tuple[float, float, float, float]:
    """(plain part of the value, e, slope, second derivative) at a prediction z.

    The value is that part + log(1 + e), e in [0, 1]; e = 0 unless the loss is logistic.
    """
    if loss == SQUARED:
        return (z - y) * (z - y), 0.0, 2.0 * (z - y), 2.0
    if loss == LOGISTIC:
        u = -y * z
        e = exponential(-abs(u))  # at most 1, whatever z is
        q = 1.0 / (1.0 + e)
        return max(u, 0.0), e, -y * (q if u > 0 else e * q), e * q * q
    s = max(0.0, 1.0 - y * z)
    return s * s, 0.0, -2.0 * y * s, 2.0 if s > 0 else 0.0


@jit
def block(
    loss: int, z: Array, y: Array, weights: Array, share: float, slopes: Array, bends: Array,
    plain: Array, e: Array,
) -> float:  # fmt: skip
    """Slopes and second derivatives of up to BLOCK terms, times `share`; returns sum w_i l_i.

    Terms without weights share one logarithm: log prod (1 + e_i) = log(1 + p). `plain` and `e` are
    room for BLOCK numbers. The loop for each loss is its own, and writes where it reads: compilers
    then do several terms at once.
    """
    if weights.size:
        total = 0.0
        for i in range(z.size):
            own, power, slope, bend = curve(loss, z[i], y[i])
            total += (own + math.log1p(power)) * weights[i]
            slopes[i], bends[i] = slope * weights[i] * share, bend * weights[i] * share
        return total
    for i in range(z.size, BLOCK):
        plain[i] = e[i] = 0.0
    if loss == LOGISTIC:
        for i in range(z.size):
            plain[i], e[i], slope, bend = curve(LOGISTIC, z[i], y[i])
            slopes[i], bends[i] = slope * share, bend * share
    elif loss == SQUARED:
        for i in range(z.size):
            plain[i], e[i], slope, bend = curve(SQUARED, z[i], y[i])
            slopes[i], bends[i] = slope * share, bend * share
    else:
        for i in range(z.size):
            plain[i], e[i], slope, bend = curve(SQUARED_HINGE, z[i], y[i])
            slopes[i], bends[i] = slope * share, bend * share
    return folded(plain, e)


@jit
def folded(plain: Array, e: Array) -> float:
    """sum plain + log prod (1 + e), by halves, in place.

    Products less 1, e + e' + e e', keep all digits of small e, and stay below 2^128.
    """
    width = BLOCK // 2
    while width:
        for i in range(width):
            plain[i] += plain[i + width]
            e[i] = e[i] + e[i + width] + e[i] * e[i + width]
        width //= 2
    return plain[0] + math.log1p(e[0])


@jit
def curves(loss: int, z: Array, y: Array, weights: Array, slopes: Array, bends: Array) -> float:
    """Fills slopes and second derivatives of all terms, divided by m; returns the mean value."""
    m, total, share = z.size, 0.0, 1.0 / z.size
    plain, e = np.empty(BLOCK), np.empty(BLOCK)
    for first in range(0, m, BLOCK):  # short sums first: rounding errors hardly grow with m
        b = slice(first, min(first + BLOCK, m))
        total += block(loss, z[b], y[b], weights[b], share, slopes[b], bends[b], plain, e)
    return total / m


@jit
def risk(
    loss: int, rows: Stored, batch: Array, first: int, last: int, x: Array, y: Array,
    weights: Array, out: Array,
) -> float:  # fmt: skip
    """Adds the gradient of the terms first .. last - 1 of the mean to out; returns their share.

    The rows of a block are in cache when they are added: one pass over the matrix in place of two,
    and nothing as long as y is written.
    """
    total, share = 0.0, 1.0 / y.size
    z, slopes, bends = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    plain, e = np.empty(BLOCK), np.empty(BLOCK)
    for start in range(first, last, BLOCK):
        end = min(start + BLOCK, last)
        row_dots(rows, batch, start, end, x, z)
        own, here = slice(start, end), slice(0, end - start)
        total += block(
            loss, z[here], y[own], weights[own], share, slopes[here], bends[here], plain, e
        )
        add_rows(rows, batch, start, end, slopes, out)
    return total / y.size


@jit
def sides(
    loss: int, z: Array, b: float, y: Array, weights: Array
) -> tuple[float, float, float, float]:
    """The positive and the negative slopes at z + b, each kind summed, then their derivatives.

    By blocks, as `curves`, and within them by halves: compilers do several terms at once.
    """
    sums, parts = np.zeros(4), np.empty((4, BLOCK))
    shifted, slopes, bends = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    plain, e = np.empty(BLOCK), np.empty(BLOCK)
    for first in range(0, z.size, BLOCK):
        size = min(BLOCK, z.size - first)
        for i in range(size):
            shifted[i] = z[first + i] + b
        own = y[first : first + size]
        block(loss, shifted[:size], own, weights[:0], 1.0, slopes[:size], bends[:size], plain, e)
        if weights.size:
            for i in range(size):
                slopes[i] *= weights[first + i]
                bends[i] *= weights[first + i]
        for i in range(size, BLOCK):
            slopes[i] = bends[i] = 0.0
        for i in range(BLOCK):
            up = slopes[i] > 0
            parts[0, i], parts[1, i] = max(slopes[i], 0.0), max(-slopes[i], 0.0)
            parts[2, i], parts[3, i] = bends[i] if up else 0.0, 0.0 if up else bends[i]
        width = BLOCK // 2
        while width:
            for k in range(4):
                for i in range(width):
                    parts[k, i] += parts[k, i + width]
            width //= 2
        for k in range(4):
            sums[k] += parts[k, 0]
    return sums[0], sums[1], sums[2], sums[3]
