"""numpy's .npy and .npz files as tables."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from adafw.io.arrays import NpyMatrix, TooLarge, read_npz
from adafw.io.damage import DAMAGE, FileName, is_damage, reason
from adafw.io.packed import opened
from adafw.io.tables.columns import ColumnChoice, Layout, Piece, Targets, check_finite
from adafw.rows import values_of

if TYPE_CHECKING:
    from scipy import sparse

_CSR = {"data", "indices", "indptr", "shape"}
_KNOWN = {"X", "y", *_CSR}


def npy_pieces(
    path: FileName,
    columns: ColumnChoice,
    dtype: np.dtype[np.floating],
    with_target: bool,
    rows: int,
) -> Iterator[Piece]:
    """The file in pieces of so many rows."""
    with opened(path) as file:
        matrix = NpyMatrix(file, path)
        m, n = matrix.header.shape
        layout = Layout.of(n, None, columns, path, with_target)
        for start in range(0, m, rows):
            part = matrix.rows(start, min(start + rows, m))
            check_finite(part, "features", path)
            y = None if layout.target is None else part[:, layout.target].astype(np.float64)
            yield Piece(part[:, layout.features].astype(dtype), y)


def npz_whole(
    path: FileName, columns: ColumnChoice, dtype: np.dtype[np.floating], with_target: bool
) -> Piece:
    """The file, as a table: X and y, or the arrays of a CSR matrix and y."""
    try:
        arrays = read_npz(path, _KNOWN.__contains__, packed=True)
    except TooLarge:
        raise
    except DAMAGE as error:
        if not is_damage(error):
            raise
        raise ValueError(f"{path} must be a whole .npz file of numbers{reason(error)}.") from None
    X = _matrix(arrays, dtype, path)
    y = arrays.get("y")
    if y is None and with_target:
        raise ValueError(f"{path} must hold targets y beside X; save them as y, or give --labels.")
    if y is not None and y.shape != X.shape[:1]:
        raise ValueError(f"{path} must hold one target a row: {X.shape[0]} rows, y {y.shape}.")
    if columns.n_features is not None and X.shape[1] != columns.n_features:
        raise ValueError(f"{path} has {X.shape[1]} features, the model has {columns.n_features}.")
    if not X.shape[0]:
        raise ValueError(f"{path} must hold at least one sample, got none.")
    check_finite(values_of(X), "features", path)
    return Piece(X, None if y is None else _targets(y, path))


def _targets(y: NDArray[np.generic], path: FileName) -> Targets:
    if y.dtype.kind in "US":
        return y.astype(np.str_)
    if y.dtype.kind not in "biuf":
        raise ValueError(f"{path} must hold numbers or text as targets y, got {y.dtype}.")
    check_finite(y, "targets", path)
    return cast("Targets", y)  # whole numbers stay whole: they may be classes


def _matrix(
    arrays: dict[str, NDArray[np.generic]], dtype: np.dtype[np.floating], path: FileName
) -> "NDArray[np.floating] | sparse.csr_array":
    if set(arrays) >= _CSR:
        from scipy import sparse

        parts = arrays["data"].astype(dtype), arrays["indices"], arrays["indptr"]
        try:
            X = sparse.csr_array(parts, shape=tuple(int(n) for n in arrays["shape"]))
            X.check_format(full_check=True)  # ids and row starts in range: kernels rely on it
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path} must hold a sparse matrix in CSR form: {error}.") from None
        return X
    if "X" not in arrays:
        raise ValueError(f"{path} must hold X (and y), or a sparse matrix and y.")
    dense = arrays["X"]
    if dense.ndim != 2 or dense.dtype.kind not in "biuf":
        raise ValueError(f"{path} must hold a matrix of numbers X.")
    return dense.astype(dtype)
