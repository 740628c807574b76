"""Linear models over the l1 and linf balls: CSFW's and SVRF's estimates, all three steps."""

from collections.abc import Callable
from typing import Any

import numpy as np

from adafw import gradients
from adafw.algorithms import Algorithm
from adafw.arrays import float_bits
from adafw.constraints import L1Ball
from adafw.constraints.base import Constraint
from adafw.fused import problem
from adafw.fused.batches import drive
from adafw.fused.lazy import settle
from adafw.objectives.base import FiniteSum
from adafw.solver import State
from adafw.steps import ProjectedStep


def run(
    f: FiniteSum, constraint: Constraint, algorithm: Algorithm, s: State, n: int,
    stop: Callable[[], bool] = lambda: False,
) -> State:  # fmt: skip
    """n iterations in place, as solver.run does them."""
    settle(s)
    s.x = s.x.copy()  # the kernels move x in place, and others may have kept the old one
    body: Any = _L1(constraint, s) if type(constraint) is L1Ball else _LInf(constraint)

    def iterate(indices: Any, ends: Any) -> int:
        if ends.size > 1:
            _take_snapshot(f, algorithm, s)
        return int(body.iterate(f, algorithm, s, indices, ends))

    return drive(f, algorithm, s, n, iterate, stop)


class _L1:
    """The support of x and the kernels of the l1 ball."""

    def __init__(self, constraint: Any, s: State) -> None:
        from adafw.kernels import l1

        self.kernels, self.radius = l1, constraint.radius
        self.support = np.flatnonzero(s.x != 0)
        self.limits = _limits(s.x.dtype, squares="sum_squares" in s.step)
        self.peaks = np.empty(-(-s.x.size // l1.BLOCK), self.limits[0].dtype)

    def iterate(self, f: Any, algorithm: Algorithm, s: State, indices: Any, ends: Any) -> int:
        kind, step = problem.numbers(algorithm)
        memory, base, g = _estimate(f, algorithm, s)
        rates, caps, inner_steps, offset = problem.rates(algorithm.step, s.t, ends.size - 1)
        projected = type(algorithm.step) is ProjectedStep
        most = s.x.size if projected else (ends.size - 1) * inner_steps
        active = problem.room(self.support, most, s.x.size)
        work = (
            kind, problem.terms(f), indices, ends, memory, base, g, g.view(self.peaks.dtype),
            self.limits, s.step.get("sum_squares", g[:0]), self.peaks, s.x, active,
            self.support.size, self.radius,
        )  # fmt: skip
        if projected:
            done, size, projections, s.step["level"] = self.kernels.run_projected(
                *work, rates, offset, s.step.get("level", 0.0)
            )
            s.projections += projections
        else:
            done, size = self.kernels.run(*work, step, rates, caps, inner_steps, offset)
        self.support = active[0][:size].copy()
        return int(done)


def _limits(dtype: Any, squares: bool) -> tuple[Any, Any]:
    """`limits` of kernels/l1.py."""
    magnitude, infinity = float_bits(dtype)
    if not squares:
        return magnitude, infinity
    largest = np.sqrt(np.finfo(dtype).max)  # whose square is finite
    return magnitude, np.nextafter(largest, np.array(np.inf, dtype)).view(magnitude.dtype)


class _LInf:
    """The kernels of the linf ball."""

    def __init__(self, constraint: Any) -> None:
        from adafw.kernels import linf

        self.kernel, self.radius = linf.run, constraint.radius

    def iterate(self, f: Any, algorithm: Algorithm, s: State, indices: Any, ends: Any) -> int:
        kind, step = problem.numbers(algorithm)
        memory, base, g = _estimate(f, algorithm, s)
        rates, caps, inner_steps, offset = problem.rates(algorithm.step, s.t, ends.size - 1)
        done, projections = self.kernel(
            kind, problem.terms(f), indices, ends, memory, base, g,
            s.step.get("sum_squares", g[:0]), s.x, self.radius, step, rates, caps, inner_steps,
            offset,
        )  # fmt: skip
        s.projections += projections
        return int(done)


def _estimate(f: Any, algorithm: Algorithm, s: State) -> tuple[Any, Any, Any]:
    """(memory, base, g) of kernels.estimates for this state."""
    if type(algorithm.gradient) is gradients.CSFW:
        return s.gradient["alpha"], s.gradient["gradient"][:0], s.gradient["gradient"]
    if "snapshot" not in s.gradient:  # before the first iteration
        return np.empty(0, s.x.dtype), s.x, np.empty_like(s.x)
    if "snapshot_slopes" not in s.gradient:
        s.gradient["snapshot_slopes"] = f.slopes(s.gradient["snapshot"])
    return (
        s.gradient["snapshot_slopes"],
        s.gradient["snapshot_gradient"],
        np.empty_like(s.x),
    )


def _take_snapshot(f: Any, algorithm: Algorithm, s: State) -> None:
    """Where SVRF takes one; the slopes are kept too, they save half of the products to come."""
    gradient: Any = algorithm.gradient
    if type(gradient) is gradients.SVRF and gradient.is_snapshot(s.t):
        slopes = f.slopes(s.x)
        s.gradient = {
            "snapshot": s.x.copy(),
            "snapshot_gradient": f.combine(slopes / len(slopes)),
            "snapshot_slopes": slopes,
        }
