"""Newton steps whose models coordinate descent solves roughly: several in one call.

Steps are on chosen columns of a sparse matrix under a bound on the sum of the weights' sizes. One
costs a pass for its slopes, another one where the curvature has moved, and two for each epoch.
Between them f + multiplier sum |w| is what has to fall, and sum |w| may miss the radius: to take
the weights to it after every step would undo a part of what an epoch gains. The set and the last
digits of the predictions are seen to once, in the end.
"""

import math
from typing import NamedTuple

import numpy as np

from adafw.kernels.curves import curves
from adafw.kernels.descent import Bound, add_columns
from adafw.kernels.jit import jit
from adafw.kernels.parts import Csr
from adafw.kernels.scaled import ScaledModel, SingleColumns, descend
from adafw.kernels.vectors import peak_of, sum_of
from adafw.kernels.working_set import ONE, along
from adafw.typing import Array

#: Share of the mean curvature that columns without any are given in a model.
FLAT = 1e-8
#: Share of the radius by which sum |w| may miss it to be taken to it.
NEAR = 0.1
#: A step that has to be cut below this is not taken; the share of the descent that the slope
#: promises which a step must reach (Armijo).
SHORT, ARMIJO = 0.1, 1e-4
#: Where all columns may join: those of weight 0 are left out of the first model whose slope is
#: below this share of the price, and of the others below this share of the multiplier.
FIRST, DROP = 0.8, 0.7
#: A model's curvature is kept while bends have moved by no more than this share in all; every so
#: many of them are looked at.
STALE, SOME = 0.02, 5
#: Rows that bend less, as a share of the most, tell predictions by no image in single precision.
FAINT = 1e-24
EPS = float(np.finfo(np.float64).eps)


class Scored(NamedTuple):
    """The loss's number, targets, weights (empty if all are 1)."""

    code: int
    y: Array
    weights: Array


class Setting(NamedTuple):
    """sum |w| <= radius, all w >= 0 unless `signed`.

    Whether that binds, what weight costs as long as it does not, and the last multiplier, 0 if none
    is known. `free`: an intercept is to be taken out of models. No entry of the columns is above
    `largest`; `all`: they are all there are, and most of them are not needed.
    """

    radius: float
    signed: bool
    binding: bool
    price: float
    multiplier: float
    free: bool
    largest: float
    all: bool


class Rounds(NamedTuple):
    """How many models at most, epochs before the set binds and where it does, the share of its
    violation that ends a descent and that of the first one's that ends all, seed of the orders."""

    models: int
    first: int
    epochs: int
    enough: float
    settled: float
    seed: int


class Desk(NamedTuple):
    """The model on the columns in use, which `live` names: as many entries as were chosen."""

    live: Array
    w: Array
    g: Array
    diagonal: Array
    mixed: Array
    ahead: Array
    place: Array
    last: Array
    values: Array
    root: Array


@jit
def _desk(columns: Csr, chosen: Array, m: int) -> Desk:
    starts, size, count = columns[2], chosen.size, np.uint64(0)
    for a in range(size):
        count += starts[chosen[a] + ONE] - starts[chosen[a]]
    numbers, places = np.empty((4, size)), np.empty((3, size), np.uint64)
    return Desk(
        np.arange(size), numbers[0], numbers[1], numbers[2], numbers[3], places[0], places[1],
        places[2], np.empty(count, np.float32), np.empty(m),
    )  # fmt: skip


@jit
def _size(w: Array) -> float:
    total = 0.0
    for a in range(w.size):
        total += abs(w[a])
    return total


@jit
def _moved(bends: Array, known: Array) -> bool:
    total = change = 0.0
    for i in range(0, bends.size, SOME):
        total += known[i]
        change += abs(bends[i] - known[i])
    return change > STALE * total


@jit
def _violated(g: Array, w: Array, multiplier: float, signed: bool) -> float:
    """The sum of |subgradients|."""
    total = 0.0
    for a in range(w.size):
        if w[a] == 0.0:
            total += max((abs(g[a]) if signed else -g[a]) - multiplier, 0.0)
        else:
            total += abs(g[a] + (multiplier if w[a] > 0 else -multiplier))
    return total


@jit
def _begun(g: Array, w: Array, at: Setting) -> float:
    """The multiplier to begin with."""
    if at.multiplier > 0.0:
        return at.multiplier
    own = steep = 0.0
    for a in range(w.size):
        own -= g[a] * w[a] / at.radius
        steep = max(steep, abs(g[a]))
    return max(max(at.price, 1e-3 * steep), own if at.binding else 0.0)


