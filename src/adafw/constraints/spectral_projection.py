"""Projection onto a ball of a norm of the singular values, in a diagonal metric.

min 1/2 sum_ij h_ij (v_ij - x_ij)^2 subject to ||V|| <= radius, the nuclear or the spectral norm,
has no formula: the metric and the norm live in different bases. Iterative: an augmented
Lagrangian method in which the constraint enters through its Euclidean projection, the smooth
convex subproblems solved by a semismooth Newton method with conjugate gradients (Li, Sun, Toh
2018; the derivative of the projection by Ding, Sun, Sun, Toh 2018).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.constraints.base import Stalled

Matrix = NDArray[np.floating[Any]]


class SingularValueBall(ABC):
    """The norm, as it acts on singular values s, largest first."""

    @abstractmethod
    def shrink(self, s: Matrix) -> tuple[Matrix, Matrix]:
        """The projection of s onto the ball, and its derivative, the matrix of a projection."""

    @abstractmethod
    def support(self, s: Matrix) -> float:
        """max <G, V> over the ball, for a G of these singular values."""


@dataclass(frozen=True)
class _Point:
    """V, with the value and gradient of the subproblem's objective, and what they are made of."""

    v: Matrix
    value: float
    gradient: Matrix
    inside: Matrix  # the Euclidean projection of z
    z: Matrix
    svd: tuple[Matrix, Matrix, Matrix]


class _Lagrangian:
    """One projection, with the multiplier and the penalty of the augmented Lagrangian."""

    def __init__(self, x: Matrix, h: Matrix, ball: SingularValueBall) -> None:
        self.x, self.h, self.ball = x, h, ball
        self.multiplier = np.zeros_like(x)
        least = float(h.min())
        # Between the least and the largest h, which is 1; a tiny h would not be felt beside its
        # root.
        self.penalty = math.sqrt(least) if least > 1e-8 else least

    def at(self, v: Matrix) -> _Point:
        """1/2 ||V - X||_H^2 + penalty / 2 dist(Z, ball)^2 with Z = V + multiplier / penalty."""
        z = v + self.multiplier / self.penalty
        u, s, wt = np.linalg.svd(z, full_matrices=False)
        inside = (u * self.ball.shrink(s)[0]) @ wt
        pull, push = self.h * (v - self.x), self.penalty * (z - inside)
        value = 0.5 * float(np.vdot(v - self.x, pull) + np.vdot(z - inside, push))
        return _Point(v, value, pull + push, inside, z, (u, s, wt))

    def length(self, a: Matrix) -> float:
        """||a||_H."""
        return float(np.sqrt(np.vdot(a, self.h * a)))

    def rounding(self, p: _Point) -> float:
        """What rounding of V and of Z may change in the value."""
        push = self.penalty * float(np.vdot(np.abs(p.z - p.inside), np.abs(p.z)))
        return 1e-15 * (p.value + float(np.vdot(np.abs(p.v - self.x), self.h * np.abs(p.v))) + push)

    def gap(self, v: Matrix) -> float:
        """The duality gap of a V in the ball, rounding included; it bounds ||V - V*||_H^2."""
        g = self.h * (v - self.x)
        support = self.ball.support(np.linalg.svd(g, compute_uv=False))
        return max(0.0, float(np.vdot(g, v)) + support) + 1e-15 * support

    def relative_gap(self, v: Matrix, gap: float) -> float:
        """The gap over the squared distance; what rounding makes of it is relative to ||V||_H."""
        return gap / (self.length(v - self.x) ** 2 + 1e-5 * self.length(v) ** 2)

    def error(self, p: _Point) -> float:
        """A bound of ||V - V*||_H for the V inside the ball, relative to ||V|| and ||V - X||.

        The square root of the gap, and the residual of H (V - X) + Y = 0 in the norm of 1 / H, Y
        being normal to the ball at V: it has more digits, but where h is tiny, few. The gap
        itself counts a hundredfold.
        """
        residual, gap = p.gradient - self.h * (p.v - p.inside), self.gap(p.inside)
        square = min(float(np.vdot(residual, residual / self.h)), gap)
        reach, distance = self.length(p.inside), self.length(p.inside - self.x)
        relative = math.sqrt(square) / (min(distance, reach) + 1e-5 * reach)
        return max(relative, 100 * self.relative_gap(p.inside, gap))

    def newton_direction(self, p: _Point, damping: float) -> Matrix:
        """-(H + damping + penalty (1 - P'))^-1 gradient, about, by conjugate gradients."""
        derivative, diagonal = projection_derivative(p.svd, self.ball)
        h = self.h + damping
        scale = h + self.penalty * (1 - diagonal)
        d, rest = np.zeros_like(p.v), -p.gradient
        q = rest / scale
        size = first = float(np.vdot(rest, q))
        for _ in range(min(1000, 4 * rest.size) if first > 0 else 0):
            a = h * q + self.penalty * (q - derivative(q))
            step = size / float(np.vdot(q, a))
            d, rest = d + step * q, rest - step * a
            now = float(np.vdot(rest, rest / scale))
            # An inexact direction will do: the next one is of a better model.
            if now <= 0.05**2 * first:
                break
            q, size = rest / scale + (now / size) * q, now
        return d

    def solve(self, p: _Point) -> _Point:
        """Minimises the subproblem until what Newton's method still gains is small.

        A step is judged by the slope, which has digits left when the value has none: the
        objective is convex, so where the slope is below 0 all the way was down. Where h is tiny
        the model hardly feels the ball and steps far beyond it: it is damped then.
        """
        damping, least = 0.0, 0.1 * float(self.h.min())  # less would be lost in h
        for _ in range(100):
            d = self.newton_direction(p, damping)
            slope = float(np.vdot(p.gradient, d))
            if damping == 0 and -slope <= 0.01 * self.penalty * np.sum((p.v - p.inside) ** 2):
                break
            step, new = 1.0, self.at(p.v + d)
            while not self._descends(p, new, d, slope) and step > 0.01:
                step /= 4
                new = self.at(p.v + step * d)
            if step > 0.01:
                level = damping == 0 and p.value - new.value <= self.rounding(p)
                steep = float(np.linalg.norm(new.gradient)) <= 0.01 * np.linalg.norm(p.gradient)
                p = new
                if level and not steep:  # neither value nor gradient has digits left
                    break
            elif damping > self.penalty:
                break
            if step == 1:
                damping = 0.1 * damping if damping > least else 0.0
            elif step < 0.2:
                damping = max(10 * damping, least)
        return p

    def _descends(self, p: _Point, new: _Point, d: Matrix, slope: float) -> bool:
        level = new.value <= p.value + self.rounding(p)
        return level and float(np.vdot(new.gradient, d)) <= -0.9 * slope


