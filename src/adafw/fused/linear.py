"""Linear models over the l1 and linf balls: CSFW, SAGA, SVRF and LSVRG, all three steps."""

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import numpy as np

from adafw.algorithm import Algorithm
from adafw.arrays import float_bits
from adafw.constraints import L1Ball, LInfBall
from adafw.constraints.base import Constraint
from adafw.fused import problem
from adafw.fused.batches import drive, sees_all
from adafw.fused.workspace import claim, stamp
from adafw.gradients import LSVRG
from adafw.integrity import expect, expect_number
from adafw.kernels import codes
from adafw.kernels.parts import Batches, Bits, Estimate, Point, Support, Word
from adafw.objectives.base import FiniteSum
from adafw.solver import State


class LinearBalls:
    """One compiled call for many iterations, each with a pass over the n coordinates.

    Its workspace holds, where there are any, the slopes at the snapshot of SVRF or LSVRG, which
    save half of the products, and the level of the last projection, where the search for the next
    one begins.
    """

    name = "fused"

    def fits(self, f: FiniteSum, constraint: Constraint, algorithm: Algorithm) -> bool:
        return problem.is_known(f, constraint, algorithm)

    def pays(self, f: FiniteSum, constraint: Constraint, algorithm: Algorithm) -> bool:
        return True

    def prepare(self, f: FiniteSum, constraint: Constraint, algorithm: Algorithm, s: State) -> None:
        kept = claim(s, type(self))
        if "snapshot_slopes" in kept:
            expect(
                kept["snapshot_slopes"], "workspace.snapshot_slopes", np.empty(f.n_terms, f.dtype)
            )
        if "level" in kept:
            expect_number(kept["level"], "workspace.level", float, -np.inf, np.inf)
        # Compiles everything before the clock starts.
        self.run(f, constraint, algorithm, s, 0)

    def run(
        self, f: FiniteSum, constraint: Constraint, algorithm: Algorithm, s: State, n: int,
        stop: Callable[[], bool] = lambda: False,
    ) -> State:  # fmt: skip
        claim(s, type(self))
        s.x = s.x.copy()  # the kernels move x in place, and others may have kept the old one
        kind = _L1 if type(constraint) is L1Ball else _LInf
        model = problem.linear(f)
        ball = kind(cast(L1Ball | LInfBall, constraint), s)

        def iterate(batches: Batches) -> int:
            if sees_all(algorithm.gradient, f.n_terms, batches):
                _look_at_all(model, algorithm, s)
            done = int(ball.iterate(model, algorithm, s, batches))
            if done and "exact" in s.gradient:
                s.gradient["exact"] = int(batches.ends[done] == batches.ends[done - 1])
            return done

        cost = problem.row_length(model), ball.cost(algorithm)
        drive(f, algorithm, s, n, iterate, stop, cost)
        stamp(s)
        return s


