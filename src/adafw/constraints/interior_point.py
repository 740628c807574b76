"""Projection onto a polyhedron in a diagonal metric, by a primal-dual interior-point method.

min 1/2 sum_i h_i (v_i - x_i)^2 subject to A v = b, or A v <= b in some rows, lower <= v <= upper.

Mehrotra's predictor-corrector method (Mehrotra 1992; Wright 1997): 10 to 30 iterations whatever
the metric, each the solution of one positive definite system, formed and solved by the
`LinearSystem`. Where all rows are equalities, Newton's method on their multipliers is tried first:
5 to 10 iterations with one such system, but only as long as the metric is not too uneven.
"""

from dataclasses import dataclass, fields

import numpy as np

from adafw.constraints.base import Stalled
from adafw.constraints.linear_system import LinearSystem, Mask, Vector


@dataclass
class _Point:
    """v, the distances to what bounds it, and the multipliers; also a direction of all of them.

    Absent bounds have distance 1 and multiplier 0, and directions 0.
    """

    v: Vector
    low: Vector
    high: Vector
    slack: Vector
    y: Vector
    z_low: Vector
    z_high: Vector
    z_slack: Vector

    def moved(self, d: "_Point", a: float) -> "_Point":
        return _Point(*(getattr(self, f.name) + a * getattr(d, f.name) for f in fields(self)))

    def pairs(self) -> list[tuple[Vector, Vector]]:
        return [(self.low, self.z_low), (self.high, self.z_high), (self.slack, self.z_slack)]

    def complementarity(self) -> float:
        return float(sum(t @ z for t, z in self.pairs()))

    def step_to_boundary(self, d: "_Point") -> float:
        """The largest step that keeps all distances and multipliers >= 0."""
        step = np.inf
        for values, changes in zip(self.pairs(), d.pairs(), strict=True):
            for value, change in zip(values, changes, strict=True):
                falls = change < 0
                step = min(step, float(np.min(-value[falls] / change[falls], initial=np.inf)))
        return step


def project(
    x: Vector, h: Vector, lower: Vector, upper: Vector, rows: LinearSystem, b: Vector, name: str
) -> Vector:
    """The point v nearest to x in the norm of diag(h); infinite bounds do not bind.

    Stops when the duality gap is at most 1e-13 of ||v - x||_h^2, if possible 1e-20 of ||v||_h^2,
    and the other conditions of optimality hold to rounding; raises Stalled if one of these
    relative errors stalls above 1e-8.
    """
    problem = _CentralPath(x, h / h.max(), lower, upper, rows, b)
    # v(y) = x - A^T y / h may overflow for a smaller h; the central path divides by no h alone.
    if not rows.inequality.any() and problem.h.min() > 1e-150:
        found = _by_dual_newton(problem)
        if found is not None:
            return found
    point = best = problem.start()
    least, stalled = np.inf, 0
    for _ in range(200):
        error = problem.error(point)
        stalled = 0 if error < least else stalled + 1
        best, least = (point, error) if error < least else (best, least)
        # Far from the solution the error may rise for several steps; close to it, only by rounding.
        if least <= 1e-13 or stalled > (3 if least <= 1e-11 else 15):
            break
        point = problem.next(point)
    if not least <= 1e-8:
        raise Stalled(
            f"the projection onto this {name} stalled at a relative error of {least:.1e}, "
            "above 1e-8: rescale x or h, or use a step that needs no projection."
        )
    # From far away, a gap small beside the distance may be large beside v; it still falls fast.
    for _ in range(5):
        if best.complementarity() <= 1e-20 * float(problem.h @ best.v**2):
            break
        point = problem.next(best)
        # The other conditions may lose a digit for it, no more.
        if problem.error(point) > 1e-12 or point.complementarity() >= best.complementarity():
            break
        best = point
    return problem.on_face(best, problem.rounded(best))


