"""LIBSVM files as tables, whole or in pieces."""

from collections.abc import Iterator

import numpy as np

from adafw.io.damage import FileName
from adafw.io.libsvm import first_id, line_with_id, load, lowest_id
from adafw.io.libsvm_text import Notation, parsed
from adafw.io.packed import opened
from adafw.io.tables.columns import ColumnChoice, Piece, check_finite
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
    check_finite(X.data, "features", path)
    check_finite(found.y, "targets", path)
    return Piece(X, found.y, None, found.zero_based)


def pieces(
    path: FileName, columns: ColumnChoice, dtype: np.dtype[np.floating], size: int
) -> Iterator[Piece]:
    """The file in pieces of about `size` bytes of text."""
    notation = Notation(lowest_id(columns.zero_based), dtype)
    shift = None  # decided by the first lines that have ids, the same for all
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
            check_finite(X.data, "features", path)
            check_finite(samples.y, "targets", path)
            yield Piece(X, samples.y)
