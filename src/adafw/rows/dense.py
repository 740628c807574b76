"""Rows of a dense array."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.describe import digest
from adafw.rows.base import Rows, Vector
from adafw.rows.spectral import spectral_norm
from adafw.typing import Batch, Plain


class DenseRows(Rows):
    """A C-contiguous array of float32 or float64."""

    def __init__(self, A: NDArray[np.floating[Any]]) -> None:
        self.array = np.ascontiguousarray(A)
        self.shape = (A.shape[0], A.shape[1])
        self.dtype = A.dtype

    def dot(self, x: Vector, batch: Batch = None) -> Vector:
        rows = self.array if batch is None else self.array[batch]
        return rows @ x

    def combine(self, weights: Vector, batch: Batch = None) -> Vector:
        rows = self.array if batch is None else self.array[batch]
        return weights @ rows

    def squared_norms(self) -> Vector:
        return np.einsum("ij,ij->i", self.array, self.array)

    def norms(self, p: float, axis: int = 1) -> Vector:
        return np.linalg.norm(self.array.astype(np.float64, copy=False), p, axis=axis)

    def spectral_norm(self, weights: Vector | None = None) -> tuple[float, bool]:
        return spectral_norm(self.array, weights)

    def describe(self) -> Plain:
        return {"name": "dense", **digest(self.array)}

    def __str__(self) -> str:
        return f"{self.shape[0]} x {self.shape[1]} dense"
