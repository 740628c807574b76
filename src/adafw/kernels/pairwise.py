"""Pairwise steps on a quadratic model of few atoms: weight moves from one to another.

Passes over all atoms are written so that they become vector instructions: no branches, and what is
largest is found by halves, as a running maximum would wait for itself.
"""

from typing import TypeAlias

import numpy as np

from adafw.kernels.jit import jit
from adafw.kernels.parts import AtomModel
from adafw.typing import Array

#: Whether the slack is an atom, whether atoms have two signs, the price in every slope.
Simplex: TypeAlias = tuple[bool, bool, float]
#: Steps between two looks at the gap.
LOOK = 8


@jit
def move_atom(model: AtomModel, k: int, move: float, slopes: Array) -> None:
    """The slopes after the weight of atom k has grown by `move`."""
    gram, diagonal, signs, mixed, total = model
    row = gram[k]
    step = move * signs[k]
    share = mixed[k] / total if total > 0 else 0.0
    here = slopes[k]
    if total > 0:
        for l in range(slopes.size):
            slopes[l] += step * signs[l] * (row[l] - share * mixed[l])
    else:
        for l in range(slopes.size):
            slopes[l] += step * signs[l] * row[l]
    slopes[k] = here + move * diagonal[k]


@jit
def move_atoms(model: AtomModel, chosen: Array, moves: Array, slopes: Array) -> None:
    """The slopes after the weights of these atoms have grown by so much."""
    for k in range(chosen.size):
        move_atom(model, chosen[k], moves[k], slopes)


@jit
def _exchange(model: AtomModel, i: int, j: int, move: float, slopes: Array) -> None:
    """The slopes after atom j has taken so much weight from atom i, in one pass."""
    gram, diagonal, signs, mixed, total = model
    row_i, row_j, sign_i, sign_j = gram[i], gram[j], move * signs[i], move * signs[j]
    slope_i, slope_j = slopes[i], slopes[j]
    across = signs[i] * signs[j] * row_i[j]
    if total > 0:
        share = (sign_j * mixed[j] - sign_i * mixed[i]) / total
        for l in range(slopes.size):
            slopes[l] += signs[l] * (sign_j * row_j[l] - sign_i * row_i[l] - share * mixed[l])
        across -= signs[i] * signs[j] * mixed[i] * mixed[j] / total
    else:
        for l in range(slopes.size):
            slopes[l] += signs[l] * (sign_j * row_j[l] - sign_i * row_i[l])
    # The diagonal is not quite that of the matrix.
    slopes[i] = slope_i + move * (across - diagonal[i])
    slopes[j] = slope_j + move * (diagonal[j] - across)


@jit
def _largest(values: Array) -> float:
    """The largest entry; written over."""
    size = values.size
    while size > 1:
        half = (size + 1) // 2
        for k in range(size - half):
            a, b = values[k], values[k + half]
            values[k] = a if a > b else b
        size = half
    return float(values[0])


@jit
def _steepest(slopes: Array, weights: Array, shape: Simplex, room: Array) -> float:
    """The lowest slope at which weight can enter.

    An atom of weight 0 takes the sign with the lower slope. One in use cannot: against its other
    sign only its own weight can be moved.
    """
    open_, signed, level = shape
    for k in range(slopes.size):
        here, other = slopes[k], 2 * level - slopes[k]
        best = here if here < other or not signed else other
        room[k] = -here if weights[k] > 0.0 else -best
    least = -_largest(room)
    return min(least, 0.0) if open_ else least


@jit
def _entering(slopes: Array, weights: Array, signs: Array, shape: Simplex, least: float) -> int:
    """The first atom with that slope, its sign turned if that takes it; -1 for the slack."""
    open_, signed, level = shape
    if open_ and least >= 0.0:
        return -1
    size = slopes.size
    first = size
    for k in range(size):  # to the end: a loop that may end early is done one by one
        turned = signed and weights[k] == 0.0 and 2 * level - slopes[k] == least
        first = min(first, k if slopes[k] == least or turned else size)
    if first == size:
        return -1
    if slopes[first] != least:
        signs[first], slopes[first] = -signs[first], least
    return first


