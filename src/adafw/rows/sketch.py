"""The directions along which rows are long, from a few of them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Directions sought, in one row of so many at most, and in so many rows.
RANK, SHARE, ROWS = 64, 8, 4096


#: Share of a column's square that is taken for noise, at least: less would be rounding.
NOISE = 1e-9


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
    """
    m, n = array.shape
    step = max(SHARE, m // min(2 * n, ROWS))
    root = 1 / np.sqrt(np.asarray(weights, np.float64))
    part = array[::step] * root
    basis = np.linalg.qr(part[:: max(1, len(part) // RANK)][:RANK].T)[0]
    basis = np.linalg.qr(part.T @ (part @ basis))[0]
    images = part @ basis
    explained = basis @ (images.T @ images)
    rest = np.einsum("ij,ij->j", part, part) - np.einsum("jk,jk->j", explained, basis)
    return Sketch(step, basis, images, np.clip(rest / len(part), NOISE, 1.0))
