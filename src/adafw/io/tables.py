"""Data files of any kind by name: LIBSVM, CSV, Parquet, npy and npz, whole or in pieces."""

import bz2
import csv
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.io.atomic import DAMAGE, is_damage
from adafw.io.libsvm import (
    ZeroBased,
    as_csr,
    blocks,
    first_id,
    lowest_id,
    parse_block,
    read_libsvm,
)

#: Rows of a piece, where files are read in pieces.
PIECE_ROWS = 8192
PIECE_BYTES = 1 << 22
_SUFFIXES = {
    ".svm": "libsvm", ".libsvm": "libsvm", ".svmlight": "libsvm", ".txt": "libsvm",
    ".dat": "libsvm", ".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet",
    ".npy": "npy", ".npz": "npz",
}  # fmt: skip
_PACKED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
FORMATS = ("libsvm", "csv", "parquet", "npy", "npz")


@dataclass(frozen=True)
class Columns:
    """Which columns are features, by name or number, and which is the target, if any.

    `all_features` says that there is no target column.
    """

    features: tuple[str, ...] | None = None
    target: str | None = None
    n_features: int | None = None
    zero_based: ZeroBased = "auto"
    all_features: bool = False


@dataclass(frozen=True)
class Piece:
    """Some rows: X (array or CSR), targets or None, and names of the features or None.

    `zero_based` tells of a LIBSVM file whether its ids count from 0.
    """

    X: Any
    y: NDArray[Any] | None
    features: tuple[str, ...] | None = None
    zero_based: bool | None = None


def format_of(path: str | os.PathLike[str], given: str | None = None) -> str:
    """The format that was given, or that the name ends on; LIBSVM if the name tells nothing."""
    if given is not None:
        return given
    suffixes = [s.lower() for s in Path(path).suffixes if s.lower() not in _PACKED]
    return _SUFFIXES.get(suffixes[-1], "libsvm") if suffixes else "libsvm"


def read_table(
    path: str | os.PathLike[str],
    format: str | None = None,
    columns: Columns = Columns(),
    dtype: Any = np.float64,
) -> Piece:
    """A whole file, with its targets: the last column unless another is named, or none is one."""
    kind = format_of(path, format)
    if kind == "libsvm":
        return _whole_libsvm(str(path), columns, dtype)
    with_target = not columns.all_features
    pieces = list(read_pieces(path, kind, columns, dtype, with_target))
    if not pieces:
        raise ValueError(f"{path} must hold at least one sample, got none.")
    if len(pieces) == 1:
        return pieces[0]
    if len({piece.X.shape[1] for piece in pieces}) > 1:
        raise ValueError(f"{path} must have as many columns in every row.")
    y = _joined([piece.y for piece in pieces]) if with_target else None
    return Piece(np.concatenate([piece.X for piece in pieces]), y, pieces[0].features)


def read_pieces(
    path: str | os.PathLike[str],
    format: str | None = None,
    columns: Columns = Columns(),
    dtype: Any = np.float64,
    with_target: bool = False,
) -> Iterator[Piece]:
    """The file in pieces of a few thousand rows, in memory bounded whatever its size.

    An .npz file is packed as a whole and must fit. With `with_target`, every file must have
    targets; else they are split off where they are found.
    """
    kind = format_of(path, format)
    read = {
        "libsvm": _libsvm_pieces, "csv": _csv_pieces, "parquet": _parquet_pieces,
        "npy": _npy_pieces, "npz": _npz_pieces,
    }  # fmt: skip
    yield from read[kind](str(path), columns, np.dtype(dtype), with_target)


