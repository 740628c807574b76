"""minimize: check once, run, record, stop, and say why."""

import json
import math
import signal
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np

from adafw import checks, fused, solver
from adafw.algorithms import Algorithm
from adafw.constraints.base import Constraint
from adafw.objectives.base import FiniteSum
from adafw.progress import Progress, share_done
from adafw.random import as_source, thaw
from adafw.recorder import Clock, Every, Record, Recorder, Trace
from adafw.solver import Diverged, State
from adafw.typing import Array

Callback = Callable[[State, Record], bool | None]

#: Seconds between two looks at the clock, the keyboard and the display.
_LOOK = 0.1


@dataclass(frozen=True, eq=False)
class Result:
    """What a run found. `x`, `value` and `gap` belong to the last iterate.

    `best` is the record of smallest gap, `lower_bound` the best value - gap seen (nan unless f is
    convex), `status` and `message` why the run stopped, `trace` all records, `state` what
    `minimize(state=...)` goes on from.
    """

    x: Array
    value: float
    gap: float
    lower_bound: float
    best: Record
    status: str
    message: str
    trace: Trace
    state: State = field(repr=False)
    title: str = ""

    def __str__(self) -> str:
        last = self.trace[-1]
        rows = [
            ("status", self.message),
            ("value", f"{self.value:.10g}"),
            ("gap", f"{self.gap:.4e}"),
            ("lower bound", f"{self.lower_bound:.10g}"),
            ("best gap", f"{self.best.gap:.4e} at iteration {self.best.iteration}"),
            ("iterations", f"{last.iteration}"),
            ("epochs", f"{last.epoch:.4g} ({last.gradient_evaluations} gradient evaluations)"),
            ("LMO calls", f"{last.lmo_calls}"),
            ("projections", f"{last.projections}"),
            ("seconds", f"{last.cpu_seconds:.3g} CPU, {last.wall_seconds:.3g} wall"),
            ("non-zeros", f"{last.nonzeros} of {self.x.size}"),
            ("violation", f"{last.violation:.1e}"),
        ]
        return "\n".join([self.title, *(f"  {name:<12} {text}" for name, text in rows)])

    __repr__ = __str__


