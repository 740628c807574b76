"""A random order of more rows than fit into memory."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.io.growing import Lines, Store
from adafw.io.meter import Meter
from adafw.rows.csr import as_csr

#: Files are opened for so many heaps at a time: four each, of the 1024 that systems allow.
HEAPS = 64
#: The place of the ids among the arrays of `Lines`.
_IDS = 1


class Shuffled:
    """Every row goes to a random heap on the disk; heaps are shuffled in memory, one by one.

    Any order of the rows is equally likely (Sandelius 1962): the heaps of the rows are independent
    and uniform, and so is the order within a heap. A heap that is too large is dealt out again.
    All rows are written twice, and read once more.

    Parameters
    ----------
    folder : where heaps are kept for the time being.
    seed : of the order.
    limit : bytes of a heap; twice that is held in memory.
    meter : told of the bytes that are put back in order.
    """

    def __init__(self, folder: Path, seed: int, limit: int, meter: Meter) -> None:
        self.folder, self.limit, self.meter = folder, limit, meter
        self.rng = np.random.default_rng(seed)
        self.heaps: list[_Heap] = []
        self.given = self.made = 0

    def take(self, lines: Iterator[Lines], size: int | None) -> None:
        """Deals out all rows, of about so many bytes if that is known."""
        # A tenth more heaps than are needed: their sizes scatter.
        count = HEAPS if size is None else min(HEAPS, 1 + int(1.1 * size / self.limit))
        self.heaps = self._deal(lines, count)

    def give(self, store: Store) -> None:
        """All rows in their new order."""
        total = sum(heap.nbytes for heap in self.heaps)
        while self.heaps:
            heap = self.heaps.pop()
            if heap.nbytes > 2 * self.limit and heap.rows > 1:
                again = 1 + int(1.1 * heap.nbytes / self.limit)
                self.heaps += self._deal(heap.lines(self.limit), min(HEAPS, again))
            elif heap.rows:
                store.append(_reordered(heap.whole(), self.rng.permutation(heap.rows)))
                self.given += heap.nbytes
                self.meter.done(self.given, total, "shuffling")
            heap.remove()

    def _deal(self, lines: Iterator[Lines], count: int) -> "list[_Heap]":
        heaps = [_Heap(self.folder / f"heap{self.made + k}") for k in range(count)]
        self.made += count
        for part in lines:
            heap_of = self.rng.integers(0, count, size=part.y.size)
            order = np.argsort(heap_of, kind="stable")
            part = _reordered(part, order)
            entries = np.concatenate([[0], np.cumsum(part.lengths)])
            cuts = np.concatenate([[0], np.cumsum(np.bincount(heap_of, minlength=count))])
            for k, heap in enumerate(heaps):
                rows = slice(cuts[k], cuts[k + 1])
                some = slice(entries[cuts[k]], entries[cuts[k + 1]])
                heap.add(
                    Lines(part.data[some], part.indices[some], part.lengths[rows], part.y[rows])
                )
        for heap in heaps:
            heap.close()
        return heaps


class _Heap:
    """Some rows in plain files of a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self._opened = ExitStack()
        self.files = [self._opened.enter_context(open(p, "wb")) for p in self._paths]  # noqa: SIM115
        self.kinds: list[np.dtype[Any]] = []
        self.rows = self.nbytes = 0

    @property
    def _paths(self) -> list[Path]:
        return [self.folder / name for name in Lines._fields]

    def add(self, lines: Lines) -> None:
        """More rows."""
        self.kinds = self.kinds or [array.dtype for array in lines]
        if lines.indices.dtype.itemsize > self.kinds[_IDS].itemsize:
            self._widen(lines.indices.dtype)
        for file, array, kind in zip(self.files, lines, self.kinds, strict=True):
            file.write(np.ascontiguousarray(array, kind).data)
            self.nbytes += array.size * kind.itemsize
        self.rows += lines.y.size

    def _widen(self, kind: np.dtype[Any]) -> None:
        """Ids that need 64 bits came late: those that are there are written again."""
        file = self.files[_IDS]
        file.flush()
        ids = np.fromfile(self._paths[_IDS], self.kinds[_IDS]).astype(kind)
        file.seek(0)
        file.write(ids.data)
        self.kinds[_IDS] = kind

    def close(self) -> None:
        """Nothing more comes."""
        self._opened.close()

    def whole(self) -> Lines:
        """All rows."""
        return Lines(*(self._read(k, 0, -1) for k in range(len(self.kinds))))

    def lines(self, size: int) -> Iterator[Lines]:
        """All rows, about so many bytes at a time."""
        step = max(1, size * self.rows // self.nbytes)
        lengths, y = self._read(2, 0, -1), self._read(3, 0, -1)
        ends = np.concatenate([[0], np.cumsum(lengths)])
        for k in range(0, self.rows, step):
            last = min(k + step, self.rows)
            begin, count = int(ends[k]), int(ends[last] - ends[k])
            data, indices = self._read(0, begin, count), self._read(_IDS, begin, count)
            yield Lines(data, indices, lengths[k:last], y[k:last])

    def _read(self, k: int, begin: int, count: int) -> NDArray[Any]:
        kind = self.kinds[k]
        return np.fromfile(self._paths[k], kind, count, offset=begin * kind.itemsize)

    def remove(self) -> None:
        """Gives its place on the disk back."""
        for path in self._paths:
            path.unlink()
        self.folder.rmdir()


def _reordered(lines: Lines, order: NDArray[np.int64]) -> Lines:
    starts = np.concatenate([[0], np.cumsum(lines.lengths)])
    width = int(lines.indices.max(initial=0)) + 1
    matrix = as_csr(lines.data, lines.indices, starts, (lines.y.size, width))[order]
    return Lines(matrix.data, matrix.indices, lines.lengths[order], lines.y[order])
