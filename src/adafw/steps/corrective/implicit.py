"""Quadratic models over balls of groups' norms: implicit steps, each by Newton's method."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.steps.corrective.conjugate import solve
from adafw.steps.corrective.curvature import Vector

Matrix = NDArray[Any]
#: d -> H d.
Image = Callable[[Vector], Vector]

_STEPS, _NEWTON = 150, 25  # Newton steps of one model, and of one implicit step, at most
_FIRST, _LONGER = 10.0, 100.0  # length of the first step, in units of diag(H), and of the next one
_LEAST = 2.0  # times that it grows by at least
_NEAR = 0.1  # share of the gap that an implicit step may leave of what it minimises
_HALF, _PATIENCE = 0.5, 6  # what counts as progress, and steps without any
_CUTS = 30  # of a Newton step
_MOST = 300  # products of one model without a matrix
_MANY = 600  # coordinates from which conjugate gradients take less than a factor
_LIMIT, _RESIDUAL = 100, 0.03  # of these
_RIDGES, _RIDGE = 20, 1e-13  # shares of the diagonal that are added until there is a factor
_ROUNDING = 2e-16  # of numbers near 1
_GUESSES, _EDGE = 2, 1e-12  # faces that are guessed; share of a size that counts as none
_TINY = 1e-300
_NOTHING = np.empty(0)


class Curved:
    """H of a model: products, and once they have cost as much, a matrix.

    scale: its diagonal, or numbers of its size, positive.
    """

    def __init__(
        self, product: Image, scale: Vector, whole: Callable[[], Matrix] | None, price: float
    ) -> None:
        self.product, self.scale, self.whole, self.price = product, scale, whole, price
        self.matrix: Matrix | None = None
        self.products = 0

    @property
    def dear(self) -> bool:
        """Whether so many products were made that the model had better be left as it is."""
        return self.matrix is None and self.products > _MOST

    def image(self, d: Vector) -> Vector:
        """H d."""
        if self.matrix is None and self.products >= self.price and self.whole is not None:
            self.matrix = self.whole()
        self.products += 1
        return self.product(d) if self.matrix is None else np.asarray(self.matrix @ d)


@dataclass(frozen=True)
class Norms:
    """{x : ||x_G|| <= most for all groups G, the sum of these norms <= total}, and a metric.

    `labels` number the groups of coordinates from 0, `scale` holds the metric: a number a group.
    Where `most` is not inf, groups have one coordinate each.
    """

    labels: NDArray[np.int64]
    scale: Vector
    most: float
    total: float

    def lengths(self, x: Vector) -> Vector:
        """The groups' norms."""
        return np.sqrt(np.bincount(self.labels, x * x, self.scale.size))

    def gap(self, slopes: Vector, x: Vector) -> float:
        """<slopes, x - v> for the best v in the set."""
        steep = self.lengths(slopes)
        if self.most * steep.size <= self.total:
            return float(slopes @ x) + self.most * float(steep.sum())
        if not self.most < self.total:
            return float(slopes @ x) + self.total * float(steep.max())
        whole = int(self.total / self.most)
        steep = np.sort(steep)[::-1]
        rest = self.total - whole * self.most
        more = rest * float(steep[whole]) if whole < steep.size else 0.0
        return float(slopes @ x) + self.most * float(steep[:whole].sum()) + more

    def landing(self, u: Vector) -> "Landing":
        """The nearest point to u in the metric, and how it moves with u."""
        length = self.lengths(u)
        kept = np.minimum(length, self.most)
        tight = float(kept.sum()) > self.total
        if tight:
            kept = self._shortened(length)
        share = kept / np.maximum(length, _TINY)
        moving = (kept > 0) & (kept < self.most)
        units = u / np.maximum(length, _TINY)[self.labels]
        return Landing(u * share[self.labels], moving[self.labels], units, share, tight)

    def _shortened(self, length: Vector) -> Vector:
        """min(max(length - l / scale, 0), most) with the l for which they sum to `total`."""
        give = 1 / self.scale
        ends = np.concatenate([length / give, (length - self.most) / give])
        change = np.concatenate([give, -give])
        low = ends > 0
        ends, change = ends[low], change[low]
        order = np.argsort(-ends)
        ends, slopes = ends[order], np.cumsum(change[order])
        # The sum as l falls from end to end.
        sums = np.append(0.0, np.cumsum(slopes[:-1] * -np.diff(ends)))
        k = max(0, int(np.searchsorted(sums, self.total)) - 1)
        l = ends[k] - (self.total - sums[k]) / max(float(slopes[k]), _TINY)
        part = length - l * give
        for _ in range(2):  # again in small numbers: of lengths far outside few digits are left
            kept = np.clip(part, 0.0, self.most)
            free = (kept > 0) & (kept < self.most)
            if free.any():
                part -= give * ((float(kept.sum()) - self.total) / float(give[free].sum()))
        kept = np.clip(part, 0.0, self.most)
        if not kept.any():  # so far outside that l has no digits for what is left
            most = min(self.most, self.total)
            first = np.argsort(-length / give, kind="stable")
            kept[first] = np.clip(self.total - most * np.arange(kept.size), 0.0, most)
        return np.asarray(kept * min(1.0, self.total / float(kept.sum())))


