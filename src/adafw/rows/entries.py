"""Rows that are single entries of a matrix: <a_i, X> = X[r_i, c_i]."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.describe import digest
from adafw.rows.base import Rows, Vector, mean_weights
from adafw.typing import Batch, MatrixLike, Plain


class EntryRows(Rows):
    """a_i = e_r e_c^T for the places (r_i, c_i) of a matrix, repeats allowed. O(b) a product.

    What is combined is a dense matrix, zero where no a_i of the batch is.
    """

    places: NDArray[np.integer[Any]]

    def __init__(
        self,
        rows: NDArray[np.integer[Any]],
        cols: NDArray[np.integer[Any]],
        shape: tuple[int, int],
        dtype: np.dtype[Any],
    ) -> None:
        self.places = np.ravel_multi_index((rows, cols), shape)
        self.shape = (len(self.places), *shape)
        self.dtype = dtype

    def dot(self, x: Vector, batch: Batch = None) -> Vector:
        places = self.places if batch is None else self.places[batch]
        return x.reshape(-1)[places]

    def combine(self, weights: Vector, batch: Batch = None) -> Vector:
        places = self.places if batch is None else self.places[batch]
        matrix = np.zeros(self.shape[1:], np.result_type(self.dtype, weights.dtype))
        np.add.at(matrix.reshape(-1), places, weights)
        return matrix

    @property
    def stored(self) -> int:
        return self.shape[0]

    @property
    def largest(self) -> float:
        return 1.0

    def norms(self, p: float, axis: int = 1) -> Vector:
        if axis == 1:
            return np.ones(self.shape[0])
        counts = self._weight_of_places(None)
        return np.minimum(counts, 1.0) if p == np.inf else counts ** (1 / p)

    def spectral_norm(self, weights: Vector | None = None) -> tuple[float, bool]:
        # A^T W A is diagonal: the weight, or the number, of the observations of each place.
        return float(np.sqrt(self._weight_of_places(weights).max())), True

    def gram(self, weights: Vector) -> Vector:
        return np.diag(self._weight_of_places(weights).astype(self.dtype))

    def variances(self, weights: Vector) -> Vector:
        share = self._weight_of_places(mean_weights(weights, self.shape[0]))
        return (share * (1 - share)).reshape(self.shape[1:])

    def take(self, indices: NDArray[np.integer[Any]]) -> Rows:
        return self._at(self.places[indices], self.dtype)

    def doubled(self) -> Rows:
        return self._at(self.places, np.dtype(np.float64))

    def describe(self) -> dict[str, Plain]:
        return {"name": "entries", "shape": list(self.shape), "places": digest(self.places)}

    def __str__(self) -> str:
        return "{} entries of {} x {}".format(*self.shape)

    def _at(self, places: NDArray[np.integer[Any]], dtype: np.dtype[Any]) -> "EntryRows":
        shape = self.shape[1], self.shape[2]
        rows, cols = np.unravel_index(places, shape)
        return EntryRows(rows, cols, shape, dtype)

    def _weight_of_places(self, weights: Vector | None) -> Vector:
        size = math.prod(self.shape[1:])
        return np.bincount(self.places, weights, minlength=size).astype(np.float64)


def stored_entries(A: MatrixLike) -> tuple[Vector, Vector, Vector] | None:
    """(rows, columns, values) of what a scipy sparse matrix stores; None of anything else."""
    from scipy import sparse

    if not sparse.issparse(A):
        return None
    entries = A.tocoo()
    return entries.row, entries.col, np.asarray(entries.data, dtype=float)