def _by_dual_newton(problem: "_CentralPath") -> Vector | None:
    """The projection where all rows are equalities, or None if it is not found in 25 steps.

    Given the rows' multipliers y, v is x - A^T y / h, cut at the bounds; y is found by Newton's
    method on A v(y) = b, which bends where an entry meets its bound (Li, Sun, Toh 2020). An entry
    at its bound counts a little as long as A v is far from b: else rows may lose their last free
    entry. A step is cut where the slope of the dual problem along it has turned by more than half.
    """
    nothing = y = np.zeros(len(problem.b))
    v, r = problem.at(y)
    # Where it converges it does so fast; else the central path, which is sure, takes over.
    for _ in range(25):
        off = problem.outside(v)
        if off <= 1e-13:
            return problem.polished(v)
        bound = (v <= problem.lower) | (v >= problem.upper)
        w = np.where(bound, np.clip(1e-3 * off, 1e-10, 1e-2), 1.0) / problem.h
        _, _, d = problem.rows.newton(w, nothing)(np.zeros_like(v), nothing, r)
        slope, step = float(r @ d), 1.0
        if not slope > 0:  # rounding
            return None
        v, r = problem.at(y + d)
        while float(r @ d) < -0.5 * slope and step > 1e-3:
            step *= slope / (slope - float(r @ d))  # where the slope would vanish if it were linear
            v, r = problem.at(y + step * d)
        y = y + step * d
    return None