def _whole_libsvm(path: str, columns: Columns, dtype: Any) -> Piece:
    X, y = read_libsvm(path, zero_based=columns.zero_based is not False, dtype=dtype)
    zero_based = columns.zero_based
    if zero_based == "auto":
        zero_based = bool(X.nnz) and int(X.indices.min()) == 0
        if not zero_based:  # read as if ids counted from 0: all move down by one
            X = as_csr(X.data, X.indices - 1, X.indptr, (X.shape[0], max(1, X.shape[1] - 1)))
    n = columns.n_features
    if n is not None:
        if n < X.shape[1]:
            raise ValueError(f"{path} has features up to number {X.shape[1]}, more than {n}.")
        X = as_csr(X.data, X.indices, X.indptr, (X.shape[0], n))
    _check_finite(X.data, y, path)
    return Piece(X, y, None, bool(zero_based))


def _libsvm_pieces(path: str, columns: Columns, dtype: Any, with_target: bool) -> Iterator[Piece]:
    line, shift = 1, -1
    for text in blocks(path, PIECE_BYTES):
        block = parse_block(text, path, line, lowest_id(columns.zero_based), dtype)
        line += int(np.count_nonzero(text == 10))
        if not len(block.y):
            continue
        if shift < 0:
            shift = first_id(columns.zero_based, block.least_id)
        width = block.largest_id - shift + 1
        n = columns.n_features if columns.n_features is not None else max(1, width)
        if width > n:
            raise ValueError(f"{path} has features up to number {width}, the model has {n}.")
        X = as_csr(block.data, block.indices - shift, block.indptr, (len(block.y), n))
        _check_finite(X.data, block.y, path)
        yield Piece(X, block.y)


def _csv_pieces(path: str, columns: Columns, dtype: Any, with_target: bool) -> Iterator[Piece]:
    with _text(path) as file:
        reader = csv.reader(file, delimiter="\t" if ".tsv" in path.lower() else ",")
        layout: _Layout | None = None
        rows: list[list[str]] = []
        lines: list[int] = []
        try:
            for row in reader:
                if not row or (len(row) == 1 and not row[0].strip()):
                    continue
                if layout is None:
                    layout = _Layout.of(row, columns, path, with_target)
                    if layout.header:
                        continue
                layout.check_length(row, reader.line_num, path)
                rows.append(row)
                lines.append(reader.line_num)
                if len(rows) == PIECE_ROWS:
                    yield layout.piece(rows, lines, path, dtype)
                    rows, lines = [], []
        except csv.Error as error:
            raise ValueError(f"{path}, line {reader.line_num}: {error}.") from None
        except UnicodeDecodeError:
            raise ValueError(f"{path} must be UTF-8 text, got other bytes.") from None
        except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
            if not is_damage(error):
                raise
            raise ValueError(f"{path} must be a whole file, got a damaged one: {error}.") from None
        if layout is None:
            raise ValueError(f"{path} must hold at least one sample, got an empty file.")
        if rows:
            yield layout.piece(rows, lines, path, dtype)


