"""learning_rate="auto" for estimates without a table: a window is measured, with care for noise.

A table says what a window promised. Here that is taken from terms, and near the minimum a few of
them say nothing: so a promise leans on the last exact gradient that is known, and a rate is moved
only as far as groups of terms agree. What the numbers are, and why: docs/learning_rate.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adafw.arrays import dot
from adafw.gradients.base import GradientEstimator
from adafw.integrity import expect, expect_number
from adafw.objectives.base import FiniteSum
from adafw.solver import State
from adafw.typing import Array, StateDict

#: Of the generator that picks the terms a window is judged by; none is drawn from the run's own.
SEED = 9_001
#: Share of sum |g_j d_j| below which <g, d> is rounding: x has settled, and tells nothing.
ROUNDING = 1e-12
#: A window with a ratio above this is undone: nothing is worth going on from where it ended.
DISASTER = 1e4
#: Points with exact gradients in a search: the last one known, and where the stage began.
_POINTS = ("exact", "stage")


@dataclass(frozen=True)
class Care:
    """How rates are moved without a table.

    A window is `share` of the iterations so far, `least` of them at least, or half of `epochs`. Its
    q is measured on `judged` times as many terms as it has evaluated, at least `few`, in `groups`.
    (target / q)^gain, at most `most` or 1 / most, counts as far as its sign is known to `sure`
    standard errors. If that is less than half, and judging has used less than `budget` of all work,
    an exact gradient is bought. A window that gives back more than `loss` of all that was gained
    is undone; thereafter the rate stays below a third, growing with the root of t.

    With recursive estimates windows are stages, from one exact gradient to the next, with numbers
    of their own: `stage_target` and `stage_gain`.
    """

    first: float = 0.1
    least: int = 4
    share: float = 0.1
    epochs: float = 5.0
    judged: float = 0.05
    few: int = 32
    groups: int = 4
    target: float = 1.0
    gain: float = 0.5
    most: float = 3.0
    sure: float = 1.5
    budget: float = 0.25
    loss: float = 0.1
    stage_target: float = 0.8
    stage_gain: float = 0.7


class Verdict(NamedTuple):
    """The next rate, and whether the window is undone."""

    rate: float
    undone: bool = False


class Met(NamedTuple):
    """Promise and bend of a way by groups of terms; `left`: of their spread, what a mean has."""

    promises: NDArray[np.float64]
    bends: NDArray[np.float64]
    left: float = 0.0
    rounding: float = 0.0

    @property
    def promise(self) -> float:
        return float(self.promises.mean())

    @property
    def bend(self) -> float:
        return float(self.bends.mean())

    def error(self, values: NDArray[np.float64]) -> float:
        """The standard error of the mean of some values, one a group."""
        return self.left * float(values.std(ddof=1)) if self.left else 0.0

    @property
    def disaster(self) -> bool:
        """Whether nothing is worth going on from there, whatever the groups' spread."""
        promised = float(np.abs(self.promises).mean())
        return not (self.bend <= DISASTER * promised or self.settled)

    @property
    def settled(self) -> bool:
        return max(abs(self.promise), abs(self.bend)) <= self.rounding


