"""learning_rate="auto": a rate that is moved while the run goes on, by what its steps meet.

A window of iterations goes the way d. Its gradients promised that f falls by <g, d> to first
order; on the way the slope has changed by the bend <grad f(end) - grad f(begin), d>. Their ratio
q = bend / -<g, d> grows like eta, is near 0 where eta is too small to meet any curvature, and large
where it overshoots. So eta is multiplied by (q* / q)^(1/2) after every window: nothing is run
beforehand, nothing twice, and all work counts.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from adafw import fresh_start, kept_sample
from adafw.algorithm import Algorithm
from adafw.arrays import dot
from adafw.constraints.base import Constraint
from adafw.gradients.base import GradientEstimator
from adafw.integrity import Damaged, check_state, expect_number
from adafw.kept_sample import KeptSample
from adafw.measured_rate import DISASTER, ROUNDING, Care, Measured, forget_stage
from adafw.objectives.base import FiniteSum
from adafw.solver import Diverged, FastPath, State
from adafw.steps.base import Step
from adafw.stopping import Limits
from adafw.typing import Array, StateDict

#: Share of the set's width at which a run is given up as one without a rate.
_LOWEST = 1e-30
#: What a copy of a state holds.
_PARTS = ("gradient", "step", "workspace")


@dataclass(frozen=True)
class Control:
    """How rates are moved; measured, see docs/learning_rate.md.

    A window is `share` of the iterations so far, at least `least` of them and at most `epochs`, so
    that a rate that has become too large is noticed. Its bend is measured at both ends on `judged`
    times as many terms as it has evaluated, `few` at least, and it goes on until it has evaluated
    `worth` times these, or all. The rate, at first `first` times the width of the set, is
    multiplied by (q* / q)^gain, at most by `most` or 1 / most. From epoch `late` on, a window that
    bends `leap` times as much as those before, and `most` times q*, is undone, once, and the rate
    falls by 1 / most.

    <g, d> of a table is free and has no noise, but is up to an epoch late: it promises more than a
    window can keep, the shorter the more. So q* is `slope` times the epochs of the window, `top` at
    most. (Without a table: `measured_rate`.)
    It rises to `roof` times the width at most, times the root of the epochs so far; and not at all
    where half of the terms asked have nothing to do with the way, as those of sparse data may.
    In the first epoch the table is filling up, and promises too little: then q* is at least
    `early` over the epochs so far; or, if it `waits`, the terms are asked, and q* is `early`.

    A run that had to begin anew has shown that its sample misses what matters. With every such
    beginning it is `wider` times as large, up to `judged` of all terms; of its halves the one that
    bends more counts, and q* is `wary` times as large. What has failed is held off for `longer`
    times as many iterations.
    """

    share: float = 0.1
    least: int = 4
    epochs: float = 5.0
    judged: float = 0.05
    few: int = 12
    worth: int = 10
    gain: float = 0.5
    most: float = 3.0
    first: float = 0.3
    slope: float = 20.0
    top: float = 5.0
    early: float = 0.6
    waits: bool = True
    late: float = 3.0
    leap: float = 15.0
    roof: float = math.inf
    wider: int = 4
    wary: float = 0.5
    longer: int = 16


#: Of steps that minimise Q_t, by a projection or by corrective steps: they go further than K
#: Frank-Wolfe steps at the same rate, and nearer to where the table says.
SOLVED = Control(first=0.03, least=2, slope=5.0, waits=False, roof=0.3)
CAREFUL = Care(first=0.03, least=2, target=0.8)


def is_auto(algorithm: Algorithm) -> bool:
    """Whether the learning rate of the step is "auto"."""
    return algorithm.step.rate == "auto"


class AutoRate:
    """Runs a path with rates of its own choice; to `minimize` it is a path as any other.

    The state of the search is `State.search`: `rate`, what `fresh_start` must know, `sample.*`, the
    gradients of some terms where the last window ended, and while a window is open its `end` and
    `base.*`, the state where it began. So a run can be stopped and goes on anywhere.
    """

    def __init__(
        self, f: FiniteSum, constraint: Constraint, algorithm: Algorithm, limits: Limits,
        find: Callable[[Algorithm], FastPath], shape: tuple[int, ...],
    ) -> None:  # fmt: skip
        # Steps of adaptive gradients are in units of x, so the set says what is large.
        self.control = SOLVED if _solves(algorithm.step) else Control()
        self.width = _width(constraint, shape)
        self.measured = _measured(algorithm)
        self.first = self.width * (self.measured.care if self.measured else self.control).first
        self.limits, self.algorithm = limits, algorithm
        self.path = find(self._at(self.first))
        self.name = self.path.name

    def fits(self, f: FiniteSum, constraint: Constraint, algorithm: Algorithm) -> bool:
        return is_auto(algorithm)

    pays = fits

    def rate(self, s: State) -> float:
        """eta of the iteration to come."""
        return float(s.search.get("rate", self.first))

    def prepare(self, f: FiniteSum, constraint: Constraint, algorithm: Algorithm, s: State) -> None:
        if not s.search:
            fresh_start.begin(s, self.first)
        fresh_start.check(s.search, s.x)
        expect_number(s.search.get("rate"), "search.rate", float, 1e-300, 1e300)
        expect_number(s.search.get("end", 0), "search.end", int, 0, 2**62)
        expect_number(s.search.get("base.t", 0), "search.base.t", int, 0, s.t)
        expect_number(s.search.get("bent", 0.0), "search.bent", float, 0.0, 1e300)
        expect_number(s.search.get("undone", 0), "search.undone", int, 0, 2**62)
        this = self._at(self.rate(s))
        self.path.prepare(f, constraint, this, s)
        try:
            base = _kept(s)
        except (TypeError, KeyError):
            raise Damaged("search.base", "a state", "something else") from None
        if (base is None) != ("end" not in s.search):
            raise Damaged("search.base", "there while a window is open", "the contrary")
        if self.measured:
            self.measured.check(s.search, s.x)
        kept_sample.check(s.search, s.x, f.n_terms)
        if base is not None:
            check_state(base, f, this, s.x)
            self.path.prepare(f, constraint, this, base)
            _keep(s, base)

    def run(
        self, f: FiniteSum, constraint: Constraint, algorithm: Algorithm, s: State, n: int,
        stop: Callable[[], bool],
    ) -> State:  # fmt: skip
        """n iterations in place, or fewer; a window that ends with the last is judged at once."""
        target = s.t + n
        while True:
            if s.t >= s.search.get("end", math.inf):
                self._judge(f, s)
            if "end" not in s.search:
                self._look(f, constraint, s)
            if s.t >= target or self._used_up(s, f.n_terms):
                return s
            if "end" not in s.search:
                s.search["end"] = s.t + self._window(s, f.n_terms)
                _keep(s, s)
            if not self._advance(f, constraint, s, min(target, s.search["end"]), stop):
                return s

    def _window(self, s: State, n_terms: int) -> int:
        """How many iterations the window that begins at s has."""
        control, each = self.control, self.algorithm.gradient.evaluations(s.t, n_terms)
        shortest = max(
            control.least, -(-min(control.worth * self._few(s, n_terms), n_terms) // each)
        )
        return max(shortest, int(min(control.share * s.t, control.epochs * n_terms / each)))

    def _few(self, s: State, n_terms: int) -> int:
        """How many terms the first window is judged by."""
        control, starts = self.control, 0 if self.measured else s.search["starts"]
        most = max(control.few, int(control.judged * n_terms))
        return int(min(n_terms, most, control.few * control.wider**starts))

    def _advance(
        self, f: FiniteSum, constraint: Constraint, s: State, goal: int, stop: Callable[[], bool]
    ) -> bool:
        """Runs s to t = goal; False if stopped before. A rate that diverges makes way at once."""
        n = self.limits.iterations_left(s, self.algorithm, f.n_terms, goal - s.t)
        watched = self.measured.watched(s, stop) if self.measured else stop
        try:
            self.path.run(f, constraint, self._at(self.rate(s)), s, n, watched)
        except Diverged:
            if self.rate(s) <= _LOWEST * self.width:
                raise
            self._go_back(s, self.rate(s) / 10)
            return not stop()
        return s.t >= goal or not (stop() or self._used_up(s, f.n_terms))

    def _judge(self, f: FiniteSum, s: State) -> None:
        """Ends the window, and moves the rate by what it met; or lets it go on."""
        control, base = self.control, _kept(s)
        assert base is not None
        if self.measured:
            self._measure(self.measured, f, s, base)
            return
        evaluated = s.gradient_evaluations - base.gradient_evaluations
        known = kept_sample.kept(s.search)
        g, target, waits = self._promise(s, base, f.n_terms)
        d = (s.x - base.x).astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            begin = known or KeptSample.at(f, base.x, self._few(s, f.n_terms))
            end = KeptSample.at(f, s.x, begin.size)
            next_ = end.grown(f, s.x, min(f.n_terms, int(control.judged * evaluated)))
            promises = [-slope for slope in (begin.slopes(d) if g is None else [float(dot(g, d))])]
            noise = ROUNDING * max(float(dot(np.abs(slope), np.abs(d)))
                                   for slope in (begin.halves if g is None else [g]))  # fmt: skip
            bends = end.less(begin).slopes(d)
            bend = float(np.max(bends)) if s.search["starts"] else end.mean(bends)
            seen = all(map(any, zip(begin.slopes(d), end.slopes(d), strict=True)))
        asked = next_.size + (0 if known else begin.size)
        s.gradient_evaluations += asked  # last: what cannot be reached is asked again
        promised = sum(promises) / len(promises)
        disaster = not (math.isfinite(promised) and abs(bend) <= DISASTER * abs(promised))
        if disaster and d.any() and self.rate(s) > _LOWEST * self.width:
            self._go_back(s, self.rate(s) / 10)
            return
        bent = s.search.get("bent", 0.0)
        epochs = self._epochs(s, f.n_terms)
        late = epochs > control.late
        leapt = bend > control.leap * bent > 0 and bend > control.most * target * promised
        if late and leapt and s.search.get("undone") != base.t:
            s.search["undone"] = base.t
            self._go_back(s, self.rate(s) / control.most)
            return
        s.search["bent"] = min(max(bend, bent / 2), 1e300)
        next_.put(s.search)
        settled = max(abs(promised), abs(bend)) <= noise
        factor = 1.0 if settled else self._factor(promises, bend, target, waits)
        if factor > 1:
            roof = control.roof * self.width * math.sqrt(max(1.0, epochs)) / self.rate(s)
            factor = min(factor, max(1.0, roof)) if seen else 1.0
        self._close(s, self.rate(s) * factor)

    def _measure(self, measured: Measured, f: FiniteSum, s: State, base: State) -> None:
        """The same without a table."""
        with np.errstate(over="ignore", invalid="ignore"):
            verdict = measured.judge(f, s, base, self.rate(s))
        if verdict is None:
            s.search["end"] = s.t + self._window(s, f.n_terms)
        elif verdict.undone and self.rate(s) > _LOWEST * self.width:
            self._go_back(s, verdict.rate)
        else:
            self._close(s, verdict.rate)

    def _look(self, f: FiniteSum, constraint: Constraint, s: State) -> None:
        """Begins anew, at a smaller rate, if f is found above where it began."""
        share = fresh_start.overshot(f, s)
        rate, roof = fresh_start.again(s.search, share, not self.measured)
        if not share or rate < _LOWEST * self.width:
            return
        x, starts = s.search["start.x"], s.search["starts"] + 1
        until = s.t * (1 if self.measured else self.control.longer)
        fresh = State(x=x, rng=s.rng, gradient=self.algorithm.gradient.init(f, x))
        fresh.step = self.algorithm.step.init(x)
        _replace(s, fresh)
        s.records = [row for row in s.records if row[0] <= s.t]
        fresh_start.begin(s, rate, starts)
        fresh_start.hold(s.search, roof, until)
        self.path.prepare(f, constraint, self._at(rate), s)

    def _close(self, s: State, rate: float) -> None:
        """No window is open, and the next has this rate, if it is allowed."""
        rate = fresh_start.held(s.search, rate, s.t)
        s.search = {k: v for k, v in s.search.items() if k != "end" and not k.startswith("base.")}
        s.search["rate"] = min(max(rate, self.width * _LOWEST), self.width / _LOWEST)
        s.search["highest"] = max(s.search["highest"], s.search["rate"])

    def _epochs(self, s: State, n_terms: int) -> float:
        """Epochs since the run began, the last time."""
        return float(s.gradient_evaluations - s.search["start.work"]) / n_terms

    def _promise(self, s: State, base: State, n_terms: int) -> tuple[Array | None, float, bool]:
        """The gradient of the table, None if terms are to be asked; q*; whether it is to wait."""
        control, gradient = self.control, self.algorithm.gradient
        epochs, wary = self._epochs(s, n_terms), control.wary if s.search["starts"] else 1.0
        window = (s.gradient_evaluations - base.gradient_evaluations) / n_terms
        # Before the first iteration the table is empty: that of the end has to do.
        g = gradient.remembered(base.gradient if base.t else s.gradient)
        if control.waits and epochs < 1:
            return None, wary * control.early, True
        target = max(min(control.top, control.slope * window), control.early / epochs)
        return g, wary * target, False

    def _factor(
        self, promises: list[float], bend: float, target: float, waits: bool = False
    ) -> float:
        """(target / q)^gain within bounds; less than 1 where noise is all that was promised.

        But not while a table `waits`: it will know soon, and a rate that noise has brought down
        takes long to come back.
        """
        most, gain = self.control.most, self.control.gain
        if waits and min(promises) <= 0:
            return 1.0
        if max(promises) <= 0:
            return 1 / most
        if min(promises) <= 0:  # the halves disagree: noise
            return most**-gain
        if not bend > 0:
            return 1.0 if bend < 0 else most
        return min(most, max(1 / most, (target * sum(promises) / len(promises) / bend) ** gain))

    def _go_back(self, s: State, rate: float) -> None:
        """To where the window began, trace and all, with another rate."""
        base = _kept(s)
        assert base is not None
        _replace(s, base)
        s.records = [row for row in s.records if row[0] <= s.t]
        forget_stage(s.search)
        self._close(s, rate)
        if not s.t:
            s.search["begun"] = self.rate(s)

    def _at(self, rate: float) -> Algorithm:
        """The algorithm with a rate of its own."""
        return replace(self.algorithm, step=self.algorithm.step.with_rate(rate))

    def _used_up(self, s: State, n_terms: int) -> bool:
        """Whether a limit other than that on iterations, which n stands for, is reached."""
        return self.limits.reached(s, n_terms) not in ("", "max_iterations")


def _measured(algorithm: Algorithm) -> Measured | None:
    """The rule for estimates without a table; None if there is one, which `remembered` tells."""
    gradient = algorithm.gradient
    if type(gradient).remembered is not GradientEstimator.remembered:
        return None
    care = CAREFUL if _solves(algorithm.step) else Care()
    return Measured(gradient, replace(care, first=care.first / 3) if gradient.recursive else care)


def _solves(step: Step) -> bool:
    """Whether the step goes to the minimiser of Q_t."""
    from adafw.steps import AdaptiveStep, ProjectedStep

    if isinstance(step, AdaptiveStep):
        return step.corrective and step.inner_steps is None
    return isinstance(step, ProjectedStep)


def _width(constraint: Constraint, shape: tuple[int, ...]) -> float:
    try:
        return constraint.diameter(shape, math.inf)
    except TypeError:
        raise TypeError(
            f'learning_rate="auto" needs a set that knows its diameter, which {constraint!r} does '
            "not; give a number, or let adafw.tune search for one."
        ) from None


def _keep(s: State, other: State) -> None:
    """Puts a copy of a state, without trace and clock, into the search of s as its base."""
    kept = other.copy()
    flat: StateDict = {"x": kept.x, "t": kept.t, "rng": kept.rng}
    flat["gradient_evaluations"] = kept.gradient_evaluations
    for part in _PARTS:
        flat |= {f"{part}.{key}": value for key, value in getattr(kept, part).items()}
    s.search |= {f"base.{key}": value for key, value in flat.items()}


def _kept(s: State) -> State | None:
    """The inverse of `_keep`, sharing its arrays; None if no window is open."""
    found = {k.removeprefix("base."): v for k, v in s.search.items() if k.startswith("base.")}
    if not found:
        return None
    fields: StateDict = {part: {} for part in _PARTS}
    for key, value in found.items():
        part, _, inner = key.partition(".")
        if inner:
            fields[part][inner] = value
        else:
            fields[part] = value
    return State(**fields)


def _replace(s: State, other: State) -> None:
    """x, t and all that belongs to them from another state; trace, clock and counts stay."""
    kept = other.copy()
    for name in ("x", "t", "rng", *_PARTS):
        setattr(s, name, getattr(kept, name))
    s.torn = False
