"""Losses with both derivatives in one pass over the predictions: what second-order steps ask for.

One exponential serves value, slope and second derivative of the logistic loss.
"""

import math

import numpy as np

from adafw.kernels.codes import LOGISTIC, SQUARED
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
        e = math.exp(-abs(u))  # at most 1, whatever z is
        q = 1.0 / (1.0 + e)
        if u > 0:
            return u, e, -y * q, e * q * q
        return 0.0, e, -y * e * q, e * q * q
    s = max(0.0, 1.0 - y * z)
    return s * s, 0.0, -2.0 * y * s, 2.0 if s > 0 else 0.0


@jit
def curves(loss: int, z: Array, y: Array, weights: Array, slopes: Array, bends: Array) -> float:
    """Fills slopes and second derivatives of all terms, divided by m; returns the mean value.

    Terms without weights share one logarithm a block: log prod (1 + e_i) = log(1 + p), where
    p <- p + e + p e keeps all digits of small e, and stays below 2^128.
    """
    m = z.size
    total = 0.0
    for first in range(0, m, BLOCK):  # short sums first: rounding errors hardly grow with m
        part, p = 0.0, 0.0
        if weights.size:
            for i in range(first, min(first + BLOCK, m)):
                plain, e, slope, bend = curve(loss, z[i], y[i])
                w = weights[i] / m
                part += (plain + math.log1p(e)) * w
                slopes[i] = slope * w
                bends[i] = bend * w
        else:
            for i in range(first, min(first + BLOCK, m)):
                plain, e, slope, bend = curve(loss, z[i], y[i])
                part += plain
                p += e + p * e
                slopes[i] = slope / m
                bends[i] = bend / m
            part = (part + math.log1p(p)) / m
        total += part
    return total


@jit
def risk(
    loss: int, rows: Stored, batch: Array, first: int, last: int, x: Array, y: Array,
    weights: Array, out: Array,
) -> float:  # fmt: skip
    """Adds the gradient of the terms first .. last - 1 of the mean to out; returns their share.

    The rows of a block are in cache when they are added: one pass over the matrix in place of two,
    and nothing as long as y is written. The loop is that of `curves` without second derivatives.
    """
    m, total = y.size, 0.0
    z, slopes = np.empty(BLOCK), np.empty(BLOCK)
    for start in range(first, last, BLOCK):
        end = min(start + BLOCK, last)
        row_dots(rows, batch, start, end, x, z)
        part, p = 0.0, 0.0
        if weights.size:
            for i in range(start, end):
                plain, e, slope, _ = curve(loss, z[i - start], y[i])
                part += (plain + math.log1p(e)) * weights[i]
                slopes[i - start] = slope * (weights[i] / m)
        else:
            for i in range(start, end):
                plain, e, slope, _ = curve(loss, z[i - start], y[i])
                part += plain
                p += e + p * e
                slopes[i - start] = slope / m
        total += (part + math.log1p(p)) / m
        add_rows(rows, batch, start, end, slopes, out)
    return total


@jit
def sides(
    loss: int, z: Array, b: float, y: Array, weights: Array
) -> tuple[float, float, float, float]:
    """The positive and the negative slopes at z + b, each kind summed, then their derivatives."""
    up = down = up_slope = down_slope = 0.0
    for first in range(0, z.size, BLOCK):
        one = two = three = four = 0.0
        for i in range(first, min(first + BLOCK, z.size)):
            _, _, slope, bend = curve(loss, z[i] + b, y[i])
            w = weights[i] if weights.size else 1.0
            if slope > 0:
                one += slope * w
                three += bend * w
            else:
                two -= slope * w
                four += bend * w
        up, down, up_slope, down_slope = up + one, down + two, up_slope + three, down_slope + four
    return up, down, up_slope, down_slope
