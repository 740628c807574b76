"""A sparse matrix restricted to a working set of columns, and quadratic models on it.

`Part` is the restricted matrix, row by row; positions are those in the working set, increasing
within a row, since the set is kept in increasing order of columns.
"""

from typing import Any, NamedTuple

import numpy as np

from adafw.kernels.jit import jit

ONE = np.uint64(1)
#: Marks a column outside the working set.
OUTSIDE = np.uint32(0xFFFFFFFF)


class Part(NamedTuple):
    """Values, positions in the working set, and where each row begins."""

    values: Any
    positions: Any
    starts: Any


@jit
def restrict(rows: Any, position: Any, part: Any) -> None:
    """Copies the entries of columns with a position.

    An entry is written before it is known to stay, and written over if it does not: no branch.
    """
    values, columns, starts = rows
    out_values, out_positions, out_starts = part
    count = np.uint64(0)
    for i in range(starts.size - 1):
        out_starts[i] = count
        for k in range(starts[i], starts[i + 1]):
            where = position[columns[k]]
            out_values[count] = values[k]
            out_positions[count] = where
            count += ONE if where != OUTSIDE else np.uint64(0)
    out_starts[starts.size - 1] = count


@jit
def dot(part: Any, w: Any, out: Any) -> None:
    """out_i = <a_i, w>."""
    values, positions, starts = part
    for i in range(out.size):
        total = 0.0
        for k in range(starts[i], starts[i + 1]):
            total += values[k] * w[positions[k]]
        out[i] = total


@jit
def combine(part: Any, p: Any, out: Any) -> None:
    """out = sum_i p_i a_i."""
    values, positions, starts = part
    for j in range(out.size):
        out[j] = 0.0
    for i in range(p.size):
        for k in range(starts[i], starts[i + 1]):
            out[positions[k]] += p[i] * values[k]


@jit
def product(part: Any, bends: Any, d: Any, out: Any) -> None:
    """out = sum_i bends_i a_i <a_i, d>: a row is still in the cache when it is used again."""
    values, positions, starts = part
    for j in range(out.size):
        out[j] = 0.0
    for i in range(bends.size):
        total = 0.0
        for k in range(starts[i], starts[i + 1]):
            total += values[k] * d[positions[k]]
        total *= bends[i]
        for k in range(starts[i], starts[i + 1]):
            out[positions[k]] += total * values[k]


@jit
def add_gram(part: Any, weights: Any, gram: Any) -> None:
    """gram += sum_i weights_i a_i a_i^T, lower triangle only."""
    values, positions, starts = part
    for i in range(weights.size):
        if weights[i] == 0.0:
            continue
        first, last = starts[i], starts[i + 1]
        for k in range(first, last):
            scaled, row = weights[i] * values[k], gram[positions[k]]
            for l in range(first, k + ONE):
                row[positions[l]] += scaled * values[l]


@jit
def add_columns(part: Any, weights: Any, fresh: Any, gram: Any) -> None:
    """The same for the entries with a fresh row or column, the others being there already."""
    values, positions, starts = part
    for i in range(weights.size):
        first, last = starts[i], starts[i + 1]
        touched = False
        for k in range(first, last):
            touched = touched or fresh[positions[k]]
        if not touched or weights[i] == 0.0:
            continue
        for k in range(first, last):
            scaled, row, new = weights[i] * values[k], gram[positions[k]], fresh[positions[k]]
            for l in range(first, k + ONE):
                if new or fresh[positions[l]]:
                    row[positions[l]] += scaled * values[l]


@jit
def pairwise(
    gram: Any, slopes: Any, weights: Any, slack: float, open_: bool, tolerance: float, most: int
) -> tuple[int, float, float]:
    """Pairwise steps on q(u) = <slopes, u> + <u, gram u> / 2 over u >= 0, sum u = const - slack.

    Weight moves from the atom that promises most (second order) to the steepest one (Keerthi and
    others 2001, Fan and others 2005). The slack is an atom of slope 0, to be had if `open_`.
    `slopes` are kept up to date. Returns (steps, gap, slack); gap <= tolerance is the end.
    """
    size = weights.size
    gap = np.inf
    for step in range(most):
        least, enter = (0.0, -1) if open_ else (np.inf, -1)
        for k in range(size):
            if slopes[k] < least:
                least, enter = slopes[k], k
        bend_in = gram[enter, enter] if enter >= 0 else 0.0
        row = gram[max(enter, 0)]
        gap, best, leave = 0.0, 0.0, -2
        for k in range(size):
            if weights[k] > 0:
                d = slopes[k] - least
                gap += weights[k] * d
                if d > 0:
                    bend = bend_in + gram[k, k] - (2 * row[k] if enter >= 0 else 0.0)
                    move = min(d / max(bend, 1e-300), weights[k])
                    gain = move * (2 * d - bend * move)
                    if gain > best:
                        best, leave = gain, k
        if slack > 0 and enter >= 0:
            gap -= slack * least
            move = min(-least / max(bend_in, 1e-300), slack)
            gain = move * (-2 * least - bend_in * move)
            if gain > best:
                best, leave = gain, -1
        if gap <= tolerance or leave == -2:
            return step, gap, slack
        if leave >= 0:
            bend = bend_in + gram[leave, leave] - (2 * row[leave] if enter >= 0 else 0.0)
            move = min((slopes[leave] - least) / max(bend, 1e-300), weights[leave])
            weights[leave] = weights[leave] - move if move < weights[leave] else 0.0
            out = gram[leave]
            for k in range(size):
                slopes[k] -= move * out[k]
        else:
            move = min(-least / max(bend_in, 1e-300), slack)
            slack = slack - move if move < slack else 0.0
        if enter >= 0:
            weights[enter] += move
            for k in range(size):
                slopes[k] += move * row[k]
        else:
            slack += move
    return most, gap, slack


@jit
def model_matrix(gram: Any, signs: Any, mixed: Any, total: float, out: Any) -> None:
    """The Hessian in the atoms' weights, from the lower triangle of the Gram matrix.

    An intercept is taken out: - mixed mixed^T / total, unless total = 0. A ridge of 1e-10 of its
    own size on each diagonal entry keeps equal columns apart.
    """
    for a in range(signs.size):
        for b in range(a + 1):
            entry = gram[a, b]
            if total > 0:
                entry -= mixed[a] * (mixed[b] / total)
            out[a, b] = out[b, a] = entry * signs[a] * signs[b]
        out[a, a] = max(out[a, a], 1e-14 * gram[a, a]) * (1 + 1e-10)
