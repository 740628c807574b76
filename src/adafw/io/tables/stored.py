"""Directories of mapped parts as tables."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from adafw.io.damage import FileName
from adafw.io.parts import Manifest, load_parts
from adafw.io.tables.columns import ColumnChoice, Piece, check_finite
from adafw.rows import as_rows, in_pieces, values_of, widened
from adafw.typing import MatrixLike


def whole(path: FileName, columns: ColumnChoice) -> Piece:
    """The parts, mapped, in the dtype that they have.

    Those that exceed memory are not looked through for NaN here: that is a pass over a disk, and
    who fits makes it anyway.
    """
    A, y = load_parts(path)
    rows = as_rows(A, finite=True)
    if not rows.streamed:
        check_finite(rows.parts()["data"], "features", path)
    targets = np.array(y, np.float64)
    check_finite(targets, "targets", path)
    zero_based = Manifest.read(Path(path)).zero_based
    return Piece(_of_width(A, columns, path), targets, None, zero_based)


def pieces(path: FileName, columns: ColumnChoice, rows_at_a_time: int) -> Iterator[Piece]:
    """The parts in pieces, read ahead where they exceed memory."""
    A, y = load_parts(path)
    for part, X in in_pieces(A, rows_at_a_time):
        check_finite(values_of(X), "features", path)
        targets = np.array(y[part], np.float64)
        check_finite(targets, "targets", path)
        yield Piece(_of_width(X, columns, path), targets)


def _of_width(X: MatrixLike, columns: ColumnChoice, path: FileName) -> MatrixLike:
    """X with as many columns as the model; those that the parts never saw are 0."""
    n = columns.n_features
    if n is None:
        return X
    if X.shape[1] > n:
        raise ValueError(f"{path} has {X.shape[1]} features, the model has {n}.")
    wide = widened(X, n)
    if wide is None:
        raise ValueError(f"{path} has {X.shape[1]} features, the model needs {n}.")
    return wide