@dataclass(frozen=True)
class _Layout:
    """Where features and target stand in a row of a table."""

    width: int
    features: list[int]
    target: int | None
    names: tuple[str, ...] | None
    header: bool

    @classmethod
    def of(cls, row: list[str], columns: Columns, path: str, with_target: bool) -> "_Layout":
        """From the first row: a header if a cell of it is no number."""
        header = not all(_is_number(cell) for cell in row[:-1] or row)
        names = [cell.strip() for cell in row] if header else None
        return cls.from_names(len(row), names, columns, path, with_target)

    @classmethod
    def from_names(
        cls, width: int, names: list[str] | None, columns: Columns, path: str, with_target: bool
    ) -> "_Layout":
        """By names where there are any; else all columns but the target."""
        if names is not None and columns.features is not None:
            for name in columns.features:
                if name not in names:
                    raise ValueError(f"{path} must have a column {name!r}, as the model has.")
            features = [names.index(name) for name in columns.features]
            target = _position(columns.target, names, width, path, needed=with_target)
        else:
            n = columns.n_features
            has_target = with_target or n is None or width == n + 1
            target = None
            if has_target and not columns.all_features:
                target = _position(columns.target, names, width, path, needed=True)
            features = [j for j in range(width) if j != target]
            if n is not None and len(features) != n:
                raise ValueError(
                    f"{path} has {width} columns, the model needs {n} features"
                    f"{' and a target' if with_target else ' (and may have a target)'}."
                )
        if not features:
            raise ValueError(f"{path} must have at least one feature beside the target.")
        chosen = None if names is None else tuple(names[j] for j in features)
        return cls(width, features, target, chosen, names is not None)

    def check_length(self, row: list[str], line: int, path: str) -> None:
        if len(row) != self.width:
            raise ValueError(f"{path}, line {line}: expected {self.width} columns, got {len(row)}.")

    def piece(self, rows: list[list[str]], lines: list[int], path: str, dtype: Any) -> Piece:
        """Rows of text as numbers."""
        cells = np.array(rows, dtype=object)
        X = self._numbers(cells[:, self.features], lines, path, self.features, dtype)
        y: NDArray[Any] | None = None
        if self.target is not None:
            column = cells[:, self.target]
            if all(_is_number(cell) for cell in column):
                y = column.astype(np.float64)
                if not np.isfinite(y).all():
                    bad = int(np.flatnonzero(~np.isfinite(y))[0])
                    raise _cell(path, lines[bad], self.target, "a finite target", column[bad])
            else:
                words = [str(cell).strip() for cell in column]
                if "" in words:
                    raise _cell(path, lines[words.index("")], self.target, "a target", "")
                y = np.array(words)
        return Piece(X, y, self.names)

    def _numbers(
        self, cells: NDArray[Any], lines: list[int], path: str, at: list[int], dtype: Any
    ) -> NDArray[Any]:
        try:
            # float() would take 1_000 for a number, which no other program does.
            odd = any("_" in "".join(row) for row in cells)
            values = None if odd else cells.astype(np.float64)
        except ValueError:
            values = None
        if values is not None and np.isfinite(values).all():
            return values.astype(dtype)
        for i, row in enumerate(cells):
            for j, cell in enumerate(row):
                if not _is_number(cell) or not np.isfinite(float(cell)):
                    raise _cell(path, lines[i], at[j], "a finite number", cell)
        raise ValueError(f"{path} must hold finite numbers.")


def _parquet_pieces(path: str, columns: Columns, dtype: Any, with_target: bool) -> Iterator[Piece]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ValueError(
            f"{path}: Parquet files need pyarrow; install it with pip install 'adafw[io]'."
        ) from None
    try:
        with parquet.ParquetFile(path) as file:
            names = list(file.schema_arrow.names)
            layout = _Layout.from_names(len(names), names, columns, path, with_target)
            for batch in file.iter_batches(PIECE_ROWS):
                X = np.column_stack([_column(batch, names[j], path) for j in layout.features])
                y = None
                if layout.target is not None:
                    y = _column(batch, names[layout.target], path, text=True)
                yield Piece(X.astype(dtype), y, layout.names)
    except (pyarrow.ArrowException, OSError) as error:
        if not is_damage(error):
            raise
        reason = " ".join(str(error).split()).removesuffix(".")
        raise ValueError(f"{path} must be a whole Parquet file: {reason}.") from None


def _column(batch: Any, name: str, path: str, text: bool = False) -> NDArray[Any]:
    """A column as numbers without gaps, or, where that is allowed, as text."""
    column = batch.column(name)
    if column.null_count:
        raise ValueError(f"{path}, column {name!r}: expected a value in every row, got a gap.")
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind in "biuf":
        values = values.astype(np.float64)
        if not np.isfinite(values).all():
            raise ValueError(f"{path}, column {name!r}: expected finite numbers, got NaN or inf.")
        return values
    if not text:
        raise ValueError(f"{path}, column {name!r}: expected numbers, got {column.type}.")
    return values.astype(str)


