"""Q over the hull of x and the answers of the LMO, where no face of the set is known.

Wolfe's method (1976): Q over the affine hull of the points kept, dropping what goes below 0. On
polytopes it ends exactly. Where a set is curved, answers come closer and closer, and a gap at
rounding level leaves the square root of that in x: balls of singular values are left to Newton's
method (`constraints.spectral_newton`), tried from the point at hand, which proves how near it got.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.constraints import NuclearBall, SpectralBall, spectral_newton
from adafw.constraints.base import Constraint, Stalled
from adafw.constraints.matrices import as_matrix
from adafw.constraints.nuclear_ball import Shrinking
from adafw.constraints.spectral_ball import Clipping
from adafw.typing import Array

#: LMO calls after which Q counts as solved.
MOST = 1000
#: LMO calls after which Newton's method is tried, and again after four times as many each.
_FIRST_TRY = 8


def solve(
    constraint: Constraint, x: Array, m: Array, w: Array, calls: int | None, enough: float | None
) -> Array:
    """argmin of <m, y - x> + <y - x, w (y - x)> / 2, or what so many `calls` lead to.

    `enough` is a gap that will do.
    """
    aim = x - m / w
    if constraint.violation(aim) == 0:
        return aim
    eps = 8 * float(np.finfo(x.dtype).eps)
    answers, best, tried = _Answers(m.reshape(-1), w.reshape(-1)), math.inf, _FIRST_TRY
    for call in range(MOST if calls is None else calls):
        y = answers.y
        if call == tried:
            found = _to_the_last_digit(constraint.bare, aim, w, x + y.reshape(x.shape))
            if found is not None:
                return found
            tried *= 4
        slopes = answers.m + answers.w * y
        v = (constraint.lmo(slopes.reshape(x.shape)) - x).reshape(-1)
        gap = float(np.vdot(slopes, y - v))
        if enough is not None and gap <= enough:
            return x + y.reshape(x.shape)
        noise = eps * float(np.abs(slopes) @ (np.abs(y) + np.abs(v) + np.abs(x.reshape(-1))))
        # What is in the hull already is worth nothing: rounding is all there is.
        if not gap > noise or not answers.add(v) or not answers.value < best:
            break
        best = answers.value
    else:
        if calls is not None:
            return x + answers.y.reshape(x.shape)
    y = x + answers.refined().reshape(x.shape)
    found = _to_the_last_digit(constraint.bare, aim, w, y, last=True)
    return y if found is None else found


def _to_the_last_digit(
    kind: Constraint, aim: Array, w: Array, y: Array, last: bool = False
) -> Array | None:
    """The minimiser from a y in the set, where its optimality system is known; None if not.

    Where it is the `last` try, a method that is slower and surer follows.
    """
    if not isinstance(kind, NuclearBall | SpectralBall):
        return None
    ball = Shrinking(1.0) if isinstance(kind, NuclearBall) else Clipping(1.0)
    far, metric, near = (
        as_matrix(part.astype(np.float64, copy=False), kind.matrix, "") for part in (aim, w, y)
    )
    found = spectral_newton.nearest(far / kind.radius, metric, ball, near / kind.radius)
    if found is not None:
        return (kind.radius * found).reshape(aim.shape).astype(aim.dtype, copy=False)
    try:
        return np.asarray(kind.project(aim, w)) if last else None
    except Stalled:
        return None


class _Answers:
    """The points kept, all relative to x, the first of them x itself, and the best mixture y."""

    def __init__(self, m: Array, w: Array) -> None:
        self.m, self.w = m, w
        self.points = np.zeros((1, m.size), m.dtype)
        self.weights, self.linear, self.gram = np.ones(1), np.zeros(1), np.zeros((1, 1))
        self.y = np.zeros(m.size, m.dtype)
        self.value = 0.0

    def add(self, v: Array) -> bool:
        """Takes v in, and goes to the best mixture; False if it is there already."""
        if (self.points == v).all(axis=1).any():
            return False
        image = self.w * v
        row = self.points @ image
        gram = np.block([[self.gram, row[:, None]], [row[None, :], np.array([[v @ image]])]])
        points, linear = np.vstack([self.points, v]), np.append(self.linear, self.m @ v)
        self.weights, kept = _best_weights(gram, linear, np.append(self.weights, 0.0))
        self.points, self.linear, self.gram = points[kept], linear[kept], gram[np.ix_(kept, kept)]
        self.y = (self.weights @ self.points).astype(self.m.dtype, copy=False)
        self.value = float(self.m @ self.y + self.y @ (self.w * self.y) / 2)
        return True

    def refined(self) -> Array:
        """y, with the digits that the Gram matrix of an uneven metric has not: residuals have."""
        y, weights = self.y, self.weights
        for _ in range(2):
            slopes = self.points @ (self.m + self.w * y)
            weights = weights + _affine(self.gram, slopes, 0.0)
            if not (weights > 0).all():
                return self.y
            y = ((weights / weights.sum()) @ self.points).astype(self.m.dtype, copy=False)
        return y


def _affine(gram: NDArray[Any], linear: NDArray[Any], total: float) -> NDArray[Any]:
    """The a of this sum that minimises <a, G a> / 2 + <linear, a>."""
    k = len(linear)
    unit = float(np.trace(gram)) / k or 1.0
    system = np.ones((k + 1, k + 1))
    system[:k, :k], system[k, k] = gram / unit, 0.0
    found: NDArray[Any] = np.linalg.lstsq(system, np.append(-linear / unit, total), rcond=1e-15)[0]
    return found[:k]


def _best_weights(
    gram: NDArray[Any], linear: NDArray[Any], weights: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The weights >= 0 of sum 1 that minimise <a, G a> / 2 + <linear, a>, and which are kept."""
    kept = np.arange(len(weights))
    for _ in range(4 * len(weights)):
        best = _affine(gram[np.ix_(kept, kept)], linear[kept], 1.0)
        now = weights[kept]
        if (best > 0).all():
            return best / best.sum(), kept
        down = best <= 0
        shares = np.divide(
            now, now - best, out=np.full(kept.size, np.inf), where=down & (now > best)
        )
        share = min(1.0, float(shares.min()))
        now = now + share * (best - now)
        now[shares <= share] = 0.0
        fresh = now > 0
        if fresh.all():  # rounding: nothing reached 0
            fresh[int(np.argmin(best))] = False
        weights = weights.copy()
        weights[kept] = np.where(fresh, now, 0.0)
        kept = kept[fresh]
        weights[kept] /= weights[kept].sum()
    return weights[kept], kept
