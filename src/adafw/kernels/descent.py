"""Coordinate descent on a quadratic model under a bound on the sum of the weights' sizes.

The model is <g, w - x> + <dz, B dz> / 2 with dz = A (w - x), B = diag(bends). A multiplier stands
for the bound: it follows sum |w| = radius by Newton's method on diag(A^T B A) alone,
multiplier += share (sum |w| - radius) / sum_{w_j != 0} 1 / diagonal_j, and does so continuously
during an epoch, so that every coordinate sees what those before it did. Coordinates are visited in
a new random order in each epoch: any fixed order, forth or back, converges up to ten times slower
on text.
"""

from typing import NamedTuple

import numpy as np

from adafw.kernels.jit import jit
from adafw.kernels.parts import Csr
from adafw.kernels.shuffle import shuffle
from adafw.kernels.working_set import ONE, along
from adafw.typing import Array

#: The multiplier moves by no more than this factor in an epoch.
LEAP = 4.0
#: Share of the Newton step of the multiplier that is taken.
SHARE = 0.7
#: A weight grows by no more than this times radius / (number of weights) in an epoch: where the
#: model is nearly flat it would cross the set, and all others would have to make room.
REACH = 3.0
#: An epoch may end the descent only if sum |w| is this close to the radius.
NEAR = 0.02


class Model(NamedTuple):
    """Columns of A (values, rows, starts), which of them, and the model on them.

    `mixed` and `total` belong to an intercept: mixed_j = sum_i bends_i a_ij and total = sum bends
    take it out of the model; total = 0 means that there is none. `slope` is its derivative.
    """

    columns: Csr
    chosen: Array
    g: Array
    bends: Array
    diagonal: Array
    mixed: Array
    total: float
    slope: float


class Bound(NamedTuple):
    """sum |w| <= radius, all w >= 0 unless `signed`; `binding` if the multiplier is to follow."""

    radius: float
    signed: bool
    binding: bool


@jit
def diagonals(columns: Csr, chosen: Array, bends: Array, diagonal: Array, mixed: Array) -> None:
    """diagonal_j = sum_i bends_i a_ij^2 and mixed_j = sum_i bends_i a_ij of the chosen columns."""
    values, rows, starts = columns
    for a in range(chosen.size):
        square = plain = 0.0
        for k in range(starts[chosen[a]], starts[chosen[a] + ONE]):
            scaled = bends[rows[k]] * values[k]
            plain += scaled
            square += scaled * values[k]
        diagonal[a], mixed[a] = square, plain


@jit
def add_columns(columns: Csr, chosen: Array, weights: Array, out: Array) -> None:
    """out += sum of weights_a times the chosen column a."""
    values, rows, starts = columns
    for a in range(chosen.size):
        if weights[a] != 0.0:
            for k in range(starts[chosen[a]], starts[chosen[a] + ONE]):
                out[rows[k]] += weights[a] * values[k]


@jit
def _used(order: Array, count: int, w: Array) -> float:
    """How many weights are not 0."""
    total = 0.0
    for q in range(count):
        total += 1.0 if w[order[q]] != 0.0 else 0.0
    return total


@jit
def _response(order: Array, count: int, w: Array, diagonal: Array) -> float:
    """How much sum |w| falls for each unit of the multiplier, by the diagonal."""
    total = 0.0
    for q in range(count):
        if w[order[q]] != 0.0:
            total += 1.0 / diagonal[order[q]]
    return total


@jit
def descend(
    model: Model, bound: Bound, w: Array, image: Array, multiplier: float, epochs: int,
    tolerance: float, seed: int,
) -> tuple[float, float, float, int]:  # fmt: skip
    """At most so many epochs from w, in place; returns (multiplier, first, last, visits).

    image = B dz follows w: one array is read at random for each slope, not two. `first` and `last`
    are violations, the sums of |subgradients| met in those epochs; at most `tolerance` ends it.
    Coordinates at 0 that are safely within the multiplier are left out (Yuan and others 2012) until
    the others are done.
    """
    columns, chosen, g, bends, diagonal, mixed, total, slope = model
    values, rows, starts = columns
    size = chosen.size
    order = np.arange(size).astype(np.uint32)
    count, whole, margin, visits = size, True, 0.0, 0
    word = np.uint64(seed)
    norm = slide = start = violation = 0.0
    for a in range(size):
        norm += abs(w[a])
    shift = -slope / total if total > 0 else 0.0  # of the intercept, for the image at hand
    for epoch in range(epochs):
        word = shuffle(order, count, word)
        rate = 0.0
        if bound.binding:
            response = _response(order, count, w, diagonal)
            rate = SHARE / response if response > 0 else 0.0
        reach = REACH * bound.radius / max(1.0, _used(order, count, w))
        violation, largest, kept = 0.0, 0.0, 0
        for q in range(count):
            a = order[q]
            first, last = starts[chosen[a]], starts[chosen[a] + ONE]
            slope_a = g[a] + mixed[a] * shift + along(values, rows, first, last, image)
            level = multiplier + rate * (norm - bound.radius)
            level = min(max(level, multiplier / LEAP), multiplier * LEAP)
            old = w[a]
            if old == 0.0:
                out = (abs(slope_a) if bound.signed else -slope_a) - level
                if out < -margin:
                    continue  # not kept
                miss = max(out, 0.0)
            else:
                miss = abs(slope_a + (level if old > 0 else -level))
            order[kept] = a
            kept += 1
            violation += miss
            largest = max(largest, miss)
            target = diagonal[a] * old - slope_a
            new = 0.0
            if target > level:
                new = min((target - level) / diagonal[a], old + reach)
            elif bound.signed and target < -level:
                new = max((target + level) / diagonal[a], old - reach)
            change = new - old
            if change == 0.0:
                continue
            w[a] = new
            norm += abs(new) - abs(old)
            for k in range(first, last):
                image[rows[k]] += change * bends[rows[k]] * values[k]
            if total > 0:
                slide += change * mixed[a]
                shift = -(slope + slide) / total
        visits += count
        start = violation if epoch == 0 else start
        if bound.binding:
            level = multiplier + rate * (norm - bound.radius)
            multiplier = min(max(level, multiplier / LEAP), multiplier * LEAP)
        close = not bound.binding or abs(norm - bound.radius) <= NEAR * bound.radius
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
    return multiplier, start, violation, visits