@dataclass(frozen=True)
class Landing:
    """A projection `point`; the coordinates of it that move, the unit vectors of their groups.

    share: the groups' norms there as a share of those before; tight: whether their sum is kept.
    """

    point: Vector
    moving: NDArray[np.bool_]
    units: Vector
    share: Vector
    tight: bool


def minimise(
    norms: Norms, x: Vector, slopes: Vector, model: Curved, wanted: float
) -> tuple[Vector, bool]:
    """(y, whether its gap is as wanted) for the model <slopes, d> + <d, H d> / 2.

    Implicit steps (proximal points, Rockafellar 1976): y <- the minimiser over the set of the model
    + ||. - y||^2 / (2 s) in the metric, s up to a hundred times as large from step to step, so that
    the last ones are Newton's on the model itself. Each is the root w of w - P(y - s grad(w)), P
    being the projection, found by semismooth Newton steps on the coordinates that move with it, on
    a function that is convex in w (Li, Sun, Toh 2018): neither does which norms are 0 or at their
    bound have to be guessed, nor does it matter how ill conditioned H is.
    """
    y, at, s, more, effort = x, slopes, _FIRST, _LONGER, 0
    for _ in range(_GUESSES):
        if norms.gap(at, y) <= wanted:
            return y, True
        there = _guess(norms, y, at, model)
        if there is None:
            break
        y, at = there
    give = 1 / norms.scale[norms.labels]
    # What rounding of y makes of its slopes: |H_ij| is at most the root of H_ii H_jj.
    roots = np.sqrt(norms.scale)
    far = float(roots[norms.labels] @ np.abs(x)) * float(roots.max())
    reach = min(norms.total, norms.most * roots.size)
    wanted = max(wanted, _ROUNDING * reach * far)
    best, least, idle = y, norms.gap(at, y), 0
    while effort < _STEPS and idle <= _PATIENCE and least > wanted and not model.dear:
        end = _Implicit(norms, y, at, s * give, model, wanted).end()
        effort += end.steps + 1
        gap = norms.gap(end.slopes, end.point)
        idle = 0 if gap < _HALF * least else idle + 1
        if gap < least:
            best, least = end.point, gap
        if end.near:
            y, at, s = end.point, end.slopes, s * more
        else:  # too long a step for Newton's method from here
            more = max(_LEAST, math.sqrt(more))
            s /= more
    return best, least <= wanted


def _guess(norms: Norms, y: Vector, at: Vector, model: Curved) -> tuple[Vector, Vector] | None:
    """A step in the metric, as far as the model falls, and Newton's on the face that it finds.

    Where faces are easy to find that is all it takes; None where it does not lower the model.
    """
    way = norms.landing(y - at / norms.scale[norms.labels]).point - y
    bend, slope = model.image(way), float(at @ way)
    if not slope < 0:
        return None
    gamma = min(1.0, -slope / max(float(way @ bend), _TINY))
    y, at = y + gamma * way, at + gamma * bend
    length = norms.lengths(y)
    moving = (length > _EDGE * norms.total) & (length < (1 - _EDGE) * norms.most)
    face = np.flatnonzero(moving[norms.labels])
    price = -float(at[face] @ y[face]) / max(float(length[moving].sum()), _TINY)
    if not face.size:
        return y, at
    tight = float(length.sum()) >= (1 - _EDGE) * norms.total and price > 0
    labels = norms.labels[face]
    n, across = y[face] / length[labels], np.where(tight, price, 0.0) / length[labels]
    places = np.unique(labels, return_inverse=True)[1]
    across[np.bincount(places)[places] == 1] = 0.0

    def bent(p: Vector) -> Vector:
        return across * (p - np.bincount(places, n * p)[places] * n)

    d = np.zeros_like(y)
    d[face] = _iterated(model, face, bent, across, -at[face], n, 0.0 if tight else None)
    way = norms.landing(y + d).point - y
    bend, slope = model.image(way), float(at @ way)
    if slope + float(way @ bend) / 2 < 0:
        y, at = y + way, at + bend
    return y, at


@dataclass(frozen=True)
class _End:
    """A point of the set, its slopes; Newton steps, whether the implicit step ends near it."""

    point: Vector
    slopes: Vector
    steps: int
    near: bool


