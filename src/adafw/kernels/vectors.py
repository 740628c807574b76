"""Single passes over vectors that NumPy needs several for."""

import math

from adafw.kernels.jit import jit
from adafw.kernels.l1 import largest
from adafw.kernels.parts import Word
from adafw.typing import Array


@jit
def first_largest(bits: Array, magnitude: Word, infinity: Word) -> int:
    """The lowest index of a largest |g_j|, g given as bits; -1 if an entry is not finite."""
    peak = largest(bits, magnitude)
    if peak >= infinity:
        return -1
    j = 0
    while bits[j] & magnitude != peak:
        j += 1
    return j


@jit
def accumulate(g: Array, sum_squares: Array, offset: float, h: Array) -> None:
    """sum_squares += g^2, h = offset + sqrt(sum_squares)."""
    for j in range(g.size):
        sum_squares[j] += g[j] * g[j]
        h[j] = offset + math.sqrt(sum_squares[j])


@jit
def shed(a: Array, w: Array, total: float, rounds: int) -> tuple[float, int]:
    """Michelot's rounds: l = (sum a - total) / sum w, then only entries with a > l w stay.

    Returns l and 0 once none falls out, else l and how many are left after so many rounds, at the
    beginning of a and w, which are written over.
    """
    left, level = a.size, 0.0
    for _ in range(rounds):
        size = width = 0.0
        # In blocks, whose sums lose fewer digits than one long sum.
        for first in range(0, left, 512):
            part = part_width = 0.0
            for j in range(first, min(first + 512, left)):
                part += a[j]
                part_width += w[j]
            size += part
            width += part_width
        level = (size - total) / width
        kept = 0
        for j in range(left):  # without a branch, which would be mispredicted half of the time
            value, at = a[j], w[j]
            a[kept], w[kept] = value, at
            kept += value > level * at
        if kept == left or kept == 0:
            return level, 0
        left = kept
    return level, left


@jit
def peak_of(values: Array) -> float:
    """The largest entry, or 0; four at a time, so that none waits for the last."""
    a = b = c = d = 0.0
    whole = values.size - values.size % 4
    for i in range(0, whole, 4):
        a, b = max(a, values[i]), max(b, values[i + 1])
        c, d = max(c, values[i + 2]), max(d, values[i + 3])
    for i in range(whole, values.size):
        a = max(a, values[i])
    return max(max(a, b), max(c, d))


@jit
def sum_of(values: Array) -> float:
    """The sum of all entries, four at a time."""
    a = b = c = d = 0.0
    whole = values.size - values.size % 4
    for i in range(0, whole, 4):
        a, b, c, d = a + values[i], b + values[i + 1], c + values[i + 2], d + values[i + 3]
    for i in range(whole, values.size):
        a += values[i]
    return (a + b) + (c + d)
