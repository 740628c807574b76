"""Radii: where they begin and end, models along them, scores of folds, and a proven path."""

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from adafw.constraints.base import Constraint
from adafw.fitting.core import Deadline, Fitted, fit_targets
from adafw.fitting.design import Design
from adafw.fitting.predictor import LinearPredictor
from adafw.fitting.settings import Settings
from adafw.fitting.targets import Targets
from adafw.losses import Task
from adafw.names import VECTOR_SETS
from adafw.rows import as_rows
from adafw.typing import Array, MatrixLike

Rule = Literal["best", "one_se"]

#: Shares of the objective without features: the smallest radius lowers it by at most this much;
#: the largest, if doubled, by at most that much, or leaves no more of it than the last.
_LEAST, _MOST, _LEFT = 0.02, 0.01, 0.02
#: Of the fits that only find the largest radius: their tolerance, as a share of the same; by how
#: much radii grow, and how often at most.
_ROUGH, _GROWTH, _STEPS = 1e-3, 1.5, 100
#: How far a start may be beyond the last two solutions, as a share of the way between them.
_FAR = 2.0
#: What a fit must not have ended by for its radius to count.
_CUT = ("max_seconds", "interrupted", "not started")


@dataclass(frozen=True)
class Problem:
    """Checked rows and targets, and how to fit them; `classes` None for numbers.

    `whole` are the targets of all rows, if they are known.
    """

    X: MatrixLike
    y: NDArray[Any]
    weights: NDArray[Any] | None
    settings: Settings
    task: Task
    classes: NDArray[Any] | None = None
    whole: Targets | None = None

    def check_foldable(self) -> None:
        """Refuses rows that cannot be taken apart here."""
        if as_rows(self.X, finite=True).remote:
            raise TypeError(
                "X must be on this machine to be cut into folds, got rows on a cluster; give the "
                "radius, or search it on a sample."
            )

    def part(self, rows: NDArray[Any] | None = None) -> tuple[Design, Targets]:
        """Design and targets of some rows, or of all; a class that is missing is refused."""
        X, y, weights = self.X, self.y, self.weights
        if rows is not None:
            self.check_foldable()
            X, y = X[rows], y[rows]
            weights = None if weights is None else weights[rows]
        if self.classes is None:
            targets = Targets.of_numbers(y, X.dtype)
        else:
            # `classes` are those of y: where every row counts, none is missing.
            some = rows is not None or weights is not None
            seen = y if weights is None else y[weights > 0]
            missing = np.setdiff1d(self.classes, seen) if some else self.classes[:0]
            if missing.size and rows is None:
                raise ValueError(
                    "every class must have a sample of positive weight, got none of class "
                    f"{missing[0]}; leave it out."
                )
            if missing.size:
                raise ValueError(
                    f"cv must leave samples of every class to train on, got a fold without class "
                    f"{missing[0]}; take fewer or stratified folds."
                )
            known = self.whole if rows is None else None
            targets = known or Targets.of_classes(y, self.classes, self.settings.joint)
        return Design(X, weights, finite=True), targets


@dataclass(frozen=True)
class Tangent:
    """What convexity proves at a point x for all radii r at once; sums over all targets.

    No point of the set of radius r has an objective below value - gap(r), where
    gap(r) = <g, x> + r * steepness, steepness = -min <g, v> over the set of radius 1.
    """

    value: float
    inner: float
    steepness: float
    #: What the objective is never below.
    least: float

    @classmethod
    def at(
        cls, design: Design, targets: Targets, settings: Settings, coef: NDArray[Any]
    ) -> "Tangent":
        """One gradient a fit."""
        plan = targets.plan(replace(settings, radius=1.0), design.rows.shape[1])
        value = inner = steepness = least = 0.0
        points = targets.points(coef.astype(np.float64))
        for y, x in zip(targets.vectors, points, strict=True):
            f = design.doubled.risk(y, plan.loss, settings.fit_intercept).f
            now, g = f.value_and_gradient(x)
            value, inner, least = value + now, inner + float(np.vdot(g, x)), least + f.lower_bound
            steepness += plan.constraint.gap(np.zeros_like(x), g)
        return cls(value, inner, steepness, least)

    def gap(self, radius: float) -> float:
        """How far the point can be above the best one of this radius."""
        return max(0.0, self.inner + radius * self.steepness)

    @property
    def size(self) -> float:
        """What there is to explain: the value over what it is never below, where that is known."""
        return self.value - self.least if math.isfinite(self.least) else abs(self.value)


def check_sized(constraint: object) -> None:
    """Refuses sets that have no radius to change."""
    if not (isinstance(constraint, str) and constraint in VECTOR_SETS
            and VECTOR_SETS.find(constraint).sized):  # fmt: skip
        sized = ", ".join(entry.name for entry in VECTOR_SETS if entry.sized)
        raise ValueError(
            f"constraint must be the name of a set with a radius ({sized}), got {constraint!r}."
        )