@jit
def _gap(slopes: Array, weights: Array, slack: float, shape: Simplex, room: Array) -> float:
    """max over the hull of <slopes, u - v>; vertices of both signs count."""
    open_, signed, level = shape
    for k in range(slopes.size):
        here, other = slopes[k], 2 * level - slopes[k]
        room[k] = -here if here < other or not signed else -other
    lowest = -_largest(room)
    lowest = min(lowest, 0.0) if open_ else lowest
    gap = -slack * lowest if open_ else 0.0
    for k in range(slopes.size):
        gap += weights[k] * (slopes[k] - lowest)
    return gap


@jit
def _leaving(
    model: AtomModel,
    enter: int,
    slopes: Array,
    weights: Array,
    least: float,
    room: Array,
    gains: Array,
) -> tuple[int, float, float]:
    """(the atom whose weight promises most in the place of `enter`, how much of it, the gain).

    Second order: the gain of moving `length` is length (d - bend length / 2), here twice that. The
    atom is -2 if none promises anything.
    """
    gram, diagonal, signs, mixed, total = model
    into = max(enter, 0)
    row, bend_in, sign_in = gram[into], 0.0, 0.0
    share = mixed[into] / total if total > 0 else 0.0
    if enter >= 0:
        bend_in, sign_in = diagonal[into], 2 * signs[into]
    for k in range(slopes.size):
        d = slopes[k] - least
        bend = bend_in + diagonal[k] - sign_in * signs[k] * (row[k] - share * mixed[k])
        bend = bend if bend > 1e-300 else 1e-300
        length = d / bend
        length = length if length < weights[k] else weights[k]
        gains[k] = length * (2 * d - bend * length)
        room[k] = gains[k]
    best = _largest(room)
    if not best > 0.0:
        return -2, 0.0, 0.0
    k = slopes.size
    for l in range(slopes.size):
        k = min(k, l if gains[l] == best else slopes.size)
    bend = bend_in + diagonal[k] - sign_in * signs[k] * (row[k] - share * mixed[k])
    return k, min((slopes[k] - least) / max(bend, 1e-300), weights[k]), best


@jit
def pairwise(
    model: AtomModel,
    slopes: Array,
    weights: Array,
    slack: float,
    shape: Simplex,
    tolerance: float,
    most: int,
) -> tuple[int, float, float]:
    """Pairwise steps on the model over u >= 0, sum u = const - slack; slopes follow in place.

    Weight moves from the atom that promises most (second order) to the steepest one (Keerthi and
    others 2001, Fan and others 2005). The slack, where it is an atom, has slope 0.
    Returns (steps, gap, slack); gap <= tolerance, looked at now and then, is the end.
    """
    diagonal, signs = model[1], model[2]
    room, gains = np.empty(slopes.size), np.empty(slopes.size)
    for step in range(most):
        if step % LOOK == 0:
            gap = _gap(slopes, weights, slack, shape, room)
            if gap <= tolerance:
                return step, gap, slack
        least = _steepest(slopes, weights, shape, room)
        enter = _entering(slopes, weights, signs, shape, least)
        leave, move, best = _leaving(model, enter, slopes, weights, least, room, gains)
        if slack > 0 and enter >= 0:
            bend = max(diagonal[enter], 1e-300)
            length = min(-least / bend, slack)
            if length * (-2 * least - bend * length) > best:
                leave, move = -1, length
        if leave == -2:
            return step, _gap(slopes, weights, slack, shape, room), slack
        if leave >= 0:
            weights[leave] = weights[leave] - move if move < weights[leave] else 0.0
        else:
            slack = slack - move if move < slack else 0.0
        if enter >= 0:
            weights[enter] += move
        else:
            slack += move
        if leave >= 0 and enter >= 0:
            _exchange(model, leave, enter, move, slopes)
        elif leave >= 0:
            move_atom(model, leave, -move, slopes)
        else:
            move_atom(model, enter, move, slopes)
    return most, _gap(slopes, weights, slack, shape, room), slack
