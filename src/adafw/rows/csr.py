"""Rows of a sparse matrix in compressed sparse row form."""

from typing import Any

import numpy as np

from adafw.describe import digest
from adafw.rows.base import Rows, Vector
from adafw.rows.spectral import spectral_norm
from adafw.typing import Batch, Plain


class CSRRows(Rows):
    """A canonical CSR matrix (sorted indices, no repeats) of float32 or float64."""

    def __init__(self, A: Any) -> None:
        self.matrix = A
        self.shape = (A.shape[0], A.shape[1])
        self.dtype = A.dtype

    def dot(self, x: Vector, batch: Batch = None) -> Vector:
        rows = self.matrix if batch is None else self.matrix[batch]
        return np.asarray(rows @ x)

    def combine(self, weights: Vector, batch: Batch = None) -> Vector:
        rows = self.matrix if batch is None else self.matrix[batch]
        return np.asarray(rows.T @ weights)

    def squared_norms(self) -> Vector:
        return np.asarray(self.matrix.multiply(self.matrix).sum(axis=1)).ravel()

    def norms(self, p: float, axis: int = 1) -> Vector:
        size = abs(self.matrix.astype(np.float64))
        if p == np.inf:
            return np.asarray(size.max(axis=axis).todense()).ravel()
        return np.asarray((size**p).sum(axis=axis)).ravel() ** (1 / p)

    def spectral_norm(self, weights: Vector | None = None) -> tuple[float, bool]:
        return spectral_norm(self.matrix, weights)

    def describe(self) -> Plain:
        return {
            "name": "csr",
            "shape": list(self.shape),
            "values": digest(self.matrix.data),
            "columns": digest(self.matrix.indices),
            "rows": digest(self.matrix.indptr),
        }

    def __str__(self) -> str:
        return f"{self.shape[0]} x {self.shape[1]} csr"