def find_radii(problem: Problem, count: int, deadline: Deadline) -> NDArray[np.float64]:
    """`count` radii, evenly on a logarithmic scale, from no effect to where the set stops binding.

    The smallest lowers the objective by at most 2 %, as the gradient at 0 proves. The largest is
    found by growing radii: its solution proves that twice the radius would gain at most 1 %, or
    leaves but 2 % of the objective, as in separable data, whose sets never stop binding.
    """
    design, targets = problem.part()
    settings = problem.settings
    zero = np.zeros((targets.scores, design.rows.shape[1]))
    at = Tangent.at(design, targets, settings, zero)
    slope, size = abs(at.steepness), at.size
    if not slope > 0 or not size > 0:  # no feature says anything: any radius gives the same model
        return np.ones(1)
    smallest = radius = _LEAST * size / slope
    last, left = (smallest, at.value), _LEFT * size + at.least
    steps = _Walk(design, targets, settings, deadline)
    for k in range(1, _STEPS):
        # A value is told from what is left of it by a tenth of that, however small it is itself.
        tol = max(settings.tol, _ROUGH * size / max(last[1] - at.least, left - at.least))
        fitted = steps.to(smallest * _GROWTH**k, min(tol, 0.1))
        if fitted is None:
            break
        radius = smallest * _GROWTH**k
        at = Tangent.at(design, targets, settings, fitted.predictor.coef)
        if at.gap(2 * radius) <= _MOST * size:
            break
        if at.value <= left:
            # The minimum is convex in the radius: where the chord says so, no more is left.
            share = (last[1] - left) / (last[1] - at.value) if last[1] > at.value else 1.0
            radius = last[0] + min(max(share, 0.0), 1.0) * (radius - last[0])
            break
        last = (radius, at.value)
    return np.geomspace(smallest, radius, count) if count > 1 else np.array([radius])


def walk(
    design: Design,
    targets: Targets,
    settings: Settings,
    radii: NDArray[Any],
    deadline: Deadline,
) -> Iterator[tuple[float, Fitted]]:
    """Fits from small to large radii, each begun where the last two point, until the deadline."""
    steps = _Walk(design, targets, settings, deadline)
    for radius in radii:
        fitted = steps.to(float(radius), settings.tol)
        if fitted is None:
            return
        yield float(radius), fitted


@dataclass
class _Walk:
    """Fits at one radius after the other, and where the next one begins."""

    design: Design
    targets: Targets
    settings: Settings
    deadline: Deadline
    #: (radius, points) of the last two fits.
    known: list[tuple[float, list[Array]]] = field(default_factory=list)

    def to(self, radius: float, tol: float) -> Fitted | None:
        """The fit of this radius; None if the deadline was before its end."""
        if self.deadline.left == 0:
            return None
        settings = replace(self.settings, radius=radius, tol=tol)
        plan = self.targets.plan(settings, self.design.rows.shape[1])
        fitted = fit_targets(
            self.design, self.targets, plan, starts=self._starts(radius, plan.constraint),
            deadline=self.deadline,
        )  # fmt: skip
        if fitted.interrupted:
            raise KeyboardInterrupt
        if any(fit.status in _CUT for fit in fitted.fits):
            return None
        self.known = [*self.known[-1:], (radius, self.targets.points(fitted.predictor.coef))]
        return fitted

    def _starts(self, radius: float, constraint: Constraint) -> list[Array] | None:
        """On the line through the last two solutions, which move little from it.

        Coefficients that are 0, or would change their sign, are 0.
        """
        if len(self.known) < 2 or not constraint.radial:
            return self.known[-1][1] if self.known else None
        (before, first), (last, second) = self.known
        ahead = (radius - last) / (last - before) if last > before else 0.0
        if not 0 < ahead <= _FAR:
            return second
        found = []
        for x0, x in zip(first, second, strict=True):
            line = x + ahead * (x - x0)
            found.append(np.where(line * x > 0, line, 0.0))  # projected when the fit begins
        return found


@dataclass(frozen=True)
class Scores:
    """(radii, folds): scores of held-out rows, and value and gap of the fits; nan if not reached.

    Values and gaps are sums over the classes. `unfinished` counts fits that missed `tol`.
    """

    radii: NDArray[Any]
    scores: NDArray[Any]
    values: NDArray[Any]
    gaps: NDArray[Any]
    unfinished: list[str] = field(default_factory=list)

    @property
    def means(self) -> NDArray[Any]:
        """Over the folds; nan where a fold is missing."""
        return np.asarray(self.scores.mean(axis=1))

    @property
    def errors(self) -> NDArray[Any]:
        """Standard errors of the means; 0 for a single fold."""
        n = self.scores.shape[1]
        if n == 1:
            return np.zeros(len(self.radii))
        return np.asarray(self.scores.std(axis=1, ddof=1) / math.sqrt(n))

    def choose(self, rule: Rule) -> int:
        """The number of the best mean, or of the smallest radius within one standard error of it.

        Of equals, the smallest radius. Breiman, Friedman, Olshen and Stone (1984), section 3.4.3.
        """
        means = np.where(np.isfinite(self.means), self.means, -np.inf)
        if not np.isfinite(means).any():
            raise ValueError(
                "no radius has a finite score in every fold; raise max_seconds, or look at scoring."
            )
        best = int(np.argmax(means))
        if rule == "best":
            return best
        return int(np.argmax(means >= means[best] - self.errors[best]))


