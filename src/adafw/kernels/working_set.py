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

ZERO, ONE, TWO, THREE, FOUR = (np.uint64(k) for k in range(5))
#: Rows that a working set is sought in at a time.
BLOCK = np.uint64(64)
#: The number of a row or of an entry, as compiled code counts or as Python does.
Row: TypeAlias = np.uint64 | int


@jit
def extend(rows: Csr, old: Part, change: Change, first: Row, out: Part) -> Row:
    """The part with some columns fewer and others more, from row `first` on.

    Old columns keep their order and fresh ones come after them; these are sorted where they must
    be. Fresh entries are sought in blocks of rows and then copied, so that where a row ends need
    not be guessed. Returns the row that it came to: the number of rows, or the first of a block for
    which there was no room.
    """
    _, columns, starts = rows
    old_starts, out_starts = old.starts, out.starts
    fresh, found, ends = change.fresh, change.found, change.ends
    last, i = np.uint64(starts.size - 1), np.uint64(first)
    count, room = out_starts[i], np.uint64(out.values.size)
    while i < last:
        stop = min(i + BLOCK, last)
        if count + (old_starts[stop] - old_starts[i]) + (starts[stop] - starts[i]) >= room:
            return i
        hits = ZERO
        for row in range(i, stop):
            for k in range(starts[row], starts[row + ONE]):
                found[hits] = k
                hits += np.uint64(fresh[columns[k]])  # one byte a column: the table stays in cache
            ends[row - i] = hits
        if old.values.size or not _copied(rows, change, hits, stop - i, i, out):
            _merged(rows, old, change, i, stop, out)
        i, count = stop, out_starts[stop]
    return last


@jit
def _copied(rows: Csr, change: Change, hits: Row, length: Row, first: Row, out: Part) -> bool:
    """Writes what was found in a block of rows; False if it is not in the order of positions."""
    values, columns, _ = rows
    out_values, out_positions, out_starts = out
    position, found, ends = change.position, change.found, change.ends
    begin, last, descents = out_starts[first], np.uint32(0), ZERO
    for q in range(hits):
        k = found[q]
        where = position[columns[k]]
        out_values[begin + q], out_positions[begin + q] = values[k], where
        descents += ONE if where < last else ZERO
        last = where
    before = ZERO
    for r in range(length):  # where a row begins, positions may fall
        end = ends[r]
        out_starts[first + r + ONE] = begin + end
        inside = before < end and before > ZERO
        if inside and out_positions[begin + before] < out_positions[begin + before - ONE]:
            descents -= ONE
        before = end
    return descents == ZERO


@jit
def _merged(rows: Csr, old: Part, change: Change, first: Row, stop: Row, out: Part) -> None:
    """A block of rows: what stays of the old entries, then what was found, in order.

    An old entry is written before it is known to stay, and written over if it does not.
    """
    values, columns, _ = rows
    old_values, old_positions, old_starts = old
    out_values, out_positions, out_starts = out
    moved, position, found, ends = change.moved, change.position, change.found, change.ends
    count, q = out_starts[first], ZERO
    for row in range(first, stop):
        for k in range(old_starts[row], old_starts[row + ONE]):
            where = moved[old_positions[k]]
            out_values[count] = old_values[k]
            out_positions[count] = where
            count += ONE if where != OUTSIDE else ZERO
        begin = count
        while q < ends[row - first]:
            k = found[q]
            where, at = position[columns[k]], count
            # In order already, unless a run is taken up again.
            while at > begin and out_positions[at - ONE] > where:
                out_values[at], out_positions[at] = out_values[at - ONE], out_positions[at - ONE]
                at -= ONE
            out_values[at], out_positions[at] = values[k], where
            count, q = count + ONE, q + ONE
        out_starts[row + ONE] = count


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
def rows_of(columns: Csr, chosen: Array, out: Part) -> None:
    """The part that holds the chosen columns; its starts are 0 at first, and one more than needed.

    starts[i + 2] counts the entries of row i, then starts[i + 1] is where its next one goes, and in
    the end where it ends.
    """
    values, rows, begins = columns
    out_values, out_positions, starts = out
    for a in range(chosen.size):
        for k in range(begins[chosen[a]], begins[chosen[a] + ONE]):
            starts[np.uint64(rows[k]) + TWO] += ONE
    for i in range(TWO, np.uint64(starts.size)):
        starts[i] += starts[i - ONE]
    for a in range(np.uint32(chosen.size)):
        for k in range(begins[chosen[a]], begins[chosen[a] + ONE]):
            row = np.uint64(rows[k]) + ONE
            at = starts[row]
            out_values[at], out_positions[at] = values[k], a
            starts[row] = at + ONE


