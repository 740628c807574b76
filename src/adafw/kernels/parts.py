"""What kernels take: plain arrays and numbers under names. Importing this imports no numba."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from adafw.typing import Array

#: Values, columns and starts of a CSR matrix; of a CSC matrix its values, rows and starts.
Csr: TypeAlias = tuple[Array, Array, Array]
#: A matrix as kernels/rows.py takes it.
Stored: TypeAlias = Csr | Array
#: A float's bits, or the number of a row: of any width.
Word: TypeAlias = np.unsignedinteger[Any]


class Terms(NamedTuple):
    """f_i(x) = weights_i l(<a_i, x> + intercept, y_i), with a_i the rows of a matrix."""

    rows: Stored  #: as kernels/rows.py takes them
    y: Array
    weights: Array  #: empty if all are 1
    loss: int  #: its number in codes.py
    intercept: float


class Batches(NamedTuple):
    """Those of iterations t, t + 1, ..: the k-th holds the rows indices[ends[k] : ends[k + 1]]."""

    t: int
    indices: Array
    ends: Array


class Estimate(NamedTuple):
    """g_t and what it is made from.

    CSFW: `memory` is alpha, and g = sum alpha_i a_i follows its changes. SVRF and LSVRG: `memory`
    holds the slopes at the snapshot, `base` the gradient there, and g is made anew. SAGA: `memory`
    is alpha, `base` their sum, which follows its changes, g is made anew, and `seen` is room for
    the number, above 0, of the last batch that held a row: one more for each, from 0 on.
    """

    kind: int
    memory: Array
    base: Array
    g: Array
    seen: Array


class Steps(NamedTuple):
    """How x moves: the step's number, and for each iteration what its schedules say.

    `sizes` are eta_t, or gamma_t in Template 1; `bounds` are those on the inner steps. The metric
    is h = offset + sqrt(sum_squares), and g^2 is added to the squares in place; they are empty in
    Template 1 and where a path keeps them elsewhere.
    """

    kind: int
    sizes: Array
    bounds: Array
    inner_steps: int
    offset: float
    sum_squares: Array


class Point(NamedTuple):
    """x, moved in place, and the radius of the ball that it stays in."""

    x: Array
    radius: float


class Active(NamedTuple):
    """The active coordinates, and the values of g, h, x, y and grad Q there.

    In increasing order, since sums over them then have one order, whether a run was stopped in
    between or not, and the lowest index wins ties by itself.
    """

    index: Array  # type: ignore[assignment]  # tuples have a method of that name
    g: Array
    h: Array
    x: Array
    y: Array
    q: Array


class Support(NamedTuple):
    """The support of x, active.index[:size], and the level of the last projection onto the ball."""

    active: Active
    size: int
    level: float


class Bits(NamedTuple):
    """g as unsigned integers: the largest of them, sign masked, belongs to the largest |g_j|.

    `peaks` is room for the largest of each block; `refused` the bits of the least |g_j| that is
    refused: infinity, or what has an infinite square where squares are summed. A sum that
    overflows later is noticed as soon as its h_j is needed. Where h_j = infinity no step would
    move x_j, and the run would stall without a word.
    """

    g: Array
    magnitude: Word  #: all bits but the sign
    refused: Word
    peaks: Array


class Ledger(NamedTuple):
    """What a lazy run keeps of every feature and every row: see kernels/lazy_l1.py."""

    table: Array
    stamps: Array
    alpha: Array
    room: int
    work: Array


class Listed(NamedTuple):
    """The candidates features[:size]: all with |g_j| >= threshold, and perhaps others."""

    features: Array
    size: int
    threshold: float


#: Marks a column outside a working set.
OUTSIDE = np.uint32(0xFFFFFFFF)


class Part(NamedTuple):
    """Rows of a working set of columns: values, positions in the set, where each row begins."""

    values: Array
    positions: Array
    starts: Array


class Change(NamedTuple):
    """How a working set changes.

    The column at position p goes to moved[p] (OUTSIDE: it leaves). Column j of the matrix joins
    at position[j] if fresh[j] = 1. `found` is room for the entries of a block of rows, `ends` for
    where each of its rows ends in it.
    """

    moved: Array
    fresh: Array
    position: Array
    found: Array
    ends: Array


class AtomModel(NamedTuple):
    """q(u) = <slopes, u> + <u, H u> / 2 in the weights u of atoms signs_k e_k.

    H_kl = signs_k signs_l (gram_kl - mixed_k mixed_l / total), with `diagonal` on its diagonal:
    `mixed` and `total` take an intercept out of the model, unless total = 0.
    """

    gram: Array
    diagonal: Array
    signs: Array
    mixed: Array
    total: float
