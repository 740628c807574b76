"""LIBSVM (SVMlight) text files: a fast reader, and a writer."""

import bz2
import gzip
import lzma
import os
import re
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from adafw import checks
from adafw.io.atomic import replacing

#: First bytes of a compressed file, and what opens it.
_PACKED: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}

#: Files above this many bytes are parsed by several threads.
_WORTH_THREADS = 1 << 20

ZeroBased = bool | Literal["auto"]


@dataclass(frozen=True)
class Block:
    """Some consecutive rows of a file: CSR arrays, labels, query ids; ids as the file has them."""

    data: NDArray[Any]
    indices: NDArray[Any]
    indptr: NDArray[np.int64]
    y: NDArray[np.float64]
    query: NDArray[np.int64]
    least_id: int
    largest_id: int


def read_libsvm(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    dtype: DTypeLike = np.float64,
    query_id: bool = False,
    threads: int | None = None,
) -> tuple[Any, ...]:
    """Reads `label [qid:q] id:value ... # comment` lines: (CSR matrix, labels).

    Plain files are memory-mapped; gzip, bzip2 and xz files are known by their first bytes. Numbers
    come out as Python's float() reads them, bit for bit.

    Parameters
    ----------
    n_features : columns; None means the largest id. Give it where several files belong together.
    zero_based : whether ids count from 0; "auto" says so if an id 0 occurs in the file.
    dtype : float64 or float32 of the matrix; labels are float64.
    query_id : return the query ids as a third array, 0 where a line has none.
    threads : parsing threads; None means one per core for files above 1 MB.
    """
    kind = check_dtype(dtype)
    if threads is not None:
        checks.integer(threads, "threads", 1)
    text = _content(path)
    lowest = lowest_id(zero_based)
    block = parse_block(text, str(path), 1, lowest, kind, query_id, threads)
    if not len(block.y):
        raise ValueError(f"{path} must hold at least one sample, got none.")
    shift = first_id(zero_based, block.least_id)
    indices = block.indices
    if shift:
        indices -= indices.dtype.type(shift)
    width = check_width(n_features, block.largest_id - shift + 1, str(path))
    A = as_csr(block.data, indices, block.indptr, (len(block.y), width))
    return (A, block.y, block.query) if query_id else (A, block.y)


def as_csr(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, int]
) -> Any:
    """A CSR array over these canonical arrays; only indptr may be copied, to the ids' width.

    They are put in place one by one: the constructor would read all ids, and may copy them.
    """
    A = sparse.csr_array(shape, dtype=data.dtype)
    A.data, A.indices, A.indptr = data, indices, indptr.astype(indices.dtype, copy=False)
    A.has_canonical_format = True
    return A


def check_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """float32 or float64."""
    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {kind}.")
    return kind


def lowest_id(zero_based: ZeroBased) -> int:
    """The smallest id allowed."""
    if not (isinstance(zero_based, bool) or zero_based == "auto"):
        raise ValueError(f'zero_based must be True, False or "auto", got {zero_based!r}.')
    return 1 if zero_based is False else 0


def first_id(zero_based: ZeroBased, least: int) -> int:
    """The id of column 0, given the smallest id that occurs."""
    return int(least > 0) if zero_based == "auto" else int(not zero_based)


def check_width(n_features: int | None, seen: int, path: str) -> int:
    """The number of columns: what was asked for if it is enough, else what was seen."""
    if n_features is None:
        return max(1, seen)
    if checks.integer(n_features, "n_features", 1) < seen:
        raise ValueError(f"n_features must be at least {seen} for {path}, got {n_features}.")
    return n_features


def parse_block(
    text: NDArray[np.uint8],
    path: str,
    first_line: int,
    lowest: int,
    dtype: np.dtype[Any],
    query_id: bool = False,
    threads: int | None = None,
) -> Block:
    """Whole lines of text as CSR arrays. Cost: two passes over the bytes, shared by threads."""
    from adafw.kernels import libsvm as kernel
    from adafw.kernels.threads import cores

    n = threads or (cores() if text.size > _WORTH_THREADS else 1)
    with ThreadPoolExecutor(n) as pool:
        work = _Work(text, _spans(text, n), lowest, dtype, query_id)
        ended = work.run(pool, np.int32)
        if any(end[5] == kernel.WIDE for end in ended):
            ended = work.run(pool, np.int64)
    for slow, end in zip(work.slow, ended, strict=True):
        _finish_numbers(text, slow[: end[4]], work.y, work.data, path, first_line)
        if end[5] != kernel.FINE:
            wanted = _WANTED[end[5]].format(lowest=lowest)
            raise _malformed(text, int(end[6]), wanted, path, first_line)
    return work.block(ended)


