"""Steps on the linf ball, entry by entry."""

import math

import numpy as np

from adafw.kernels.codes import ADAPTIVE, FRANK_WOLFE
from adafw.kernels.estimates import estimate
from adafw.kernels.jit import jit
from adafw.kernels.parts import Batches, Estimate, Point, Steps, Terms
from adafw.typing import Array

#: Entries summed side by side; the compiler may not reorder a single sum.
LANES = 64


@jit
def model(g: Array, h: Array, point: Point, y: Array, d: Array, eta: float) -> tuple[float, float]:
    """Lines 6 and 7: d = lmo(q) - y for q = g + h (y - x) / eta; returns -<q, d> and <d, h d>."""
    x, radius = point
    slopes, curvatures = np.zeros(LANES), np.zeros(LANES)
    for first in range(0, g.size, LANES):
        part = slice(first, first + LANES)
        gs, hs, xs, ys, ds = g[part], h[part], x[part], y[part], d[part]
        for j in range(gs.size):
            q = gs[j] + hs[j] * (ys[j] - xs[j]) / eta
            ds[j] = (-radius if q > 0 else (radius if q < 0 else 0.0)) - ys[j]
            slopes[j] -= q * ds[j]
            curvatures[j] += ds[j] * hs[j] * ds[j]
    return slopes.sum(), curvatures.sum()


@jit
def adaptive_step(
    g: Array, h: Array, steps: Steps, t: int, point: Point, y: Array, d: Array
) -> None:
    """Lines 4 to 11 of Template 3, x in place; y and d are room for as many entries."""
    x, eta, bound = point.x, steps.sizes[t], steps.bounds[t]
    for j in range(x.size):
        y[j] = x[j]
    for _ in range(steps.inner_steps):
        slope, curvature = model(g, h, point, y, d, eta)
        if not (slope > 0 and curvature > 0):
            break  # the next inner step would see the same y
        gamma = min(eta * (slope / curvature), bound)
        for j in range(y.size):
            y[j] += gamma * d[j]
    for j in range(x.size):
        x[j] = y[j]


@jit
def look(g: Array) -> tuple[bool, bool]:
    """(whether g is finite in every entry, whether it is not 0 in one)."""
    infinite = moves = False
    for j in range(g.size):
        infinite |= not (abs(g[j]) < np.inf)
        moves |= g[j] != 0
    return not infinite, moves


@jit
def run(
    terms: Terms, batches: Batches, into: Estimate, steps: Steps, point: Point
) -> tuple[int, int]:
    """One iteration for each batch.

    Returns the iterations done (fewer than asked for if g or h became infinite or NaN) and the
    projections made.
    """
    g, (x, radius) = into.g, point
    kind, sizes, _, _, offset, sum_squares = steps
    h, y, d = np.empty(g.size), np.empty(g.size), np.empty(g.size)
    count, projections = batches.ends.size - 1, 0
    for t in range(count):
        estimate(terms, batches, t, x, into)
        finite, moves = look(g)
        if not finite:
            return t, projections
        if kind != FRANK_WOLFE:
            infinite = False
            for j in range(g.size):
                sum_squares[j] += g[j] * g[j]
                h[j] = offset + math.sqrt(sum_squares[j])
                infinite |= h[j] == np.inf
            if infinite:
                return t, projections
        if kind == ADAPTIVE:
            adaptive_step(g, h, steps, t, point, y, d)
        elif moves:
            if kind == FRANK_WOLFE:
                for j in range(x.size):
                    x[j] += sizes[t] * (-radius * np.sign(g[j]) - x[j])
            else:
                projections += 1
                for j in range(x.size):
                    x[j] = min(radius, max(-radius, x[j] - sizes[t] * g[j] / h[j]))
    return count, projections
