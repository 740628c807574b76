"""Rows that are matrices: <a_i, X> for an X of two dimensions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.rows.base import Rows, Vector
from adafw.typing import Batch, Plain, Shape


class MatrixRows(Rows):
    """Rows stored as vectors, row by row of the matrices that they are; a product costs the same.

    What is combined is a matrix of the shape given.
    """

    def __init__(self, rows: Rows, shape: Shape) -> None:
        height, width = shape  # type: ignore[misc]
        if rows.shape[1] != height * width:
            raise ValueError(
                f"shape must have as many entries as a row of A, {rows.shape[1]}, got "
                f"{height} x {width}."
            )
        self.rows = rows
        self.shape = (rows.shape[0], height, width)
        self.dtype = rows.dtype
        self.remote, self.streamed = rows.remote, rows.streamed

    def dot(self, x: Vector, batch: Batch = None) -> Vector:
        return self.rows.dot(x.reshape(-1), batch)

    def combine(self, weights: Vector, batch: Batch = None) -> Vector:
        return self.rows.combine(weights, batch).reshape(self.shape[1:])

    def dot_columns(self, p: Vector) -> Vector:
        return self.rows.dot_columns(p).reshape(self.shape[1:])

    @property
    def kind(self) -> tuple[object, ...]:
        return type(self), *self.rows.kind

    def status(self) -> str:
        return self.rows.status()

    @property
    def stored(self) -> int:
        return self.rows.stored

    @property
    def largest(self) -> float:
        return self.rows.largest

    def norms(self, p: float, axis: int = 1) -> Vector:
        return self.rows.norms(p, axis)

    def spectral_norm(self, weights: Vector | None = None) -> tuple[float, bool]:
        return self.rows.spectral_norm(weights)

    def gram(self, weights: Vector) -> Vector:
        return self.rows.gram(weights)

    def variances(self, weights: Vector) -> Vector:
        return self.rows.variances(weights).reshape(self.shape[1:])

    def mean_squares(self, weights: Vector) -> Vector:
        return self.rows.mean_squares(weights).reshape(self.shape[1:])

    def take(self, indices: NDArray[np.integer[Any]]) -> Rows:
        return MatrixRows(self.rows.take(indices), self.shape[1:])

    def doubled(self) -> Rows:
        return MatrixRows(self.rows.doubled(), self.shape[1:])

    def describe(self) -> dict[str, Plain]:
        return {"name": "matrices", "shape": list(self.shape), "rows": self.rows.describe()}

    def __str__(self) -> str:
        return "{} matrices of {} x {}".format(*self.shape)
