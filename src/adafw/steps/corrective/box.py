"""Boxes: Newton steps whose model is minimised over the box itself."""

from collections.abc import Callable
from functools import partial

import numpy as np

from adafw.constraints.balls import LInfBall
from adafw.constraints.base import Constraint
from adafw.constraints.box import Box
from adafw.objectives.base import FiniteSum
from adafw.steps.corrective.base import Corrector, Memory
from adafw.steps.corrective.conjugate import Solution, solve
from adafw.steps.corrective.curvature import ColumnHessian, Hessian, Vector, view
from adafw.steps.corrective.damped import FINE, at, descend, forcing, weighed
from adafw.steps.corrective.nearly import Near
from adafw.steps.corrective.remembering import led, recall
from adafw.steps.corrective.sampled import Sampled
from adafw.steps.corrective.secants import followed
from adafw.typing import Array

_SWEEPS = 8  # of coordinate steps before a look at the face
_MOST, _PATIENCE = 1000, 256  # of these, where H is a matrix; until faces are solved
_STOPS = 20  # bounds that a way to the minimiser of a face may meet
_SAME = 1e-9  # by which a diagonal is raised for it
_FACES = 6  # faces a model is minimised on, at most
_FLAT = 1e-12  # share of its usual curvature that a coordinate has where losses are flat
_LEFT = 1e-3  # share of the gap that is left of a model whose matrix is a guess
_OUTSIDE = 0.05  # share of a step outside the box, in units of the model, that ends it
_WHOLE = 0.6  # share of a step at which the model is least from which it is taken whole


class BoxCorrector(Corrector[FiniteSum]):
    """LInfBall and Box: min over the box of <g, y - x> + <y - x, H (y - x)> / 2, once a gradient.

    The model is minimised by sweeps of exact coordinate steps in random order where columns are
    at hand (sparse data, or few features), which find the face; conjugate gradients on the face,
    ended where they leave the box, take over (after More and Toraldo 1991). Where dense data have
    leading directions, H ~ P, a diagonal and these (`spiked`): the face is that of the minimiser
    for P, P preconditions, and what is found outside comes back in its metric. Products only. Of
    few dense columns, P is a matrix of some rows that gradients correct, and its minimiser over
    the box the step (`secants`).
    """

    sets: tuple[type, ...] = (LInfBall, Box)
    rehearsed = True
    doubles = True

    def fits(self, f: FiniteSum, constraint: Constraint) -> bool:
        return f.has_hessian and isinstance(constraint.bare, self.sets)

    def prepare(self, f: FiniteSum, x: Array, state: Memory) -> None:
        recall(f, x, state)

    def init(self, x: Array) -> Memory:
        return {"word": 1}

    def near(self, f: FiniteSum, constraint: Constraint, x: Array, g: Array) -> bool:
        return view(f).guided

    def improve(
        self, f: FiniteSum, constraint: Constraint, x: Array, g: Array, t: int,
        state: Memory,
    ) -> tuple[Array, Memory]:  # fmt: skip
        seen = view(f)
        seen.memory = state
        weights = weighed(seen, x, state)
        lower, upper = bounds(constraint, x)
        gap = float(np.vdot(g, x - constraint.lmo(g)))

        def minimiser(near: Sampled) -> Array:
            step = near.nearest(g, lower - x, upper - x, _LEFT)
            return np.clip(x + step, lower, upper)

        new = followed(seen, x, g, gap, weights, state, minimiser)
        if new is not None:
            return np.clip(new, lower, upper), state
        here = at(seen, x)
        share = forcing(gap, state)
        seen.exact = seen.slow = share <= FINE
        model = _Model(here.x, g, lower, upper, gap, share)
        there = descend(seen, constraint, here, g, weights, partial(model.minimise, state))
        new = np.clip(there.x, lower, upper)
        led(f, x, new, there.z, state, seen.rough)
        return new, state


