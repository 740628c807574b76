"""Arrays that stay in files: what is read of them, and how reading runs ahead of computing."""

import mmap
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


class Room:
    """Memory that begins at a page, as reads around the system's cache need it; grown on demand."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)

    def of(self, size: int) -> memoryview:
        """The first `size` bytes; what was there before is lost."""
        if size > len(self._memory):
            # The old one goes when the last array over it does.
            self._memory = mmap.mmap(-1, size)
        return memoryview(self._memory)[:size]


class FileSource(Protocol):
    """The entries of an array in a file, in their order."""

    def read(self, first: int, last: int, room: Room) -> NDArray[Any]:
        """Entries first .. last - 1, over the memory of the room: good until it is used again."""


class OnDisk(np.memmap[Any, Any]):
    """A mapped array whose data exceed memory: rows made of it read its `source` instead.

    A page of a map that is not in memory costs a fault, and near the limit of memory a search for
    another page to drop; reads of megabytes into memory of one's own cost neither.
    """

    source: FileSource | None = None


def source_of(array: NDArray[Any]) -> tuple[FileSource, int] | None:
    """Where an array is to be read from, and at which entry it begins; None if in memory."""
    owner: object = array
    while isinstance(owner, np.ndarray):
        if isinstance(owner, OnDisk) and owner.source is not None:
            return owner.source, (array.ctypes.data - owner.ctypes.data) // array.itemsize
        owner = owner.base
    return None


def ahead(read: Callable[[int, int], T], count: int) -> Iterator[T]:
    """read(0, 0), read(1, 1), read(2, 0), ..: each by a second thread while the last is used.

    The second argument is 0 or 1, in turn: which of two rooms to read into. What was yielded is
    good until the next is asked for.
    """
    return in_advance(read(k, k % 2) for k in range(count))


def in_advance(items: Iterator[T]) -> Iterator[T]:
    """The same items, each made by a second thread while the one before is used."""
    from concurrent.futures import ThreadPoolExecutor

    end = object()
    with ThreadPoolExecutor(1) as other:
        coming = other.submit(next, items, end)
        while (now := coming.result()) is not end:
            coming = other.submit(next, items, end)
            yield now  # type: ignore[misc]
