"""What a loader returns: data that say what they are."""

from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from adafw import checks

#: Rows of samples: dense, or in CSR form.
Matrix: TypeAlias = NDArray[np.floating] | sparse.csr_array


@dataclass(frozen=True, eq=False)
class Dataset:
    """A and y, and what figures must say of them.

    `is_stand_in` is True for anything but the data set that `name` stands for: generated data, a
    part of it, another sample. `description` says which.
    """

    A: Matrix = field(repr=False)
    y: NDArray[np.generic] = field(repr=False)
    name: str
    description: str
    is_stand_in: bool = False

    @property
    def label(self) -> str:
        """Name, size and, where the data are not what the name says, a mark that they are not."""
        m, n = self.A.shape
        size = f"{self.name} ({m} x {n})"
        return f"{size}, STAND-IN: {self.description}" if self.is_stand_in else size

    def first(self, rows: int) -> "Dataset":
        """The first rows alone, which is then no longer the data set that `name` stands for."""
        m = self.A.shape[0]
        if checks.integer(rows, "rows", 1) >= m:
            return self
        description = f"{self.description}, the first {rows} of {m} rows"
        return replace(
            self, A=self.A[:rows], y=self.y[:rows], description=description, is_stand_in=True
        )
