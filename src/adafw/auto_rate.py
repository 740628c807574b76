"""learning_rate="auto": a rate that is tested while the run goes on, and moved by half decades.

After every 10 % of the iterations so far, the run looks back over a window. The slope of f along
the way it went says whether the rate overshot; if so, or if hardly anything changed, a rival with
the next smaller or larger rate does the same window again from a copy of the state, and the better
of the two goes on. Nothing is run beforehand; all work counts, the rivals' too.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adafw.algorithm import Algorithm
from adafw.arrays import dot
from adafw.constraints.base import Constraint
from adafw.integrity import Damaged, check_state, expect
from adafw.objectives.base import FiniteSum
from adafw.random import thaw
from adafw.solver import Diverged, FastPath, State
from adafw.stopping import Limits
from adafw.typing import Array

#: Of the generator that picks the terms a window is judged by; none is drawn from the run's own.
_SEED = 9_001
#: Half decades below the width of the set at which a run is given up as one without a rate.
_LOWEST = -60
#: A slope so many times as steep upwards as it was downwards: neither rate is worth going on from.
_DISASTER = -1e4
_COUNTS = ("gradient_evaluations", "lmo_calls", "projections")
#: What a copy of a state holds.
_PARTS = ("gradient", "step", "workspace")


@dataclass(frozen=True)
class Tests:
    """When rates are tested, and what a rival must show; measured, see docs/learning_rate.md.

    `first` (half decades): eta starts at width * 10^(first / 2), width being the largest distance
    of two points of the set in a coordinate, as steps are in units of x. A window is `share` of
    the iterations so far, at least `least`; the next test comes when t has grown by the factor
    `pause`, by `again` after a rival has won. A rival with a smaller rate runs if the slope at the
    end of the window is below `low` times that at its begin, one with a larger rate above `high`.
    The larger rate wins if it descends by `keep` times what the smaller one does: a smaller rate
    looks better in any short window than it is.
    """

    first: int
    share: float
    least: int
    pause: float
    again: float
    low: float
    high: float
    keep_up: float
    keep_down: float
    #: Terms that a window is judged by, as a share of those that it evaluated.
    judged: float = 0.2


PROJECTED = Tests(-4, 0.1, 4, 1.6, 1.2, 0.1, 0.3, keep_up=0.8, keep_down=1.0)
FRANK_WOLFE = Tests(0, 0.08, 2, 1.3, 1.1, 0.0, 0.1, keep_up=0.5, keep_down=0.5)


def is_auto(algorithm: Algorithm) -> bool:
    """Whether the learning rate of the step is "auto"."""
    return isinstance(getattr(algorithm.step, "learning_rate", None), str)


class AutoRate:
    """Runs a path with rates of its own choice; to `minimize` it is a path as any other.

    The state of the search is `State.search`: `exponent` and `next` (when to test), while a window
    is open `end`, `base.*` (the state where it began), and while a rival runs `rival.*`, its
    `move`, the `score` to be beaten, and what scores are made of at the base: `at_base` and
    `estimate`. So a run can be stopped and goes on anywhere.
    """

    def __init__(
        self, f: FiniteSum, constraint: Constraint, algorithm: Algorithm, limits: Limits,
        find: Callable[[Algorithm], FastPath], shape: tuple[int, ...],
    ) -> None:  # fmt: skip
        from adafw.steps import ProjectedStep

        self.width = _width(constraint, shape)
        self.limits, self.algorithm = limits, algorithm
        projected = isinstance(algorithm.step, ProjectedStep)
        self.tests = PROJECTED if projected else FRANK_WOLFE
        self._algorithms: dict[int, Algorithm] = {}
        self.path = find(self._at(0))
        self.name = self.path.name

    def fits(self, f: FiniteSum, constraint: Constraint, algorithm: Algorithm) -> bool:
        return is_auto(algorithm)

    pays = fits

    def rate(self, s: State) -> float:
        """eta of the iteration to come."""
        return self.width * 10.0 ** (s.search.get("exponent", self.tests.first) / 2)

    def prepare(self, f: FiniteSum, constraint: Constraint, algorithm: Algorithm, s: State) -> None:
        if not s.search:
            s.search = {"exponent": self.tests.first, "next": 0}
        search = s.search
        for key in ("exponent", "next", "end", "move"):
            if type(search.get(key, 0)) is not int:
                raise Damaged(f"search.{key}", "an integer", repr(search[key]))
        this = self._at(search["exponent"])
        self.path.prepare(f, constraint, this, s)
        for name in ("at_base", "estimate"):
            if name in search:
                expect(search[name], f"search.{name}", s.x)
        for name in ("base", "rival"):
            try:
                kept = _kept(s, name)
            except (TypeError, KeyError):
                raise Damaged(f"search.{name}", "a state", "something else") from None
            if kept is not None:
                check_state(kept, f, this, s.x)
                self.path.prepare(f, constraint, this, kept)
                _keep(s, name, kept)

    def run(
        self, f: FiniteSum, constraint: Constraint, algorithm: Algorithm, s: State, n: int,
        stop: Callable[[], bool],
    ) -> State:  # fmt: skip
        """n iterations in place, or fewer; a window that ends with the last is judged at once."""
        target = s.t + n
        while True:
            search = s.search
            if "end" in search and s.t >= search["end"]:
                if not self._judge(f, constraint, s, stop):
                    return s
            elif s.t >= target or self._used_up(s, f.n_terms):
                return s
            elif "end" not in search and s.t >= search["next"]:
                search["end"] = s.t + max(self.tests.least, int(self.tests.share * s.t))
                _keep(s, "base", s)
            else:
                goal = min(target, search.get("end", search["next"]))
                if not self._advance(f, constraint, s, goal, stop):
                    return s

    def _advance(
        self, f: FiniteSum, constraint: Constraint, s: State, goal: int, stop: Callable[[], bool]
    ) -> bool:
        """Runs s to t = goal; False if stopped before. A rate that diverges makes way at once."""
        n = self.limits.iterations_left(s, self.algorithm, f.n_terms, goal - s.t)
        try:
            self.path.run(f, constraint, self._at(s.search["exponent"]), s, n, stop)
        except Diverged:
            base = _kept(s, "base")
            if base is None or s.search["exponent"] <= _LOWEST:
                raise
            self._go_back(s, base)
            return not stop()
        return s.t >= goal or not (stop() or self._used_up(s, f.n_terms))

    def _judge(
        self, f: FiniteSum, constraint: Constraint, s: State, stop: Callable[[], bool]
    ) -> bool:
        """Ends the window: with the run's own rate, or after a rival's; False if stopped."""
        search, tests = s.search, self.tests
        base = _kept(s, "base")
        assert base is not None
        if "move" not in search:
            score, ratio = self._score(f, s, base, s.x)
            move = -1 if ratio < tests.low else 1 if ratio > tests.high else 0
            if not move:
                self._close(s, tests.pause)
                return True
            search |= {"move": move, "score": score, "ratio": max(ratio, -1e300)}
            _keep(s, "rival", base)
        rival = _kept(s, "rival")
        assert rival is not None
        exponent, lost = search["exponent"] + search["move"], False
        while rival.t < search["end"] and not lost:
            if self._used_up(s, f.n_terms):
                return False
            for name in _COUNTS:  # the rival's work is the run's
                setattr(rival, name, getattr(s, name))
            left = self.limits.iterations_left(
                rival, self.algorithm, f.n_terms, search["end"] - rival.t
            )
            stopped = False
            try:
                self.path.run(f, constraint, self._at(exponent), rival, left, stop)
                stopped = rival.t < search["end"] and stop()
            except Diverged:
                lost = True
            for name in _COUNTS:
                setattr(s, name, getattr(rival, name))
            _keep(s, "rival", rival)
            if stopped:
                return False
        score, ratio = (math.inf, -math.inf) if lost else self._score(f, s, base, rival.x)
        won = self._wins(score, search["score"], search["move"])
        if max(ratio, search["ratio"]) < _DISASTER and search["exponent"] > _LOWEST:
            self._go_back(s, base)
            return True
        if won:
            _replace(s, rival)
            search["exponent"] = exponent
        self._close(s, tests.again if won else tests.pause)
        return True

    def _wins(self, score: float, own: float, move: int) -> bool:
        """Whether a rival that moved the rate has a score, f's change, that is low enough."""
        if not own < 0:
            return score < own
        factor = self.tests.keep_up if move > 0 else 1 / self.tests.keep_down
        return score <= factor * own and score < 0

    def _go_back(self, s: State, base: State) -> None:
        """To where the window began, with the rate two half decades lower, trace and all."""
        _replace(s, base)
        s.records = [row for row in s.records if row[0] <= s.t]
        s.search = {"exponent": s.search["exponent"] - 2, "next": s.t}

    def _score(self, f: FiniteSum, s: State, base: State, x: Array) -> tuple[float, float]:
        """An estimate of f(x) - f(base), and the slope at x over that at the base, along the way.

        <g, d> + <grad_S f(x) - grad_S f(base), d> / 2 with d = x - base on some terms S: exact for
        quadratics. g is the run's own estimate once it has seen all terms, if its variance is
        reduced; else grad_S f(base), as g would hide the very noise that a smaller rate is for.
        """
        m, gradient = f.n_terms, self.algorithm.gradient
        cost = gradient.evaluations(base.t, m)
        size = min(m, max(cost, int(self.tests.judged * (s.search["end"] - base.t) * cost)))
        rng = np.random.default_rng([_SEED, base.t])
        terms = None if size == m else rng.choice(m, size, replace=False)
        if "at_base" not in s.search:
            g = at_base = f.gradient(base.x, terms)
            s.gradient_evaluations += size
            if terms is not None and gradient.reduced and base.gradient_evaluations >= m:
                mine = base.copy().gradient, _generator(base)
                g, after = gradient.update(f, base.x, base.t, *mine)
                s.gradient_evaluations += gradient.spent(base.t, m, after)
            s.search |= {"at_base": at_base, "estimate": g.copy()}
        at_base, g, at_x = s.search["at_base"], s.search["estimate"], f.gradient(x, terms)
        s.gradient_evaluations += size
        d = (x - base.x).astype(np.float64)
        slope, bend = float(dot(g, d)), float(dot(at_x - at_base, d))
        if not math.isfinite(slope + bend):
            return 1e300, -math.inf  # a number that can be saved
        return slope + bend / 2, (slope + bend) / slope if slope < 0 else -1.0

    def _close(self, s: State, factor: float) -> None:
        """No window any more; the next one when t has grown by the factor."""
        s.search = {"exponent": s.search["exponent"], "next": math.ceil(s.t * factor)}

    def _at(self, exponent: int) -> Algorithm:
        """The algorithm with a rate of its own."""
        if exponent not in self._algorithms:
            eta = self.width * 10.0 ** (exponent / 2)
            step: Any = replace(self.algorithm.step, learning_rate=eta)  # type: ignore[type-var]
            self._algorithms[exponent] = replace(self.algorithm, step=step)
        return self._algorithms[exponent]

    def _used_up(self, s: State, n_terms: int) -> bool:
        """Whether a limit is reached; that on iterations ends no window, which it counts once."""
        reached = self.limits.reached(s, n_terms)
        return reached not in ("", "max_iterations")


