"""CSFW and AdaCSFW for sparse linear models over the l1 ball, without a pass over n.

The state then holds, in place of `gradient` and `sum_squares`, the table of kernels/lazy_l1.py,
whose accumulators are behind on purpose. They are never brought up to date between two runs, so
that recording or stopping changes no bit of what follows; `settle` does it to change the path.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from adafw.algorithms import Algorithm
from adafw.constraints.base import Constraint
from adafw.fused import problem
from adafw.fused.batches import drive
from adafw.objectives.base import FiniteSum
from adafw.solver import State

#: Candidates that thinning leaves at most, and how many times as many the list takes.
_ROOM, _TIMES = 512, 4
_KEYS = ("table", "support", "candidates", "capacity", "threshold", "work")


def run(
    f: FiniteSum, constraint: Constraint, algorithm: Algorithm, s: State, n: int,
    stop: Callable[[], bool] = lambda: False,
) -> State:  # fmt: skip
    """n iterations in place, as solver.run does them."""
    _loosen(f, algorithm, s)
    return drive(
        f, algorithm, s, n,
        lambda indices, ends: _iterate(f, constraint, algorithm, s, indices, ends), stop,
    )  # fmt: skip


def settle(s: State) -> None:
    """Brings a state of this path to the form of all others; any other state stays as it is."""
    if "table" not in s.gradient:
        return
    table = s.gradient["table"]
    g, stamps = table[:, 1], table.view(np.uint64)[:, 3]
    behind = s.t - (stamps >> np.uint64(1)).astype(np.float64)
    if "adaptive" in s.step:
        del s.step["adaptive"]
        s.step["sum_squares"] = (table[:, 2] + behind * (g * g)).astype(s.x.dtype)
    for key in _KEYS:
        del s.gradient[key]
    s.gradient["gradient"] = g.astype(s.x.dtype)


def _loosen(f: FiniteSum, algorithm: Algorithm, s: State) -> None:
    """The inverse of `settle`."""
    if "table" in s.gradient:
        s.gradient["table"] = _aligned(s.gradient["table"])
        return
    table = _aligned_zeros(s.x.size)
    g = s.gradient.pop("gradient")
    fresh = not g.any()
    if not fresh or s.x.any():
        table[:, 0], table[:, 1] = s.x, g
    if "sum_squares" in s.step:
        squares = s.step.pop("sum_squares")
        if not fresh or squares.any():
            table[:, 2] = squares
        s.step["adaptive"] = 1
    if s.t:
        table.view(np.uint64)[:, 3] = 2 * s.t
    inner_steps = algorithm.step.most_lmo_calls
    longest = int(np.diff(f.rows.arrays[2]).max())  # type: ignore[attr-defined]
    s.gradient |= {
        "table": table,
        "support": np.flatnonzero(s.x != 0),
        "candidates": np.empty(0, np.int64),
        "capacity": max(_TIMES * _ROOM, 8 * inner_steps) + longest,
        # All of g = 0 is listed; otherwise nothing is, and the first search makes the list.
        "threshold": 5e-324 if fresh else np.inf,
        # How often accumulators were behind, and the list was thinned and rebuilt.
        "work": np.zeros(3, np.int64),
    }


def _iterate(
    f: Any, constraint: Any, algorithm: Algorithm, s: State, indices: Any, ends: Any
) -> int:
    from adafw.kernels import lazy_l1

    part = s.gradient
    table, support, listed = part["table"], part["support"], part["candidates"]
    candidates = np.empty(max(part["capacity"], listed.size), np.int64)
    candidates[: listed.size] = listed
    rates, caps, inner_steps, offset = problem.rates(algorithm.step, s.t, ends.size - 1)
    active = problem.room(support, (ends.size - 1) * inner_steps, s.x.size)
    room = max(_ROOM, 4 * inner_steps)
    done, size, candidates, count, threshold = lazy_l1.run(
        problem.terms(f), indices, ends, s.t, part["alpha"], table, table.view(np.uint64), s.x,
        active, support.size, candidates, listed.size, part["threshold"], room,
        constraint.radius, problem.numbers(algorithm)[1], rates, caps, inner_steps, offset,
        part["work"],
    )  # fmt: skip
    part["support"], part["candidates"] = active[0][:size].copy(), candidates[:count].copy()
    part["capacity"], part["threshold"] = candidates.size, threshold
    return int(done)


def _aligned_zeros(n: int) -> Any:
    """A table of n rows of 32 bytes, none of which crosses a cache line of 64."""
    flat = np.zeros(4 * n + 8)
    skip = -(flat.ctypes.data // 8) % 8
    return flat[skip : skip + 4 * n].reshape(n, 4)


def _aligned(table: Any) -> Any:
    if table.ctypes.data % 32 == 0 and table.flags.c_contiguous:
        return table
    copied = _aligned_zeros(len(table))
    copied[:] = table
    return copied
