"""LIBSVM text as arrays: the compiled parser, run by several threads, and what it says of errors.

label [qid:q] id:value id:value ... # comment
"""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from adafw.io.damage import FileChanged, FileName
from adafw.io.packed import whole_lines
from adafw.kernels import threads as kernel_threads

if TYPE_CHECKING:  # the kernel's module imports numba, which only parsing should pay for
    from adafw.kernels.libsvm import Ended, Filled, Stretch

Text = NDArray[np.uint8]
Indices = NDArray[np.int32] | NDArray[np.int64]
Values = NDArray[np.float32] | NDArray[np.float64]

#: Texts above this many bytes are parsed by several threads.
_WORTH_THREADS = 1 << 20
#: Larger than any id, so that a minimum of ids can begin with it.
NO_ID = 10**17


@dataclass(frozen=True)
class Notation:
    """How a text is to be read: the smallest id allowed, the dtype of values, query ids or not."""

    lowest: int
    dtype: np.dtype[np.floating]
    query_id: bool = False
    threads: int | None = None


@dataclass(frozen=True)
class Samples:
    """Some consecutive lines as CSR arrays, labels and query ids; ids as the file has them.

    `newlines` is how many line ends the text had, blank lines and comments included.
    """

    data: Values
    indices: Indices
    indptr: NDArray[np.int64]
    y: NDArray[np.float64]
    query: NDArray[np.int64]
    least_id: int
    largest_id: int
    newlines: int


def parsed(file: BinaryIO, path: FileName, notation: Notation, size: int) -> Iterator[Samples]:
    """The lines of an open file, `size` bytes at a time; `path` is for messages."""
    line = 1
    for text in whole_lines(file, size):
        samples = parse_lines(text, path, line, notation)
        line += samples.newlines
        yield samples


def joined(pieces: list[Samples]) -> Samples:
    """All samples in order. Empties the list on the way, so that nothing is held twice at once."""
    if len(pieces) == 1:
        return pieces.pop()
    least = min((piece.least_id for piece in pieces), default=NO_ID)
    largest = max((piece.largest_id for piece in pieces), default=-1)
    newlines = sum(piece.newlines for piece in pieces)
    before = np.cumsum([0, *(piece.data.size for piece in pieces)])
    starts = [piece.indptr[1:] + b for piece, b in zip(pieces, before, strict=False)]
    indptr = np.concatenate([np.zeros(1, np.int64), *starts])
    y = _concatenated([piece.y for piece in pieces], np.float64)
    query = _concatenated([piece.query for piece in pieces], np.int64)
    indices = [piece.indices for piece in pieces]
    data = [piece.data for piece in pieces]
    pieces.clear()
    return Samples(
        _concatenated(data, np.float64), _concatenated(indices, np.int32), indptr, y, query,
        least, largest, newlines,
    )  # fmt: skip


def _concatenated(parts: list[NDArray], otherwise: type) -> NDArray:  # type: ignore[type-arg]
    """The parts as one array, in the widest of their types; the list is emptied."""
    whole = np.concatenate(parts) if parts else np.empty(0, otherwise)
    parts.clear()
    return whole


def parse_lines(text: Text, path: FileName, first_line: int, notation: Notation) -> Samples:
    """Whole lines of text as arrays. Cost: two passes over the bytes, shared by threads."""
    from adafw.kernels import libsvm as kernel

    n = notation.threads or (kernel_threads.cores() if text.size > _WORTH_THREADS else 1)
    with ThreadPoolExecutor(n) as pool:
        work = _Parsing(text, _spans(text, n), notation)
        ended = work.run(pool, np.int32)
        if any(end.code == kernel.WIDE for end in ended):
            ended = work.run(pool, np.int64)
    for slow, end in zip(work.slow, ended, strict=True):
        _finish_numbers(text, slow[: end.left], work.y, work.data, path, first_line)
        if end.code == kernel.FULL:
            raise FileChanged(path)
        if end.code != kernel.FINE:
            wanted = _WANTED[end.code].format(lowest=notation.lowest)
            raise _malformed(text, end.at, wanted, path, first_line)
    return work.samples(ended)