def _width(constraint: Constraint, shape: tuple[int, ...]) -> float:
    try:
        return constraint.diameter(shape, math.inf)
    except TypeError:
        raise TypeError(
            f'learning_rate="auto" needs a set that knows its diameter, which {constraint!r} does '
            "not; give a number, or let adafw.tune search for one."
        ) from None


def _generator(s: State) -> Any:
    """A copy of the run's generator; a user's own source is not asked: its draws are the run's."""
    return thaw(s.rng) if isinstance(s.rng, np.ndarray) else np.random.default_rng([_SEED, s.t])


def _keep(s: State, name: str, other: State) -> None:
    """Puts a copy of a state, without trace and clock, into the search of s."""
    kept = other.copy()
    for key in [key for key in s.search if key.startswith(f"{name}.")]:
        del s.search[key]
    flat: dict[str, Any] = {"x": kept.x, "t": kept.t, "rng": kept.rng}
    flat["gradient_evaluations"] = kept.gradient_evaluations
    for part in _PARTS:
        flat |= {f"{part}.{key}": value for key, value in getattr(kept, part).items()}
    s.search |= {f"{name}.{key}": value for key, value in flat.items()}


def _kept(s: State, name: str) -> State | None:
    """The inverse of `_keep`, sharing its arrays; None if nothing was kept under that name."""
    found = {
        key.removeprefix(f"{name}."): value
        for key, value in s.search.items()
        if key.startswith(f"{name}.")
    }
    if not found:
        return None
    fields: dict[str, Any] = {part: {} for part in _PARTS}
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
