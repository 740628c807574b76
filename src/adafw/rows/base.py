"""The rows a_1 .. a_m of a data matrix, whatever it is stored as."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.typing import Batch, Plain

Vector = NDArray[np.floating[Any]]


class Rows(ABC):
    """The matrix A, asked for products with a batch of its rows."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    @abstractmethod
    def dot(self, x: Vector, batch: Batch = None) -> Vector:
        """<a_i, x> for i in the batch; None means all rows."""

    @abstractmethod
    def combine(self, weights: Vector, batch: Batch = None) -> Vector:
        """sum of weights_i a_i over the batch; None means all rows."""

    @abstractmethod
    def squared_norms(self) -> Vector:
        """||a_i||_2^2 of every row."""

    @abstractmethod
    def describe(self) -> Plain:
        """What tells this data from other data."""


def read_only(array: Any) -> Any:
    """A view that cannot be written: memory-mapped and ordinary data then share compiled code."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def as_batch(batch: Batch, m: int) -> Any:
    """Row numbers as the kernels take them, none outside the data; empty for None, all rows."""
    if batch is None:
        return read_only(np.empty(0, np.uint64))
    rows = np.ascontiguousarray(batch, np.int64).view(np.uint64)
    # A negative number is a huge unsigned one.
    if rows.size and rows.max() >= m:
        raise IndexError(f"a batch must hold row numbers from 0 to {m - 1}, got {batch}.")
    return read_only(rows)


def as_point(x: Any, size: int, name: str) -> Any:
    """A contiguous read-only vector of floats, or an error if its length is not `size`."""
    if x.shape != (size,):
        raise ValueError(f"{name} must have shape ({size},), got {x.shape}.")
    return read_only(np.ascontiguousarray(x))
