"""Ratios that a loaded machine leaves alone: both sides take turns, medians are compared."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from adafw import paths, solver
from adafw.random import as_source


def interleaved(
    sides: dict[str, Callable[[], int]],
    repeats: int = 9,
    clock: Callable[[], float] = time.thread_time,
) -> dict[str, float]:
    """Median microseconds an iteration of each side; a call returns its iterations.

    CPU time of this thread unless another clock is given. The first call of each side warms up
    and is not counted.
    """
    times: dict[str, list[float]] = {name: [] for name in sides}
    for repeat in range(repeats + 1):
        for name, work in sides.items():
            began = clock()
            iterations = work()
            if repeat:
                times[name].append((clock() - began) / iterations * 1e6)
    return {name: float(np.median(t)) for name, t in times.items()}


def ratio(over: str, under: str, sides: dict[str, Callable[[], int]], *how: Any) -> dict[str, Any]:
    """One side over another, and the times of all."""
    times = interleaved(sides, *how)
    return {"ratio": times[over] / times[under], "microseconds": times}


class Side:
    """A run that goes on, so many iterations a call, without records."""

    def __init__(
        self, f: Any, constraint: Any, algorithm: Any, path: str = "auto",
        each: int = 100, first: int = 200,
    ) -> None:  # fmt: skip
        self.problem = f, constraint, algorithm
        self.run = paths.find(*self.problem, path).run
        self.state = solver.start(*self.problem, constraint.start(f.shape, f.dtype), as_source(0))
        self.each = each
        self.run(*self.problem, self.state, first)

    def __call__(self) -> int:
        self.run(*self.problem, self.state, self.each)
        return self.each