def score_radii(
    problem: Problem,
    radii: NDArray[Any],
    folds: Sequence[tuple[NDArray[Any], NDArray[Any]]],
    score: Callable[[LinearPredictor, NDArray[Any]], float],
    deadline: Deadline,
    jobs: int = 1,
) -> Scores:
    """Walks along the radii in each fold, `jobs` folds at a time; the result depends not on it.

    `score(model, rows)` is larger for better models.
    """
    shape = (len(radii), len(folds))
    empty = np.full(shape, np.nan)
    found = Scores(radii, empty, empty.copy(), empty.copy())
    alone = replace(problem.settings, n_jobs=None)

    def run(k: int) -> None:
        train, test = folds[k]
        design, targets = problem.part(train)
        steps = walk(design, targets, alone, radii, deadline)
        for i, (_, fitted) in enumerate(steps):
            found.values[i, k] = sum(fit.value for fit in fitted.fits)
            found.gaps[i, k] = sum(fit.gap for fit in fitted.fits)
            found.unfinished.extend(n.text for n in fitted.notices if n.kind == "unfinished")
            found.scores[i, k] = score(fitted.predictor, test)

    if jobs == 1:
        for k in range(len(folds)):
            run(k)
        return found
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(run, k) for k in range(len(folds))]
        try:
            for future in futures:
                future.result()
        except BaseException:
            deadline.cut()  # the others end at their next record
            raise
    return found


@dataclass(frozen=True)
class Knot:
    """A model that is within eps for every radius from `radius` to `upper`."""

    radius: float
    upper: float
    fitted: Fitted
    tangent: Tangent


def approximate(
    problem: Problem, eps: float, low: float, high: float, deadline: Deadline
) -> tuple[list[Knot], float]:
    """Few models for all radii between `low` and `high`, and the bound that they keep.

    The coefficients x of radius r lie in every larger set, where their gap is
    <g, x> + r' * steepness: a straight line in r'. So x is good for all r' until the line meets
    the bound, eps times the objective at 0 (over what it is never below), where the next fit is.
    Below the first radius 0 is good enough. About 1 / eps fits: Giesen, Jaggi and Laue,
    "Approximating parameterized convex optimization problems" (2012). Without `high` (inf), it
    ends where ten times the radius is covered.
    """
    design, targets = problem.part()
    settings = problem.settings
    zero = np.zeros((targets.scores, design.rows.shape[1]))
    n = design.rows.shape[1]
    unit = targets.plan(replace(settings, radius=1.0), n).constraint
    if not unit.contains(targets.points(zero)[0]):
        raise ValueError(
            f"eps needs a set that grows with its radius, such as l1 or l2, got "
            f"{settings.constraint!r}; give radii instead."
        )
    at = Tangent.at(design, targets, settings, zero)
    bound = eps * at.size
    if not at.steepness > 0:
        return [], bound
    radius, knots = max(low, bound / at.steepness), []
    starts: list[Array | None] = [None] * len(targets)
    sharper = 1.0
    while radius <= high and deadline.left > 0:
        # Values fall along the path, so half of the bound is kept by a tolerance relative to the
        # last one; the other half is the way to the next radius.
        largest = max(abs(at.value), abs(at.least) if math.isfinite(at.least) else 0.0, 1e-12)
        tol = sharper * bound / 2 / largest
        plan = targets.plan(replace(settings, radius=radius, tol=tol), n)
        fitted = fit_targets(design, targets, plan, starts=starts, deadline=deadline)
        if fitted.interrupted:
            raise KeyboardInterrupt
        at = Tangent.at(design, targets, settings, fitted.predictor.coef)
        room = bound - at.gap(radius)
        # Half of the bound, unless a limit came first: what is left would be ever smaller steps.
        if room < 0.1 * bound:
            break
        settled = at.value - at.least <= bound or not at.steepness > 0
        upper = math.inf if settled else radius + room / at.steepness
        knots.append(Knot(radius, upper, fitted, at))
        if upper >= 10 * radius and not math.isfinite(high):
            break
        points = targets.points(fitted.predictor.coef)
        radius, starts = upper, [*points]
        if all(plan.constraint.violation(1.01 * x) == 0 for x in points):
            # The set binds no more. Its gap is at least (r - |x|) * steepness, so that a gap a
            # hundred times smaller proves x good far beyond r, where the path ends.
            sharper *= 0.01
    return knots, bound