@jit
def _slopes(columns: Csr, chosen: Array, desk: Desk, w: Array, slopes: Array) -> None:
    """Weights and slopes of the columns in use, anew."""
    values, rows, starts = columns
    for q in range(desk.live.size):
        a = desk.live[q]
        first, last = starts[chosen[a]], starts[chosen[a] + ONE]
        desk.w[q], desk.g[q] = w[a], along(values, rows, first, last, slopes)


@jit
def _scaled(
    columns: Csr, chosen: Array, desk: Desk, live: Array, w: Array, g: Array, slopes: Array,
    signed: bool, known: bool, least: float, share: float, total: float,
) -> int:  # fmt: skip
    """Puts the live columns on the desk, but those of weight 0 and slopes below `least`.

    Returns how many there are. Slopes are g if that is known.
    """
    values, rows, starts = columns
    count, used, mean = 0, np.uint64(0), 0.0
    for q in range(live.size):
        a = live[q]
        first, last = starts[chosen[a]], starts[chosen[a] + ONE]
        slope = g[a] if known else along(values, rows, first, last, slopes)
        if w[a] == 0.0 and (abs(slope) if signed else -slope) < least:
            continue
        desk.live[count], desk.w[count], desk.g[count] = a, w[a], slope
        desk.ahead[count], desk.place[count] = first - used, used
        square = plain = 0.0
        for k in range(first, last):
            root = desk.root[rows[k]]
            each = values[k] * root
            desk.values[used] = each
            used += ONE
            plain += each * root
            square += each * each
        desk.last[count] = used
        diagonal, mixed = square / share**2, plain / share**2
        if total > 0:
            desk.mixed[count] = mixed
            diagonal = max(diagonal - mixed**2 / total, 1e-14 * diagonal)
        else:
            desk.mixed[count] = 0.0
        desk.diagonal[count] = diagonal
        mean += diagonal
        count += 1
    for a in range(count):
        desk.diagonal[a] += FLAT * mean / count + 1e-300
    return count


@jit
def _placed(w: Array, diagonal: Array, radius: float, binding: bool) -> None:
    """w in the set, in place: if it is near the sphere and that binds, by the shortest way in the
    metric of the diagonal, signs kept. A plain scaling is far stiffer."""
    norm = give = 0.0
    for a in range(w.size):
        if w[a] != 0.0:
            norm += abs(w[a])
            give += 1.0 / diagonal[a]
    if binding and give > 0.0 and abs(norm - radius) <= NEAR * radius:
        level = (radius - norm) / give
        for a in range(w.size):
            if w[a] > 0.0:
                w[a] = max(w[a] + level / diagonal[a], 0.0)
            elif w[a] < 0.0:
                w[a] = min(w[a] - level / diagonal[a], 0.0)
        norm = _size(w)
    if norm > radius or (binding and norm > (1 - NEAR) * radius):
        for a in range(w.size):
            w[a] *= radius / norm


@jit
def _searched(
    scored: Scored, z: Array, dz: Array, now: float, promised: float, toll: float, new_z: Array,
    slopes: Array, bends: Array,
) -> tuple[float, float]:  # fmt: skip
    """(step size, 0 if it would be short; value there): f + toll falls enough."""
    t = 1.0
    while promised < 0.0 and t >= SHORT:
        for i in range(z.size):
            new_z[i] = z[i] + t * dz[i]
        new = curves(scored.code, new_z, scored.y, scored.weights, slopes, bends)
        cost = new + t * toll
        if cost <= now + ARMIJO * t * promised + 4 * EPS * abs(now):
            return t, new
        bend = cost - now - t * promised
        best = -promised * t * t / (2 * bend) if bend > 0 and math.isfinite(bend) else 0.0
        t = min(max(best, 0.1 * t), 0.5 * t)
    return 0.0, now


