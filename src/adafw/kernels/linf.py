"""Steps on the linf ball, entry by entry."""

import math
from typing import Any

import numpy as np

from adafw.kernels.estimates import estimate
from adafw.kernels.jit import jit
from adafw.kernels.l1 import ADAPTIVE, FRANK_WOLFE

#: Entries summed side by side; the compiler may not reorder a single sum.
LANES = 64


@jit
def model(g: Any, h: Any, x: Any, y: Any, d: Any, eta: float, radius: float) -> tuple[float, float]:
    """Lines 6 and 7: d = lmo(q) - y for q = g + h (y - x) / eta; returns -<q, d> and <d, h d>."""
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
    g: Any, h: Any, x: Any, y: Any, d: Any, radius: float, eta: float, cap: float, inner_steps: int
) -> None:
    """Lines 4 to 11 of Template 3, x in place."""
    for j in range(x.size):
        y[j] = x[j]
    for _ in range(inner_steps):
        slope, curvature = model(g, h, x, y, d, eta, radius)
        if not (slope > 0 and curvature > 0):
            break  # the next inner step would see the same y
        gamma = min(eta * (slope / curvature), cap)
        for j in range(y.size):
            y[j] += gamma * d[j]
    for j in range(x.size):
        x[j] = y[j]


@jit
def look(g: Any) -> tuple[bool, bool]:
    """(whether g is finite in every entry, whether it is not 0 in one)."""
    infinite = moves = False
    for j in range(g.size):
        infinite |= not (abs(g[j]) < np.inf)
        moves |= g[j] != 0
    return not infinite, moves


@jit
def run(
    kind: int, terms: Any, batches: Any, ends: Any, memory: Any, base: Any, g: Any,
    sum_squares: Any, x: Any, radius: float, step: int, rates: Any, caps: Any, inner_steps: int,
    offset: float,
) -> tuple[int, int]:  # fmt: skip
    """Iterations with the batches that end at ends[1:]; rates are eta_t, or gamma_t if plain.

    Returns the iterations done (fewer than asked for if g or h became infinite or NaN) and the
    projections made.
    """
    h, y, d = np.empty(g.size), np.empty(g.size), np.empty(g.size)
    projections = 0
    for t in range(ends.size - 1):
        estimate(kind, terms, batches, ends[t], ends[t + 1], x, memory, base, g)
        finite, moves = look(g)
        if not finite:
            return t, projections
        if step != FRANK_WOLFE:
            infinite = False
            for j in range(g.size):
                sum_squares[j] += g[j] * g[j]
                h[j] = offset + math.sqrt(sum_squares[j])
                infinite |= h[j] == np.inf
            if infinite:
                return t, projections
        if step == ADAPTIVE:
            adaptive_step(g, h, x, y, d, radius, rates[t], caps[t], inner_steps)
        elif moves:
            if step == FRANK_WOLFE:
                for j in range(x.size):
                    x[j] += rates[t] * (-radius * np.sign(g[j]) - x[j])
            else:
                projections += 1
                for j in range(x.size):
                    x[j] = min(radius, max(-radius, x[j] - rates[t] * g[j] / h[j]))
    return ends.size - 1, projections