class _Work:
    """Arrays that several threads fill, each its own stretch of lines, rows and entries.

    The stretches are laid out by bounds: a comment may hold colons, a line may be blank. What is
    too much is never touched, hence never takes memory, and is closed up in the end.
    """

    def __init__(
        self, text: Any, spans: list[tuple[int, int]], lowest: int, dtype: Any, query_id: bool
    ) -> None:
        self.text, self.spans, self.lowest = text, spans, lowest
        self.dtype, self.query_id = dtype, query_id

    def run(self, pool: ThreadPoolExecutor, index: Any) -> list[Any]:
        """Counts, allocates with ids of type `index`, parses; returns how each stretch ended."""
        counts = list(pool.map(self._count, self.spans))
        lines, colons = [c[0] + 1 for c in counts], [c[1] for c in counts]
        self.rows, self.slots = np.cumsum([0, *lines]), np.cumsum([0, *colons])
        m, nnz = int(self.rows[-1]), int(self.slots[-1])
        self.y, self.indptr = np.empty(m), np.zeros(m + 1, np.int64)
        self.query = np.zeros(m if self.query_id else 0, np.int64)
        self.indices, self.data = np.empty(nnz, index), np.empty(nnz, self.dtype)
        self.slow = [np.empty((r + s, 2), np.int64) for r, s in zip(lines, colons, strict=True)]
        return list(pool.map(self._parse, range(len(self.spans))))

    def _count(self, span: tuple[int, int]) -> tuple[int, int]:
        from adafw.kernels.libsvm import count

        return count(self.text, *span)

    def _parse(self, k: int) -> Any:
        from adafw.kernels.libsvm import Arrays, parse

        into = Arrays(self.y, self.query, self.indptr, self.indices, self.data, self.slow[k])
        first = int(self.rows[k]), int(self.slots[k])
        return parse(self.text, *self.spans[k], self.lowest, *first, into)

    def block(self, ended: list[Any]) -> Block:
        """The arrays with the unused rows and entries between the stretches closed up."""
        row = slot = 0
        for k, (last_row, last_slot, *_) in enumerate(ended):
            rows, slots = slice(self.rows[k], last_row), slice(self.slots[k], last_slot)
            m, nnz = rows.stop - rows.start, slots.stop - slots.start
            if (row, slot) != (rows.start, slots.start):
                self.y[row : row + m] = self.y[rows]
                if self.query_id:
                    self.query[row : row + m] = self.query[rows]
                ends = self.indptr[rows.start + 1 : rows.stop + 1]
                self.indptr[row + 1 : row + m + 1] = ends - (slots.start - slot)
                self.indices[slot : slot + nnz] = self.indices[slots]
                self.data[slot : slot + nnz] = self.data[slots]
            row, slot = row + m, slot + nnz
        least, largest = min(end[2] for end in ended), max(end[3] for end in ended)
        data, indices = _cut(self.data, slot), _cut(self.indices, slot)
        y, query = _cut(self.y, row), self.query[:row]
        return Block(data, indices, self.indptr[: row + 1], y, query, int(least), int(largest))


def _cut(array: NDArray[Any], n: int) -> NDArray[Any]:
    """The first n entries; a copy where a view would hold on to much more."""
    return array[:n] if n > 0.8 * array.size else array[:n].copy()


