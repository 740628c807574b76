"""A live line about a fit: gap, objective, speed, time to the tolerance."""

import math
import sys
import threading
import time
from collections.abc import Callable

from adafw.fitting.judge import FLOOR
from adafw.recorder import Record


class Live:
    """On a terminal one line, redrawn; in a log a line now and then, at growing intervals.

    `status` adds what the rows have to say.
    """

    def __init__(
        self, tol: float, n_fits: int, show: bool, status: Callable[[], str] = lambda: ""
    ) -> None:
        self.tol, self.n_fits, self.show, self.status = tol, n_fits, show, status
        self.terminal = sys.stderr.isatty()
        self.began = time.monotonic()
        self.next = self.began + (0.2 if self.terminal else 2.0)
        self.width = 0
        self.seen: dict[int, list[tuple[float, float]]] = {}
        self._lock = threading.Lock()  # several fits may run at a time

    def __call__(self, k: int, record: Record) -> None:
        """Notes a record and draws if it is time to."""
        if not self.show:
            return
        now = time.monotonic()
        wanted = self.tol * max(abs(record.value), FLOOR)
        with self._lock:
            seen = self.seen.setdefault(k, [])
            if record.gap > 0 and wanted > 0:
                seen.append((now, math.log(record.gap / wanted)))
            if now >= self.next:
                self._draw(now, self._text(k, record, _left(seen, now)))

    def _text(self, k: int, record: Record, left: str) -> str:
        speed = record.epoch / record.wall_seconds if record.wall_seconds > 0 else 0.0
        which = f"class {k + 1} of {self.n_fits}  " if self.n_fits > 1 else ""
        about = self.status()
        return (
            f"{which}gap {record.gap:.2e}  objective {record.value:.6g}  "
            f"{record.epoch:.1f} epochs, {speed:.3g}/s{left}"
            f"{'  ' if about else ''}{about}"
        )

    def _draw(self, now: float, text: str) -> None:
        if self.terminal:
            self.next = now + 0.2
            sys.stderr.write("\r" + text.ljust(self.width))
            self.width = len(text)
        else:
            self.next = now + max(2.0, now - self.began)
            sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Wipes the line."""
        if self.width:
            sys.stderr.write("\r" + " " * self.width + "\r")
            sys.stderr.flush()
            self.width = 0


def _left(seen: list[tuple[float, float]], now: float) -> str:
    """Seconds to the tolerance, if the gap goes on falling as over the last half."""
    if len(seen) < 4:
        return ""
    then, before = seen[len(seen) // 2]
    fallen, left = before - seen[-1][1], seen[-1][1]
    if not (fallen > 0 and left > 0 and now > then):
        return ""
    seconds = left * (now - then) / fallen
    return f", about {seconds:.0f} s to tolerance" if seconds < 1e6 else ""
