"""Files read past the system's cache, so that a pass over them pushes nothing out of memory."""

import errno
import mmap
import os
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.io.damage import FileChanged
from adafw.rows.disk import Room

#: Offsets and lengths of reads past the cache are multiples of the disk's block.
_BLOCK = max(4096, mmap.PAGESIZE)
_DIRECT = getattr(os, "O_DIRECT", 0)  # 0 where the system has no such thing
_READ_AT = getattr(os, "preadv", None)  # not on Windows
_ADVISE = getattr(os, "posix_fadvise", None)


class DirectFile:
    """The entries of an array in a file: a `Source` of rows.

    Read with O_DIRECT where the file system has it; else through the cache, which is then told to
    forget. Any number of threads may read at a time. Reading what the file no longer has, or a
    file written anew, raises `FileChanged`.

    Parameters
    ----------
    path : of the file.
    start : the byte at which entry 0 begins.
    dtype : of the entries.
    """

    def __init__(self, path: str, start: int, dtype: np.dtype[Any]) -> None:
        self.path, self.start, self.dtype = path, start, dtype
        self.direct = bool(_DIRECT)
        self._lock = threading.Lock()
        self._file = self._open()
        self._mark = self._state()

    def __del__(self) -> None:
        if "_file" in self.__dict__:  # not where the file could not be opened
            os.close(self._file)

    def _open(self) -> int:
        flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        if self.direct:
            try:
                return os.open(self.path, flags | _DIRECT)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                self.direct = False  # a file system that knows only its cache
        return os.open(self.path, flags)

    def _state(self) -> tuple[int, int]:
        now = os.fstat(self._file)
        return now.st_size, now.st_mtime_ns

    def read(self, first: int, last: int, room: Room) -> NDArray[Any]:
        begin = self.start + first * self.dtype.itemsize
        end = self.start + last * self.dtype.itemsize
        low = begin - begin % _BLOCK
        memory = room.of(-(-(end - low) // _BLOCK) * _BLOCK)
        done = 0
        while done < end - low:
            got = self._some(memory[done:], low + done)
            # A read may end anywhere, the next must begin at a block.
            done += got if done + got >= end - low else got - got % _BLOCK
            if got < _BLOCK and done < end - low:
                raise FileChanged(self.path)
        if self._state() != self._mark:
            raise FileChanged(self.path)
        return np.frombuffer(memory, self.dtype, last - first, begin - low)

    def _some(self, memory: memoryview, at: int) -> int:
        """Bytes from `at` on into the memory; how many there were."""
        try:
            return self._read_at(memory, at)
        except OSError as error:
            if not (self.direct and error.errno == errno.EINVAL):
                raise
        with self._lock:  # opened with O_DIRECT, and read without: some file systems are so
            if self.direct:
                self.direct = False
                other = self._open()
                os.dup2(other, self._file)
                os.close(other)
        return self._read_at(memory, at)

    def _read_at(self, memory: memoryview, at: int) -> int:
        if _READ_AT is None:
            with self._lock:  # the place to read from is one for all threads
                os.lseek(self._file, at, os.SEEK_SET)
                words = os.read(self._file, len(memory))
            memory[: len(words)] = words
            return len(words)
        got: int = _READ_AT(self._file, [memory], at)
        if not self.direct and _ADVISE is not None:
            _ADVISE(self._file, at, got, os.POSIX_FADV_DONTNEED)
        return got