class _L1:
    """The support of x and the kernels of the l1 ball."""

    def __init__(self, constraint: L1Ball | LInfBall, s: State) -> None:
        from adafw.kernels import l1

        self.kernels, self.radius = l1, constraint.radius
        self.constraint = constraint
        self.support = np.flatnonzero(s.x != 0)
        self.limits = _limits(s.x.dtype, squares="sum_squares" in s.step)
        self.peaks = np.empty(-(-s.x.size // l1.BLOCK), self.limits[0].dtype)
        self.n = s.x.size

    def cost(self, algorithm: Algorithm) -> float:
        """Entries that an iteration touches beside its rows."""
        inner_steps = problem.calls(algorithm)
        return self.n + inner_steps * float(self.support.size + inner_steps)

    def iterate(self, f: problem.Linear, algorithm: Algorithm, s: State, batches: Batches) -> int:
        count = batches.ends.size - 1
        into = _estimate(f, algorithm, s)
        steps = problem.steps(algorithm, s.t, count, s.step.get("sum_squares", into.g[:0]))
        projected = steps.kind == codes.PROJECTED
        # A projection may fill x; an inner step adds one coordinate at most.
        most = self.n if projected else count * steps.inner_steps
        active = problem.active(self.support, most, self.n)
        work = (
            problem.terms(f, batches), batches, into,
            Bits(into.g.view(self.peaks.dtype), *self.limits, self.peaks), steps,
            Point(s.x, self.radius),
            Support(active, self.support.size, s.workspace.get("level", 0.0)),
        )  # fmt: skip
        if projected:
            done, size, projections, level = self.kernels.run_projected(*work)
            s.workspace["level"] = float(level)
            problem.count_minimisers(self.constraint, algorithm, s, projections)
        else:
            done, size = self.kernels.run(*work)
        # A copy: a view would keep the whole index, which may be of length n.
        self.support = active.index[:size].copy()
        return int(done)


@cache
def _limits(dtype: np.dtype[Any], squares: bool) -> tuple[Word, Word]:
    """(magnitude, refused) of kernels.parts.Bits."""
    magnitude, infinity = float_bits(dtype)
    if not squares:
        return magnitude, infinity
    largest = np.sqrt(np.finfo(dtype).max)  # whose square is finite
    return magnitude, np.nextafter(largest, np.array(np.inf, dtype)).view(magnitude.dtype)


class _LInf:
    """The kernels of the linf ball."""

    def __init__(self, constraint: L1Ball | LInfBall, s: State) -> None:
        from adafw.kernels import linf

        self.kernel, self.radius, self.n = linf.run, constraint.radius, s.x.size
        self.constraint = constraint

    def cost(self, algorithm: Algorithm) -> float:
        """Entries that an iteration touches beside its rows."""
        return float(self.n * (1 + problem.calls(algorithm)))

    def iterate(self, f: problem.Linear, algorithm: Algorithm, s: State, batches: Batches) -> int:
        into = _estimate(f, algorithm, s)
        done, projections = self.kernel(
            problem.terms(f, batches), batches, into,
            problem.steps(
                algorithm, s.t, batches.ends.size - 1, s.step.get("sum_squares", into.g[:0])
            ),
            Point(s.x, self.radius),
        )  # fmt: skip
        problem.count_minimisers(self.constraint, algorithm, s, projections)
        return int(done)


def _estimate(f: problem.Linear, algorithm: Algorithm, s: State) -> Estimate:
    """g and what it is made from, for this state."""
    kind = cast(int, problem.estimate_code(algorithm))
    unseen = np.empty(0, np.uint32)
    if kind == codes.CSFW:
        g = s.gradient["gradient"]
        return Estimate(kind, s.gradient["alpha"], g[:0], g, unseen)
    if kind == codes.SAGA:
        alpha, base = s.gradient["alpha"], s.gradient["gradient"]
        return Estimate(kind, alpha, base, np.empty_like(s.x), np.zeros(f.n_terms, np.uint32))
    if "snapshot" not in s.gradient:  # before the first iteration
        return Estimate(kind, np.empty(0, s.x.dtype), s.x, np.empty_like(s.x), unseen)
    if "snapshot_slopes" not in s.workspace:
        s.workspace["snapshot_slopes"] = f.slopes(s.gradient["snapshot"])
    slopes, base = s.workspace["snapshot_slopes"], s.gradient["snapshot_gradient"]
    return Estimate(kind, slopes, base, np.empty_like(s.x), unseen)


def _look_at_all(f: problem.Linear, algorithm: Algorithm, s: State) -> None:
    """A snapshot of SVRF or LSVRG; the sum of CSFW or SAGA made anew."""
    if problem.estimate_code(algorithm) != codes.SVRF:
        s.gradient["gradient"] = f.combine(s.gradient["alpha"])
        return
    slopes = f.slopes(s.x)
    s.gradient = {"snapshot": s.x.copy(), "snapshot_gradient": f.combine(slopes / len(slopes))}
    if type(algorithm.gradient) is LSVRG:
        s.gradient["exact"] = 1
    s.workspace["snapshot_slopes"] = slopes
