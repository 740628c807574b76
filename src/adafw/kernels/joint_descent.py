"""Coordinate descent on the quadratic model of several outputs that share a bound on their size.

The second derivative of a sample is w_i (diag(s_i) - s_i s_i^T), as of softmax, or w_i diag(s_i).
With the mean move r_i = <s_i, dz_i> of a sample kept beside its moves dz_ic, the slope of the
coefficient (j, c) is g_jc + sum_i a_ij w_i s_ic (dz_ic - r_i): O(entries of column j), as cheap
as in a model of one output, though the whole second derivative is in it. The multiplier of the
bound follows as in `kernels.descent`, and so do random orders and shrinking.
"""

from typing import NamedTuple

import numpy as np

from adafw.kernels.jit import jit
from adafw.kernels.parts import Csr
from adafw.kernels.shuffle import shuffle
from adafw.typing import Array

#: As in `kernels.descent`: leap and share of the multiplier, reach of a weight, nearness of a norm.
LEAP, SHARE, REACH, NEAR = 4.0, 0.7, 3.0, 0.02
ONE = np.uint64(1)


class JointModel(NamedTuple):
    """Columns of A, the chosen coefficients, slopes g there, and the second derivatives.

    `s` and the moves have one row an output, one column a sample. `settle`, k x k, is the inverse
    of the second derivative in the intercepts; of size 0 if there are none.
    """

    columns: Csr
    features: Array
    outputs: Array
    g: Array
    s: Array
    weights: Array
    diagonal: Array
    coupled: bool
    settle: Array


@jit
def diagonals(
    columns: Csr,
    features: Array,
    outputs: Array,
    s: Array,
    weights: Array,
    coupled: bool,
    out: Array,
) -> None:
    """Second derivatives in the chosen coefficients."""
    values, rows, starts = columns
    for a in range(features.size):
        sc = s[outputs[a]]
        total = 0.0
        for k in range(starts[features[a]], starts[features[a] + ONE]):
            i = rows[k]
            bend = sc[i] * (1.0 - sc[i]) if coupled else sc[i]
            total += weights[i] * bend * values[k] * values[k]
        out[a] = total


@jit
def moves(columns: Csr, features: Array, outputs: Array, w: Array, dz: Array) -> None:
    """dz += what the chosen coefficients w move."""
    values, rows, starts = columns
    for a in range(features.size):
        if w[a] != 0.0:
            move = dz[outputs[a]]
            for k in range(starts[features[a]], starts[features[a] + ONE]):
                move[rows[k]] += w[a] * values[k]


@jit
def mean_moves(s: Array, dz: Array, mean: Array) -> None:
    """mean_i = <s_i, dz_i>."""
    mean[:] = 0.0
    for c in range(dz.shape[0]):
        sc, move = s[c], dz[c]
        for i in range(mean.size):
            mean[i] += sc[i] * move[i]


@jit
def settle(model: JointModel, dz: Array, mean: Array, shift: Array) -> None:
    """Moves the intercepts to where the model is least in them; `shift` counts how far."""
    k, m = dz.shape
    slope = np.zeros(k)
    for c in range(k):
        sc, move = model.s[c], dz[c]
        total = 0.0
        for i in range(m):
            total += model.weights[i] * sc[i] * (move[i] - mean[i])
        slope[c] = total
    for c in range(k):
        db = 0.0
        for e in range(k):
            db -= model.settle[c, e] * slope[e]
        shift[c] += db
        sc, move = model.s[c], dz[c]
        for i in range(m):
            move[i] += db
        if model.coupled:
            for i in range(m):
                mean[i] += sc[i] * db


@jit
def _slope(model: JointModel, a: int, dz: Array, mean: Array) -> float:
    values, rows, starts = model.columns
    c, j = model.outputs[a], model.features[a]
    sc, move = model.s[c], dz[c]
    total = model.g[a]
    for k in range(starts[j], starts[j + ONE]):
        i = rows[k]
        total += values[k] * model.weights[i] * sc[i] * (move[i] - mean[i])
    return total


@jit
def _shift(model: JointModel, a: int, change: float, dz: Array, mean: Array) -> None:
    values, rows, starts = model.columns
    c, j = model.outputs[a], model.features[a]
    sc, move = model.s[c], dz[c]
    for k in range(starts[j], starts[j + ONE]):
        i, step = rows[k], change * values[k]
        move[i] += step
        if model.coupled:
            mean[i] += sc[i] * step


@jit
def slopes(model: JointModel, dz: Array, mean: Array, out: Array) -> None:
    """Those of the model in the chosen coefficients, where it has moved by dz."""
    for a in range(out.size):
        out[a] = _slope(model, a, dz, mean)


@jit
def descend(
    model: JointModel, radius: float, binding: bool, w: Array, dz: Array, mean: Array, shift: Array,
    multiplier: float, epochs: int, tolerance: float, seed: int,
) -> tuple[float, float]:  # fmt: skip
    """At most so many epochs from w, in place; returns (multiplier, violation).

    sum |w| <= radius is held by the multiplier if `binding`; else that is a fixed price. The
    violation is the sum of |subgradients| met in the last epoch; at most `tolerance` ends it.
    """
    size = model.features.size
    order = np.arange(size).astype(np.uint32)
    count, whole, margin, violation = size, True, 0.0, 0.0
    word, norm = np.uint64(seed), np.abs(w).sum()
    for _ in range(epochs):
        word = shuffle(order, count, word)
        used, response = 0.0, 0.0
        for q in range(count):
            if w[order[q]] != 0.0:
                used += 1.0
                response += 1.0 / model.diagonal[order[q]]
        rate = SHARE / response if binding and response > 0 else 0.0
        reach = REACH * radius / max(1.0, used)
        violation, largest, kept = 0.0, 0.0, 0
        for q in range(count):
            a = order[q]
            slope = _slope(model, a, dz, mean)
            level = multiplier + rate * (norm - radius)
            level = min(max(level, multiplier / LEAP), multiplier * LEAP)
            old, bend = w[a], model.diagonal[a]
            if old == 0.0:
                out = abs(slope) - level
                if out < -margin:
                    continue  # not kept
                miss = max(out, 0.0)
            else:
                miss = abs(slope + (level if old > 0 else -level))
            order[kept] = a
            kept += 1
            violation += miss
            largest = max(largest, miss)
            target, new = bend * old - slope, 0.0
            if target > level:
                new = min((target - level) / bend, old + reach)
            elif target < -level:
                new = max((target + level) / bend, old - reach)
            if new != old:
                w[a] = new
                norm += abs(new) - abs(old)
                _shift(model, a, new - old, dz, mean)
        if model.settle.size:
            settle(model, dz, mean, shift)
        if binding:
            level = multiplier + rate * (norm - radius)
            multiplier = min(max(level, multiplier / LEAP), multiplier * LEAP)
        close = not binding or abs(norm - radius) <= NEAR * radius
        if violation <= tolerance and close:
            if whole:
                break
            whole = True
        else:
            whole = kept == size
        # Left out until the others are done; then all are looked at once more.
        count, margin = (kept, largest) if not whole or kept == size else (size, np.inf)
        if count == size and kept < size:
            for q in range(size):
                order[q] = q
    return multiplier, violation
