"""LIBSVM (SVMlight) files: a fast reader, and a writer."""

import re
from dataclasses import dataclass
from itertools import islice
from typing import Literal, TypeAlias, cast, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse

from adafw import checks
from adafw.io.atomic import replacing
from adafw.io.damage import FileName
from adafw.io.libsvm_text import Notation, joined, parsed
from adafw.io.packed import opened, text_writer, whole_lines
from adafw.rows.csr import as_csr

ZeroBased = bool | Literal["auto"]

#: Bytes of text that are parsed at a time, and held beside the arrays made of it.
_CHUNK_BYTES = 1 << 24


@dataclass(frozen=True)
class LibsvmData:
    """What a file holds: a CSR matrix, labels, query ids if asked for, and how ids counted."""

    X: sparse.csr_array
    y: NDArray[np.float64]
    query: NDArray[np.int64]
    zero_based: bool


Labelled: TypeAlias = tuple[sparse.csr_array, NDArray[np.float64]]
Queried: TypeAlias = tuple[sparse.csr_array, NDArray[np.float64], NDArray[np.int64]]


@overload
def read_libsvm(
    path: FileName, *, n_features: int | None = None, zero_based: ZeroBased = "auto",
    dtype: DTypeLike = np.float64, query_id: Literal[False] = False, threads: int | None = None,
) -> Labelled: ...  # fmt: skip
@overload
def read_libsvm(
    path: FileName, *, n_features: int | None = None, zero_based: ZeroBased = "auto",
    dtype: DTypeLike = np.float64, query_id: Literal[True], threads: int | None = None,
) -> Queried: ...  # fmt: skip
def read_libsvm(
    path: FileName,
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    dtype: DTypeLike = np.float64,
    query_id: bool = False,
    threads: int | None = None,
) -> Labelled | Queried:
    """Reads `label [qid:q] id:value ... # comment` lines: (CSR matrix, labels).

    gzip, bzip2 and xz files are known by their first bytes. Numbers come out as Python's float()
    reads them, bit for bit. Beside the result, 16 MB of text are held at a time.

    Parameters
    ----------
    n_features : columns; None means the largest id. Give it where several files belong together.
    zero_based : whether ids count from 0; "auto" says so if an id 0 occurs in the file.
    dtype : float64 or float32 of the matrix; labels are float64.
    query_id : return the query ids as a third array, 0 where a line has none.
    threads : parsing threads; None means one per core for files above 1 MB.
    """
    if threads is not None:
        checks.integer(threads, "threads", 1)
    notation = Notation(lowest_id(zero_based), check_dtype(dtype), query_id, threads)
    found = load(path, notation, zero_based, n_features)
    return (found.X, found.y, found.query) if query_id else (found.X, found.y)


def load(
    path: FileName, notation: Notation, zero_based: ZeroBased, n_features: int | None
) -> LibsvmData:
    """The whole file."""
    with opened(path) as file:
        samples = joined(list(parsed(file, path, notation, _CHUNK_BYTES)))
    if not len(samples.y):
        raise ValueError(f"{path} must hold at least one sample, got none.")
    shift = first_id(zero_based, samples.least_id)
    indices = samples.indices
    if shift:
        indices -= indices.dtype.type(shift)
    width = check_width(n_features, samples.largest_id - shift + 1, path)
    X = as_csr(samples.data, indices, samples.indptr, (len(samples.y), width))
    return LibsvmData(X, samples.y, samples.query, shift == 0)


def check_dtype(dtype: DTypeLike) -> np.dtype[np.floating]:
    """float32 or float64."""
    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {kind}.")
    return cast("np.dtype[np.floating]", kind)


def lowest_id(zero_based: ZeroBased) -> int:
    """The smallest id allowed."""
    if not (isinstance(zero_based, bool) or zero_based == "auto"):
        raise ValueError(f'zero_based must be True, False or "auto", got {zero_based!r}.')
    return 1 if zero_based is False else 0


def first_id(zero_based: ZeroBased, least: int) -> int:
    """The id of column 0, given the smallest id that occurs."""
    return int(least > 0) if zero_based == "auto" else int(not zero_based)


def check_width(n_features: int | None, seen: int, path: FileName) -> int:
    """The number of columns: what was asked for if it is enough, else what was seen."""
    if n_features is None:
        return max(1, seen)
    if checks.integer(n_features, "n_features", 1) < seen:
        raise ValueError(f"n_features must be at least {seen} for {path}, got {n_features}.")
    return n_features


def line_with_id(path: FileName, wanted: int) -> int | None:
    """The first line that has this feature id, read anew: for messages only."""
    pattern = re.compile(rb"^[^#\n]*?(?<!\S)0*%d:" % wanted, re.MULTILINE)
    line = 1
    with opened(path) as file:
        for text in whole_lines(file, _CHUNK_BYTES):
            words = text.tobytes()
            found = pattern.search(words)
            if found:
                return line + words.count(b"\n", 0, found.start())
            line += words.count(b"\n")
    return None


def line_of_sample(path: FileName, number: int) -> int | None:
    """The line that sample `number`, from 0, is on, read anew: for messages only."""
    pattern = re.compile(rb"^[^\S\n]*[^\s#]", re.MULTILINE)  # neither blank nor a comment
    line = 1
    with opened(path) as file:
        for text in whole_lines(file, _CHUNK_BYTES):
            words = text.tobytes()
            found = list(islice(pattern.finditer(words), number + 1))
            if len(found) > number:
                return line + words.count(b"\n", 0, found[-1].start())
            number -= len(found)
            line += words.count(b"\n")
    return None


def write_libsvm(
    path: FileName,
    A: ArrayLike | sparse.sparray,
    y: ArrayLike,
    *,
    zero_based: bool = False,
    query_id: ArrayLike | None = None,
) -> None:
    """Writes A (array or sparse) and y as LIBSVM text that reads back to the same bits.

    Numbers are written with the fewest digits that do so; zeros of a dense array are left out,
    stored zeros of a sparse one kept. A name ending in .gz, .bz2 or .xz packs the file.
    """
    matrix = sparse.csr_array(A)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    labels = np.asarray(y)
    if labels.shape != (matrix.shape[0],):
        raise ValueError(f"y must have shape ({matrix.shape[0]},), got {labels.shape}.")
    queries = None if query_id is None else np.asarray(query_id)
    if queries is not None and queries.shape != labels.shape:
        raise ValueError(f"query_id must have shape {labels.shape}, got {queries.shape}.")
    with replacing(path) as partial, text_writer(partial, path) as file:
        for i, label in enumerate(labels.tolist()):
            row = slice(int(matrix.indptr[i]), int(matrix.indptr[i + 1]))
            ids = (matrix.indices[row].astype(np.int64) + (not zero_based)).tolist()
            words = [_shortest(label)]
            if queries is not None:
                words.append(f"qid:{queries[i]}")
            # str of a numpy float has the fewest digits of its own dtype.
            words += [f"{j}:{_shortest(v)}" for j, v in zip(ids, matrix.data[row], strict=True)]
            file.write(" ".join(words) + "\n")


def _shortest(value: float | np.floating) -> str:
    """The fewest digits that read back to the same bits, and no trailing .0."""
    return str(value).removesuffix(".0")
