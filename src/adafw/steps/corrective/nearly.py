"""Whether the rows make H as a matrix, and what some of them tell of it where they do not."""

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adafw.rows import Rows
from adafw.steps.corrective.base import Memory
from adafw.steps.corrective.gram import STALE
from adafw.steps.corrective.sampled import Sampled, sampled
from adafw.steps.corrective.spiked import Spiked, diagonal

Vector = NDArray[np.floating[Any]]
Near: TypeAlias = Spiked | Sampled

#: Columns up to which forming H is cheaper than the products it saves; of rows with few entries,
#: where it costs no more than so many products.
SMALL, SMALL_SPARSE, PRODUCTS = 200, 500, 16
#: Columns up to which steps go by a matrix that gradients correct, which a few rows make.
WIDE = 500
#: n^2 / m up to which such a matrix of more columns costs no more than the passes it saves.
WORTH = 20
#: Dense rows a column up to which all make H; more are too dear, and so many a good guess at it.
SAMPLE = 8
#: m n^2 up to which H costs no more than the calls that products take.
SLIGHT = 1 << 22
#: The same up to which it may be made where products lead nowhere.
DEAR = 1 << 31


def forms_matrix(rows: Rows) -> bool:
    """Whether H is made as a matrix."""
    if len(rows.shape) != 2:
        return False
    stored = rows.plain[0]
    # Of rows that are elsewhere, a product costs as much as the matrix: a pass, or a round trip.
    if not (stored.listed or stored.streamed or stored.remote):
        m, n = rows.shape
        return n <= SMALL and (m <= SAMPLE * n or m * n * n <= SLIGHT)
    return rows.shape[1] <= (SMALL_SPARSE if stored.gram_products <= PRODUCTS else SMALL)


def may_form_matrix(rows: Rows) -> bool:
    """Whether H could be made as a matrix, if it has to."""
    if len(rows.shape) != 2:
        return False
    m, n = rows.shape
    return n <= SMALL_SPARSE and m * n * n <= DEAR


def few_bend(rows: Rows, bends: Vector) -> bool:
    """Whether of dense rows with few columns too few bend for some of them to tell of all."""
    n = rows.shape[-1]
    if rows.plain[0].listed or len(rows.shape) != 2 or n > SMALL or bends.size <= SAMPLE * n:
        return False
    w = bends[:: bends.size // (SAMPLE * n)].astype(np.float64)
    return float(w.sum()) ** 2 < SAMPLE / 2 * n * float(w @ w)


def tell(rows: Rows, most: int = WIDE) -> bool:
    """Whether some rows tell of all: of dense ones, if features are few, `most` at most."""
    stored, centred = rows.plain
    if stored.listed or stored.streamed or stored.remote or centred or len(rows.shape) != 2:
        return False
    m, n = rows.shape
    return n <= most and m > SAMPLE * n and (n <= SMALL or n * n <= WORTH * m)


def nearly(
    rows: Rows, weights: Vector, bends: Vector, follows: bool, memory: Memory | None = None
) -> Near:
    """P ~ H from some of the rows, if features are few; else from the directions they are long in.

    `weights` are those of `column_weights`; `memory` keeps a matrix from model to model.
    """
    if not tell(rows, SMALL):
        return _spikes(rows, weights, bends, follows)
    some = rows.every(rows.shape[0] // (SAMPLE * rows.shape[1]))
    whole = float(bends.sum(dtype=np.float64))
    scale = weights.astype(np.float64) * (whole or 1.0)
    w: NDArray[np.float64] = bends[:: rows.shape[0] // (SAMPLE * weights.size)].astype(np.float64)
    total = float(w.sum())
    if some.unrelated(follows) or not total > 0:
        return diagonal(scale.astype(weights.dtype), whole=total > 0)
    P = matrix(some, w * (whole / total), follows, {} if memory is None else memory)
    return sampled(P, scale) if np.isfinite(P).all() else diagonal(scale.astype(weights.dtype))


def matrix(some: Rows, w: NDArray[np.float64], follows: bool, kept: Memory) -> NDArray[np.float64]:
    """H of some of the rows; that of before where bends are the same but for a factor or so."""
    P, known = kept.get("gram"), kept.get("bends")
    n = some.shape[1]
    if P is not None and known is not None and (P.shape, known.shape) == ((n, n), w.shape):
        share = float(w.sum()) / (float(known.sum()) or np.inf)
        if float(np.abs(w - share * known).sum()) <= STALE * float(w.sum()):
            return share * P
    P = some.gram(w.astype(some.dtype)).astype(np.float64)
    if follows:
        mixed = some.combine(w)
        P -= np.outer(mixed, mixed / w.sum())
    kept["gram"], kept["bends"] = P, w
    return P


def _spikes(rows: Rows, weights: Vector, bends: Vector, follows: bool) -> Spiked:
    """H within the few directions along which rows are long; its diagonal for the rest."""
    scale = weights * (float(bends.sum(dtype=np.float64)) or 1.0)
    known = rows.sketch(weights)
    if known is None:
        return diagonal(scale)
    w, images = bends[:: known.step].astype(np.float64), known.images
    if not (w.any() and np.isfinite(images).all()):
        return diagonal(scale)
    w /= w.sum()
    if follows:
        images = images - w @ images
    size, turn = np.linalg.eigh(images.T @ (w[:, None] * images))
    V = known.basis @ (turn * np.sqrt(np.maximum(size, 0)))
    # Of noise alone, so few rows would still make one direction so long (Marchenko, Pastur);
    # some of it is not in the rest.
    large = size > 2 * known.rest.mean() * (1 + math.sqrt(weights.size * float(w @ w))) ** 2
    rest = scale * (known.rest + np.square(V[:, ~large]).sum(axis=1))
    spikes = np.sqrt(scale)[:, None] * V[:, large]
    return Spiked(rest.astype(weights.dtype), spikes.astype(weights.dtype))
