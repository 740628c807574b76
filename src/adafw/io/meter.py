"""A live line about a long conversion: bytes done, bytes to do, bytes a second."""

import os
import stat
import sys
import time
from types import TracebackType
from typing import BinaryIO

from adafw.io.damage import FileName
from adafw.memory import readable


class Meter:
    """Bytes of a file done and to do, on standard error.

    Shown if `show` is True, or if it is None, standard error is a terminal and a second has passed
    (`ADAFW_PROGRESS=0` silences the latter): one line, wiped at the end; in a log a line now and
    then, at growing intervals. `total` is the size of the file as it lies there; None for pipes.
    """

    def __init__(self, label: str, path: FileName, show: bool | None) -> None:
        self.label, self.path = label, path
        self.terminal = sys.stderr.isatty()
        automatic = self.terminal and os.environ.get("ADAFW_PROGRESS", "1") != "0"
        self.show = automatic if show is None else show
        found = os.stat(path)
        self.total: int | None = found.st_size if stat.S_ISREG(found.st_mode) else None
        self.began = time.perf_counter()
        self.next = self.began + (1.0 if show is None else 0.0)
        self.drawn = False

    def __enter__(self) -> "Meter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        if self.drawn and self.terminal:
            sys.stderr.write("\r\x1b[K")

    def at(self, file: BinaryIO) -> None:
        """A file that is being read, packed or not, is where it is."""
        if self.total is not None:
            self.done(os.lseek(file.fileno(), 0, os.SEEK_CUR), self.total)

    def done(self, count: int, total: int, what: str = "") -> None:
        """So many bytes of `total` are done."""
        now = time.perf_counter()
        if not self.show or now < self.next:
            return
        speed = readable(count / max(now - self.began, 1e-3))
        share = count / max(total, 1)
        text = (
            f"{what or self.label} {os.path.basename(self.path)}  {share:4.0%}  "
            f"{readable(count)} of {readable(total)}, {speed}/s"
        )
        sys.stderr.write(f"\r{text}\x1b[K" if self.terminal else f"{text}\n")
        sys.stderr.flush()
        self.drawn = True
        self.next = now + (0.1 if self.terminal else max(1.0, now - self.began))
