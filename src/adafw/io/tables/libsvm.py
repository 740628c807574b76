"""LIBSVM files as tables, whole or in pieces."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.io.damage import FileName
from adafw.io.libsvm import first_id, line_of_sample, line_with_id, load, lowest_id
from adafw.io.libsvm_text import Notation, parsed
from adafw.io.packed import opened
from adafw.io.tables.columns import ColumnChoice, Piece
from adafw.memory import machine_bytes, readable
from adafw.rows.csr import as_csr

#: A fit holds about so many vectors of one number a feature: x, a gradient, a vertex, a copy.
_VECTORS = 4


def whole(path: FileName, columns: ColumnChoice, dtype: np.dtype[np.floating]) -> Piece:
    """The whole file; refused if one number a feature would not fit into memory."""
    notation = Notation(lowest_id(columns.zero_based), dtype)
    found = load(path, notation, columns.zero_based, None)
    n = found.X.shape[1]
    if columns.n_features is not None:
        if columns.n_features < n:
            raise ValueError(
                f"{path} has features up to number {n}, more than {columns.n_features}."
            )
        n = columns.n_features
    elif _VECTORS * 8 * n > machine_bytes():
        last = n if not found.zero_based else n - 1
        raise ValueError(
            f"{path}, line {line_with_id(path, last)}: feature id {last} asks for {n} "
            f"coefficients, which need {readable(_VECTORS * 8 * n)} of memory, this machine has "
            f"{readable(machine_bytes())}; number the features without gaps."
        )
    X = as_csr(found.X.data, found.X.indices, found.X.indptr, (found.X.shape[0], n))
    _check_finite(X.data, X.indptr, found.y, path)
    return Piece(X, found.y, None, found.zero_based)


def pieces(
    path: FileName, columns: ColumnChoice, dtype: np.dtype[np.floating], size: int
) -> Iterator[Piece]:
    """The file in pieces of about `size` bytes of text."""
    notation = Notation(lowest_id(columns.zero_based), dtype)
    before, shift = 0, None  # decided by the first lines that have ids, the same for all
    with opened(path) as file:
        for samples in parsed(file, path, notation, size):
            if not len(samples.y):
                continue
            if shift is None:
                shift = first_id(columns.zero_based, samples.least_id)
            if samples.least_id < shift:  # column -1 would be outside the model
                raise ValueError(
                    f"{path} must count its ids from 0 or from 1, got both: id 0 comes after lines "
                    "without it."
                )
            width = samples.largest_id - shift + 1
            n = columns.n_features if columns.n_features is not None else max(1, width)
            if width > n:
                raise ValueError(f"{path} has features up to number {width}, the model has {n}.")
            X = as_csr(samples.data, samples.indices - shift, samples.indptr, (len(samples.y), n))
            _check_finite(X.data, X.indptr, samples.y, path, before)
            before += len(samples.y)
            yield Piece(X, samples.y)


def _check_finite(
    values: NDArray[Any], starts: NDArray[Any], y: NDArray[Any], path: FileName, before: int = 0
) -> None:
    """Refuses NaN and infinity, naming the line of the first; samples so many `before` these."""
    for numbers, what in ((values, "features"), (y, "targets")):
        good = np.isfinite(numbers)
        if not good.all():
            at = int(np.argmin(good))
            row = int(np.searchsorted(starts, at, side="right")) - 1 if numbers is values else at
            raise ValueError(
                f"{path}, line {line_of_sample(path, before + row)}: expected finite {what}, got "
                f"{numbers[at]}."
            )
