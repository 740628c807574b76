"""Losses with both derivatives in one pass over the predictions: what second-order steps ask for.

One exponential serves value, slope and second derivative of the logistic loss.
"""

import math
from typing import Any

from adafw.kernels.codes import LOGISTIC, SQUARED
from adafw.kernels.jit import jit

BLOCK = 128


@jit
def curve(loss: int, z: float, y: float) -> tuple[float, float, float]:
    """(value, slope, second derivative) of the loss with that number at a prediction z."""
    if loss == SQUARED:
        return (z - y) * (z - y), 2.0 * (z - y), 2.0
    if loss == LOGISTIC:
        u = -y * z
        e = math.exp(-abs(u))  # at most 1, whatever z is
        q = 1.0 / (1.0 + e)
        if u > 0:
            return u + math.log1p(e), -y * q, e * q * q
        return math.log1p(e), -y * e * q, e * q * q
    s = max(0.0, 1.0 - y * z)
    return s * s, -2.0 * y * s, 2.0 if s > 0 else 0.0


@jit
def curves(loss: int, z: Any, y: Any, weights: Any, slopes: Any, bends: Any) -> float:
    """Fills slopes and second derivatives of all terms, divided by m; returns the mean value."""
    m = z.size
    total = 0.0
    for first in range(0, m, BLOCK):  # short sums first: rounding errors hardly grow with m
        part = 0.0
        for i in range(first, min(first + BLOCK, m)):
            value, slope, bend = curve(loss, z[i], y[i])
            w = (weights[i] if weights.size else 1.0) / m
            part += value * w
            slopes[i] = slope * w
            bends[i] = bend * w
        total += part
    return total


@jit
def value_on(loss: int, z: Any, dz: Any, step: float, y: Any, weights: Any) -> float:
    """The mean value of predictions z + step dz."""
    m = z.size
    total = 0.0
    for first in range(0, m, BLOCK):
        part = 0.0
        for i in range(first, min(first + BLOCK, m)):
            value = curve(loss, z[i] + step * dz[i], y[i])[0]
            part += value * ((weights[i] if weights.size else 1.0) / m)
        total += part
    return total