class Measured:
    """Judges the windows of estimates without a table; what it must know is in `State.search`.

    There `gained` is the fall of f so far, `judged` the work of judging, `ceiling` that of the rate
    over the root of t; `exact.*` the last point known with its gradient, and when it was met;
    `stage.*` the one where the stage began, `stood` the fall of f in it when it was last looked at,
    `undone` where that has been tried.
    """

    def __init__(self, gradient: GradientEstimator, care: Care) -> None:
        self.gradient, self.care = gradient, care

    def check(self, search: StateDict, x: Array) -> None:
        """Refuses what no run leaves."""
        for name, kind, low, high in (
            ("gained", float, 0.0, 1e300),
            ("stood", float, -1e300, 1e300),
            ("judged", int, 0, 2**62),
            ("undone", int, 0, 2**62),
            ("ceiling", float, 1e-300, 1e300),
            *((f"{point}.t", int, 1, 2**62) for point in _POINTS),
        ):
            if name in search:
                expect_number(search[name], f"search.{name}", kind, low, high)
        for point in _POINTS:
            if "stage.t" in search or any(key.startswith(f"{point}.") for key in search):
                expect(search.get(f"{point}.x"), f"search.{point}.x", x)
                expect(search.get(f"{point}.gradient"), f"search.{point}.gradient", x)
                expect_number(search.get(f"{point}.t"), f"search.{point}.t", int, 1, 2**62)

    def watched(self, s: State, stop: Callable[[], bool]) -> Callable[[], bool]:
        """`stop`, which is asked after every iteration, made to note exact gradients in passing.

        Recursive estimates lose them again. They have no fast path, which would ask less often.
        """
        if not self.gradient.recursive:
            return stop

        def looking() -> bool:
            self._note(s)
            return stop()

        return looking

    def _note(self, s: State) -> None:
        """Keeps the exact gradient that the state holds, if it is a new one."""
        found = self.gradient.exact_point(s.gradient, s.t)
        if found is None or np.array_equal(found[0], s.search.get("exact.x", ())):
            return
        x, g = (part.copy() for part in found)
        s.search |= {"exact.x": x, "exact.gradient": g, "exact.t": s.t}
        if self.gradient.recursive and "stage.t" not in s.search:
            begin_stage(s.search)

    def judge(self, f: FiniteSum, s: State, base: State, rate: float) -> Verdict | None:
        """What becomes of the rate after the window from base to s; None while it goes on."""
        self._note(s)
        evaluated = s.gradient_evaluations - base.gradient_evaluations
        long = evaluated >= 0.5 * self.care.epochs * f.n_terms
        if "stage.t" in s.search:
            return self._judge_stage(f, s, base, rate, evaluated)
        if s.t - base.t < max(self.care.least, int(self.care.share * base.t)) and not long:
            return None
        terms = self._groups(f, base, evaluated)
        met, cost = self._meets(f, s, base, terms)
        trust, factor = self._factor(met, self.care.target, self.care.gain)
        gained, judged = s.search.get("gained", 0.0), s.search.get("judged", 0) + cost
        falls = met.promises - met.bends / 2
        fall = float(falls.mean())
        lost = -fall - self.care.sure * met.error(falls) > self.care.loss * gained
        if met.disaster or (lost and met.bend > abs(met.promise)):
            s.gradient_evaluations += cost
            s.search["judged"] = judged
            if not gained:
                return Verdict(rate / 10, undone=True)
            self._set_ceiling(s, rate, base.t)
            return Verdict(rate / self.care.most, undone=True)
        if trust < 0.5 and judged + f.n_terms <= self.care.budget * s.gradient_evaluations:
            bought = {"exact.x": s.x.copy(), "exact.gradient": f.gradient(s.x), "exact.t": s.t}
            s.search |= bought
            cost, judged = cost + f.n_terms, judged + f.n_terms
        s.gradient_evaluations += cost  # last: what cannot be reached is asked again
        s.search |= {"judged": judged, "gained": gained + max(0.0, fall)}
        return self._bounded(s, rate, rate * factor**trust)

    def _judge_stage(
        self, f: FiniteSum, s: State, base: State, rate: float, evaluated: int
    ) -> Verdict | None:
        """With recursive estimates, whose errors stay until the next exact gradient.

        Right after one any rate looks good, and right before the next none does: the error tells,
        not the rate. So the whole stage is judged, from one to the next, by both: free and without
        noise. Within it a few terms tell every epoch whether it has come to grief, and in the first
        one, whenever that has doubled, whether the rate can rise.
        """
        care, search = self.care, s.search
        begun, seen = search["stage.t"], search["exact.t"]
        ended = seen > begun and seen - begun >= care.share * seen
        first = begun == 1
        doubled = first and s.t - begun >= 2 * max(1, base.t - begun)
        if not (ended or doubled or evaluated >= f.n_terms):
            return None
        met = (
            self._stage_so_far(f, s, base)
            if not ended
            else _met(
                search["stage.gradient"],
                d := way(search["exact.x"], search["stage.x"]),
                [float(dot(search["exact.gradient"] - search["stage.gradient"], d))],
            )
        )
        fall = met.promise - met.bend / 2
        gained, stood = search.get("gained", 0.0), search.get("stood", 0.0)
        lost = stood - fall - care.sure * met.error(met.bends) / 2
        grief = met.disaster or lost > care.loss * (gained + max(0.0, stood))
        if grief and search.get("undone") != base.t:  # once: it may have come before base
            search["undone"] = base.t
            if not first:
                self._set_ceiling(s, rate, base.t)
            return Verdict(rate / care.most, undone=True)
        trust, factor = self._factor(met, care.stage_target, care.stage_gain)
        if not ended:
            search["stood"] = fall
            return self._bounded(s, rate, rate * max(1.0, factor**trust) if doubled else rate)
        begin_stage(search)
        search |= {"gained": gained + max(0.0, fall), "stood": 0.0}
        return self._bounded(s, rate, rate * factor)

    def _stage_so_far(self, f: FiniteSum, s: State, base: State) -> Met:
        """What the way from where the stage began promised, and met by a few terms."""
        begin, groups = s.search["stage.x"], self._groups(f, base, 0)
        d = way(s.x, begin)
        bends = [float(dot(f.gradient(s.x, k) - f.gradient(begin, k), d)) for k in groups]
        s.gradient_evaluations += 2 * sum(k.size for k in groups)
        return _met(s.search["stage.gradient"], d, bends, left_of(groups, f.n_terms))

    def _set_ceiling(self, s: State, rate: float, t: int) -> None:
        s.search["ceiling"] = rate / self.care.most / math.sqrt(max(1, t))

    def _bounded(self, s: State, rate: float, wanted: float) -> Verdict:
        """The rate that is wanted, unless it would rise above the ceiling."""
        ceiling = s.search.get("ceiling", math.inf) * math.sqrt(s.t)
        return Verdict(min(wanted, max(rate, ceiling)))

    def _groups(self, f: FiniteSum, base: State, evaluated: int) -> list[NDArray[np.intp]]:
        """The terms that the window from base is judged by."""
        size = min(f.n_terms, max(self.care.few, int(self.care.judged * evaluated)))
        rng = np.random.default_rng([SEED, base.t])
        terms = rng.choice(f.n_terms, size, replace=False)
        return np.array_split(terms, min(size, self.care.groups))

    def _meets(
        self, f: FiniteSum, s: State, base: State, groups: list[NDArray[np.intp]]
    ) -> tuple[Met, int]:
        """What the way from base to s.x promised and met, and the evaluations that this took.

        Where an exact gradient is known, a group says only how its own has changed since then.
        """
        z, known = s.search.get("exact.x"), s.search.get("exact.gradient")
        here = z is not None and np.array_equal(z, base.x)
        d, promises, bends = way(s.x, base.x), [], []
        slope: Array = d if known is None else known
        for terms in groups:
            begin, end = f.gradient(base.x, terms), f.gradient(s.x, terms)
            if z is None:
                slope = begin
            elif not here:
                slope = known + (begin - f.gradient(z, terms))
            promises.append(-float(dot(slope, d)))
            bends.append(float(dot(end - begin, d)))
        met = _met(slope, d, bends, left_of(groups, f.n_terms))
        cost = sum(k.size for k in groups) * (2 if z is None or here else 3)
        return met._replace(promises=np.array(promises)), cost

    def _factor(self, met: Met, target: float, gain: float) -> tuple[float, float]:
        """How far the groups agree, from 0 to 1, and the factor if they did entirely.

        A promise below 0 is an estimate gone wrong: the rate is to blame as far as it met bends.
        """
        promise, bend, most = met.promise, met.bend, self.care.most
        if met.settled or not bend > 0 or not math.isfinite(promise):
            return 0.0, 1.0
        factor = min(most, max(1 / most, (target * abs(promise) / bend) ** gain))
        signs = target * met.promises - met.bends
        doubt = self.care.sure * met.error(signs) / max(abs(float(signs.mean())), 1e-300)
        return 1 - min(1.0, doubt) ** 2, factor if promise > 0 else min(1.0, factor)


def begin_stage(search: StateDict) -> None:
    """A stage begins at the last exact gradient."""
    search |= {f"stage.{part}": search[f"exact.{part}"] for part in ("x", "gradient", "t")}


def forget_stage(search: StateDict) -> None:
    """The stage has been undone: what was met in it is off the way."""
    if "stage.t" in search:
        search |= {f"exact.{part}": search[f"stage.{part}"] for part in ("x", "gradient", "t")}


def way(end: Array, begin: Array) -> Array:
    """end - begin, in double precision."""
    d: Array = (end - begin).astype(np.float64)
    return d


def left_of(groups: list[NDArray[np.intp]], n_terms: int) -> float:
    """Of the spread of groups, what their mean has: nothing if they are all there is."""
    size = sum(k.size for k in groups)
    return math.sqrt((1 - size / n_terms) / len(groups)) if len(groups) > 1 else 0.0


def _met(slope: Array, d: Array, bends: list[float], left: float = 0.0) -> Met:
    promises = np.full(len(bends), -float(dot(slope, d)))
    rounding = ROUNDING * float(dot(np.abs(slope), np.abs(d)))
    return Met(promises, np.array(bends), left, rounding)
