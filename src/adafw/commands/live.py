"""A live line about a fit: gap, objective, speed, time to the tolerance."""

import math
import sys
import time
from typing import Any


class Live:
    """On a terminal one line, redrawn; in a log a line now and then, at growing intervals."""

    def __init__(self, tol: float, n_terms: int, n_fits: int, show: bool) -> None:
        self.tol, self.n_terms, self.n_fits, self.show = tol, n_terms, n_fits, show
        self.terminal = sys.stderr.isatty()
        self.began = time.monotonic()
        self.next = self.began + (0.2 if self.terminal else 2.0)
        self.width = 0
        self.fit = -1
        self.seen: list[tuple[float, float]] = []

    def __call__(self, k: int, state: Any, record: Any, progress: Any) -> None:
        """Notes a record and draws if it is time to."""
        now = time.monotonic()
        if k != self.fit:
            self.fit, self.seen = k, []
        wanted = self.tol * max(abs(record.value), 1e-12)
        if record.gap > 0 and wanted > 0:
            self.seen.append((now, math.log(record.gap / wanted)))
        if not self.show or now < self.next:
            return
        speed = record.epoch / record.wall_seconds if record.wall_seconds > 0 else 0.0
        which = f"class {k + 1} of {self.n_fits}  " if self.n_fits > 1 else ""
        text = (
            f"{which}gap {record.gap:.2e}  objective {record.value:.6g}  "
            f"{record.epoch:.1f} epochs, {speed:.3g}/s{self._left(now)}"
        )
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

    def _left(self, now: float) -> str:
        """Seconds to the tolerance, if the gap goes on falling as over the last half."""
        if len(self.seen) < 4:
            return ""
        then, before = self.seen[len(self.seen) // 2]
        fallen, left = before - self.seen[-1][1], self.seen[-1][1]
        if not (fallen > 0 and left > 0 and now > then):
            return ""
        seconds = left * (now - then) / fallen
        return f", about {seconds:.0f} s to tolerance" if seconds < 1e6 else ""