class _Parsing:
    """Arrays that several threads fill, each its own stretch of lines, rows and entries.

    The stretches are laid out by bounds: a comment may hold colons, a line may be blank. What is
    too much is never touched, hence never takes memory, and is closed up in the end.
    """

    def __init__(self, text: Text, spans: list[tuple[int, int]], notation: Notation) -> None:
        self.text, self.spans, self.notation = text, spans, notation

    def run(self, pool: ThreadPoolExecutor, width: type[np.signedinteger]) -> list["Ended"]:
        """Counts, allocates with ids of that width, parses; returns how each stretch ended."""
        from adafw.kernels.libsvm import count

        counts = list(pool.map(lambda span: count(self.text, *span), self.spans))
        # The last line of a stretch may have no newline.
        lines, colons = [c[0] + 1 for c in counts], [c[1] for c in counts]
        self.newlines = sum(lines) - len(lines)
        self.rows, self.slots = np.cumsum([0, *lines]), np.cumsum([0, *colons])
        m, nnz = int(self.rows[-1]), int(self.slots[-1])
        self.y, self.indptr = np.empty(m), np.zeros(m + 1, np.int64)
        self.query = np.zeros(m if self.notation.query_id else 0, np.int64)
        self.indices: Indices = np.empty(nnz, width)
        self.data: Values = np.empty(nnz, self.notation.dtype)
        self.slow = [np.empty((r + s, 2), np.int64) for r, s in zip(lines, colons, strict=True)]
        return list(pool.map(self._parse, range(len(self.spans))))

    def _parse(self, k: int) -> "Ended":
        from adafw.kernels.libsvm import parse

        stretch, filled = self._stretch(k), self._filled(k)
        return parse(self.text, stretch, self.notation.lowest, filled)

    def _stretch(self, k: int) -> "Stretch":
        from adafw.kernels.libsvm import Stretch

        (start, stop), (row, row_end) = self.spans[k], self.rows[k : k + 2].tolist()
        slot, slot_end = self.slots[k : k + 2].tolist()
        return Stretch(start, stop, row, slot, row_end, slot_end)

    def _filled(self, k: int) -> "Filled":
        from adafw.kernels.libsvm import Filled

        return Filled(self.y, self.query, self.indptr, self.indices, self.data, self.slow[k])

    def samples(self, ended: list["Ended"]) -> Samples:
        """The arrays with the unused rows and entries between the stretches closed up."""
        row = slot = 0
        for k, end in enumerate(ended):
            rows, slots = slice(self.rows[k], end.row), slice(self.slots[k], end.slot)
            m, nnz = rows.stop - rows.start, slots.stop - slots.start
            if (row, slot) != (rows.start, slots.start):
                self.y[row : row + m] = self.y[rows]
                if self.query.size:
                    self.query[row : row + m] = self.query[rows]
                ends = self.indptr[rows.start + 1 : rows.stop + 1]
                self.indptr[row + 1 : row + m + 1] = ends - (slots.start - slot)
                self.indices[slot : slot + nnz] = self.indices[slots]
                self.data[slot : slot + nnz] = self.data[slots]
            row, slot = row + m, slot + nnz
        least, largest = min(end.least for end in ended), max(end.largest for end in ended)
        data, indices = _cut(self.data, slot), _cut(self.indices, slot)
        y, query, indptr = _cut(self.y, row), self.query[:row], self.indptr[: row + 1]
        return Samples(data, indices, indptr, y, query, least, largest, self.newlines)


def _cut(array: NDArray, n: int) -> NDArray:  # type: ignore[type-arg]
    """The first n entries; a copy where a view would hold on to much more."""
    return array[:n] if n > 0.8 * array.size else array[:n].copy()


def _spans(text: Text, n: int) -> list[tuple[int, int]]:
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


# What the kernel's codes ask for, in their order; code 0 is no error.
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
    text: Text, slow: NDArray[np.int64], y: NDArray[np.float64], data: Values, path: FileName,
    first_line: int,
) -> None:  # fmt: skip
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


def _token(text: Text, position: int) -> bytes:
    """The bytes up to the next blank or comment."""
    end = position
    while end < text.size and text[end] not in b" \t\n\v\f\r#":
        end += 1
    return text[position:end].tobytes()


def _malformed(
    text: Text, position: int, wanted: str, path: FileName, first_line: int
) -> ValueError:
    newlines = np.flatnonzero(text[:position] == 10)
    line = first_line + newlines.size
    column = position - (int(newlines[-1]) + 1 if newlines.size else 0) + 1
    token = _token(text, position)[:40].decode("utf-8", "replace")
    got = repr(token) if token else "the end of the line"
    return ValueError(f"{path}, line {line}, column {column}: expected {wanted}, got {got}.")
