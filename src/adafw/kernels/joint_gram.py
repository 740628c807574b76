"""Second derivatives of several outputs in a working set of coefficients, as a matrix.

An atom is a coefficient (j, c) of feature j and output c. A `parts.Part` is the matrix of atoms,
row by row: the entry a_ij once for each atom of feature j, positions rising in a row.
"""

import numpy as np

from adafw.kernels.jit import jit
from adafw.kernels.parts import Part
from adafw.typing import Array

ONE, ZERO = np.uint64(1), np.uint64(0)


@jit
def expand(part: Part, first: Array, out: Part) -> None:
    """Entries of features once for each of their atoms, first[p] .. first[p + 1] of feature p."""
    values, positions, starts = part
    out_values, out_positions, out_starts = out
    count = ZERO
    for i in range(np.uint64(starts.size - 1)):
        out_starts[i] = count
        for k in range(starts[i], starts[i + ONE]):
            for a in range(first[positions[k]], first[positions[k] + 1]):
                out_values[count], out_positions[count] = values[k], a
                count += ONE
    out_starts[starts.size - 1] = count


@jit
def dot(part: Part, outputs: Array, w: Array, out: Array) -> None:
    """out_ic = sum of a_ij w_jc over the atoms."""
    values, positions, starts = part
    for i in range(np.uint64(starts.size - 1)):
        row = out[i]
        row[:] = 0.0
        for k in range(starts[i], starts[i + ONE]):
            row[outputs[positions[k]]] += values[k] * w[positions[k]]


@jit
def combine(part: Part, outputs: Array, slopes: Array, out: Array) -> None:
    """out_a = sum_i a_ij slopes_ic for every atom a = (j, c)."""
    values, positions, starts = part
    out[:] = 0.0
    for i in range(np.uint64(starts.size - 1)):
        row = slopes[i]
        for k in range(starts[i], starts[i + ONE]):
            out[positions[k]] += values[k] * row[outputs[positions[k]]]


@jit
def add(
    part: Part, outputs: Array, s: Array, weights: Array, coupled: bool, gram: Array, mixed: Array
) -> None:
    """gram += sum_i w_i B_i in its lower triangle, mixed += its part in the intercepts.

    B_i is a_ij a_ij' (s_ic [c = c'] - s_ic s_ic'), the last term only if `coupled`; mixed has one
    column an output, or none at all.
    """
    values, positions, starts = part
    scaled = np.empty(gram.shape[0])
    for i in range(np.uint64(starts.size - 1)):
        weight = weights[i]
        if weight == 0.0:
            continue
        begin, row_s = starts[i], s[i]
        for k in range(begin, starts[i + ONE]):
            a = positions[k]
            c, value = outputs[a], weight * values[k]
            own, row = value * row_s[c], gram[a]
            scaled[k - begin] = values[k] * row_s[c]
            if coupled:
                for l in range(begin, k + ONE):
                    row[positions[l]] -= own * scaled[l - begin]
            for l in range(begin, k + ONE):
                if outputs[positions[l]] == c:
                    row[positions[l]] += own * values[l]
            for e in range(mixed.shape[1]):
                if coupled:
                    mixed[a, e] -= own * row_s[e]
                if e == c:
                    mixed[a, e] += own
