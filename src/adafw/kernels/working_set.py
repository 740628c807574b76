"""A sparse matrix restricted to a working set of columns, and quadratic models on it.

A `parts.Part` is the restricted matrix, row by row. Columns have positions, in the order in which
they joined the set; the entries of a row are in the order of their positions, however they came
there, so that sums over a row have the same bits in a run that goes on and in one that is taken up
again.
"""

from typing import TypeAlias

import numpy as np

from adafw.kernels.jit import jit
from adafw.kernels.parts import OUTSIDE, AtomModel, Change, Csr, Part
from adafw.typing import Array

ONE, ZERO = np.uint64(1), np.uint64(0)
#: The number of a row, as compiled code counts or as Python does.
Row: TypeAlias = np.uint64 | int
#: Whether the slack is an atom, whether atoms have two signs, the price in every slope.
Simplex: TypeAlias = tuple[bool, bool, float]


@jit
def extend(rows: Csr, old: Part, change: Change, first: Row, out: Part) -> Row:
    """The part with some columns fewer and others more, from row `first` on.

    Old columns keep their order and fresh ones come after them; these are sorted where they must
    be. An old entry is written before it is known to stay, and written over if it does not.
    Returns the row that it came to: the number of rows, or that for which there was no room.
    """
    values, columns, starts = rows
    old_values, old_positions, old_starts = old
    out_values, out_positions, out_starts = out
    moved, fresh, position, found = change
    last = np.uint64(starts.size - 1)
    count, room = out_starts[first], np.uint64(out_values.size)
    for i in range(first, last):
        out_starts[i] = count
        most = old_starts[i + ONE] - old_starts[i] + starts[i + ONE] - starts[i]
        if count + most >= room:
            return i
        for k in range(old_starts[i], old_starts[i + ONE]):
            where = moved[old_positions[k]]
            out_values[count] = old_values[k]
            out_positions[count] = where
            count += ONE if where != OUTSIDE else ZERO
        hits = ZERO
        for k in range(starts[i], starts[i + ONE]):
            found[hits] = k
            hits += np.uint64(fresh[columns[k]])  # one byte a column: the table stays in the cache
        begin = count
        for q in range(hits):
            k = found[q]
            where, at = position[columns[k]], count
            # In order already, unless a run is taken up again.
            while at > begin and out_positions[at - ONE] > where:
                out_values[at], out_positions[at] = out_values[at - ONE], out_positions[at - ONE]
                at -= ONE
            out_values[at], out_positions[at] = values[k], where
            count += ONE
    out_starts[last] = count
    return last


@jit
def dot(part: Part, w: Array, out: Array) -> None:
    """out_i = <a_i, w>."""
    values, positions, starts = part
    for i in range(np.uint64(out.size)):
        a = b = 0.0  # two sums, so that one addition need not wait for the last
        k, end = starts[i], starts[i + ONE]
        while k + ONE < end:
            a += values[k] * w[positions[k]]
            b += values[k + ONE] * w[positions[k + ONE]]
            k += ONE + ONE
        if k < end:
            a += values[k] * w[positions[k]]
        out[i] = a + b


@jit
def combine(part: Part, p: Array, out: Array) -> None:
    """out = sum_i p_i a_i."""
    values, positions, starts = part
    for j in range(out.size):
        out[j] = 0.0
    for i in range(np.uint64(p.size)):
        weight = p[i]  # read once: the compiler cannot know that out is another array
        for k in range(starts[i], starts[i + ONE]):
            out[positions[k]] += weight * values[k]


@jit
def squares(part: Part, p: Array, out: Array) -> None:
    """out_j = sum_i p_i a_ij^2."""
    values, positions, starts = part
    for j in range(out.size):
        out[j] = 0.0
    for i in range(np.uint64(p.size)):
        weight = p[i]
        for k in range(starts[i], starts[i + ONE]):
            out[positions[k]] += weight * values[k] * values[k]


@jit
def product(part: Part, bends: Array, d: Array, out: Array) -> None:
    """out = sum_i bends_i a_i <a_i, d>: a row is still in the cache when it is used again."""
    values, positions, starts = part
    for j in range(out.size):
        out[j] = 0.0
    for i in range(np.uint64(bends.size)):
        total = 0.0
        for k in range(starts[i], starts[i + ONE]):
            total += values[k] * d[positions[k]]
        total *= bends[i]
        for k in range(starts[i], starts[i + ONE]):
            out[positions[k]] += total * values[k]


@jit
def add_gram(part: Part, weights: Array, first: int, gram: Array) -> None:
    """gram += sum_i weights_i a_i a_i^T, lower triangle, rows from position `first` on."""
    values, positions, starts = part
    for i in range(np.uint64(weights.size)):
        weight = weights[i]
        if weight == 0.0:
            continue
        begin = starts[i]
        k = starts[i + ONE]
        while k > begin and positions[k - ONE] >= first:
            k -= ONE
            scaled, row = weight * values[k], gram[positions[k]]
            for l in range(begin, k + ONE):
                row[positions[l]] += scaled * values[l]


