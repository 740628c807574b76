"""minimize: check once, run, record, stop, and say why."""

import inspect
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np

from adafw import checks, paths, solver
from adafw.algorithm import Algorithm
from adafw.auto_rate import AutoRate, is_auto
from adafw.beginning import at_last, resumed, start_point, unrecorded
from adafw.constraints.base import Constraint
from adafw.memory import keep_freed
from adafw.objectives.base import FiniteSum, Unavailable
from adafw.progress import Progress
from adafw.random import Seed, seeded, thaw
from adafw.recorder import Clock, Every, Record, Recorder, as_record
from adafw.result import Result, conclude
from adafw.schedules import at
from adafw.solver import Diverged, FastPath, State
from adafw.stopping import Interrupts, Limits
from adafw.typing import Array

Callback = Callable[[State, Record], bool | None]

#: The default seed: equal to 0, and told from a 0 that was given, which a state would not allow.
_SEED: int = type("Seed", (int,), {})(0)

#: Seconds between two looks at the limits on time and at the display.
_LOOK = 0.1
#: Iterations of a stretch that nothing is known to end: at first, and at most. They are counted
#: beforehand, which should not take long if it is the clock that ends it.
_FIRST, _MOST = 1000, 100_000


def minimize(
    f: FiniteSum,
    constraint: Constraint,
    algorithm: Algorithm,
    *,
    x0: Array | None = None,
    state: State | None = None,
    seed: Seed = _SEED,
    gap_tolerance: float | None = None,
    max_iterations: int | None = None,
    max_epochs: float | None = None,
    max_seconds: float | None = None,
    max_cpu_seconds: float | None = None,
    max_lmo_calls: int | None = None,
    record_every: int | Every | None = None,
    callbacks: Callback | Sequence[Callback] = (),
    progress: bool | None = None,
    path: str = "auto",
) -> Result:
    """Minimises f over the set, from x0 or from a state, until the first limit is reached.

    Parameters
    ----------
    x0 : start point in the set; None means `constraint.start`.
    state : `Result.state` of an earlier run, to go on from bit for bit; limits count from the
        very beginning, and x0 and seed come from the state.
    seed : of the index stream: an int, a numpy Generator, or any object with
        `integers(low, high, size)`.
    gap_tolerance : stop when the exact Frank-Wolfe gap is at most this, tested at records.
    max_iterations, max_epochs, max_seconds, max_cpu_seconds, max_lmo_calls : limits, tested
        before each iteration; None does not bind. If all are None, max_epochs is 100. An epoch
        is n_terms gradient evaluations; seconds are those of the algorithm, without recording.
    record_every : None records t = 0, ceil(1.2^j) and the last; an int n every n-th and the
        last; `adafw.every(seconds=s)` by time.
    callbacks : functions of (state, record), called at every record; one that returns True stops
        the run. The state is live: copy what you keep.
    progress : show a live line; None shows it on a terminal if the run takes over a second.
    path : which code runs the iterations: "generic" (any problem), "fused" (compiled, for common
        linear problems) or "lazy" (compiled, its cost hardly grows with the number of features);
        "auto" takes the fastest that fits. Results agree to rounding error, on any path; a state
        goes on bit for bit on the path it came from.
    """
    keep_freed()
    callbacks = _check_callbacks(callbacks)
    limits = Limits(
        max_iterations=_limit(max_iterations, "max_iterations"),
        max_epochs=_limit(max_epochs, "max_epochs"),
        max_seconds=_limit(max_seconds, "max_seconds"),
        max_cpu_seconds=_limit(max_cpu_seconds, "max_cpu_seconds"),
        max_lmo_calls=_limit(max_lmo_calls, "max_lmo_calls"),
    )
    tolerance = -1.0 if gap_tolerance is None else checks.real(gap_tolerance, "gap_tolerance", 0)
    _check_problem(f, constraint, algorithm)
    limits.check(algorithm)
    recorder = Recorder(f, constraint, record_every)
    source = None
    if state is None:
        source = seeded(seed)
        x = start_point(f, constraint, x0)
        s = solver.start(f, constraint, algorithm, x, source)
    else:
        given = [n for n, v in (("x0", x0 is not None), ("seed", seed is not _SEED)) if v]
        s = resumed(state, f, constraint, algorithm, given)
    runner: FastPath | AutoRate
    if is_auto(algorithm):
        find = partial(paths.find, f, constraint, name=path)
        runner = AutoRate(f, constraint, algorithm, limits, find, s.x.shape)
    else:
        runner = paths.find(f, constraint, algorithm, path)
    runner.prepare(f, constraint, algorithm, s)
    title = f"{algorithm} on {f!r} over {constraint!r}"
    bar = Progress(str(algorithm), progress, f.status)
    with Interrupts() as interrupts:
        loop = _Loop(
            runner,
            f,
            constraint,
            algorithm,
            limits,
            recorder,
            tolerance,
            callbacks,
            bar,
            interrupts,
        )
        try:
            status = loop.run(s)
        except Unavailable as lost:
            lost.state = s
            raise
        finally:
            bar.close()
            if source is seed and isinstance(s.rng, np.ndarray):
                # A user's generator has been drawn from; the state keeps words of its own.
                drawn, kept = (cast(np.random.Generator, rng) for rng in (source, thaw(s.rng)))
                drawn.bit_generator.state = kept.bit_generator.state
    rate = runner.rate(s) if isinstance(runner, AutoRate) else _rate(algorithm, s.t)
    return conclude(
        s, f, constraint, algorithm, status, limits, tolerance, title, runner.name, rate
    )


