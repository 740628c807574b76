"""The l2 ball: Newton steps whose model is minimised over the ball by conjugate gradients."""

import math
from typing import NamedTuple

import numpy as np

from adafw.constraints.balls import L2Ball
from adafw.constraints.base import Constraint
from adafw.objectives.base import FiniteSum
from adafw.steps.corrective.base import Corrector, Memory
from adafw.steps.corrective.conjugate import solve
from adafw.steps.corrective.curvature import Hessian, Vector, view
from adafw.steps.corrective.damped import FINE, Position, at, descend, forcing, weighed
from adafw.steps.corrective.nearly import Near
from adafw.steps.corrective.remembering import led, recall
from adafw.steps.corrective.secants import followed
from adafw.typing import Array

_ROUNDS = 4  # systems of one model, at most
_LIMIT = 100  # steps of conjugate gradients a system
_SECANTS, _EDGE, _SAME = 60, 1e-12, 1e-13  # the same for H: steps, excess, raise of a diagonal
_SECULAR, _LONG = 10, 0.05  # steps to the multiplier, and how much too long its point may be
_WHOLE = 0.6  # share of a step at which the model is least from which it is taken whole
_ROUNDED = 1e-12  # by which a point of double precision may be outside
_KEPT = 0.9  # share of its length that y keeps where H y may be guessed


class L2Corrector(Corrector[FiniteSum]):
    """L2Ball: min over ||y|| <= radius of <g, y - x> + <y - x, H (y - x)> / 2, once a gradient.

    Inside the ball (H) d = -slopes, ended where it leaves the ball, or where some of the rows
    make a P that is nearly H, the minimiser for P over the ball; on the sphere, Newton's method
    there: (H + s) d = -slopes on the tangent plane, s = -<slopes, y> / radius^2 being the
    multiplier, and back to the sphere (Steihaug 1983; Absil, Baker, Gallivan 2007). Products with
    H only, and none for steps back to the sphere. Of few dense columns, a matrix of some rows that
    gradients correct stands for H, and its minimiser over the ball is the step (`secants`).
    """

    sets: tuple[type, ...] = (L2Ball,)
    rehearsed = True
    doubles = True

    def fits(self, f: FiniteSum, constraint: Constraint) -> bool:
        return f.has_hessian and isinstance(constraint.bare, self.sets)

    def prepare(self, f: FiniteSum, x: Array, state: Memory) -> None:
        recall(f, x, state)

    def init(self, x: Array) -> Memory:
        return {}

    def near(self, f: FiniteSum, constraint: Constraint, x: Array, g: Array) -> bool:
        return view(f).guided

    def improve(
        self, f: FiniteSum, constraint: Constraint, x: Array, g: Array, t: int,
        state: Memory,
    ) -> tuple[Array, Memory]:  # fmt: skip
        seen, radius = view(f), constraint.scale
        length = float(np.linalg.norm(x))
        if x.dtype == np.float64 and length > (1 + _ROUNDED) * radius:
            # Rounded to single precision: from outside, the minimiser would be no way down.
            x = x * (radius / length)
            g = f.gradient(x)
        seen.memory = state
        weights = weighed(seen, x, state)
        gap = float(np.vdot(g, x - constraint.lmo(g)))
        new = followed(
            seen, x, g, gap, weights, state, lambda near: near.nearest_in_ball(x, g, radius)
        )
        if new is not None:
            return new, state
        here = at(seen, x)
        share = forcing(gap, state)
        seen.exact = share <= FINE
        if seen.exact:
            state["related"] = 1  # from now on: gaps hardly fell
        seen.slow = bool(state.get("related"))
        model = _Model(here, g, radius, gap, share, seen.slow)
        there = descend(seen, constraint, here, g, weights, model.minimise, lambda: model.slope)
        led(f, x, there.x, there.z, state, seen.rough)
        return there.x, state


class Back(NamedTuple):
    """A step s = gamma d + (c - 1) y back to the sphere, and H s."""

    gamma: float
    c: float
    step: Vector
    bend: Vector


