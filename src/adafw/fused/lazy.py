"""CSFW's estimate for sparse linear models over the l1 ball, all steps, without a pass over n."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from adafw.algorithm import Algorithm
from adafw.constraints import L1Ball
from adafw.constraints.base import Constraint
from adafw.fused import problem
from adafw.fused.batches import drive, sees_all
from adafw.fused.workspace import claim, stamp
from adafw.gradients import CSFW
from adafw.integrity import Damaged, expect, expect_indices, expect_number
from adafw.kernels.parts import Batches, Ledger, Listed, Point, Support
from adafw.objectives.base import FiniteSum
from adafw.rows import CSRRows, StreamedRows
from adafw.solver import State
from adafw.typing import Array, StateDict

#: Features per non-zero of a batch from which this path is the faster one: measured.
_CROSSOVER = 10


@dataclass(frozen=True)
class LazyL1:
    """Iterations that touch the features of their batches alone.

    `room` is how many candidates thinning leaves at most, `times` how many times as many the list
    takes.

    Its workspace is the table of kernels/lazy_l1.py, whose accumulators are behind on purpose, and
    the list of candidates. Neither is ever brought up to date between two runs: `gradient` and
    `sum_squares` are derived from the table when a run returns, and change no bit of what follows.
    """

    name: ClassVar[str] = "lazy"
    room: int = 512
    times: int = 4

    def fits(self, f: FiniteSum, constraint: Constraint, algorithm: Algorithm) -> bool:
        return (
            problem.is_known(f, constraint, algorithm)
            and problem.is_sparse(f)
            and type(constraint) is L1Ball
            and type(algorithm.gradient) is CSFW
        )

    def pays(self, f: FiniteSum, constraint: Constraint, algorithm: Algorithm) -> bool:
        """Whether n is so large against a batch's non-zeros that a pass over n is the dearer."""
        model, gradient = problem.linear(f), algorithm.gradient
        m, n = model.rows.shape
        assert isinstance(gradient, CSFW)
        return bool(n > _CROSSOVER * problem.row_length(model) * gradient.b(1, m))

    def prepare(self, f: FiniteSum, constraint: Constraint, algorithm: Algorithm, s: State) -> None:
        # Lists grow to a few times what a row or all features may need, never further.
        most = 8 * (self._capacity(problem.linear(f), algorithm) + s.x.size)
        _check_workspace(claim(s, type(self)), s, most)
        self.run(f, constraint, algorithm, s, 0)

    def run(
        self, f: FiniteSum, constraint: Constraint, algorithm: Algorithm, s: State, n: int,
        stop: Callable[[], bool] = lambda: False,
    ) -> State:  # fmt: skip
        kept, model = claim(s, type(self)), problem.linear(f)
        if "table" in kept:
            kept["table"] = _aligned(kept["table"])
        else:
            self._begin(model, algorithm, s)

        def iterate(batches: Batches) -> int:
            if sees_all(algorithm.gradient, f.n_terms, batches):
                self._renew(model, algorithm, s)
            return self._iterate(model, cast(L1Ball, constraint), algorithm, s, batches)

        inner_steps = problem.calls(algorithm)
        touched = inner_steps * float(kept["support"].size + inner_steps)
        drive(f, algorithm, s, n, iterate, stop, (problem.row_length(model), touched))
        _publish(s)
        stamp(s)
        return s

    def _begin(self, f: problem.Linear, algorithm: Algorithm, s: State) -> None:
        """The workspace for a state from elsewhere, whose x, g and accumulators are right."""
        table, g = _aligned_zeros(s.x.size), s.gradient["gradient"]
        squares = s.step.get("sum_squares")
        fresh = not g.any()
        # A table that stays zero takes no memory yet.
        if not fresh or s.x.any():
            table[:, 0], table[:, 1] = s.x, g
        if squares is not None and (not fresh or squares.any()):
            table[:, 2] = squares
        # Twice the iteration up to which a row is right; the last bit marks candidates.
        if s.t:
            table.view(np.uint64)[:, 3] = 2 * s.t
        s.workspace |= {
            "table": table,
            "support": np.flatnonzero(s.x != 0),
            "candidates": np.empty(0, np.int64),
            "capacity": self._capacity(f, algorithm),
            # All of g = 0 is listed; otherwise nothing is, and the first search makes the list.
            "threshold": 5e-324 if fresh else np.inf,
            # That of the last projection, where the search for the next one begins.
            "level": 0.0,
            # How often accumulators were behind, and the list was thinned and rebuilt.
            "work": np.zeros(3, np.int64),
        }

    def _capacity(self, f: problem.Linear, algorithm: Algorithm) -> int:
        """Of a new list: one row may add all its features before it is thinned."""
        rows = cast(CSRRows | StreamedRows, f.rows)
        longest = int(np.diff(rows.arrays[2]).max())
        return max(self.times * self.room, 8 * problem.calls(algorithm)) + longest

    def _renew(self, f: problem.Linear, algorithm: Algorithm, s: State) -> None:
        """The sum of the gradients made anew, and the table with it."""
        _publish(s)
        alpha = s.gradient["alpha"].astype(np.float64, copy=False)
        s.gradient["gradient"] = f.combine(alpha).astype(s.x.dtype, copy=False)
        kept = {name: s.workspace[name] for name in ("work", "level")}
        self._begin(f, algorithm, s)
        s.workspace |= kept

    def _iterate(
        self,
        f: problem.Linear,
        constraint: L1Ball,
        algorithm: Algorithm,
        s: State,
        batches: Batches,
    ) -> int:
        from adafw.kernels import lazy_l1, lazy_projection

        kept, count = s.workspace, batches.ends.size - 1
        support, listed = kept["support"], kept["candidates"]
        candidates = np.empty(max(kept["capacity"], listed.size), np.int64)
        candidates[: listed.size] = listed
        steps = problem.steps(algorithm, s.t, count, s.x[:0])
        active = problem.active(support, count * steps.inner_steps, s.x.size)
        work = (
            problem.terms(f, batches), batches, _ledger(s, max(self.room, 4 * steps.inner_steps)),
            Listed(candidates, listed.size, kept["threshold"]), steps,
            Point(s.x, constraint.radius),
        )  # fmt: skip
        if problem.is_projected(algorithm):
            at = Support(active, support.size, kept["level"])
            done, solved, at, found = lazy_projection.run(*work, at)
            kept["support"], kept["level"] = at.active.index[: at.size].copy(), at.level
            problem.count_minimisers(constraint, algorithm, s, solved)
        else:
            done, size, found = lazy_l1.run(*work, active, support.size)
            kept["support"] = active.index[:size].copy()
        kept["candidates"] = found.features[: found.size].copy()
        kept["capacity"], kept["threshold"] = found.features.size, found.threshold
        return int(done)