def _rate(algorithm: Algorithm, t: int) -> float | None:
    """eta of the last iteration, if the step has one."""
    schedule = algorithm.step.rate
    return None if schedule is None else at(schedule, max(0, t - 1))


@dataclass
class _Loop:
    """Runs from record to record; the state is left at the last iterate."""

    path: FastPath | AutoRate
    f: FiniteSum
    constraint: Constraint
    algorithm: Algorithm
    limits: Limits
    recorder: Recorder
    tolerance: float
    callbacks: tuple[Callback, ...]
    bar: Progress
    interrupts: Interrupts

    def run(self, s: State) -> str:
        """Iterates until something ends the run, and says what: the status."""
        clock = self.clock = Clock(s.cpu_seconds, s.wall_seconds)
        if not s.t and not s.records:
            self._begin(s)
        self.finite_x = s.x.copy()  # a copy, as fast paths move s.x in place
        self.most = _FIRST
        while True:
            status = "interrupted" if self.interrupts.seen else self.limits.reached(s, self.n_terms)
            if self.recorder.due(s) or ((status or self._at_its_end(s)) and unrecorded(s)):
                status = self._record(s, status) or status
                # An exact gradient measured there counts, and may have used up the time.
                status = status or self.limits.reached(s, self.n_terms)
            if status:
                return status
            try:
                self._stretch(s, clock)
            except Diverged as end:
                return self._diverged(s, end)
            except KeyboardInterrupt:
                self.interrupts.again()  # raised inside an iteration: the state is torn
            if self.bar.due():
                self.bar.update(s, self.n_terms, self.limits.share(s, self.n_terms))

    def _begin(self, s: State) -> None:
        """Moves to where the algorithm begins, should that not be x0."""
        with self.clock:
            s.x = self.algorithm.step.begin(self.f, self.constraint, s.x)
        s.cpu_seconds, s.wall_seconds = self.clock.cpu, self.clock.wall

    @property
    def n_terms(self) -> int:
        return self.f.n_terms

    def _stretch(self, s: State, clock: Clock) -> None:
        """Iterations up to the next record, limit or Ctrl-C."""
        begun, most = s.t, min(self.recorder.iterations_left(s), self.most)
        if self.algorithm.step.dear:
            most = 1
        n = self.limits.iterations_left(s, self.algorithm, self.n_terms, most)
        look = time.perf_counter() + min(_LOOK, self._seconds_left(s))

        def stop() -> bool:
            nonlocal look
            if self.interrupts.seen or time.perf_counter() < look:
                return self.interrupts.seen
            clock.pause()
            s.cpu_seconds, s.wall_seconds = clock.cpu, clock.wall
            if self.bar.due():
                self.bar.update(s, self.n_terms, self.limits.share(s, self.n_terms))
            left = self._seconds_left(s)
            look = time.perf_counter() + min(_LOOK, left)
            clock.start()
            return left <= 0

        try:
            with clock:
                self.path.run(self.f, self.constraint, self.algorithm, s, n, stop)
        finally:
            s.cpu_seconds, s.wall_seconds = clock.cpu, clock.wall
        self.most = min(_MOST, max(_FIRST, 2 * (s.t - begun)))

    def _seconds_left(self, s: State) -> float:
        return min(self.limits.seconds_left(s), self.recorder.seconds_left(s))

    def _record(self, s: State, status: str) -> str:
        """Measures and tells the callbacks; returns a status if that ends the run."""
        try:
            # A search may have worked on, and moved x, at the iteration that was recorded last.
            seen = as_record(s.records.pop()).lower_bound if at_last(s) else -math.inf
            record = self._measured(s)
            if seen > record.lower_bound:
                s.records[-1] = tuple(record := record._replace(lower_bound=seen))
            if not math.isfinite(record.value):
                if s.t > 0:
                    s.records.pop()
                    s.x, s.torn = self.finite_x, True
                return "diverged"
            self.finite_x = s.x.copy()
            self.bar.record = record
            stopped = [_is_true(call(s, record)) for call in self.callbacks]
        except KeyboardInterrupt:
            self.interrupts.again()
            return self._record(s, "interrupted") if unrecorded(s) else "interrupted"
        if record.gap <= self.tolerance:
            return "converged"
        if any(stopped):
            return status or "callback"
        return "interrupted" if self.interrupts.seen else ""

    def _at_its_end(self, s: State) -> bool:
        """Whether a step so dear that each is looked at has brought the gap to the tolerance.

        It begins with the gradient that the gap is measured with, which is computed here, once.
        """
        if not (self.algorithm.step.dear and self.tolerance > 0 and self._shares_gradients(s)):
            return False
        with self.clock, np.errstate(over="ignore", invalid="ignore"):
            _, g = self.f.value_and_gradient(s.x)
        s.cpu_seconds, s.wall_seconds = self.clock.cpu, self.clock.wall
        return bool(np.isfinite(g).all()) and self.constraint.gap(s.x, g) <= self.tolerance

    def _shares_gradients(self, s: State) -> bool:
        """Whether the gradient of a record is that of the next iteration."""
        return self.algorithm.gradient.exact and self.f.remembers and s.x.dtype == np.float64

    def _measured(self, s: State) -> Record:
        """The record of s. The clock stands still, unless it is the algorithm's own work.

        A step with exact gradients starts with the gradient that the gap is measured with: where
        the objective remembers it, it is computed here, once, and its time counts.
        """
        if not self._shares_gradients(s):
            return self.recorder.measure(s)
        with self.clock, np.errstate(over="ignore", invalid="ignore"):
            self.f.value_and_gradient(s.x)
        s.cpu_seconds, s.wall_seconds = self.clock.cpu, self.clock.wall
        return self.recorder.measure(s)

    def _diverged(self, s: State, end: Diverged) -> str:
        """Keeps the last iterate known to be finite: this, the one before, the last recorded."""
        for x in (s.x, end.last_x):
            if x is not None and math.isfinite(self.f.value(x)):
                s.x = x
                if unrecorded(s):
                    self.recorder.measure(s)
                return "diverged"
        s.x = self.finite_x
        return "diverged"


