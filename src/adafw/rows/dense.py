"""Rows of a dense array."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.describe import digest
from adafw.rows.base import Rows, Vector, as_batch, as_point, read_only
from adafw.rows.spectral import spectral_norm
from adafw.typing import Batch, Plain


class DenseRows(Rows):
    """A C-contiguous array of float32 or float64."""

    def __init__(self, A: NDArray[np.floating[Any]]) -> None:
        self.array = np.ascontiguousarray(A)
        self.shape = (A.shape[0], A.shape[1])
        self.dtype = A.dtype

    @cached_property
    def arrays(self) -> Any:
        """The array as the kernels take it."""
        return read_only(self.array)

    def dot(self, x: Vector, batch: Batch = None) -> Vector:
        if batch is None:
            return self.array @ x
        from adafw.kernels import rows

        rows_of = as_batch(batch, self.shape[0])
        x = as_point(x.astype(self.dtype, copy=False), self.shape[1], "x")
        out = np.empty(rows_of.size, self.dtype)
        rows.dot(self.arrays, rows_of, 0, out.size, x, out)
        return out

    def combine(self, weights: Vector, batch: Batch = None) -> Vector:
        if batch is None:
            return weights @ self.array
        from adafw.kernels import rows

        rows_of = as_batch(batch, self.shape[0])
        weights = as_point(weights, rows_of.size, "weights")
        out = np.zeros(self.shape[1], np.result_type(self.dtype, weights.dtype))
        rows.combine(self.arrays, rows_of, 0, weights.size, weights, out)
        return out

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
