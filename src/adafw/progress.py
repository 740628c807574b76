"""A live line about a run."""

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from adafw.recorder import Record
from adafw.solver import State

if TYPE_CHECKING:
    from rich.progress import Progress as Bar


class Progress:
    """How far, how fast, and the last exact gap, on standard error.

    Shown if `show` is True, or if it is None, standard error is a terminal and the run takes more
    than a second (`ADAFW_PROGRESS=0` in the environment silences the latter). On a terminal it is
    one line, wiped at the end; in a log file a line now and then, at growing intervals. It is
    drawn while the run's clock stands still. `status` adds what the objective has to say.
    """

    def __init__(
        self, label: str, show: bool | None, status: Callable[[], str] = lambda: ""
    ) -> None:
        self.terminal = sys.stderr.isatty()
        automatic = self.terminal and os.environ.get("ADAFW_PROGRESS", "1") != "0"
        self.show = automatic if show is None else show
        self.label, self.status = label, status
        self.began = time.perf_counter()
        self.next = self.began + (1.0 if show is None else 0.1)
        self.bar: Bar | None = None
        self.record: Record | None = None

    def due(self) -> bool:
        """Whether it is time to draw."""
        return self.show and time.perf_counter() >= self.next

    def update(self, s: State, n_terms: int, done: float | None) -> None:
        """Draws; `done` is the share of the nearest limit used up."""
        now = time.perf_counter()
        epochs = s.gradient_evaluations / n_terms
        speed = epochs / s.wall_seconds if s.wall_seconds > 0 else 0.0
        text = f"{epochs:.1f} epochs, {speed:.3g}/s"
        if about := self.status():
            text = f"{text}  {about}"
        if self.record is not None:
            text = f"gap {self.record.gap:.2e}  f {self.record.value:.6g}  {text}"
        if self.terminal:
            self.next = now + 0.1
            self._draw(text, done)
        else:
            self.next = now + max(1.0, now - self.began)
            share = "" if done is None else f"{min(1.0, done):4.0%}  "
            sys.stderr.write(f"{self.label}  {share}{text}\n")

    def _draw(self, text: str, done: float | None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        if self.bar is None:
            columns = TextColumn("{task.description}"), BarColumn(24)
            self.bar = Progress(
                *columns,
                TextColumn("{task.fields[text]}"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
                auto_refresh=False,
            )
            self.task = self.bar.add_task(self.label, total=None, text="")
            self.bar.start()
        total, completed = (None, 0.0) if done is None else (1.0, min(1.0, done))
        self.bar.update(self.task, total=total, completed=completed, text=text)
        self.bar.refresh()

    def close(self) -> None:
        """Wipes the line."""
        if self.bar is not None:
            self.bar.stop()
