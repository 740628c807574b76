"""The only place that knows dense from sparse data."""

import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.arrays import all_finite, floating
from adafw.rows.base import Rows
from adafw.rows.centred import CentredRows
from adafw.rows.csr import CSRRows, as_csr
from adafw.rows.dense import DenseRows
from adafw.rows.disk import source_of
from adafw.rows.entries import EntryRows, stored_entries
from adafw.rows.matrices import MatrixRows
from adafw.rows.streamed import StreamedRows
from adafw.typing import MatrixLike

__all__ = [
    "CSRRows",
    "CentredRows",
    "DenseRows",
    "EntryRows",
    "MatrixRows",
    "Rows",
    "StreamedRows",
    "as_rows",
    "check_finite",
    "in_pieces",
    "stored_entries",
    "values_of",
    "widened",
]


def as_rows(A: MatrixLike, finite: bool = False, later: bool = False) -> Rows:
    """A as rows of float32 or float64: what fits is kept, anything else is converted once.

    The caller's matrix is never changed: a CSR matrix with repeated or unsorted columns is
    copied first. `finite` says that A has been looked through for NaN and infinity already;
    `later` that an array that is `unseen` will be, and then asked about by `check_finite`.
    """
    if isinstance(A, Rows):
        return A
    if _is_sparse(A):
        if np.issubdtype(A.dtype, np.complexfloating):
            raise TypeError("A must be a matrix of real numbers, got complex ones.")
        matrix = A.tocsr()
        if matrix.dtype not in (np.float32, np.float64):
            matrix = matrix.astype(np.float64)
        _check_shape(matrix.shape)
        if source_of(matrix.data) and source_of(matrix.indices) and matrix.has_canonical_format:
            return _streamed(CSRRows(matrix), finite)
        if not finite:
            _check_finite(matrix.data)
        if not matrix.has_canonical_format:
            matrix = matrix.copy() if matrix is A else matrix
            matrix.sum_duplicates()
        return CSRRows(matrix)
    array = floating(A, "A")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    _check_shape(array.shape)
    if source_of(array) and array.flags.c_contiguous:
        return _streamed(DenseRows(array), finite)
    rows = DenseRows(array)
    if not (finite or (later and rows.unseen)):
        check_finite(rows)
    return rows


def check_finite(rows: Rows) -> None:
    """Refuses rows of an array in which an entry is NaN or infinite."""
    if isinstance(rows, DenseRows) and not rows.finite:
        _check_finite(rows.array)


def _streamed(rows: CSRRows | DenseRows, finite: bool) -> Rows:
    """Rows on a disk; the pass that looks for NaN and infinity is that of their survey."""
    streamed = StreamedRows(rows)
    if not finite and not math.isfinite(streamed.largest):
        raise ValueError(_NOT_FINITE)
    return streamed


#: Entries that are looked through in one go.
_AT_ONCE = 1 << 22
_NOT_FINITE = "A must be finite, got NaN or infinity; impute or drop those rows first."


def in_pieces(A: MatrixLike, rows: int) -> Iterator[tuple[slice, MatrixLike]]:
    """A matrix in pieces of so many rows; as they come from the disk where it exceeds memory."""
    whole = as_rows(A, finite=True)
    if isinstance(whole, StreamedRows):
        for part, piece in whole.pieces():
            yield part, piece.matrix if isinstance(piece, CSRRows) else piece.array
        return
    for start in range(0, A.shape[0], rows):
        part = slice(start, min(start + rows, A.shape[0]))
        yield part, A[part]


def values_of(A: MatrixLike) -> NDArray[Any]:
    """What a matrix stores: all entries of an array, those that a sparse matrix lists."""
    return A.data if _is_sparse(A) else A


def widened(A: MatrixLike, n: int) -> MatrixLike:
    """A with n columns, those that it lacks being 0; None if it is an array, which lists no zeros.

    A sparse matrix is as wide as the last feature that its samples had; an array as its table was.
    """
    if A.shape[1] == n:
        return A
    return as_csr(A.data, A.indices, A.indptr, (A.shape[0], n)) if _is_sparse(A) else None


def _is_sparse(A: MatrixLike) -> bool:
    """Whether A is a scipy sparse matrix; if scipy.sparse was never imported, nothing is."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(A)


def _check_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 2:
        raise ValueError(f"A must have two dimensions (rows are samples), got shape {shape}.")
    if min(shape) < 1:
        raise ValueError(f"A must have at least one row and one column, got shape {shape}.")


def _check_finite(values: NDArray[Any]) -> None:
    if values.size <= _AT_ONCE:
        good = all_finite(values)
    else:  # piece by piece, so that mapped data larger than memory make no large temporary
        step = max(1, _AT_ONCE // max(1, math.prod(values.shape[1:])))
        starts = range(0, len(values), step)
        good = all(all_finite(values[start : start + step]) for start in starts)
    if not good:
        raise ValueError(_NOT_FINITE)