def project(x: Matrix, h: Matrix, ball: SingularValueBall, name: str) -> Matrix:
    """The point of the ball nearest to x in the norm of diag(h), for an x outside.

    The penalty grows from between the least and the largest h (from the least, if that is tiny),
    which follows the solution from X into the ball and keeps Newton's method near it. Stops when
    ||V - V*||_H is proven to be at most 1e-9 of ||V||_H and of ||V - X||_H and the gap 1e-11 of
    the squared distance, or where rounding stops it; raises Stalled if that is above 1e-8 and the
    gap above 1e-8 as well.
    """
    if x.shape[0] < x.shape[1]:
        return project(x.T, h.T, ball, name).T
    problem = _Lagrangian(x, h / h.max(), ball)
    p = best = problem.at(x.copy())
    most = max(1.0, 100 * float(np.sqrt(problem.h.min())))  # where h is even, more is faster
    least, violated, stalled = np.inf, np.inf, 0
    for _ in range(200):
        p = problem.solve(p)
        error = problem.error(p)
        before, violated = violated, float(np.linalg.norm(p.v - p.inside))
        settled = violated <= 1e-13 * float(np.linalg.norm(p.inside))
        # A fifth less is progress; what is left of rounding falls and rises by less.
        improved = error < 0.8 * least or violated < 0.8 * before
        stalled = 0 if improved or (problem.penalty < 1 and not settled) else stalled + 1
        best, least = (p, error) if error < least else (best, least)
        if least <= 1e-9 or stalled > (2 if least <= 1e-6 else 8):
            break
        problem.multiplier = problem.penalty * (p.z - p.inside)
        # Raised late rather than early: a large penalty makes the subproblems ill-conditioned.
        slow = violated > (0.1 if problem.penalty < 1 else 0.3) * before
        if slow and not settled and problem.penalty < most:
            problem.penalty *= 10
        p = problem.at(p.v)
    gap = problem.relative_gap(best.inside, problem.gap(best.inside))
    if min(least, gap) > 1e-8:
        raise Stalled(
            f"the projection onto this {name} stalled at a duality gap of {gap:.1e} of the "
            "squared distance, 1e-8 is needed: rescale h, or use a step that needs no projection."
        )
    return best.inside


def projection_derivative(
    svd: tuple[Matrix, Matrix, Matrix], ball: SingularValueBall, root: bool = False
) -> tuple[Callable[[Matrix], Matrix], Matrix]:
    """D -> P'(Z) D of the Euclidean projection P at Z = U diag(s) W^T, and about its diagonal.

    In the basis of the singular vectors P' multiplies the symmetric part of D by divided
    differences of the shrinkage, the skew part by those of its odd continuation, and what is
    orthogonal to U by shrink(s) / s. With `root` it is the positive root of P', which multiplies
    by the roots of these; the derivative of `shrink` projects, and is its own root.
    """
    u, s, wt = svd
    shrunk, jacobian = ball.shrink(s)
    slope = np.diag(jacobian).copy()
    slopes = np.add.outer(slope, slope) / 2  # the limits of the quotients below
    symmetric = _quotient(np.subtract.outer(shrunk, shrunk), np.subtract.outer(s, s), slopes, s[0])
    skew = _quotient(np.add.outer(shrunk, shrunk), np.add.outer(s, s), slopes, s[0])
    outer = _quotient(shrunk, s, slope, s[0])
    if root:
        symmetric, skew, outer = (np.sqrt(np.clip(q, 0, 1)) for q in (symmetric, skew, outer))
    np.fill_diagonal(symmetric, 0.0)
    keep, turn = (symmetric + skew) / 2, (symmetric - skew) / 2

    def apply(d: Matrix) -> Matrix:
        dw = d @ wt.T
        core = u.T @ dw
        inner = keep * core + turn * core.T
        np.fill_diagonal(inner, jacobian @ np.diag(core))
        return np.asarray((u @ inner + (dw - u @ core) * outer) @ wt)

    u2, w2 = u * u, (wt * wt)
    weights = keep.copy()
    np.fill_diagonal(weights, slope)
    diagonal = u2 @ weights @ w2 + (1 - u2.sum(1))[:, None] * (outer @ w2)
    return apply, np.clip(diagonal, 0.0, 1.0)


def _quotient(a: Matrix, b: Matrix, limit: Matrix, scale: float) -> Matrix:
    """a / b, and its limit where b is rounding beside `scale`."""
    # Below, a difference of singular values has no digit of its own.
    vanishes = np.abs(b) <= 1e-14 * scale
    return np.where(vanishes, limit, a / np.where(vanishes, 1.0, b))