@dataclass(frozen=True)
class _Implicit:
    """An implicit step from y, where the slopes are `at`; give: its length in the metric."""

    norms: Norms
    y: Vector
    at: Vector
    give: Vector
    model: Curved
    wanted: float

    def end(self) -> _End:
        """Where it leads, by Newton's method on w - P(y - s grad(w))."""
        norms, w, slopes = self.norms, self.y, self.at
        landing, least, idle = self._landing(slopes), math.inf, 0
        for steps in range(_NEWTON):  # noqa: B007
            v, missed = landing.point, w - landing.point
            there = slopes - self.model.image(missed)
            # The gap of what the step minimises, beside that of the model.
            left = norms.gap(there + (v - self.y) / self.give, v)
            least, idle = (left, 0) if left < _HALF * least else (least, idle + 1)
            near = left <= _NEAR * max(norms.gap(there, v), self.wanted)
            if near or idle > _PATIENCE or self.model.dear:
                break
            d = _newton(norms, landing, missed, self.give, self.model)
            bend = self.model.image(d)
            if not float(missed @ bend) < 0:
                break
            t, landing = self._search(w, slopes, d, bend, float(missed @ bend))
            w, slopes = w + t * d, slopes + t * bend
        return _End(v, there, steps, near)

    def _landing(self, slopes: Vector) -> Landing:
        return self.norms.landing(self.y - self.give * slopes)

    def _search(
        self, w: Vector, slopes: Vector, d: Vector, bend: Vector, first: float
    ) -> tuple[float, Landing]:
        """t where the slope along d is half of `first` or less, or t = 1; the landing there."""
        low, high, t = 0.0, math.inf, 1.0
        for _ in range(_CUTS):
            landing = self._landing(slopes + t * bend)
            slope = float((w + t * d - landing.point) @ bend)
            if abs(slope) <= -_HALF * first or (t == 1.0 and slope < 0):
                break
            low, high = (t, high) if slope < 0 else (low, t)
            t = (low + high) / 2
        return t, landing


def _newton(norms: Norms, landing: Landing, missed: Vector, give: Vector, model: Curved) -> Vector:
    """d with d + P'(s H d) = -missed, P' at the landing.

    Off the coordinates that move d is -missed. On them P' = B - (B n) (B n)^T / <n, B n>, n the
    units of their groups if the sum of norms is kept, and B is a block a group: (H + B^-1 / s) d =
    side + n r, <n, d> = kept.
    """
    d = np.where(landing.moving, 0.0, -missed)
    face = np.flatnonzero(landing.moving)
    if not face.size:
        return d
    n, stiff = landing.units[face], 1 / give[face]
    places = np.unique(norms.labels[face], return_inverse=True)[1]
    single = np.bincount(places)[places] == 1
    share = np.where(single, 1.0, landing.share[norms.labels[face]])
    across = stiff / np.maximum(share, _TINY)

    def bent(p: Vector) -> Vector:
        along = np.bincount(places, n * p)[places]
        return across * p + ((stiff - across) * along) * n

    side = -bent(missed[face])
    if d.any():
        side -= model.image(d)[face]
    kept = -float(n @ missed[face]) if landing.tight else None
    if model.matrix is None or face.size > _MANY:
        found = _iterated(model, face, bent, across, side, n, kept)
    else:
        system = model.matrix[np.ix_(face, face)]
        system[np.diag_indices(face.size)] += across
        if not single.all():
            same = places[:, None] == places
            system += np.where(same, np.outer((stiff - across) * n, n), 0.0)
        found = _solved(system, side, n, kept)
    d[face] = found
    return d


def _solved(system: Matrix, side: Vector, n: Vector, kept: float | None) -> Vector:
    """By Cholesky's factor."""
    from scipy.linalg.lapack import dposv

    for _ in range(_RIDGES):
        _, found, failed = dposv(system, np.column_stack([side, n]))
        if not failed and np.isfinite(found).all():
            break
        system[np.diag_indices(n.size)] *= 1 + _RIDGE
    else:
        return np.zeros_like(side)
    d, along = found.T
    if kept is not None:
        for _ in range(2):  # what cancels leaves rounding
            d = d + along * ((kept - float(n @ d)) / float(n @ along))
    return d


def _iterated(
    model: Curved, face: NDArray[np.int64], bent: Image, across: Vector, side: Vector, n: Vector,
    kept: float | None,
) -> Vector:  # fmt: skip
    """By conjugate gradients."""
    inverse = 1 / (model.scale[face] + across)
    normal = inverse * n
    length = float(n @ normal)
    whole = np.zeros_like(model.scale)

    def product(p: Vector) -> tuple[Vector, Vector]:
        whole[face] = p
        return model.image(whole)[face] + bent(p), _NOTHING

    def tangent(r: Vector) -> Vector:
        d = inverse * r
        return d if kept is None else d - normal * (float(n @ d) / length)

    start = np.zeros_like(side)
    if kept:
        start = normal * (kept / length)
        side = side - product(start)[0]
    return start + solve(product, side, tangent, _RESIDUAL, _LIMIT, projects=kept is not None).d
