"""Ratios that a loaded machine leaves alone: CPU time of one thread, both sides in turns."""

import time
from collections.abc import Callable

import numpy as np


def interleaved(sides: dict[str, Callable[[], int]], repeats: int = 9) -> dict[str, float]:
    """Median CPU microseconds an iteration of each side; a call returns its iterations.

    The first call of each side warms up and is not counted.
    """
    times: dict[str, list[float]] = {name: [] for name in sides}
    for repeat in range(repeats + 1):
        for name, work in sides.items():
            began = time.thread_time()
            iterations = work()
            if repeat:
                times[name].append((time.thread_time() - began) / iterations * 1e6)
    return {name: float(np.median(t)) for name, t in times.items()}
