"""Data of any kind by name: LIBSVM, CSV, Parquet, npy, npz, parts; whole or in pieces."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from adafw.io.damage import FileName
from adafw.io.libsvm import check_dtype
from adafw.io.packed import SUFFIXES
from adafw.io.tables import arrays, arrow, delimited, libsvm, stored
from adafw.io.tables.columns import ColumnChoice, Piece, Targets, joined_targets

__all__ = ["FORMATS", "ColumnChoice", "Piece", "format_of", "read_pieces", "read_table"]

#: Rows of a piece, or bytes of its text, where files are read in pieces.
PIECE_ROWS = 8192
PIECE_BYTES = 1 << 22

FORMATS = ("libsvm", "csv", "parquet", "npy", "npz", "parts")
_SUFFIXES = {
    ".svm": "libsvm", ".libsvm": "libsvm", ".svmlight": "libsvm", ".txt": "libsvm",
    ".dat": "libsvm", ".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet",
    ".npy": "npy", ".npz": "npz",
}  # fmt: skip


def format_of(path: FileName, given: str | None = None) -> str:
    """The format that was given, or that the name ends on; LIBSVM if the name tells nothing.

    A directory holds parts.
    """
    if given is not None:
        return given
    if Path(path).is_dir():
        return "parts"
    suffixes = [s.lower() for s in Path(path).suffixes if s.lower() not in SUFFIXES]
    return _SUFFIXES.get(suffixes[-1], "libsvm") if suffixes else "libsvm"


def read_table(
    path: FileName,
    format: str | None = None,
    columns: ColumnChoice = ColumnChoice(),
    dtype: DTypeLike = np.float64,
) -> Piece:
    """A whole file, with its targets: the last column unless another is named, or none is one."""
    kind = format_of(path, format)
    if kind == "libsvm":
        return libsvm.whole(path, columns, check_dtype(dtype))
    if kind == "parts":
        return stored.whole(path, columns)
    with_target = not columns.all_features
    pieces = list(read_pieces(path, kind, columns, dtype, with_target))
    if not pieces:
        raise ValueError(f"{path} must hold at least one sample, got none.")
    if len(pieces) == 1:
        return pieces[0]
    targets: list[Targets] = [piece.y for piece in pieces if piece.y is not None]
    y = joined_targets(targets) if with_target else None
    return Piece(np.concatenate([piece.X for piece in pieces]), y, pieces[0].features)


def read_pieces(
    path: FileName,
    format: str | None = None,
    columns: ColumnChoice = ColumnChoice(),
    dtype: DTypeLike = np.float64,
    with_target: bool = False,
) -> Iterator[Piece]:
    """The file in pieces of a few thousand rows, in memory bounded whatever its size.

    An .npz file is packed as a whole and must fit. With `with_target`, every file must have
    targets; else they are split off where they are found.
    """
    kind, values = format_of(path, format), check_dtype(dtype)
    if kind == "libsvm":
        yield from libsvm.pieces(path, columns, values, PIECE_BYTES)
    elif kind == "csv":
        yield from delimited.pieces(path, columns, values, with_target, PIECE_ROWS)
    elif kind == "parquet":
        yield from arrow.pieces(path, columns, values, with_target, PIECE_ROWS)
    elif kind == "npy":
        yield from arrays.npy_pieces(path, columns, values, with_target, PIECE_ROWS)
    elif kind == "npz":
        yield arrays.npz_whole(path, columns, values, with_target)
    elif kind == "parts":
        yield from stored.pieces(path, columns, PIECE_ROWS)
    else:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {kind!r}.")