def _check_workspace(kept: StateDict, s: State, most: int) -> None:
    """Refuses a workspace that no run left: the kernels index by its numbers."""
    if "table" not in kept:
        return
    n = s.x.size
    table = kept["table"]
    expect(table[:, :3] if np.ndim(table) == 2 else table, "workspace.table", np.empty((n, 3)))
    # The fourth column is a counter in the bits of a float, and meaningless as one.
    stamps = np.ascontiguousarray(table).view(np.uint64)
    if table.shape != (n, 4) or (stamps[:, 3] > 2 * s.t + 1).any():
        raise Damaged("workspace.table", f"of iterations up to {s.t}", "later ones")
    if not np.array_equal(table[:, 0].astype(s.x.dtype), s.x):  # the table is in float64
        raise Damaged("workspace.table", "of the same x", "another")
    for name in ("support", "candidates"):
        expect_indices(kept.get(name), f"workspace.{name}", n)
    # An entry that only float64 tells from 0 may be among them, too.
    if not np.isin(np.flatnonzero(s.x), kept["support"]).all():
        raise Damaged("workspace.support", "where x is not 0", "other places")
    if not np.array_equal(np.sort(kept["candidates"]), np.flatnonzero(stamps[:, 3] & 1)):
        raise Damaged("workspace.candidates", "those that the table marks", "others")
    expect_number(kept.get("capacity"), "workspace.capacity", int, 1, most)
    expect_number(kept.get("threshold"), "workspace.threshold", float, 0.0, np.inf)
    expect_number(kept.get("level"), "workspace.level", float, 0.0, np.inf)
    expect(kept.get("work"), "workspace.work", np.empty(3, np.int64))


def _ledger(s: State, room: int) -> Ledger:
    kept = s.workspace
    table = kept["table"]
    return Ledger(table, table.view(np.uint64), s.gradient["alpha"], room, kept["work"])


def _publish(s: State) -> None:
    """`gradient` and `sum_squares` as the one loop has them; the table stays as it is."""
    from adafw.kernels import lazy_l1

    g = s.gradient["gradient"]
    lazy_l1.publish(_ledger(s, 0), s.t, g, s.step.get("sum_squares", g[:0]))


def _aligned_zeros(n: int) -> Array:
    """A table of n rows of 32 bytes, none of which crosses a cache line of 64."""
    flat = np.zeros(4 * n + 8)
    # numpy aligns to 16 bytes only.
    skip = -(flat.ctypes.data // 8) % 8
    return flat[skip : skip + 4 * n].reshape(n, 4)


def _aligned(table: Array) -> Array:
    if table.ctypes.data % 32 == 0 and table.flags.c_contiguous:
        return table
    copied = _aligned_zeros(len(table))
    copied[:] = table
    return copied
