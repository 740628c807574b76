"""Rows of a matrix less their mean, which is never subtracted entry by entry."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.describe import describe
from adafw.rows.base import Rows, Vector
from adafw.typing import Batch, Plain

#: Entries of the centred matrix that exist at one time where norms of it are asked for.
_SLICE = 1 << 22


class CentredRows(Rows):
    """The rows a_i - c of a matrix, c being their mean in the weights of the problem.

    dot and combine cost O(n) more than those of the rows.
    """

    def __init__(self, rows: Rows, mean: Vector) -> None:
        self.rows, self.mean = rows, mean
        self.shape = rows.shape
        self.dtype = rows.dtype
        self.remote, self.streamed = rows.remote, rows.streamed

    def dot(self, x: Vector, batch: Batch = None) -> Vector:
        return self.rows.dot(x, batch) - self.mean @ x

    @property
    def kind(self) -> tuple[object, ...]:
        return type(self), *self.rows.kind

    def status(self) -> str:
        return self.rows.status()

    @property
    def plain(self) -> tuple[Rows, bool]:
        return self.rows, True

    def shifted(self, z: Vector, x: Vector) -> Vector:
        return z - self.mean @ x

    def combine(self, weights: Vector, batch: Batch = None) -> Vector:
        return self.rows.combine(weights, batch) - _total(weights) * self.mean

    def dot_columns(self, p: Vector) -> Vector:
        return self.rows.dot_columns(p) - _total(p) * self.mean

    @property
    def stored(self) -> int:
        return self.rows.stored

    @property
    def largest(self) -> float:
        return max(float(np.abs(part).max()) for part in self._slices())

    def norms(self, p: float, axis: int = 1) -> Vector:
        parts = (np.linalg.norm(part, p, axis=axis) for part in self._slices())
        if axis == 1:
            return np.concatenate(list(parts))
        return np.linalg.norm(np.array(list(parts)), p, axis=0)  # of norms: of the whole column

    def spectral_norm(self, weights: Vector | None = None) -> tuple[float, bool]:
        # Subtracting the mean is an orthogonal projection of W^(1/2) A: the norm cannot grow.
        return self.rows.spectral_norm(weights)[0], False

    def gram(self, weights: Vector) -> Vector:
        c, s = self.mean, self.rows.combine(weights)
        mixed = np.outer(c, s)
        return self.rows.gram(weights) - mixed - mixed.T + weights.sum() * np.outer(c, c)

    def variances(self, weights: Vector) -> Vector:
        return self.rows.variances(weights)

    def take(self, indices: NDArray[np.integer[Any]]) -> Rows:
        return CentredRows(self.rows.take(indices), self.mean)

    def few(self, indices: NDArray[np.integer[Any]]) -> Rows:
        return CentredRows(self.rows.few(indices), self.mean)

    def doubled(self) -> Rows:
        return CentredRows(self.rows.doubled(), self.mean.astype(np.float64, copy=False))

    def columns(self, indices: NDArray[np.integer[Any]]) -> Rows:
        return CentredRows(self.rows.columns(indices), self.mean[indices])

    def block(self, part: slice) -> NDArray[Any]:
        return self.rows.block(part) - self.mean

    def describe(self) -> dict[str, Plain]:
        inner = self.rows.describe()
        return {**inner, "name": f"centred {inner['name']}", "mean": describe(self.mean)}

    def __str__(self) -> str:
        return f"centred {self.rows}"

    def _slices(self) -> Iterator[NDArray[Any]]:
        m, n = self.shape
        step = max(1, _SLICE // n)
        for start in range(0, m, step):
            yield self.rows.block(slice(start, start + step)).astype(float) - self.mean


def _total(weights: Vector) -> Vector:
    return weights.sum(dtype=np.float64).astype(weights.dtype)
