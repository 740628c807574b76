"""Sweeps of exact coordinate steps on a quadratic model over a box.

The model is <g, d> + <d, H d> / 2 with lower <= d <= upper. A sweep visits coordinates in random
order, which converges up to ten times faster than a fixed one; the words of its generator are
part of the caller's state.
"""

import numpy as np

from adafw.kernels.jit import jit
from adafw.kernels.parts import Csr
from adafw.kernels.rows import ONE
from adafw.typing import Array


@jit
def columns_sweep(
    columns: Csr, bends: Array, mixed: Array, total: float, g: Array, diagonal: Array, lower: Array,
    upper: Array, d: Array, image: Array, order: Array, count: int,
) -> tuple[float, int]:  # fmt: skip
    """One visit to each of order[:count]; (gap met on the way, how many to visit next).

    H = A^T diag(bends) A - mixed mixed^T / total, A given by its columns; the second term, of an
    intercept minimised out, is left out if total is 0. `image` is bends * (A d), kept up to date.
    Coordinates that a bound holds are moved behind the ones to visit next.
    """
    values, rows, starts = columns
    along = 0.0
    if total > 0:
        for i in range(image.size):
            along += image[i]
    gap, kept = 0.0, 0
    for k in range(count):
        j = order[k]
        slope = g[j]
        start, end = starts[j], starts[j + ONE]
        for p in range(start, end):
            slope += values[p] * image[rows[p]]
        if total > 0:
            slope -= mixed[j] * (along / total)
        room = d[j] - (lower[j] if slope > 0 else upper[j])
        gap += slope * room
        if room == 0 and slope != 0:
            continue
        order[k] = order[kept]
        order[kept] = j
        kept += 1
        if not diagonal[j] > 0:
            continue
        step = min(max(d[j] - slope / diagonal[j], lower[j]), upper[j]) - d[j]
        if step != 0:
            d[j] += step
            for p in range(start, end):
                image[rows[p]] += bends[rows[p]] * values[p] * step
            if total > 0:
                along += mixed[j] * step
    return gap, kept


@jit
def matrix_sweep(
    matrix: Array, lower: Array, upper: Array, d: Array, slopes: Array, order: Array
) -> float:
    """One visit to each coordinate in `order`; the gap met on the way. `slopes` = g + H d, kept."""
    gap = 0.0
    for k in range(order.size):
        j = order[k]
        slope, bend = slopes[j], matrix[j, j]
        gap += slope * (d[j] - (lower[j] if slope > 0 else upper[j]))
        end = d[j] - slope / bend if bend > 0 else d[j]
        end = min(max(end, lower[j]), upper[j])
        if end != d[j]:
            step = end - d[j]
            d[j] = end
            for i in range(slopes.size):
                slopes[i] += step * matrix[j, i]
    return gap


@jit
def curvatures(columns: Csr, bends: Array, mixed: Array, total: float) -> Array:
    """The diagonal of A^T diag(bends) A - mixed mixed^T / total."""
    values, rows, starts = columns
    diagonal = np.empty(starts.size - 1, bends.dtype)
    for j in range(np.uint64(0), np.uint64(diagonal.size)):
        bend = 0.0
        for p in range(starts[j], starts[j + ONE]):
            bend += bends[rows[p]] * values[p] ** 2
        if total > 0:
            bend -= mixed[j] ** 2 / total
        diagonal[j] = bend
    return diagonal