def minimize(
    f: FiniteSum,
    constraint: Constraint,
    algorithm: Algorithm,
    *,
    x0: Array | None = None,
    state: State | None = None,
    seed: Any = None,
    gap_tolerance: float | None = None,
    max_iterations: int | None = None,
    max_epochs: float | None = None,
    max_seconds: float | None = None,
    max_cpu_seconds: float | None = None,
    max_lmo_calls: int | None = None,
    record_every: int | Every | None = None,
    callbacks: Iterable[Callback] = (),
    progress: bool | None = None,
    path: str = "auto",
) -> Result:
    """Minimises f over the set, from x0 or from a state, until the first limit is reached.

    Parameters
    ----------
    x0 : start point in the set; None means `constraint.start`.
    state : `Result.state` of an earlier run, to go on from bit for bit; limits count from the
        very beginning, and x0 and seed come from the state.
    seed : of the index stream: an int (0 if None), a numpy Generator, or any object with
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
    callbacks = _check_callbacks(callbacks)
    limits = _Limits(
        max_iterations=_limit(max_iterations, "max_iterations"),
        max_epochs=_limit(max_epochs, "max_epochs"),
        max_seconds=_limit(max_seconds, "max_seconds"),
        max_cpu_seconds=_limit(max_cpu_seconds, "max_cpu_seconds"),
        max_lmo_calls=_limit(max_lmo_calls, "max_lmo_calls"),
    )
    tolerance = -1.0 if gap_tolerance is None else checks.real(gap_tolerance, "gap_tolerance", 0)
    _check_problem(f, constraint, algorithm)
    run = fused.find(f, constraint, algorithm, path) or solver.run
    recorder = Recorder(f, constraint, record_every)
    source = None
    if state is None:
        source = as_source(0 if seed is None else seed)
        x = _start_point(f, constraint, x0)
        s = solver.start(f, constraint, algorithm, x, source)
    else:
        s = _resumed(state, f, constraint, algorithm, x0, seed)
    # Off the clock: a state of the lazy path is settled for another, and kernels are compiled.
    if run is solver.run:
        fused.settle(s)
        fused.warm_up(f, algorithm)
    else:
        run(f, constraint, algorithm, s, 0)
    title = f"{algorithm} on {f!r} over {constraint!r}"
    bar = Progress(str(algorithm), progress)
    with _Interrupts() as interrupts:
        try:
            status = _iterate(
                run, f, constraint, algorithm, s, limits, recorder, tolerance, callbacks, bar,
                interrupts,
            )  # fmt: skip
        finally:
            bar.close()
            if isinstance(source, np.random.Generator) and isinstance(s.rng, np.ndarray):
                # A user's generator has been drawn from; the state keeps words of its own.
                source.bit_generator.state = thaw(s.rng).bit_generator.state
    return _result(s, f, status, limits, tolerance, title)


def _iterate(
    run: fused.Run,
    f: FiniteSum,
    constraint: Constraint,
    algorithm: Algorithm,
    s: State,
    limits: "_Limits",
    recorder: Recorder,
    tolerance: float,
    callbacks: tuple[Callback, ...],
    bar: Progress,
    interrupts: "_Interrupts",
) -> str:
    """Runs from record to record; returns the status. The state is left at the last iterate."""
    clock = Clock(s.cpu_seconds, s.wall_seconds)
    seconds_per_iteration = math.inf  # not known yet: the first stretch is one iteration
    finite_x = s.x.copy()  # the lazy path moves s.x in place
    while True:
        status = "interrupted" if interrupts.seen else limits.reached(s, f.n_terms)
        if recorder.due(s) or (status and _unrecorded(s)):
            record = recorder.measure(s)
            if not math.isfinite(record.value):
                if s.t > 0:
                    s.records.pop()
                    s.x, s.torn = finite_x, True
                return "diverged"
            finite_x = s.x.copy()
            bar.record = record
            stopped = [call(s, record) is True for call in callbacks]
            if record.gap <= tolerance:
                return "converged"
            if any(stopped):
                return status or "callback"
        if status:
            return status
        look = min(_LOOK, limits.seconds_left(s) / 2, recorder.seconds_left(s))
        most = min(recorder.iterations_left(s), look / seconds_per_iteration)
        n = limits.iterations_left(s, algorithm, f.n_terms, most)
        before, wall = s.t, clock.wall
        try:
            with clock:
                run(f, constraint, algorithm, s, n)
        except Diverged:
            return _diverged(f, s, finite_x, recorder)
        except KeyboardInterrupt:
            # Raised inside an iteration, by user code or a handler of the user's: the state is
            # torn. A second Ctrl-C means it: out at once.
            if interrupts.seen:
                raise
            interrupts.seen = True
        s.cpu_seconds, s.wall_seconds = clock.cpu, clock.wall
        seconds_per_iteration = (clock.wall - wall) / max(1, s.t - before) + 1e-9
        bar.update(s, f.n_terms, share_done(limits.used(s, f.n_terms)))


def _diverged(f: FiniteSum, s: State, finite_x: Array, recorder: Recorder) -> str:
    """Keeps the last iterate of finite value: the present one, else that of the last record."""
    if math.isfinite(f.value(s.x)):
        if _unrecorded(s):
            recorder.measure(s)
    else:
        s.x = finite_x
    return "diverged"


def _unrecorded(s: State) -> bool:
    return not s.records or s.records[-1][0] != s.t


@dataclass(frozen=True)
class _Limits:
    """The limits of a run, infinite where none was given."""

    max_iterations: float
    max_epochs: float
    max_seconds: float
    max_cpu_seconds: float
    max_lmo_calls: float

    def __post_init__(self) -> None:
        if all(math.isinf(limit) for limit in vars(self).values()):
            object.__setattr__(self, "max_epochs", 100.0)

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

    def iterations_left(self, s: State, algorithm: Algorithm, n_terms: int, at_most: float) -> int:
        """Iterations that can be done without testing the counted limits in between, >= 1."""
        left = min(self.max_iterations - s.t, at_most)
        per_iteration = algorithm.step.most_lmo_calls
        if per_iteration:
            left = min(left, (self.max_lmo_calls - s.lmo_calls) // per_iteration)
        if not math.isinf(self.max_epochs):
            evaluations, n = s.gradient_evaluations, 0
            while evaluations / n_terms < self.max_epochs and n < left:
                evaluations += algorithm.gradient.evaluations(s.t + n, n_terms)
                n += 1
            left = n
        return max(1, int(left))

    def seconds_left(self, s: State) -> float:
        return min(self.max_seconds - s.wall_seconds, self.max_cpu_seconds - s.cpu_seconds)


class _Interrupts:
    """Ctrl-C, noted between iterations so that the state stays whole; a second one breaks in."""

    def __init__(self) -> None:
        self.seen = False
        self._old: Any = None

    def __enter__(self) -> "_Interrupts":
        # Only the main thread may handle signals, and a handler of the user's own is left alone.
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._old = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._old is not None:
            signal.signal(signal.SIGINT, self._old)

    def _note(self, signum: int, frame: FrameType | None) -> None:
        if self.seen:
            raise KeyboardInterrupt
        self.seen = True


def _result(
    s: State, f: FiniteSum, status: str, limits: _Limits, tolerance: float, title: str
) -> Result:
    trace = Trace(s.records)
    last = trace[-1]
    best = min(trace, key=lambda r: (math.isnan(r.gap), r.gap))
    message = status.replace("_", " ")
    if status in vars(limits):
        used, allowed = limits.used(s, f.n_terms)[status]
        message = f"{status}: {used:.6g} of {allowed:g} used"
    elif status == "converged":
        message = f"converged: gap {last.gap:.3e} <= {tolerance:g}"
    elif status == "diverged":
        message = "diverged: value or gradient became infinite or NaN; x is the last finite iterate"
    elif status == "callback":
        message = "callback: a callback asked to stop"
    elif status == "interrupted":
        message = "interrupted: from the keyboard"
    return Result(
        s.x, last.value, last.gap, last.lower_bound, best, status, message, trace, s, title
    )


def _check_problem(f: Any, constraint: Any, algorithm: Any) -> None:
    for thing, kind, name, hint in (
        (f, FiniteSum, "f", "an objective such as adafw.LinearModel or adafw.UserSum"),
        (constraint, Constraint, "constraint", "a set such as adafw.L1Ball(100.0)"),
        (algorithm, Algorithm, "algorithm", "an algorithm such as adafw.CSFW()"),
    ):
        if not isinstance(thing, kind):
            call = " (call it first)" if callable(thing) else ""
            raise TypeError(f"{name} must be {hint}, got {thing!r}{call}.")
    algorithm.check(f, constraint)


def _check_callbacks(callbacks: Any) -> tuple[Callback, ...]:
    calls = (callbacks,) if callable(callbacks) else tuple(callbacks)
    for call in calls:
        if not callable(call):
            raise TypeError(f"callbacks must be functions of (state, record), got {call!r}.")
    return calls


def _limit(value: float | None, name: str) -> float:
    return math.inf if value is None else checks.real(value, name, 0, infinite=True)


def _start_point(f: FiniteSum, constraint: Constraint, x0: Any) -> Array:
    """A copy of x0, or the set's own start, of the objective's shape and dtype, inside the set."""
    known = constraint.shape if f.shape is None else f.shape
    if x0 is None:
        if known is None:
            raise ValueError(
                f"x0 must be given: neither {f!r} nor {constraint!r} knows the shape of x."
            )
        x0 = constraint.start(known, f.dtype)
    dtype = f.dtype if f.shape is not None else getattr(x0, "dtype", f.dtype)
    if dtype not in (np.float32, np.float64):
        dtype = np.dtype(np.float64)
    try:
        x = np.array(x0, dtype=dtype, order="C")
    except (TypeError, ValueError):
        raise TypeError(f"x0 must be an array of numbers, got {type(x0).__name__}.") from None
    if known is not None and x.shape != known:
        raise ValueError(f"x0 must have shape {known}, got {x.shape}.")
    if constraint.shape is not None and x.shape != constraint.shape:
        raise ValueError(
            f"the objective has points of shape {x.shape}, the set {constraint!r} of shape "
            f"{constraint.shape}."
        )
    if not np.isfinite(x).all():
        raise ValueError("x0 must be finite, got NaN or infinity.")
    if not constraint.contains(x):
        raise ValueError(
            f"x0 must lie in {constraint!r}: it is outside by {constraint.violation(x):.3g} of its "
            "size; project it first, or leave x0 out."
        )
    return x


def _resumed(
    state: Any, f: FiniteSum, constraint: Constraint, algorithm: Algorithm, x0: Any, seed: Any
) -> State:
    """A copy of the state, refused if it belongs to another problem."""
    if not isinstance(state, State):
        raise TypeError(f"state must be the state of a Result, got {type(state).__name__}.")
    for value, name in ((x0, "x0"), (seed, "seed")):
        if value is not None:
            raise ValueError(
                f"{name} must be left out when state is given: it comes from the state."
            )
    if state.torn:
        raise ValueError(
            "this state was left in the middle of an iteration and cannot go on; start anew with "
            "x0=state.x."
        )
    then = json.loads(state.problem)
    now = json.loads(json.dumps(solver.describe_problem(f, constraint, algorithm)))
    for part, description in now.items():
        if then[part] != description:
            raise ValueError(
                f"state belongs to another {part}: it was {_brief(then[part])}, now it is "
                f"{_brief(description)}; start anew with x0=state.x."
            )
    return state.copy()


def _brief(description: Any) -> str:
    text = json.dumps(description)
    return text if len(text) <= 160 else text[:157] + "..."