class _Model:
    """<g, d> + <d, H d> / 2 over ||x + d|| <= radius."""

    def __init__(
        self, here: Position, g: Array, radius: float, gap: float, share: float, slow: bool = False
    ) -> None:
        self.slow = slow
        self.slope = 0.0  #: what is known of <g, y - x> at the last minimiser y
        self.x, self.z, self.g, self.radius = here.x, here.z, g, radius
        self.share, self.wanted = share, share * gap
        self.inside = 1 - math.sqrt(float(np.finfo(self.x.dtype).eps)) / 10

    def minimise(self, h: Hessian) -> tuple[Array, Vector | None]:
        """A point whose gap on the model is as wanted, or the last one; its move of z."""
        self.slope = 0.0
        # Elsewhere conjugate gradients take less than the factors do.
        if h.matrix is not None and self.slow:
            exact = self._solved(h.matrix)
            if exact is not None:
                return exact, None
        y, slopes, near = self.x, self.g, h.nearly()
        if h.image is None:
            image, z = h.product(y)
        else:  # a guess: H y is a pass over the rows, and steps that hardly shrink say little of it
            image, z = near.product(y), self.z
        start, guessed = z, h.image
        for _ in range(_ROUNDS):
            if _gap(slopes, y, self.radius) <= self.wanted:
                break
            d, bent, dz = self._step(h, near, y, slopes)
            if not d.any():  # no curvature to go by
                break
            found = self._back(y, slopes, d, bent, image)
            if guessed is not None and not self._enough(y, slopes, found):
                image, guessed = guessed(self.z), None
                found = self._back(y, slopes, d, bent, image)
            if found is None:
                break
            gamma, c, step, bend = found
            y, image, slopes = y + step, image + bend, slopes + bend
            z = z + (gamma * dz + (c - 1) * z)
        y = (y * self._shrink(y)).astype(self.x.dtype, copy=False)
        return y, z - start if z.size else None

    def _solved(self, matrix: Vector) -> Array | None:
        """The minimiser over the ball, y = x - (H + s)^-1 (g + s x); None if H is singular.

        s by Newton's method on 1 / ||y||, which comes from the left (More and Sorensen 1983). With
        columns of odd units <g, y - x> is what rounding leaves of terms that cancel; the slope is
        never above -<y - x, (H + s) (y - x)> / 2.
        """
        from scipy.linalg import solve_triangular
        from scipy.linalg.lapack import dposv

        H, x = matrix.astype(np.float64), self.x.astype(np.float64)
        diagonal, s = H.diagonal() * (1 + _SAME), 0.0
        for _ in range(_SECANTS):
            np.fill_diagonal(H, diagonal + s)
            pull = -(self.g + s * x)
            factor, d, failed = dposv(H, pull)
            y = x + d
            length = float(np.linalg.norm(y))
            if failed or not np.isfinite(length):
                return None
            if length <= (1 + _EDGE) * self.radius:
                break
            along = solve_triangular(factor, y, trans="T", check_finite=False)
            s += (length / self.radius - 1) * length**2 / float(along @ along)
        self.slope = -float(d @ pull) / 2
        return (y * self._shrink(y)).astype(self.x.dtype, copy=False)

    def _back(
        self, y: Array, slopes: Vector, d: Vector, bent: Vector, image: Vector
    ) -> Back | None:
        """The step s = gamma d + (c - 1) y into the ball, if one goes down.

        H and the predictions follow without a product: image = H y.
        """
        gamma = 1.0
        for _ in range(30):
            c = self._shrink(y + gamma * d)
            step = c * gamma * d + (c - 1) * y
            bend = c * gamma * bent + (c - 1) * image
            if float(np.vdot(slopes, step) + np.vdot(step, bend) / 2) < 0:
                return Back(c * gamma, c, step, bend)
            gamma /= 2
        return None

    def _enough(self, y: Array, slopes: Vector, found: Back | None) -> bool:
        if found is None or found.c < _KEPT:
            return False
        return _gap(slopes + found.bend, y + found.step, self.radius) <= self.wanted

    def _step(
        self, h: Hessian, near: Near, y: Array, slopes: Vector
    ) -> tuple[Vector, Vector, Vector]:
        """(d, H d, A d) towards the minimiser of the model over the ball."""
        norm, along = float(np.linalg.norm(y)), -float(np.vdot(slopes, y))
        limit, every = _LIMIT if h.matrix is None else 10 * y.size, np.ones(y.shape, bool)
        if norm < self.inside * self.radius or along <= 0:
            # In single precision, columns of odd units have too few digits to go on from there.
            whole = near.whole and y.dtype == np.float64
            if whole and (d := self._across(near, y, slopes)) is not None:
                bent, dz = h.product(d)
                bend, slope = float(np.vdot(d, bent)), -float(np.vdot(slopes, d))
                gamma = 1.0 if slope >= _WHOLE * bend else slope / bend
                return gamma * d, gamma * bent, gamma * dz
            found = solve(
                h.product, -slopes, near.inverse(every), self.share, limit,
                leave=lambda d: bool(np.linalg.norm(y + d) > self.radius),
            )  # fmt: skip
            return found.d, -slopes - found.residual, found.move
        s = along / norm**2
        inverse = near.raised(s).inverse(every)
        normal = inverse(y)
        across = float(np.vdot(y, normal))

        def tangent(r: Vector) -> Vector:
            flat = inverse(r)
            return flat - normal * (float(np.vdot(y, flat)) / across)

        def product(p: Vector) -> tuple[Vector, Vector]:
            image, move = h.product(p)
            return image + s * p, move

        found = solve(product, -slopes, tangent, self.share, limit, projects=True)
        return found.d, -slopes - found.residual - s * found.d, found.move

    def _across(self, near: Near, y: Array, slopes: Vector) -> Vector | None:
        """To the minimiser over the ball of the model with P for H, if the ball binds there.

        y + d = (P + s)^-1 b; s by Newton's method on 1 / |y + d| (More and Sorensen 1983).
        """
        every, b, s = np.ones(y.shape, bool), near.product(y) - slopes, 0.0
        for _ in range(_SECULAR):
            inverse = near.raised(s).inverse(every)
            e = inverse(b)
            length = float(np.linalg.norm(e))
            if not length > (1 + _LONG) * self.radius:
                break
            s += (length / self.radius - 1) * length**2 / float(np.vdot(e, inverse(e)))
        if s == 0.0 or not np.isfinite(length):
            return None
        d: Vector = e * (self.radius / max(length, self.radius)) - y
        return d if np.vdot(slopes, d) < 0 else None

    def _shrink(self, y: Array) -> float:
        """The factor that brings y into the ball."""
        return min(1.0, self.radius / max(float(np.linalg.norm(y)), 1e-300))


def _gap(g: Array, x: Array, radius: float) -> float:
    return float(np.vdot(g, x)) + radius * float(np.linalg.norm(g))
