"""The rows restricted to a working set of columns: what second-order steps multiply with."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

#: Columns up to which a Gram matrix always pays, and above which it never does.
_FEW, _MANY, _MANY_DENSE = 64, 500, 1500
#: Its multiplications for each stored entry up to which it pays, in between: measured.
_WORTH = 10
#: Entries of a dense matrix scaled at a time, so that no second matrix of that size exists.
_SLICE = 1 << 20


class WorkingRows(ABC):
    """A_S, the columns S of the matrix, S increasing. Products are float64."""

    #: m, the number of rows.
    size: int
    #: Whether a Gram matrix is worth its cost: that of about ten products.
    gram_pays: bool

    @abstractmethod
    def dot(self, w: Vector) -> Vector:
        """A_S w."""

    @abstractmethod
    def combine(self, p: Vector) -> Vector:
        """A_S^T p."""

    @abstractmethod
    def product(self, bends: Vector, d: Vector) -> Vector:
        """A_S^T (bends * A_S d)."""

    @abstractmethod
    def add_gram(self, weights: Vector, gram: Vector) -> None:
        """gram += A_S^T diag(weights) A_S, lower triangle at least."""

    @abstractmethod
    def add_columns(self, weights: Vector, fresh: NDArray[np.bool_], gram: Vector) -> None:
        """The same in the rows and columns that are fresh, where gram is 0 before."""


class SparseWorking(WorkingRows):
    """Of a CSR matrix, from one pass over it (kernels/working_set.py)."""

    def __init__(self, arrays: tuple[Any, Any, Any], n: int, chosen: NDArray[np.int64]) -> None:
        from adafw.kernels import working_set

        self.kernels = working_set
        values, _, starts = arrays
        position = np.full(n, working_set.OUTSIDE, np.uint32)
        position[chosen] = np.arange(chosen.size, dtype=np.uint32)
        room = values.size + 1  # one more: an entry is written before it is known to stay
        part = working_set.Part(
            np.empty(room), np.empty(room, np.uint32), np.empty(starts.size, np.uint64)
        )
        working_set.restrict(arrays, position, part)
        self.part, self.shape = part, (starts.size - 1, chosen.size)
        self.size = starts.size - 1
        each = np.diff(part.starts.view(np.int64)).astype(np.float64)
        few = chosen.size <= _FEW
        self.gram_pays = few or (chosen.size <= _MANY and each @ each <= 2 * _WORTH * each.sum())

    def dot(self, w: Vector) -> Vector:
        out = np.empty(self.shape[0])
        self.kernels.dot(self.part, w, out)
        return out

    def combine(self, p: Vector) -> Vector:
        out = np.empty(self.shape[1])
        self.kernels.combine(self.part, p, out)
        return out

    def product(self, bends: Vector, d: Vector) -> Vector:
        out = np.empty(self.shape[1])
        self.kernels.product(self.part, bends, d, out)
        return out

    def add_gram(self, weights: Vector, gram: Vector) -> None:
        self.kernels.add_gram(self.part, weights, gram)

    def add_columns(self, weights: Vector, fresh: NDArray[np.bool_], gram: Vector) -> None:
        self.kernels.add_columns(self.part, weights, fresh, gram)


class DenseWorking(WorkingRows):
    """Of a dense array: BLAS does the work."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = np.ascontiguousarray(array, np.float64)
        m, size = self.array.shape
        self.size = m
        self.gram_pays = size <= _MANY_DENSE  # BLAS makes it, and nothing else is as fast

    def dot(self, w: Vector) -> Vector:
        return self.array @ w

    def combine(self, p: Vector) -> Vector:
        return p @ self.array

    def product(self, bends: Vector, d: Vector) -> Vector:
        return (bends * (self.array @ d)) @ self.array

    def add_gram(self, weights: Vector, gram: Vector) -> None:
        for part in self._slices(weights):
            rows = self.array[part]
            gram += (rows * weights[part, None]).T @ rows

    def add_columns(self, weights: Vector, fresh: NDArray[np.bool_], gram: Vector) -> None:
        new = np.flatnonzero(fresh)
        block = np.zeros((new.size, fresh.size))
        for part in self._slices(weights):
            rows = self.array[part]
            block += (rows[:, new] * weights[part, None]).T @ rows
        gram[new] = block
        gram[:, new] = block.T

    def _slices(self, weights: Vector) -> list[Any]:
        """Rows with a weight, cut into slices; all of them if most have one."""
        chosen = np.flatnonzero(weights)
        step = max(1, _SLICE // max(1, self.array.shape[1]))
        if chosen.size > 0.7 * weights.size:
            return [slice(k, k + step) for k in range(0, weights.size, step)]
        return [chosen[k : k + step] for k in range(0, chosen.size, step)]