def _npy_pieces(path: str, columns: Columns, dtype: Any, with_target: bool) -> Iterator[Piece]:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except DAMAGE as error:
        if not is_damage(error):
            raise
        raise ValueError(f"{path} must be a whole .npy file of numbers{_reason(error)}.") from None
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype.kind not in "biuf":
        raise ValueError(f"{path} must hold a matrix of numbers.")
    layout = _Layout.from_names(array.shape[1], None, columns, path, with_target)
    for start in range(0, array.shape[0], PIECE_ROWS):
        part = np.asarray(array[start : start + PIECE_ROWS])
        _check_finite(part, None, path)
        y = None if layout.target is None else part[:, layout.target].astype(np.float64)
        yield Piece(part[:, layout.features].astype(dtype), y)


def _npz_pieces(path: str, columns: Columns, dtype: Any, with_target: bool) -> Iterator[Piece]:
    from scipy import sparse

    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except DAMAGE as error:
        if not is_damage(error):
            raise
        raise ValueError(f"{path} must be a whole .npz file of numbers{_reason(error)}.") from None
    y = arrays.pop("y", None)
    if {"data", "indices", "indptr", "shape"} <= set(arrays):
        parts = arrays["data"].astype(dtype), arrays["indices"], arrays["indptr"]
        try:
            X: Any = sparse.csr_array(parts, shape=tuple(int(n) for n in arrays["shape"]))
            X.check_format(full_check=True)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path} must hold a sparse matrix in CSR form: {error}.") from None
    elif "X" in arrays:
        X = arrays["X"]
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise ValueError(f"{path} must hold a matrix of numbers X.")
        X = X.astype(dtype)
    else:
        raise ValueError(f"{path} must hold X (and y), or a sparse matrix and y.")
    if y is None and with_target:
        raise ValueError(f"{path} must hold targets y beside X; save them as y, or give --labels.")
    if y is not None and y.shape != X.shape[:1]:
        raise ValueError(f"{path} must hold one target a row: {X.shape[0]} rows, y {y.shape}.")
    if columns.n_features is not None and X.shape[1] != columns.n_features:
        raise ValueError(f"{path} has {X.shape[1]} features, the model has {columns.n_features}.")
    _check_finite(X.data if sparse.issparse(X) else X, y, path)
    if X.shape[0]:
        yield Piece(X, y)


def _position(
    wanted: str | None, names: list[str] | None, width: int, path: str, needed: bool
) -> int | None:
    """The number of the target's column: by name, by number from 0, or the last."""
    if wanted is None:
        return width - 1 if needed else None
    if names is not None and wanted in names:
        return names.index(wanted)
    try:
        at = int(wanted)
        return range(width)[at]
    except (ValueError, IndexError):
        if not needed:
            return None
        raise ValueError(f"{path} must have a target column {wanted!r}, it has none.") from None


def _check_finite(values: NDArray[Any], y: NDArray[Any] | None, path: str) -> None:
    for numbers, what in ((values, "features"), (y, "targets")):
        if numbers is None or numbers.dtype.kind != "f":
            continue
        if not np.isfinite(numbers).all():
            raise ValueError(f"{path} must have finite {what}, got NaN or infinity.")


def _joined(parts: list[Any]) -> NDArray[Any]:
    """Targets of all pieces: text if any of them is."""
    if any(part.dtype.kind not in "biuf" for part in parts):
        parts = [_words(part) for part in parts]
    return np.concatenate(parts)


def _words(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind not in "biuf":
        return values
    return np.array([f"{value:g}" for value in values])


def _reason(error: BaseException) -> str:
    """What a reader said, on one line, if it said anything."""
    said = " ".join(str(error).split()).removesuffix(".")
    return f": {said}" if said else ""


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _cell(path: str, line: int, column: int, wanted: str, got: str) -> ValueError:
    return ValueError(f"{path}, line {line}, column {column + 1}: expected {wanted}, got {got!r}.")


def _text(path: str) -> Any:
    opener = _PACKED.get(Path(path).suffix.lower())
    if opener is None:
        return open(path, encoding="utf-8", newline="")
    return io.TextIOWrapper(opener(path, "rb"), encoding="utf-8", newline="")