class _CentralPath:
    """One projection: where to start, how to step, how far a point is from optimal."""

    def __init__(
        self, x: Vector, h: Vector, lower: Vector, upper: Vector, rows: LinearSystem, b: Vector
    ) -> None:
        self.x, self.h, self.rows, self.b = x, h, rows, b
        self.absolute = rows.absolute
        self.lower, self.upper = lower, upper
        self.has = (np.isfinite(lower), np.isfinite(upper), rows.inequality)
        self.bounds = max(1, sum(int(mask.sum()) for mask in self.has))
        ends = [np.abs(ends[np.isfinite(ends)]) for ends in (lower, upper, b)]
        self.reach = max(float(end.max(initial=0.0)) for end in ends)

    def start(self) -> _Point:
        """Well inside the bounds, all products of distance and multiplier about equal."""
        has_low, has_high, has_slack = self.has
        v = np.clip(self.x, self.lower, self.upper)
        size = max(float(np.abs(self.x - v).max()), float(np.abs(v).max()), 1e-300)
        size = max(size, float(np.abs(self.b).max(initial=0.0)))
        # A first point near to a bound would leave Newton's method no room to step.
        margin = np.minimum(0.05 * size, (self.upper - self.lower) / 4)
        v = np.clip(v, self.lower + margin, self.upper - margin)
        low = np.where(has_low, v - np.where(has_low, self.lower, 0), 1.0)
        high = np.where(has_high, np.where(has_high, self.upper, 0) - v, 1.0)
        slack = np.where(has_slack, np.maximum(self.b - self.rows.dot(v), 0.1 * size), 1.0)
        # The second term, for an x inside: multipliers of 0 would end the path before it begins.
        mu = 0.1 * size * float(np.mean(np.abs(self.h * (v - self.x))) + 1e-8 * size)
        z = [
            np.where(mask, mu / t, 0.0)
            for mask, t in zip(self.has, (low, high, slack), strict=True)
        ]
        return _Point(v, low, high, slack, z[2].copy(), *z)

    def residuals(self, p: _Point) -> tuple[Vector, Vector]:
        """Of stationarity and of A v + slack = b."""
        dual = self.h * (p.v - self.x) + self.rows.combine(p.y) - p.z_low + p.z_high
        primal = self.rows.dot(p.v) + np.where(self.rows.inequality, p.slack, 0.0) - self.b
        return dual, primal

    def error(self, p: _Point) -> float:
        """The largest violation of a condition of optimality, each relative to its terms."""
        dual, primal = self.residuals(p)
        # A thousandth of the largest entry in every place, as rows may meet in the origin, and a
        # millionth of the bounds, as all of v may tend to it: else an entry that is 0 in v and x,
        # and that nothing pulls, would be 0 relative to 0.
        least = max(1e-3 * float(np.abs(p.v).max()), 1e-6 * self.reach)
        pull = self.h * (np.abs(p.v) + np.abs(self.x) + 1e-3 * least) + p.z_low + p.z_high
        pull += self.absolute.combine(np.abs(p.y))
        size = self.absolute.dot(np.abs(p.v) + least) + np.abs(self.b)
        distance = float(self.h @ (p.v - self.x) ** 2) + 1e-11 * float(self.h @ p.v**2)
        return max(  # 0 relative to 0 is no error
            p.complementarity() / (distance + 1e-300),
            float(np.max(np.abs(dual) / (pull + 1e-300), initial=0.0)),
            float(np.max(np.abs(primal) / (size + 1e-300), initial=0.0)),
        )

    def next(self, p: _Point) -> _Point:
        """One predictor-corrector step."""
        dual, primal = self.residuals(p)
        w = 1 / (self.h + p.z_low / p.low + p.z_high / p.high)
        # A multiplier may underflow to 0 once its row is slack by far.
        slack = np.where(self.rows.inequality, p.slack / np.maximum(p.z_slack, 1e-300), 0.0)
        newton = self.rows.newton(w, slack)

        def direction(target: float, second: list[Vector]) -> _Point:
            pulls = [
                np.where(mask, (target - s) / t - z, 0.0)
                for mask, s, (t, z) in zip(self.has, second, p.pairs(), strict=True)
            ]
            q_slack = np.where(self.rows.inequality, pulls[2] + p.z_slack - p.y, 0.0)
            dv, ds, dy = newton(pulls[0] - pulls[1] - dual, q_slack, primal)
            moves = [
                np.where(mask, d, 0.0) for mask, d in zip(self.has, (dv, -dv, ds), strict=True)
            ]
            dz = [
                pull - z / t * move
                for pull, (t, z), move in zip(pulls, p.pairs(), moves, strict=True)
            ]
            return _Point(dv, moves[0], moves[1], moves[2], dy, dz[0], dz[1], dz[2])

        mu = p.complementarity() / self.bounds
        d = direction(0.0, [np.zeros_like(t) for t, _ in p.pairs()])
        if mu == 0:  # no bound at all: one Newton step solves it
            return p.moved(d, 1.0)
        step = min(1.0, p.step_to_boundary(d))
        ratio = p.moved(d, step).complementarity() / self.bounds / mu
        d = direction(mu * ratio**3, [dt * dz for dt, dz in d.pairs()])
        # Near to the boundary only when the model is good: else steps may cycle between corners.
        margin = min(0.1, max(1e-6, ratio))
        return p.moved(d, min(1.0, (1 - margin) * p.step_to_boundary(d)))

    def rounded(self, p: _Point) -> Vector:
        """v with A v = b to rounding, and within its bounds.

        The last Newton systems are too ill-conditioned for that; one that lets every entry move
        in proportion to its distance from the bounds is not. v then comes from the distance to
        the nearer bound, which has more digits than v has there.
        """
        has_low, has_high, _ = self.has
        room = np.minimum(p.low, p.high)
        newton = self.rows.newton(room, np.where(self.rows.inequality, p.slack, 0.0))
        dv, _, _ = newton(np.zeros_like(p.v), np.zeros_like(self.b), self.residuals(p)[1])
        dv = np.clip(dv, -0.5 * room, 0.5 * room)
        v, low, high = p.v + dv, p.low + dv, p.high - dv
        v = np.where(has_low & (low <= high), self.lower + low, v)
        v = np.where(has_high & (high < low), self.upper - high, v)
        return np.clip(v, self.lower, self.upper)

    def at(self, y: Vector) -> tuple[Vector, Vector]:
        """v(y), the best v for these multipliers of the rows, and A v - b."""
        v = np.clip(self.x - self.rows.combine(y) / self.h, self.lower, self.upper)
        return v, self.rows.dot(v) - self.b

    def polished(self, v: Vector) -> Vector | None:
        """v with A v = b to rounding, moved by rounding only; None if there is no such point."""
        at_low, at_high = v <= self.lower, v >= self.upper
        nearest, _ = self._nearest_on(at_low, at_high, np.zeros_like(self.rows.inequality))
        clipped = np.clip(nearest, self.lower, self.upper)
        moved = float(np.abs(clipped - v).max())
        # A larger move means that v was no solution of these bounds, only near to one.
        return clipped if self.outside(clipped) <= 1e-15 and moved <= 1e-11 * self.reach else None

    def _held(self, v: Vector, y: Vector, at_low: Mask, at_high: Mask) -> tuple[Mask, Mask]:
        """Where a bound holds v back that lies on it, beyond rounding."""
        pull = self.h * (v - self.x) + self.rows.combine(y)
        rounding = self.h * (np.abs(v) + np.abs(self.x))
        rounding = 1e-14 * (rounding + self.absolute.combine(np.abs(y)))
        return at_low & (pull < -rounding), at_high & (pull > rounding)

    def on_face(self, p: _Point, v: Vector) -> Vector:
        """The nearest point of the face that v seems to lie on, if it is in the set and no worse.

        Where a constraint neither binds nor is slack, a gap tells only the square of the error.
        The face has no such doubt: with or without that constraint it contains the solution. A
        constraint that would hold the point back, told by the sign of its multiplier, is taken
        for slack after all: where h is tiny, distances cannot tell.
        """
        at_low, at_high = p.low * self.h < p.z_low, p.high * self.h < p.z_high
        w = np.where(at_low | at_high, 0.0, 1 / np.maximum(self.h, 1e-300))
        tight = self.rows.inequality & (p.slack < p.z_slack * self.absolute.dot(w))
        for _ in range(5):
            nearest, y = self._nearest_on(at_low, at_high, tight)
            held_low, held_high = self._held(nearest, y, at_low, at_high)
            held = tight & (y < -1e-14 * float(np.abs(y).max(initial=0.0)))
            if not (held_low.any() or held_high.any() or held.any()):
                break
            at_low, at_high, tight = at_low & ~held_low, at_high & ~held_high, tight & ~held
        else:
            return v
        nearest = np.clip(nearest, self.lower, self.upper)
        outside, before = self.outside(nearest), self.outside(v)
        closer = self.h @ (nearest - self.x) ** 2 <= self.h @ (v - self.x) ** 2 * (1 + 1e-15)
        # Where v and b vanish in a row, any error is large relative to them: `before` says nothing.
        return nearest if closer and outside <= max(1e-15, min(2 * before, 1e-12)) else v

    def _nearest_on(self, at_low: Mask, at_high: Mask, tight: Mask) -> tuple[Vector, Vector]:
        """The point nearest to x where these constraints are equalities, and the rows' y."""
        w = np.where(at_low | at_high, 0.0, 1 / np.maximum(self.h, 1e-300))
        active = ~self.rows.inequality | tight
        face = self.rows.face(active)
        newton = face.newton(w, np.zeros(len(face.inequality)))
        nearest = np.where(at_low, self.lower, np.where(at_high, self.upper, self.x))
        y = np.zeros(len(self.b))
        for _ in range(3):
            off = face.dot(nearest) - self.b[active]
            dv, _, dy = newton(np.zeros_like(nearest), np.zeros_like(off), off)
            nearest = nearest + dv
            y[active] += dy
        return nearest, y

    def outside(self, v: Vector) -> float:
        """How far a v within its bounds violates the rows, each relative to its terms."""
        off = self.rows.dot(v) - self.b
        off = np.where(self.rows.inequality, np.maximum(off, 0.0), np.abs(off))
        size = self.absolute.dot(np.abs(v)) + np.abs(self.b) + 1e-300
        return float(np.max(off / size, initial=0.0))
