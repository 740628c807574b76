"""What ends a run: limits, and the keyboard."""

import math
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

from adafw.algorithm import Algorithm
from adafw.solver import State


@dataclass(frozen=True)
class Limits:
    """The limits of a run, infinite where none was given."""

    max_iterations: float
    max_epochs: float
    max_seconds: float
    max_cpu_seconds: float
    max_lmo_calls: float

    def __post_init__(self) -> None:
        if all(math.isinf(limit) for limit in vars(self).values()):
            object.__setattr__(self, "max_epochs", 100.0)

    def check(self, algorithm: Algorithm) -> None:
        """Refuses limits that can never be reached."""
        others = [limit for name, limit in vars(self).items() if name != "max_lmo_calls"]
        if not algorithm.step.most_lmo_calls and all(math.isinf(limit) for limit in others):
            raise ValueError(
                f"max_lmo_calls never binds, as {algorithm} calls no LMO; give another limit, such "
                "as max_epochs."
            )

    def used(self, s: State, n_terms: int) -> dict[str, tuple[float, float]]:
        """Name -> (used, allowed)."""
        return {
            "max_iterations": (s.t, self.max_iterations),
            "max_epochs": (s.gradient_evaluations / n_terms, self.max_epochs),
            "max_seconds": (s.wall_seconds, self.max_seconds),
            "max_cpu_seconds": (s.cpu_seconds, self.max_cpu_seconds),
            "max_lmo_calls": (s.lmo_calls, self.max_lmo_calls),
        }

    def reached(self, s: State, n_terms: int) -> str:
        """The first limit used up, or ''."""
        for name, (used, allowed) in self.used(s, n_terms).items():
            if used >= allowed:
                return name
        return ""

    def share(self, s: State, n_terms: int) -> float | None:
        """The largest used / allowed, None if no limit is finite and positive."""
        used = self.used(s, n_terms).values()
        return max((part / whole for part, whole in used if 0 < whole < math.inf), default=None)

    def iterations_left(self, s: State, algorithm: Algorithm, n_terms: int, at_most: float) -> int:
        """Iterations that can be done without testing the counted limits in between, >= 1."""
        left = min(self.max_iterations - s.t, at_most)
        per_iteration = algorithm.step.most_lmo_calls
        if per_iteration:
            left = min(left, (self.max_lmo_calls - s.lmo_calls) // per_iteration)
        if not math.isinf(self.max_epochs):
            # One by one, as batch sizes may grow with t: the sum that the run makes itself.
            evaluations, n = s.gradient_evaluations, 0
            while evaluations / n_terms < self.max_epochs and n < left:
                evaluations += algorithm.gradient.evaluations(s.t + n, n_terms)
                n += 1
            left = n
        # At least 1: `reached` has just said that no limit is used up.
        return max(1, int(left))

    def seconds_left(self, s: State) -> float:
        return min(self.max_seconds - s.wall_seconds, self.max_cpu_seconds - s.cpu_seconds)


class Interrupts:
    """Ctrl-C, noted between iterations so that the state stays whole; a second one breaks in."""

    def __init__(self) -> None:
        self.seen = False
        self._old: Callable[[int, FrameType | None], Any] | int | None = None

    def __enter__(self) -> "Interrupts":
        # Only the main thread may handle signals, and a handler of the user's own is left alone.
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._old = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._old is not None:
            signal.signal(signal.SIGINT, self._old)

    def again(self) -> None:
        """Takes a KeyboardInterrupt that was raised for one noted here; a second one goes on."""
        if self.seen:
            raise  # the exception being handled
        self.seen = True

    def _note(self, signum: int, frame: FrameType | None) -> None:
        if self.seen:
            raise KeyboardInterrupt
        self.seen = True
