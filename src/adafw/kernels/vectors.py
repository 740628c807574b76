"""Single passes over vectors that NumPy needs several for."""

import math
from typing import Any

from adafw.kernels.jit import jit
from adafw.kernels.l1 import largest


@jit
def first_largest(bits: Any, magnitude: Any, infinity: Any) -> int:
    """The lowest index of a largest |g_j|, g given as bits; -1 if an entry is not finite."""
    peak = largest(bits, magnitude)
    if peak >= infinity:
        return -1
    j = 0
    while bits[j] & magnitude != peak:
        j += 1
    return j


@jit
def accumulate(g: Any, sum_squares: Any, offset: float, h: Any) -> None:
    """sum_squares += g^2, h = offset + sqrt(sum_squares)."""
    for j in range(g.size):
        sum_squares[j] += g[j] * g[j]
        h[j] = offset + math.sqrt(sum_squares[j])
