"""The directions along which rows are long, from a few of them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Directions sought, in one row of so many at most, and in so many rows.
RANK, SHARE, ROWS = 64, 8, 4096


#: Share of a column's square that is taken for noise, at least: less would be rounding.
NOISE = 1e-9
#: The share up to which rounding of single precision may be a good part of it.
NOISE_SINGLE = 1e-3


class Sketch(NamedTuple):
    """An orthonormal basis Q, and B Q for every `step`-th row of B = A / sqrt(weights).

    `rest`: the mean squares of the columns of B less what Q explains of them.
    """

    step: int
    basis: NDArray[np.float64]
    images: NDArray[np.float64]
    rest: NDArray[np.float64]


def sketch(array: NDArray[np.floating[Any]], weights: NDArray[Any]) -> Sketch:
    """One step of subspace iteration with B^T B, from rows of B itself; of two rows a column.

    Fewer tell less of the directions than the columns have noise, more cost more than they save.
    In single precision, unless that leaves nothing of the rest.
    """
    m, n = array.shape
    step = max(SHARE, m // min(2 * n, ROWS))
    root = 1 / np.sqrt(np.asarray(weights, np.float64))
    some = array[::step]
    single = np.multiply(some, root, out=np.empty(some.shape, np.float32), casting="same_kind")
    found = _sketch(step, single)
    return found if found.rest.min() > NOISE_SINGLE else _sketch(step, some * root)


def _sketch(step: int, part: NDArray[np.floating[Any]]) -> Sketch:
    """That of some rows of B."""
    basis = np.linalg.qr(part[:: max(1, len(part) // RANK)][:RANK].T)[0]
    basis = np.linalg.qr(part.T @ (part @ basis))[0]
    images = part @ basis
    explained = basis @ (images.T @ images)
    squares = np.einsum("ij,ij->j", part, part)
    rest = (squares - np.einsum("jk,jk->j", explained, basis)) / len(part)
    wide = [np.asarray(found, np.float64) for found in (basis, images, rest)]
    return Sketch(step, wide[0], wide[1], np.clip(wide[2], NOISE, 1.0))


def noise(moments: NDArray[np.floating[Any]], share: float) -> float:
    """The share of a matrix of second moments, its diagonal aside, that a sample makes by itself.

    Of columns that have nothing to do with each other, correlations have squares of `share`, one
    over the size of the sample, on average. (To shrink a matrix by it, as Ledoit and Wolf 2004 do,
    would lift its short directions, which are those that steps need.)
    """
    n = len(moments)
    root = np.sqrt(np.maximum(moments.diagonal(), 0.0))
    root = np.divide(1.0, root, out=np.zeros(n), where=root > 0)
    squares = np.square(moments * root[:, None] * root).sum() - np.count_nonzero(root)
    return min(1.0, n * (n - 1) * share / max(float(squares), 1e-300))