@jit
def column_dot(columns: Csr, chosen: Array, w: Array, out: Array) -> None:
    """out = sum_a w_a times the chosen column a. Long loops: no row's end is guessed wrong."""
    values, rows, starts = columns
    for i in range(out.size):
        out[i] = 0.0
    for a in range(chosen.size):
        weight = w[a]
        if weight != 0.0:
            for k in range(starts[chosen[a]], starts[chosen[a] + ONE]):
                out[rows[k]] += weight * values[k]


@jit
def along(values: Array, rows: Array, first: Row, last: Row, p: Array) -> float:
    """<the column whose entries these are, p>; four sums, so that none waits for the last."""
    a = b = c = d = 0.0
    k = first
    while k + THREE < last:
        a += values[k] * p[rows[k]]
        b += values[k + ONE] * p[rows[k + ONE]]
        c += values[k + TWO] * p[rows[k + TWO]]
        d += values[k + THREE] * p[rows[k + THREE]]
        k += FOUR
    while k < last:
        a += values[k] * p[rows[k]]
        k += ONE
    return (a + b) + (c + d)


@jit
def column_combine(columns: Csr, chosen: Array, p: Array, out: Array) -> None:
    """out_a = <chosen column a, p>."""
    values, rows, starts = columns
    for j in range(chosen.size):
        out[j] = along(values, rows, starts[chosen[j]], starts[chosen[j] + ONE], p)


@jit
def column_squares(columns: Csr, chosen: Array, p: Array, out: Array) -> None:
    """out_a = sum_i p_i a_ij^2 for the chosen column j = chosen_a."""
    values, rows, starts = columns
    for j in range(chosen.size):
        a = b = 0.0
        k, end = starts[chosen[j]], starts[chosen[j] + ONE]
        while k + ONE < end:
            a += values[k] * values[k] * p[rows[k]]
            b += values[k + ONE] * values[k + ONE] * p[rows[k + ONE]]
            k += TWO
        if k < end:
            a += values[k] * values[k] * p[rows[k]]
        out[j] = a + b


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
    """gram += sum_i weights_i a_i a_i^T, lower triangle, rows from position `first` on.

    Four of its rows at a time, from the last on: an entry that is read once serves all of them.
    """
    values, positions, starts = part
    for i in range(np.uint64(weights.size)):
        weight = weights[i]
        if weight == 0.0:
            continue
        begin = starts[i]
        k = starts[i + ONE]
        while k >= begin + FOUR and positions[k - FOUR] >= first:
            k -= FOUR
            row_a, row_b = gram[positions[k]], gram[positions[k + ONE]]
            row_c, row_d = gram[positions[k + TWO]], gram[positions[k + THREE]]
            a, b = weight * values[k], weight * values[k + ONE]
            c, d = weight * values[k + TWO], weight * values[k + THREE]
            for l in range(begin, k + ONE):
                at, value = positions[l], values[l]
                row_a[at] += a * value
                row_b[at] += b * value
                row_c[at] += c * value
                row_d[at] += d * value
            at, value = positions[k + ONE], values[k + ONE]
            row_b[at] += b * value
            row_c[at] += c * value
            row_d[at] += d * value
            at, value = positions[k + TWO], values[k + TWO]
            row_c[at] += c * value
            row_d[at] += d * value
            row_d[positions[k + THREE]] += d * values[k + THREE]
        while k > begin and positions[k - ONE] >= first:
            k -= ONE
            scaled, row = weight * values[k], gram[positions[k]]
            for l in range(begin, k + ONE):
                row[positions[l]] += scaled * values[l]


@jit
def add_few(part: Part, weights: Array, gram: Array) -> None:
    """gram += sum_i weights_i a_i a_i^T, both triangles alike: `mirror` is not needed."""
    values, positions, starts = part
    for i in range(np.uint64(weights.size)):
        if weights[i] == 0.0:
            continue
        for k in range(starts[i], starts[i + ONE]):
            scaled, p = weights[i] * values[k], positions[k]
            for l in range(starts[i], k):
                term = scaled * values[l]
                gram[p, positions[l]] += term
                gram[positions[l], p] += term
            gram[p, p] += scaled * values[k]


@jit
def take_stale(bends: Array, known: Array, share: float, least: float, change: Array) -> int:
    """change = bends - known where that is more than a share of known, else 0; known follows.

    Of rows that count for little, whose bend is below `least`, a share of that is enough, unless
    it has doubled: to some column they may be all there is, and a bend too small leads too far.
    Returns how many such rows there are.
    """
    count = 0
    for i in range(bends.size):
        change[i] = 0.0
        moved = abs(bends[i] - known[i])
        if moved > share * max(known[i], least) or bends[i] > 2 * known[i]:
            change[i] = bends[i] - known[i]
            known[i] = bends[i]
            count += 1
    return count


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