def _is_true(answer: object) -> bool:
    """Whether a callback returned True; numpy's counts, other values do not."""
    return isinstance(answer, bool | np.bool_) and bool(answer)


def _check_problem(f: FiniteSum, constraint: Constraint, algorithm: Algorithm) -> None:
    for thing, kind, name, hint in (
        (f, FiniteSum, "f", "an objective such as adafw.LinearModel or adafw.UserSum"),
        (constraint, Constraint, "constraint", "a set such as adafw.L1Ball(100.0)"),
        (algorithm, Algorithm, "algorithm", "an algorithm such as adafw.CSFW()"),
    ):
        if not isinstance(thing, kind):
            got = f"the function {thing.__name__}" if inspect.isroutine(thing) else repr(thing)
            raise TypeError(f"{name} must be {hint}, got {got}.")
    algorithm.check(f, constraint)


def _check_callbacks(callbacks: object) -> tuple[Callback, ...]:
    calls = callbacks if isinstance(callbacks, list | tuple) else (callbacks,)
    for call in calls:
        if not callable(call):
            raise TypeError(f"callbacks must be functions of (state, record), got {call!r}.")
    return tuple(calls)


def _limit(value: float | None, name: str) -> float:
    return math.inf if value is None else checks.real(value, name, 0, infinite=True)
