"""Columns that second-order steps work with, on the workers of a cluster."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.distributed.engine import Answer
from adafw.distributed.typing import Each
from adafw.rows.base import Vector
from adafw.rows.working import WorkingRows

#: Atoms up to which their Gram matrix is summed on the workers.
MOST_ATOMS = 1500


class DistributedWorking(WorkingRows):
    """The chosen columns on the workers: their Gram matrices are summed, nothing else is sent.

    A Gram matrix of s columns is s^2 / 2 numbers a worker, whatever the number of rows; the columns
    themselves would be all their entries.
    """

    remote = True

    def __init__(
        self, chosen: NDArray[np.int64], size: int, ask: Callable[..., Answer],
        slices: Callable[[Vector], Each],
    ) -> None:  # fmt: skip
        self.chosen, self.size, self._rows_ask, self._slices = chosen, size, ask, slices
        self.gram_pays, self.gram_work = chosen.size <= MOST_ATOMS, math.inf  # a trip is dear

    def dot(self, w: Vector) -> NDArray[np.float64]:
        return self._ask("working_dot", w=w).by_rows().astype(np.float64, copy=False)

    def combine(self, p: Vector) -> NDArray[np.float64]:
        return self._ask("working_combine", p=p).total.astype(np.float64, copy=False)

    def squares(self, p: Vector) -> NDArray[np.float64]:
        return self._ask("working_squares", p=p).total.astype(np.float64, copy=False)

    def product(self, bends: Vector, d: Vector) -> NDArray[np.float64]:
        return self._ask("working_product", p=bends, w=d).total.astype(np.float64, copy=False)

    def add_gram(self, weights: Vector, gram: Vector, first: int = 0) -> None:
        total = self._ask("working_gram", p=weights, first=first).total
        rows, columns = np.tril_indices(self.chosen.size)
        some = slice(first * (first + 1) // 2, None)
        gram[rows[some], columns[some]] += total

    def _ask(self, operation: str, p: Vector | None = None, **common: Any) -> Answer:
        own = (lambda k: {}) if p is None else self._slices(p)
        return self._rows_ask(operation, common={"chosen": self.chosen, **common}, own=own)
