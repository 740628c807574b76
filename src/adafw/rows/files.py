"""The files behind mapped rows, sparse or dense: stretches of them, scattered rows, columns."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from adafw.kernels.parts import OUTSIDE
from adafw.memory import machine_bytes, readable
from adafw.rows.csr import CSRRows, as_csr
from adafw.rows.dense import DenseRows
from adafw.rows.disk import FileSource, Room, source_of

Numbers = NDArray[np.int64]
InMemory = CSRRows | DenseRows
Pieces = Iterator[tuple[slice, InMemory]]

#: Reads at a time where rows are scattered, since a disk answers many as fast as one.
SCATTERED = 8
#: Share of memory that picked columns may take: as much again is needed to work with them.
PICKED = 0.25


class Rooms:
    """Where the values of a piece go, and their columns."""

    def __init__(self) -> None:
        self.values, self.columns = Room(), Room()


class RowFiles(ABC):
    """What is read of mapped rows. Rows come out in memory, of the kind that they are mapped as."""

    #: Bytes up to the end of each row, and 0 before the first.
    ends: NDArray[Any]
    #: Bytes that an entry of `ends` stands for.
    unit: int

    @abstractmethod
    def piece(self, first: int, last: int, rooms: Rooms) -> InMemory:
        """Rows first .. last - 1, over the memory of the rooms."""

    @abstractmethod
    def gather(self, rows: Numbers) -> InMemory:
        """The rows of these numbers, in their order, in memory of their own."""

    @abstractmethod
    def pick(self, pieces: Pieces, chosen: Numbers, counts: Numbers) -> InMemory:
        """The chosen columns of all pieces; `counts` are the stored entries of every column."""

    def cuts(self, limit: int) -> list[int]:
        """Row numbers that cut all rows into stretches of at most so many bytes, or one row."""
        return _cuts(self.ends, max(1, limit // self.unit))

    def cuts_of(self, rows: Numbers, limit: int) -> list[int]:
        """The same for the rows of a batch: places in it."""
        lengths = self.ends[rows + 1].astype(np.int64) - self.ends[rows]
        return _cuts(np.concatenate([[0], np.cumsum(lengths)]), max(1, limit // self.unit))


def files_of(rows: InMemory) -> RowFiles:
    """The files that mapped rows are maps of."""
    return SparseFiles(rows) if isinstance(rows, CSRRows) else DenseFiles(rows)


class SparseFiles(RowFiles):
    """Values and columns of a CSR matrix in a file each; where rows start is in memory."""

    def __init__(self, rows: CSRRows) -> None:
        self.shape, self.dtype = rows.shape, rows.dtype
        matrix = rows.matrix
        self.values, self.columns = _Stretch(matrix.data), _Stretch(matrix.indices)
        self.ends = matrix.indptr
        self.unit = matrix.data.itemsize + matrix.indices.itemsize

    def piece(self, first: int, last: int, rooms: Rooms) -> CSRRows:
        span = int(self.ends[first]), int(self.ends[last])
        values = self.values.read(*span, rooms.values)
        return self._rows(
            values,
            self.columns.read(*span, rooms.columns),
            self.ends[first : last + 1] - self.ends[first],
        )

    def gather(self, rows: Numbers) -> CSRRows:
        lengths = self.ends[rows + 1].astype(np.int64) - self.ends[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        values = np.empty(starts[-1], self.values.dtype)
        columns = np.empty(starts[-1], self.columns.dtype)

        def fetch(first: int, last: int, rooms: Rooms) -> None:
            begin, end = int(self.ends[rows[first]]), int(self.ends[rows[last - 1] + 1])
            place = slice(int(starts[first]), int(starts[last]))
            values[place] = self.values.read(begin, end, rooms.values)
            columns[place] = self.columns.read(begin, end, rooms.columns)

        _fetch_runs(rows, fetch)
        return self._rows(values, columns, starts)

    def pick(self, pieces: Pieces, chosen: Numbers, counts: Numbers) -> CSRRows:
        from adafw.kernels import columns as kernels

        size = int(counts[chosen].sum())
        _check_room(size * (self.values.dtype.itemsize + 4), chosen.size)
        place = np.full(self.shape[1], OUTSIDE, np.uint32)
        place[chosen] = np.arange(chosen.size, dtype=np.uint32)
        values, columns = np.empty(size + 1, self.values.dtype), np.empty(size + 1, np.uint32)
        starts, done = np.zeros(self.shape[0] + 1, np.int64), 0
        for part, piece in pieces:
            ends = starts[part.start : part.stop + 1]
            done = kernels.pick(cast(CSRRows, piece).arrays, place, done, values, columns, ends)
        shape = self.shape[0], chosen.size
        return CSRRows(
            as_csr(values[:size], columns[:size].view(np.int32), starts, shape), self.dtype
        )

    def _rows(self, values: NDArray[Any], columns: NDArray[Any], starts: NDArray[Any]) -> CSRRows:
        # Compiled code takes columns as they come: what was written over must not get there.
        if columns.size and not 0 <= int(columns.min()) <= int(columns.max()) < self.shape[1]:
            raise ValueError(
                f"columns must be numbers from 0 to {self.shape[1] - 1}, got others in the file; "
                "write the parts again."
            )
        shape = len(starts) - 1, self.shape[1]
        return CSRRows(as_csr(values, columns, starts, shape), self.dtype, passing=True)


class DenseFiles(RowFiles):
    """The rows of a dense array in a file."""

    def __init__(self, rows: DenseRows) -> None:
        self.shape, self.dtype = rows.shape, rows.dtype
        self.values = _Stretch(rows.array)
        self.ends = np.arange(self.shape[0] + 1)
        self.unit = self.shape[1] * rows.array.itemsize

    def piece(self, first: int, last: int, rooms: Rooms) -> DenseRows:
        return DenseRows(self._read(first, last, rooms), self.dtype)

    def gather(self, rows: Numbers) -> DenseRows:
        out = np.empty((rows.size, self.shape[1]), self.values.dtype)

        def fetch(first: int, last: int, rooms: Rooms) -> None:
            out[first:last] = self._read(int(rows[first]), int(rows[last - 1]) + 1, rooms)

        _fetch_runs(rows, fetch)
        return DenseRows(out, self.dtype)

    def pick(self, pieces: Pieces, chosen: Numbers, counts: Numbers) -> DenseRows:
        _check_room(self.shape[0] * chosen.size * self.values.dtype.itemsize, chosen.size)
        out = np.empty((self.shape[0], chosen.size), self.values.dtype)
        for part, piece in pieces:
            out[part] = cast(DenseRows, piece).array[:, chosen]
        return DenseRows(out, self.dtype)

    def _read(self, first: int, last: int, rooms: Rooms) -> NDArray[Any]:
        n = self.shape[1]
        return self.values.read(first * n, last * n, rooms.values).reshape(last - first, n)


class _Stretch:
    """The entries of a mapped array in its file."""

    def __init__(self, array: NDArray[Any]) -> None:
        found = source_of(array)
        assert found is not None
        self.source: FileSource = found[0]
        self.begin, self.dtype = found[1], array.dtype

    def read(self, first: int, last: int, room: Room) -> NDArray[Any]:
        return self.source.read(self.begin + first, self.begin + last, room)


def _cuts(ends: NDArray[Any], limit: int) -> list[int]:
    """Places that cut ends[0], .., ends[-1] into steps of at most `limit`, or one place."""
    cuts, last = [0], len(ends) - 1
    while cuts[-1] < last:
        # Of the dtype of the ends, which would be copied otherwise.
        reach = ends.dtype.type(min(int(ends[cuts[-1]]) + limit, int(ends[-1])))
        cuts.append(max(cuts[-1] + 1, int(np.searchsorted(ends, reach, "right")) - 1))
    return cuts


def _fetch_runs(rows: Numbers, fetch: Callable[[int, int, Rooms], None]) -> None:
    """Calls fetch(first, last, rooms) for every run of neighbours rows[first:last]."""
    from concurrent.futures import ThreadPoolExecutor

    if not rows.size:
        return
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    runs = list(pairwise([0, *breaks.tolist(), rows.size]))

    def some(k: int) -> None:
        rooms = Rooms()
        for first, last in runs[k::SCATTERED]:
            fetch(first, last, rooms)

    with ThreadPoolExecutor(min(SCATTERED, len(runs))) as readers:
        list(readers.map(some, range(min(SCATTERED, len(runs)))))


def _check_room(size: int, columns: int) -> None:
    """Refuses what would not fit: without a word, the system would end the process."""
    if size > PICKED * machine_bytes():
        raise MemoryError(
            f"{columns} columns of the data in use at a time need {readable(2 * size)} of memory, "
            f"this process has {readable(machine_bytes())}; take a smaller radius, or AdaCSFW or "
            "CSFW with seed=adafw.Blocks()."
        )
