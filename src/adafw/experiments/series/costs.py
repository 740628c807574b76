"""What one step costs, gradients aside."""

import contextlib
import copy
import statistics
import time

import adafw
from adafw.constraints.base import Stalled
from adafw.result import Result
from adafw.typing import JsonTable


def measure_step(
    f: adafw.LinearModel, constraint: adafw.Constraint, algorithm: adafw.Algorithm, result: Result
) -> JsonTable:
    """CPU seconds of one step alone, exact gradient given, at the end of a run: median of a few.

    That is K linear minimisations, or one projection, and the metric and vector work around them,
    by the code for any problem, whatever code the run itself used.
    """
    if result.status == "diverged":
        return {}
    s = result.state
    g = f.gradient(s.x)
    times: list[float] = []
    with contextlib.suppress(Stalled):
        while not times or (len(times) < 25 and sum(times) < 0.2):
            memory = copy.deepcopy(s.step)
            begun = time.process_time()
            algorithm.step.update(f, constraint, s.x, g, s.t, memory)
            times.append(time.process_time() - begun)
        return {"step_seconds": statistics.median(times)}
    return {}
