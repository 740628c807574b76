"""The bytes of a file, unpacked if it is packed, and known to be those of one moment."""

import bz2
import gzip
import io
import lzma
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from adafw.io.damage import FileChanged, FileName, is_damage, reason

#: First bytes of a packed file, and what opens it.
_BY_CONTENT: dict[bytes, Callable[[BinaryIO], object]] = {
    b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open,
}  # fmt: skip
_BY_SUFFIX: dict[str, Callable[..., object]] = {
    ".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open,
}  # fmt: skip
SUFFIXES = frozenset(_BY_SUFFIX)
_UNPACKING = (EOFError, OSError, lzma.LZMAError, zlib.error, ValueError)


@contextmanager
def opened(path: FileName) -> Iterator[BinaryIO]:
    """The file to read from, unpacked by its first bytes; damage is told in one sentence.

    What is read is a copy, never a map: another process that cuts the file short cannot then kill
    this one (SIGBUS), nor change bytes that have been looked at. If the file changed meanwhile,
    whatever was made of it is thrown away: `FileChanged`. Pipes are read as they come.
    """
    with open(path, "rb") as raw:
        before = _mark(raw)
        try:
            yield _unpacked(raw)
        except _UNPACKING as error:
            # Half of an old and half of a new file may raise anything; the cause is what to tell.
            if _mark(raw) != before:
                raise FileChanged(path) from None
            if isinstance(error, ValueError) or not is_damage(error):
                raise
            raise ValueError(
                f"{path} must be a whole file, got a damaged one{reason(error)}."
            ) from None
        if _mark(raw) != before:
            raise FileChanged(path)


def _unpacked(raw: io.BufferedReader) -> BinaryIO:
    head = raw.peek(6)  # does not move on: a pipe can be read only once
    opener = next((o for magic, o in _BY_CONTENT.items() if head.startswith(magic)), None)
    return raw if opener is None else cast(BinaryIO, opener(raw))


def _mark(file: IO[bytes]) -> tuple[int, int] | None:
    """What a change of the file changes; None for pipes and devices, which always do."""
    now = os.fstat(file.fileno())
    return (now.st_size, now.st_mtime_ns) if stat.S_ISREG(now.st_mode) else None


def whole_lines(file: BinaryIO, size: int) -> Iterator[NDArray[np.uint8]]:
    """What is left of a file in chunks of whole lines, of `size` bytes or one line at least.

    A chunk is good until the next is asked for: all are read into the same memory.
    """
    memory, filled = np.empty(size, np.uint8), 0
    while step := file.readinto(memory[filled:].data):  # type: ignore[attr-defined]
        filled += step
        if filled < memory.size:
            continue
        end = _after_last_newline(memory)
        if end:
            yield memory[:end]
            filled -= end
            memory[:filled] = memory[end:].copy()
        else:  # a line longer than the memory
            memory = np.concatenate([memory, np.empty_like(memory)])
    if filled:
        yield memory[:filled]


def _after_last_newline(text: NDArray[np.uint8]) -> int:
    """Bytes up to and with the last newline, sought from the end; 0 if there is none."""
    window = 1 << 12
    for stop in range(text.size, 0, -window):
        start = max(0, stop - window)
        found = np.flatnonzero(text[start:stop] == 10)
        if found.size:
            return start + int(found[-1]) + 1
    return 0


def text_writer(path: FileName, target: FileName) -> IO[str]:
    """Opens `path` for text that is packed as the name of `target` says."""
    opener = _BY_SUFFIX.get(Path(target).suffix.lower())
    if opener is None:
        return open(path, "w", encoding="utf-8", newline="\n")
    return cast(IO[str], opener(path, "wt", encoding="utf-8", newline="\n"))
