"""How a part of the rows is made, on any worker, as often as it takes."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from adafw.distributed.typing import DaskObject
from adafw.io.tables import ColumnChoice, format_of, read_table
from adafw.typing import MatrixLike


@dataclass(frozen=True)
class Block:
    """Rows, targets and weights as a recipe makes them; `zero_based` of LIBSVM files only."""

    X: MatrixLike
    y: NDArray[Any]
    weight: NDArray[Any] | None = None
    zero_based: bool | None = None
    names: tuple[str, ...] | None = None  #: of the columns


class PartRecipe(Protocol):
    """Makes one part."""

    def __str__(self) -> str:
        """What errors call it."""

    def arguments(self) -> tuple[DaskObject, ...]:
        """What `make` takes: Dask's delayed values are computed on the way."""

    def bare(self) -> "PartRecipe":
        """What a worker needs of it, the arguments aside."""

    def make(self, *arguments: Any) -> Block:
        """The part, on the worker that asks."""

    def settled(self, n_features: int, zero_based: bool | None) -> "PartRecipe":
        """The same with what all parts must agree on."""


@dataclass(frozen=True)
class FilePart:
    """A file that every worker can read: LIBSVM, npy, npz, Parquet or CSV."""

    path: str
    format: str | None = None
    columns: ColumnChoice = ColumnChoice()
    dtype: str = "float64"

    def __str__(self) -> str:
        return self.path

    def arguments(self) -> tuple[DaskObject, ...]:
        return ()

    def bare(self) -> "FilePart":
        return self

    def make(self) -> Block:
        table = read_table(self.path, self.format, self.columns, self.dtype)
        assert table.y is not None
        return Block(table.X, table.y, None, table.zero_based, table.features)

    def settled(self, n_features: int, zero_based: bool | None) -> "FilePart":
        if format_of(self.path, self.format) != "libsvm":
            return self
        flag = self.columns.zero_based if zero_based is None else zero_based
        return replace(self, columns=replace(self.columns, n_features=n_features, zero_based=flag))


@dataclass(frozen=True)
class CallPart:
    """A function without arguments that returns (X, y) or (X, y, sample_weight)."""

    call: Callable[[], tuple[MatrixLike, ...]]
    number: int

    def __str__(self) -> str:
        name = getattr(self.call, "__name__", type(self.call).__name__)
        return f"part {self.number} ({name})"

    def arguments(self) -> tuple[DaskObject, ...]:
        return ()

    def bare(self) -> "CallPart":
        return self

    def make(self) -> Block:
        made = self.call()
        if not isinstance(made, tuple | list) or len(made) not in (2, 3):
            raise TypeError(
                f"{self} must return (X, y) or (X, y, sample_weight), got {type(made).__name__}."
            )
        return _block(self, *made)

    def settled(self, n_features: int, zero_based: bool | None) -> "CallPart":
        return self


@dataclass(frozen=True)
class DaskPart:
    """A block of rows of dask arrays, with its targets and weights."""

    blocks: tuple[DaskObject, ...]
    number: int
    outputs: bool = False  #: whether there may be several targets a row

    def __str__(self) -> str:
        return f"block {self.number} of X"

    def arguments(self) -> tuple[DaskObject, ...]:
        return self.blocks

    def bare(self) -> "DaskPart":
        return replace(self, blocks=())

    def make(self, X: MatrixLike, y: ArrayLike, weight: ArrayLike | None = None) -> Block:
        return _block(self, X, y, weight, self.outputs)

    def settled(self, n_features: int, zero_based: bool | None) -> "DaskPart":
        return self


#: A file name, or a function that returns (X, y) or (X, y, sample_weight).
PartLike = str | os.PathLike[str] | Callable[[], tuple[MatrixLike, ...]]


def as_recipes(
    parts: Iterable[PartLike], *, format: str | None, target: str | None, n_features: int | None,
    dtype: DTypeLike,
) -> list[FilePart | CallPart]:  # fmt: skip
    """File names and callables as recipes."""
    if isinstance(parts, str | os.PathLike):
        parts = [parts]
    found: list[FilePart | CallPart] = []
    for number, part in enumerate(parts):
        if callable(part):
            found.append(CallPart(part, number))
        elif isinstance(part, str | os.PathLike):
            libsvm = format_of(part, format) == "libsvm"
            columns = ColumnChoice(target=target, n_features=n_features if libsvm else None)
            # Absolute: a worker may run in another directory.
            found.append(FilePart(os.path.abspath(part), format, columns, np.dtype(dtype).name))
        else:
            raise TypeError(
                f"parts must be file names or functions that return (X, y), got {part!r}."
            )
    if not found:
        raise ValueError("parts must hold at least one file name or function, got none.")
    return found


def _block(
    recipe: object,
    X: MatrixLike,
    y: ArrayLike,
    weight: ArrayLike | None = None,
    outputs: bool = False,
) -> Block:
    y = np.asarray(y)
    if y.shape[:1] != X.shape[:1] or y.ndim > 1 + outputs:
        raise ValueError(
            f"{recipe} must have one target a row, shape ({X.shape[0]},), got {y.shape}."
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        bad = int(np.argwhere(~np.isfinite(y))[0, 0])
        raise ValueError(f"{recipe} must have finite targets, got {y[bad]} in its row {bad}.")
    if weight is not None:
        weight = np.asarray(weight)
        if weight.shape != y.shape[:1]:
            raise ValueError(
                f"{recipe} must have one weight a row, shape {y.shape[:1]}, got {weight.shape}."
            )
    return Block(X, y, weight)
