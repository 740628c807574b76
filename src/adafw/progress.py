"""A live line about a run, where a terminal is."""

import math
import os
import sys
import time
from typing import Any

from adafw.recorder import Record
from adafw.solver import State


class Progress:
    """One line on standard error: how far, how fast, and the last exact gap.

    Shown if `show` is True, or if it is None and standard error is a terminal and the run takes
    more than a second; `ADAFW_PROGRESS=0` in the environment silences the latter. The line is
    wiped at the end. Drawing happens while the run's clock stands still.
    """

    def __init__(self, label: str, show: bool | None) -> None:
        automatic = sys.stderr.isatty() and os.environ.get("ADAFW_PROGRESS", "1") != "0"
        self.show = automatic if show is None else show
        self.delay = 1.0 if show is None else 0.0
        self.label = label
        self.began = self.drawn = time.perf_counter()
        self.bar: Any = None
        self.record: Record | None = None

    def update(self, s: State, n_terms: int, done: float | None) -> None:
        """Redraws at most ten times a second; `done` is the share of the nearest limit used up."""
        now = time.perf_counter()
        if not self.show or now - self.began < self.delay or now - self.drawn < 0.1:
            return
        self.drawn = now
        if self.bar is None:
            self._open()
        epochs = s.gradient_evaluations / n_terms
        rate = epochs / s.wall_seconds if s.wall_seconds > 0 else 0.0
        self.bar.update(
            self.task,
            completed=0.0 if done is None else min(1.0, done),
            total=None if done is None else 1.0,
            gap=f"{self.record.gap:.2e}" if self.record else "-",
            value=f"{self.record.value:.6g}" if self.record else "-",
            speed=f"{epochs:.1f} epochs, {rate:.3g}/s",
        )
        self.bar.refresh()

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(24),
            TextColumn("gap {task.fields[gap]}  f {task.fields[value]}  {task.fields[speed]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
            auto_refresh=False,
        )
        self.task = self.bar.add_task(self.label, total=None, gap="-", value="-", speed="")
        self.bar.start()

    def close(self) -> None:
        """Wipes the line."""
        if self.bar is not None:
            self.bar.stop()


def share_done(limits: dict[str, tuple[float, float]]) -> float | None:
    """The largest used / allowed over the limits given, None if there are none."""
    shares = [used / allowed for used, allowed in limits.values() if 0 < allowed < math.inf]
    return max(shares, default=None)