def _spans(text: NDArray[np.uint8], n: int) -> list[tuple[int, int]]:
    """n stretches of whole lines, of about equal length; fewer where lines are long."""
    cuts = [0]
    for k in range(1, n):
        cut = max(cuts[-1], text.size * k // n)
        step = 1 << 16
        while cut < text.size:  # to just after the next newline
            newlines = np.flatnonzero(text[cut : cut + step] == 10)
            if newlines.size:
                cut += int(newlines[0]) + 1
                break
            cut = min(cut + step, text.size)
        cuts.append(cut)
    cuts.append(text.size)
    return [(a, b) for a, b in pairwise(cuts) if a < b] or [(0, 0)]


# What the kernel's codes ask for, in their order; code 0 is no error and 6 never comes here.
_WANTED = (
    "",
    "a feature id (digits only)",
    "':' after the feature id",
    "a feature id above the one before it (ids must ascend)",
    "a feature id >= {lowest} (give zero_based=True if ids count from 0)",
    "a query id as qid:<digits>, below 1e17",
    "a feature id below 1e17",
)

_NUMBER = re.compile(
    rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE
)


def _finish_numbers(
    text: NDArray[np.uint8],
    slow: NDArray[np.int64],
    y: NDArray[Any],
    data: NDArray[Any],
    path: str,
    first_line: int,
) -> None:
    """Reads what the kernel left: over 19 digits, huge exponents, nan, or no numbers."""
    for slot, position in slow.tolist():
        token = _token(text, position)
        if not _NUMBER.fullmatch(token):
            wanted = "a label (one number)" if slot < 0 else "a number after ':'"
            raise _malformed(text, position, wanted, path, first_line)
        if slot < 0:
            y[-1 - slot] = float(token)
        else:
            with np.errstate(over="ignore"):  # in float32, too large a number is infinite
                data[slot] = float(token)


def _token(text: NDArray[np.uint8], position: int) -> bytes:
    """The bytes up to the next blank or comment."""
    end = position
    while end < text.size and text[end] not in b" \t\n\v\f\r#":
        end += 1
    return text[position:end].tobytes()


def _malformed(
    text: NDArray[np.uint8], position: int, wanted: str, path: str, first_line: int
) -> ValueError:
    newlines = np.flatnonzero(text[:position] == 10)
    line = first_line + newlines.size
    column = position - (int(newlines[-1]) + 1 if newlines.size else 0) + 1
    token = _token(text, position)[:40].decode("utf-8", "replace")
    got = repr(token) if token else "the end of the line"
    return ValueError(f"{path}, line {line}, column {column}: expected {wanted}, got {got}.")


def _content(path: str | os.PathLike[str]) -> NDArray[np.uint8]:
    """The bytes of a file, unpacked; a plain file is mapped, not read."""
    if _opener(path) is open and os.path.getsize(path):
        return np.asarray(np.memmap(path, np.uint8, "r"))
    return next(blocks(path, -1))


def blocks(path: str | os.PathLike[str], size: int) -> Iterator[NDArray[np.uint8]]:
    """The unpacked bytes of a file in pieces of whole lines, of about `size` bytes; -1 means all.

    At least one piece comes, an empty one from an empty file.
    """
    rest, first = b"", True
    with _opener(path)(path, "rb") as file:
        while True:
            try:
                piece = file.read(size)
            except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
                raise ValueError(
                    f"{path} must be a whole file, got a damaged one: {error}."
                ) from None
            if not piece or size < 0:
                if rest or piece or first:
                    yield np.frombuffer(rest + piece, np.uint8)
                return
            end = piece.rfind(b"\n") + 1
            if end:
                yield np.frombuffer(rest + piece[:end], np.uint8)
                rest, first = piece[end:], False
            else:
                rest += piece


def _opener(path: str | os.PathLike[str]) -> Any:
    """What opens the file, by its first bytes."""
    with open(path, "rb") as file:
        head = file.read(6)
    return next((opener for magic, opener in _PACKED.items() if head.startswith(magic)), open)


def write_libsvm(
    path: str | os.PathLike[str],
    A: Any,
    y: Any,
    *,
    zero_based: bool = False,
    query_id: Any = None,
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
    opener: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(
        Path(path).suffix, open
    )
    with replacing(path) as partial, opener(partial, "wt", newline="\n") as file:
        for i, label in enumerate(labels.tolist()):
            row = slice(int(matrix.indptr[i]), int(matrix.indptr[i + 1]))
            ids = (matrix.indices[row] + (not zero_based)).tolist()
            words = [_shortest(label)]
            if queries is not None:
                words.append(f"qid:{queries[i]}")
            # str of a numpy float has the fewest digits of its own dtype.
            words += [f"{j}:{_shortest(v)}" for j, v in zip(ids, matrix.data[row], strict=True)]
            file.write(" ".join(words) + "\n")


def _shortest(value: Any) -> str:
    """The fewest digits that read back to the same bits, and no trailing .0."""
    return str(value).removesuffix(".0")
