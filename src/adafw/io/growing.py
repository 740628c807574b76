"""Arrays in .npy files that grow at their end, written in bounded memory."""

import os
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Entries handled at a time where a whole array could be too large.
CHUNK = 1 << 22


class Growing:
    """A one-dimensional .npy file that grows at its end; its header is right once closed."""

    def __init__(self, path: Path, dtype: np.dtype[np.generic]) -> None:
        self.path, self.dtype, self.size = path, dtype, 0

    def __enter__(self) -> "Growing":
        self.file = open(self.path, "wb+")
        self._write_header()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        if kind is None:
            self._write_header()
        self.file.close()

    def _write_header(self) -> None:
        # numpy pads a header so that its length does not change with the number of entries.
        self.file.seek(0)
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": (self.size,)}
        np.lib.format.write_array_header_1_0(self.file, header)

    def append(self, values: NDArray[np.generic]) -> None:
        """Writes values of a dtype that fits at the end."""
        self.file.write(values.astype(self.dtype, casting="safe", copy=False).data)
        self.size += values.size

    def widen(self) -> None:
        """Turns 32-bit into 64-bit integers, chunk by chunk from the end, in place."""
        if self.dtype.itemsize == 8:
            return
        self.dtype = np.dtype(np.int64)
        start = self._data_start()
        for begin in reversed(range(0, self.size, CHUNK)):
            n = min(CHUNK, self.size - begin)
            self.file.seek(start + 4 * begin)
            narrow = np.frombuffer(self.file.read(4 * n), np.int32)
            self.file.seek(start + 8 * begin)
            self.file.write(narrow.astype(np.int64).data)
        self.file.seek(0, os.SEEK_END)

    def subtract(self, shift: int) -> None:
        """Subtracts a number from every entry, chunk by chunk."""
        start = self._data_start()
        for begin in range(0, self.size if shift else 0, CHUNK):
            n = min(CHUNK, self.size - begin)
            at = start + self.dtype.itemsize * begin
            self.file.seek(at)
            values = np.frombuffer(self.file.read(n * self.dtype.itemsize), self.dtype)
            self.file.seek(at)
            self.file.write((values - self.dtype.type(shift)).data)

    def _data_start(self) -> int:
        self._write_header()
        return self.file.tell()


class Lines(NamedTuple):
    """Some rows of a CSR matrix: stored entries, their columns, entries of each row, targets."""

    data: NDArray[Any]
    indices: NDArray[Any]
    lengths: NDArray[Any]
    y: NDArray[Any]


class Store:
    """The arrays of a CSR matrix and its targets in .npy files, which grow row by row."""

    def __init__(self, folder: Path, dtype: np.dtype[Any]) -> None:
        self.data = Growing(folder / "data.npy", dtype)
        self.indices = Growing(folder / "indices.npy", np.dtype(np.int32))
        self.indptr = Growing(folder / "indptr.npy", np.dtype(np.int64))
        self.y = Growing(folder / "y.npy", np.dtype(np.float64))
        self._files = ExitStack()

    def __enter__(self) -> "Store":
        for array in (self.data, self.indices, self.indptr, self.y):
            self._files.enter_context(array)
        self.indptr.append(np.zeros(1, np.int64))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._files.__exit__(kind, error, tb)

    @property
    def rows(self) -> int:
        """Rows so far."""
        return self.y.size

    def append(self, lines: Lines) -> None:
        """More rows."""
        if lines.indices.dtype == np.int64:
            self.indices.widen()
        self.indptr.append(self.data.size + np.cumsum(lines.lengths, dtype=np.int64))
        self.data.append(lines.data)
        self.indices.append(lines.indices)
        self.y.append(lines.y)

    def finish(self, width: int, shift: int) -> None:
        """Columns counted from 0, and of the width that scipy wants."""
        if max(self.data.size, width, self.rows) > np.iinfo(np.int32).max:
            self.indices.widen()  # scipy wants ids, row starts and sizes of one width
        self.indices.subtract(shift)
