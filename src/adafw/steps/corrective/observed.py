"""Observed entries of a matrix of any size: nothing of the size of the matrix ever exists."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.losses import Loss
from adafw.steps.corrective.factors import FactoredView, Matrix
from adafw.typing import MatrixLike

#: Second derivatives are at least this share of the largest.
_FLOOR = 1e-6


class Observed(FactoredView):
    """The mean loss of X[r_i, c_i] + base_i at m observed entries, in the order of their rows.

    rows, cols : 32-bit numbers r_i, nondecreasing, and c_i.
    y, base : targets as the loss takes them, and what is added to the entries of X.
    """

    def __init__(
        self, rows: NDArray[Any], cols: NDArray[Any], shape: tuple[int, int], y: Matrix,
        base: Matrix, loss: Loss,
    ) -> None:  # fmt: skip
        self.rows, self.cols, self.shape = rows, cols, shape
        self.y, self.base, self.loss = y, base, loss
        # Rows in order are a CSR matrix already: a matrix of slopes costs no sorting.
        self.starts = np.zeros(shape[0] + 1, rows.dtype if len(rows) < 2**31 else np.int64)
        np.cumsum(np.bincount(rows, minlength=shape[0]), out=self.starts[1:])

    @cached_property
    def least(self) -> float:
        """Below this no value can be."""
        return float(np.mean(self.loss.least(self.y)))

    def predict(self, left: Matrix, right: Matrix) -> Matrix:
        from adafw.kernels import entries

        out = np.empty(len(self.rows))
        left, right = np.ascontiguousarray(left), np.ascontiguousarray(right)
        entries.dots(self.rows, self.cols, left, right, out)
        return out

    def matrix(self, weights: Matrix) -> MatrixLike:
        from scipy.sparse import csr_array

        return csr_array((weights, self.cols, self.starts), shape=self.shape)

    def value(self, z: Matrix) -> float:
        return float(np.mean(self.loss.value(z + self.base, self.y)))

    def slopes(self, z: Matrix) -> Matrix:
        return np.asarray(self.loss.slope(z + self.base, self.y) / len(self.y))

    def bends(self, z: Matrix) -> Matrix:
        bends = self.loss.second(z + self.base, self.y) / len(self.y)
        return np.maximum(bends, _FLOOR * float(bends.max()))

    def diagonals(self, bends: Matrix, left: Matrix, right: Matrix) -> tuple[Matrix, Matrix]:
        weights = self.matrix(bends)
        return weights @ right**2, weights.T @ left**2