@jit
def brief(
    scored: Scored, columns: Csr, chosen: Array, at: Setting, rounds: Rounds, w: Array, g: Array,
    value: float, z: Array, slopes: Array, bends: Array,
) -> tuple[int, bool, float, float, float, Array, Array, Array]:  # fmt: skip
    """Steps from w, in place, whose gradient is g, and where predictions z have these curves.

    Returns (how many, 0 if none was of use; whether the set binds, the share of the violation that
    an epoch left, the multiplier; value, predictions, slopes and bends in the end).
    """
    m, size = z.size, chosen.size
    desk, begin = _desk(columns, chosen, m), w.copy()
    image, dz, known = np.empty(m, np.float32), np.empty(m), np.empty(m)
    here, there = (z.copy(), slopes.copy(), bends.copy()), (np.empty(m), np.empty(m), np.empty(m))
    binding, multiplier, now, shifted, faint = at.binding, at.price, value, 0.0, False
    done = epochs = 0
    at_first = begun = last = share = total = 0.0
    count = size
    for k in range(rounds.models):
        again = at.all and k == 1
        if k == 0 or again or _moved(here[2], known):
            top = peak_of(here[2])
            share = 1.0 / (at.largest * math.sqrt(top)) if top > 0 and at.largest > 0 else 0.0
            if not (share > 0.0 and math.isfinite(share)):
                break
            total, faint = sum_of(here[2]) if at.free else 0.0, False
            for i in range(m):
                desk.root[i] = math.sqrt(here[2][i]) * share
                faint |= here[2][i] < FAINT * top
            live = np.arange(size) if again else desk.live[:count]
            least = DROP * multiplier if k else FIRST * at.price if at.all else 0.0
            count = _scaled(
                columns, chosen, desk, live, w, g, here[1], at.signed, k == 0,
                least, share, total,
            )  # fmt: skip
            known[:] = here[2]
            if count == 0:
                break
        else:
            used = Desk(
                desk.live[:count],
                desk.w,
                desk.g,
                desk.diagonal,
                desk.mixed,
                desk.ahead,
                desk.place,
                desk.last,
                desk.values,
                desk.root,
            )
            _slopes(columns, chosen, used, w, here[1])
        start, slope_of = desk.w[:count], desk.g[:count]
        v = start.copy()
        if k == 0:
            multiplier = _begun(slope_of, v, at)
        violation = _violated(slope_of, v, multiplier if binding else at.price, at.signed)
        if k == 0:
            at_first = violation
        elif violation <= rounds.settled * at_first:
            break
        held = SingleColumns(
            desk.values,
            columns[1],
            desk.ahead[:count],
            desk.place[:count],
            desk.last[:count],
            at.radius / share**2,
            1.0 / at.radius,
        )
        slope = sum_of(here[1]) if at.free else 0.0
        model = ScaledModel(held, slope_of, desk.diagonal[:count], desk.mixed[:count], total, slope)
        image[:] = 0
        first, charge, margin = 0.0, at.price, np.inf if at.all and k == 0 else 0.0
        if not binding:
            _, first, last = descend(
                model,
                Bound(at.radius, at.signed, False),
                v,
                image,
                at.price,
                rounds.first,
                rounds.enough * violation,
                rounds.seed + k,
                margin,
            )
            epochs += rounds.first
            binding = _size(v) > at.radius
            if binding:
                violation = _violated(slope_of, start, multiplier, at.signed)
        if binding:
            multiplier, first, last = descend(
                model,
                Bound(at.radius, at.signed, True),
                v,
                image,
                multiplier,
                rounds.epochs,
                rounds.enough * violation,
                rounds.seed + k,
                margin,
            )
            epochs += rounds.epochs
            charge = multiplier
        begun = first if k == 0 else begun
        toll = charge * (_size(v) - _size(start))
        promised, follow = toll, slope
        for a in range(count):
            promised += slope_of[a] * (v[a] - start[a])
            follow += desk.mixed[a] * (v[a] - start[a])
        shift = -follow / total if total > 0 else 0.0
        if faint:
            dz[:] = shift
            add_columns(columns, chosen[desk.live[:count]], v - start, dz)
        else:
            for i in range(m):
                dz[i] = shift + image[i] * at.radius / desk.root[i]
        t, new = _searched(scored, here[0], dz, now, promised, toll, there[0], there[1], there[2])
        if t == 0.0:
            break
        for a in range(count):
            w[desk.live[a]] = v[a] if t == 1.0 else start[a] + t * (v[a] - start[a])
        now, shifted = new, shifted + t * shift
        here, there = there, here
        done += 1
        if not binding and at.price > 0.0:
            break  # of such a price the minimiser is not what is sought
    if done == 0:
        return 0, at.binding, 1.0, 0.0, value, z, slopes, bends
    left = (last / begun) ** (1.0 / (epochs - 1)) if epochs > 1 and begun > 0 else 0.0
    diagonal = np.full(size, np.inf)
    for a in range(count):
        diagonal[desk.live[a]] = desk.diagonal[a]
    _placed(w, diagonal, at.radius, binding)
    dz[:] = shifted
    add_columns(columns, chosen, w - begin, dz)
    for i in range(m):
        there[0][i] = z[i] + dz[i]
    now = curves(scored.code, there[0], scored.y, scored.weights, there[1], there[2])
    toll = 0.0 if binding else at.price * (_size(w) - _size(begin))
    if not now + toll < value + 4 * EPS * abs(value):
        w[:] = begin
        return 0, at.binding, 1.0, 0.0, value, z, slopes, bends
    return done, binding, left, multiplier, now, there[0], there[1], there[2]