@jit
def take_stale(bends: Array, known: Array, share: float, change: Array) -> bool:
    """change = bends - known where that is more than a share of known, else 0; known follows.

    Returns whether there is any such row.
    """
    some = False
    for i in range(bends.size):
        change[i] = 0.0
        if abs(bends[i] - known[i]) > share * known[i]:
            change[i] = bends[i] - known[i]
            known[i] = bends[i]
            some = True
    return some


@jit
def moved_gram(old: Array, moved: Array, out: Array) -> None:
    """The lower triangle of old, its positions moved (in order), OUTSIDE ones left out."""
    for a in range(moved.size):
        if moved[a] == OUTSIDE:
            continue
        source, target = old[a], out[moved[a]]
        for b in range(a + 1):
            if moved[b] != OUTSIDE:
                target[moved[b]] = source[b]


@jit
def mirror(gram: Array) -> None:
    """Copies the lower triangle to the upper, tile by tile, so that both stay in the cache."""
    size, tile = gram.shape[0], 32
    for first in range(0, size, tile):
        for second in range(0, first + 1, tile):
            for a in range(first, min(first + tile, size)):
                for b in range(second, min(second + tile, a)):
                    gram[b, a] = gram[a, b]


@jit
def diagonal_of(gram: Array, least: Array, mixed: Array, total: float, out: Array) -> None:
    """The diagonal of a model; a ridge of 1e-10 of its own size keeps equal columns apart.

    `least` is what the diagonal of the Gram matrix should be at least, if not empty.
    """
    for k in range(out.size):
        full = max(gram[k, k], least[k]) if least.size else gram[k, k]
        own = full - (mixed[k] * mixed[k] / total if total > 0 else 0.0)
        out[k] = max(own, 1e-14 * full) * (1 + 1e-10)


@jit
def face_matrix(model: AtomModel, face: Array, out: Array) -> None:
    """The lower triangle of H on these atoms."""
    gram, diagonal, signs, mixed, total = model
    scale = 1.0 / total if total > 0 else 0.0
    for a in range(face.size):
        i = face[a]
        row, share, sign = gram[i], mixed[i] * scale, signs[i]
        for b in range(a):
            out[a, b] = (row[face[b]] - share * mixed[face[b]]) * (sign * signs[face[b]])
        out[a, a] = diagonal[i]


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
def _steepest(
    slopes: Array, weights: Array, signs: Array, shape: Simplex
) -> tuple[float, int, float]:
    """(the lowest slope, whose it is, the lowest one of the other signs of atoms in use).

    An atom of weight 0 takes the sign with the lower slope. One in use cannot: against its other
    sign only its own weight can be moved.
    """
    open_, signed, level = shape
    least, enter = (0.0, -1) if open_ else (np.inf, -1)
    opposite = np.inf
    for k in range(slopes.size):
        if signed and slopes[k] > level:
            if weights[k] == 0.0:
                signs[k], slopes[k] = -signs[k], 2 * level - slopes[k]
            else:
                opposite = min(opposite, 2 * level - slopes[k])
        if slopes[k] < least:
            least, enter = slopes[k], k
    return least, enter, opposite


@jit
def pairwise(
    model: AtomModel, slopes: Array, weights: Array, slack: float, shape: Simplex,
    tolerance: float, most: int,
) -> tuple[int, float, float]:  # fmt: skip
    """Pairwise steps on the model over u >= 0, sum u = const - slack; slopes follow in place.

    Weight moves from the atom that promises most (second order) to the steepest one (Keerthi and
    others 2001, Fan and others 2005). The slack, where it is an atom, has slope 0.
    Returns (steps, gap, slack); gap <= tolerance is the end.
    """
    gram, diagonal, signs, mixed, total = model
    open_, size = shape[0], weights.size
    gap = np.inf
    for step in range(most):
        least, enter, opposite = _steepest(slopes, weights, signs, shape)
        bend_in, sign_in, share = 0.0, 0.0, 0.0
        if enter >= 0:
            bend_in, sign_in = diagonal[enter], 2 * signs[enter]
            share = mixed[enter] / total if total > 0 else 0.0
        row = gram[max(enter, 0)]
        lowest = min(least, opposite)
        gap, best, leave, move = 0.0, 0.0, -2, 0.0
        for k in range(size):
            if weights[k] > 0:
                d = slopes[k] - least
                gap += weights[k] * (slopes[k] - lowest)
                if d > 0:
                    across = sign_in * signs[k] * (row[k] - share * mixed[k])
                    bend = max(bend_in + diagonal[k] - across, 1e-300)
                    length = min(d / bend, weights[k])
                    gain = length * (2 * d - bend * length)
                    if gain > best:
                        best, leave, move = gain, k, length
        gap -= slack * lowest if open_ and lowest < 0 else 0.0
        if slack > 0 and enter >= 0:
            length = min(-least / max(bend_in, 1e-300), slack)
            gain = length * (-2 * least - bend_in * length)
            if gain > best:
                best, leave, move = gain, -1, length
        if gap <= tolerance or leave == -2:
            return step, gap, slack
        if leave >= 0:
            weights[leave] = weights[leave] - move if move < weights[leave] else 0.0
            move_atom(model, leave, -move, slopes)
        else:
            slack = slack - move if move < slack else 0.0
        if enter >= 0:
            weights[enter] += move
            move_atom(model, enter, move, slopes)
        else:
            slack += move
    return most, gap, slack