class _Model:
    """<g, d> + <d, H d> / 2 over lower <= x + d <= upper."""

    def __init__(
        self, x: Array, g: Array, lower: Array, upper: Array, gap: float, share: float
    ) -> None:
        self.x, self.g, self.lower, self.upper = x, g, lower - x, upper - x
        self.share, self.wanted = share, share * gap

    def minimise(self, state: Memory, h: Hessian) -> tuple[Array, Vector | None]:
        """x + d for a d whose gap on the model is as wanted, or the last one tried; and A d."""
        d, slopes = np.zeros_like(self.x), self.g
        columns = None if h.columns is None else h.columns()
        if h.matrix is not None:
            matrix = h.matrix.copy()
            np.fill_diagonal(matrix, np.maximum(matrix.diagonal(), _FLAT * h.scale))
            self._sweep_matrix(matrix, d, state)
            return self._inside(d), None
        near = h.nearly()
        if near.leads:
            return self._near(h, near)
        move: Vector | None = None
        for _ in range(_FACES):
            if columns is not None:
                self._sweep_columns(columns, _FLAT * h.scale, d, state)
                image, move = h.product(d)
                slopes = self.g + image
            if _gap(slopes, d, self.lower, self.upper) <= self.wanted:
                break
            d, slopes, step = self._face(h, d, slopes)
            if step is not None:
                move = step if move is None else move + step
            elif columns is None:
                break
        return self._inside(d), move

    def _near(self, h: Hessian, near: Near) -> tuple[Array, Vector]:
        """The same where P tells most of H: the face is that of the minimiser for P."""
        d, slopes = np.zeros_like(self.x), self.g
        d, slopes, move = self._towards(h, near, d, slopes, d, slopes)
        for _ in range(_FACES):
            if _gap(slopes, d, self.lower, self.upper) <= self.wanted:
                break
            aim = d + near.nearest(slopes, self.lower - d, self.upper - d)
            free = (self.lower < aim) & (aim < self.upper)
            found = self._conjugate(h, near.inverse(free), d, slopes)
            out, pull = d + found.d, -found.residual
            if found.steps and (np.clip(out, self.lower, self.upper) == out).all():
                d, slopes, move = out, pull, move + found.move
            else:
                d, slopes, step = self._towards(h, near, d, slopes, out, pull)
                move = move + step
        return self._inside(d), move

    def _conjugate(
        self, h: Hessian, inverse: Callable[[Vector], Vector], d: Vector, slopes: Vector
    ) -> Solution:
        """Conjugate gradients from d, ended where they leave the box."""

        def leaves(s: Vector) -> bool:
            out = d + s
            out = out - np.clip(out, self.lower, self.upper)
            return bool(np.vdot(out, h.scale * out) > _OUTSIDE * np.vdot(s, h.scale * s))

        return solve(h.product, -slopes, inverse, self.share, 60, leave=leaves)

    def _towards(
        self, h: Hessian, near: Near, d: Vector, slopes: Vector, out: Vector, pull: Vector
    ) -> tuple[Vector, Vector, Vector]:
        """A step from d to the minimiser over the box of what is known at `out`, P for H.

        `pull`: the slopes there. A step on which the model is least well before its end is cut.
        """
        s = out + near.nearest(pull, self.lower - out, self.upper - out) - d
        if not np.vdot(slopes, s) < 0:
            s = np.clip(d - slopes / h.scale, self.lower, self.upper) - d
        image, move = h.product(s)
        bend, slope = float(np.vdot(s, image)), -float(np.vdot(slopes, s))
        gamma = 1.0 if slope >= _WHOLE * bend else slope / bend
        return d + gamma * s, slopes + gamma * image, gamma * move

    def _inside(self, d: Vector) -> Array:
        return np.clip(self.x + d, self.x + self.lower, self.x + self.upper)

    def _sweep_matrix(self, matrix: Vector, d: Vector, state: Memory) -> None:
        from adafw.kernels import coordinates
        from adafw.kernels.shuffle import shuffle

        slopes, order = self.g.copy(), np.arange(d.size)
        word = np.uint64(state["word"])
        for k in range(_MOST):
            word = shuffle(order, d.size, np.uint64(word))
            gap = coordinates.matrix_sweep(matrix, self.lower, self.upper, d, slopes, order)
            if gap <= 0.1 * self.wanted:
                break
            if k >= _PATIENCE and k % _SWEEPS == 0:
                self._solve_faces(matrix, d, slopes)
        state["word"] = int(word)

    def _solve_faces(self, matrix: Vector, d: Vector, slopes: Vector) -> None:
        """To the minimiser on the free coordinates, or as far as the box lets it, in place.

        Sweeps find the face soon, but columns that are nearly the same keep them from its minimum
        for ever. A coordinate that meets a bound stays there.
        """
        from scipy.linalg.lapack import dposv

        for _ in range(_STOPS):
            free = np.flatnonzero((self.lower < d) & (d < self.upper))
            if not free.size:
                return
            H = matrix[np.ix_(free, free)].astype(np.float64)
            # Where a face has many minimisers, rounding must not choose among them.
            H[np.diag_indices(free.size)] *= 1 + _SAME
            _, s, failed = dposv(H, -slopes[free].astype(np.float64))
            if failed or not np.isfinite(s).all():
                return
            low, high = self.lower[free] - d[free], self.upper[free] - d[free]
            room = np.where(s > high, high, np.where(s < low, low, s)) / np.where(s == 0, 1, s)
            room[s == 0] = 1.0
            t = float(room.min())
            d[free] = np.clip(d[free] + t * s, self.lower[free], self.upper[free])
            if t < 1.0:
                first = free[int(room.argmin())]
                d[first] = (self.upper if s[room.argmin()] > 0 else self.lower)[first]
            slopes[:] = self.g + matrix @ d
            if t == 1.0:
                return

    def _sweep_columns(self, h: ColumnHessian, least: Vector, d: Vector, state: Memory) -> None:
        """A few sweeps; those after the first leave out what a bound holds."""
        from adafw.kernels import coordinates
        from adafw.kernels.shuffle import shuffle

        diagonal = coordinates.curvatures(h.arrays, h.bends, h.mixed, h.total)
        diagonal = np.maximum(diagonal, least)
        image = h.bends * _dots(h, d)
        order, count = np.arange(d.size, dtype=np.uint64), d.size
        word = np.uint64(state["word"])
        for _ in range(_SWEEPS):
            word = shuffle(order, count, np.uint64(word))
            gap, count = coordinates.columns_sweep(
                h.arrays, h.bends, h.mixed, h.total, self.g, diagonal, self.lower, self.upper, d,
                image, order, count,
            )  # fmt: skip
            if gap <= 0.5 * self.wanted:
                break
        state["word"] = int(word)

    def _face(self, h: Hessian, d: Vector, slopes: Vector) -> tuple[Vector, Vector, Vector | None]:
        """Conjugate gradients on the coordinates that are free, then a step inside the box."""
        width = self.upper - self.lower
        near = np.clip(d - slopes / h.scale, self.lower, self.upper) - d
        share = np.abs(near) / np.where(width > 0, width, 1.0)
        margin = min(1e-2, float(share.max())) * width
        held = (d - self.lower <= margin) & (slopes > 0) | (self.upper - d <= margin) & (slopes < 0)
        inverse = np.where(held | (width == 0), 0, 1 / h.scale)
        found = self._conjugate(h, lambda r: inverse * r, d, slopes)
        step = found.d + np.where(held, near, 0)
        if found.steps and not near[held].any():
            inside = np.clip(d + step, self.lower, self.upper)
            if (inside == d + step).all():
                return inside, -found.residual, found.move
        gamma, promise = 1.0, float(np.vdot(slopes, step))
        for _ in range(30):
            s = np.clip(d + gamma * step, self.lower, self.upper) - d
            image, move = h.product(s)
            change = float(np.vdot(slopes, s) + np.vdot(s, image) / 2)
            if change < 1e-4 * gamma * promise:
                return d + s, slopes + image, move
            gamma /= 2
        return d, slopes, None


def bounds(constraint: Constraint, x: Array) -> tuple[Array, Array]:
    """(lower, upper), shaped as x."""
    base = constraint.bare
    if isinstance(base, LInfBall):
        return np.full_like(x, -base.radius), np.full_like(x, base.radius)
    assert isinstance(base, Box)
    shape = x.shape
    return np.broadcast_to(base.lower.like(x), shape), np.broadcast_to(base.upper.like(x), shape)


def _gap(g: Array, x: Array, lower: Array, upper: Array) -> float:
    return float(np.vdot(g, x - np.where(g > 0, lower, upper)))


def _dots(h: ColumnHessian, d: Vector) -> Vector:
    """A d by the columns; those of d = 0 cost nothing."""
    from adafw.kernels import rows

    out = np.zeros(h.bends.size, h.bends.dtype)
    rows.combine(h.arrays, np.empty(0, np.uint64), 0, d.size, d, out)
    return out
