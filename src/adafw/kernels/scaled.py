"""Coordinate descent as in `descent`, on a copy of the columns that takes fewer loads to read.

The copy holds columns of sqrt(B) A in single precision, in units in which no entry is above 1: a
slope takes three loads an entry, a change three and a store. Slopes at the start come from outside
in double precision, so that only the change of the model, not its beginning, is rounded.
"""

from typing import NamedTuple

import numpy as np

from adafw.kernels.descent import LEAP, REACH, Bound
from adafw.kernels.descent import NEAR as CLOSE
from adafw.kernels.jit import jit
from adafw.kernels.shuffle import shuffle
from adafw.kernels.working_set import FOUR, ONE, THREE, TWO, Row
from adafw.typing import Array

#: Share of the Newton step of the multiplier that is taken within an epoch, as the sum of sizes
#: moves, and between two. The first alone, which makes of a missing sum m no less than
#: m / (1 + share), would be the slowest part of all.
SHARE, JUMP = 0.3, 0.8


class SingleColumns(NamedTuple):
    """Some columns, one after the other: entries place[a] to last[a] - 1 are those of column a.

    Entry k of it is in row rows[k + ahead[a]], which may wrap around. The image of a change of w_a
    is change * step times the column; <column, image> * unit is what it adds to a slope.
    """

    values: Array
    rows: Array
    ahead: Array
    place: Array
    last: Array
    unit: float
    step: float


class ScaledModel(NamedTuple):
    """As `descent.Model`, on scaled columns."""

    columns: SingleColumns
    g: Array
    diagonal: Array
    mixed: Array
    total: float
    slope: float


@jit
def beside(values: Array, rows: Array, first: Row, last: Row, ahead: Row, p: Array) -> float:
    """<the column whose entries these are, p>; four sums, so that none waits for the last."""
    a = b = c = d = values.dtype.type(0)
    k = first
    while k + THREE < last:
        a += values[k] * p[rows[k + ahead]]
        b += values[k + ONE] * p[rows[k + ONE + ahead]]
        c += values[k + TWO] * p[rows[k + TWO + ahead]]
        d += values[k + THREE] * p[rows[k + THREE + ahead]]
        k += FOUR
    while k < last:
        a += values[k] * p[rows[k + ahead]]
        k += ONE
    return float((a + b) + (c + d))


@jit
def _in_use(order: Array, count: int, w: Array, diagonal: Array) -> tuple[float, float]:
    """(how many weights are not 0, how much sum |w| falls for each unit of the multiplier)."""
    used = response = 0.0
    for q in range(count):
        if w[order[q]] != 0.0:
            used += 1.0
            response += 1.0 / diagonal[order[q]]
    return used, response


@jit
def _bounded(level: float, multiplier: float) -> float:
    return min(max(level, multiplier / LEAP), multiplier * LEAP)


@jit
def descend(
    model: ScaledModel, bound: Bound, w: Array, image: Array, multiplier: float, epochs: int,
    tolerance: float, seed: int, margin: float,
) -> tuple[float, float, float]:  # fmt: skip
    """At most so many epochs from w, in place; returns (multiplier, first, last) as `descent` does.

    In the first epoch coordinates at 0 are left out that are within the multiplier by more than
    `margin`.
    """
    columns, g, diagonal, mixed, total, slope = model
    values, rows, ahead, place, ends, unit, step = columns
    size = g.size
    order = np.arange(size).astype(np.uint32)
    count, whole = size, True
    word = np.uint64(seed)
    norm = slide = start = violation = 0.0
    for a in range(size):
        norm += abs(w[a])
    shift = -slope / total if total > 0 else 0.0  # of the intercept, for the image at hand
    for epoch in range(epochs):
        word = shuffle(order, count, word)
        used, response = _in_use(order, count, w, diagonal)
        rate = 0.0
        if bound.binding and response > 0:
            rate = SHARE / response
            if epoch:
                missing = JUMP * (norm - bound.radius) / response
                multiplier = _bounded(multiplier + missing, multiplier)
        reach = REACH * bound.radius / max(1.0, used)
        violation, largest, kept = 0.0, 0.0, 0
        for q in range(count):
            a = order[q]
            first, last, further = place[a], ends[a], ahead[a]
            moved = unit * beside(values, rows, first, last, further, image)
            slope_a = g[a] + mixed[a] * shift + moved
            level = _bounded(multiplier + rate * (norm - bound.radius), multiplier)
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
            scaled = values.dtype.type(change * step)
            for k in range(first, last):
                image[rows[k + further]] += scaled * values[k]
            if total > 0:
                slide += change * mixed[a]
                shift = -(slope + slide) / total
        start = violation if epoch == 0 else start
        if bound.binding:
            multiplier = _bounded(multiplier + rate * (norm - bound.radius), multiplier)
        close = not bound.binding or abs(norm - bound.radius) <= CLOSE * bound.radius
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
    return multiplier, start, violation
