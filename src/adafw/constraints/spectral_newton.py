"""Projections onto balls of singular values in a metric, to the last digits.

A gap at rounding level leaves the square root of that in x where a set is curved. The point of the
ball nearest to a in the norm of diag(h) is P(z), P the Euclidean projection, for the z with
F(z) = h (P(z) - a) + s (z - P(z)) = 0, as s (z - P(z)) is normal to the ball at P(z). P is smooth
but for kinks, and Newton's method on F (Qi and Sun 1993) doubles the digits of a z near by.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.constraints import spectral_projection
from adafw.constraints.spectral_projection import Matrix, SingularValueBall, projection_derivative

_ROUNDS = 30  # Newton steps, at most: 3 to 10 are usual
_ENOUGH = 1e-10  # of a bound on the distance to the minimiser, for a ball of size one
_ROUNDING = 1e-14  # of the same: no more is asked for
_LEAST = 1e-16  # of the metric beside its largest entry: below, no bound has a digit
_CLOSEST = 1e-6  # how near to Newton's a direction is where those of a tenth do not descend
_SMALL = 64  # entries up to which P' is formed


@dataclass(frozen=True)
class _At:
    """z, P(z), F(z), a bound on the distance of P(z) from the minimiser, what P is made of."""

    z: Matrix
    inside: Matrix
    off: Matrix
    bound: float
    svd: tuple[Matrix, Matrix, Matrix]


def project(x: Matrix, h: Matrix, ball: SingularValueBall, name: str) -> Matrix:
    """That of `spectral_projection`, to which Newton's method adds the last digits."""
    found = spectral_projection.project(x, h, ball, name)
    exact = nearest(x, h, ball, found)
    return found if exact is None else exact


def nearest(aim: Matrix, h: Matrix, ball: SingularValueBall, start: Matrix) -> Matrix | None:
    """The point nearest to `aim` in the norm of diag(h), from a `start` in the ball; None if not.

    The ball has size one. <F, P(z) - x*> >= ||P(z) - x*||_h^2 proves the bound that ends it.
    """
    if aim.shape[0] < aim.shape[1]:  # `projection_derivative` knows tall ones
        found = nearest(aim.T, h.T, ball, start.T)
        return None if found is None else found.T
    h = h / h.max()
    if h.min() < _LEAST:
        return None
    s = math.exp(float(np.mean(np.log(h))))
    now, close = _at(start - h * (start - aim) / s, aim, h, s, ball), 0.1
    for _ in range(_ROUNDS):
        if now.bound <= _ROUNDING:
            break
        new = _step(now, aim, h, s, ball, min(close, now.bound))
        if new is None and close == _CLOSEST:  # rounding, or too far away
            break
        now, close = (now, _CLOSEST) if new is None else (new, close)
    terms = h * (np.abs(now.inside) + np.abs(aim)) + s * (np.abs(now.z) + np.abs(now.inside))
    rounded = np.abs(now.off).max() <= 1e-15 * terms.max()  # no number is nearer, far outside
    return now.inside if now.bound <= _ENOUGH or rounded else None


def _at(z: Matrix, aim: Matrix, h: Matrix, s: float, ball: SingularValueBall) -> _At:
    u, values, wt = np.linalg.svd(z, full_matrices=False)
    inside = (u * ball.shrink(values)[0]) @ wt
    off = h * (inside - aim) + s * (z - inside)
    bound = math.sqrt(float(np.sum(off * off / h)) / float(h.min()))
    return _At(z, inside, off, bound, (u, values, wt))


def _step(
    now: _At, aim: Matrix, h: Matrix, s: float, ball: SingularValueBall, close: float
) -> _At | None:
    """A Newton step, halved until F is smaller; None if it is not."""
    d, length = _direction(now, h, s, ball, close), 1.0
    while length > 1e-3:
        new = _at(now.z + length * d, aim, h, s, ball)
        if _size(new.off) <= (1 - 1e-4 * length) * _size(now.off):
            return new
        length /= 2
    return None


def _direction(now: _At, h: Matrix, s: float, ball: SingularValueBall, close: float) -> Matrix:
    """d with (h B + s (1 - B)) d = -F, about, where B = P'(z).

    With R the root of B it is u - (F + h u) / s for u = R w, (R h R + s (1 - B)) w = -R F:
    symmetric and positive definite, which conjugate gradients are for.
    """
    whole, diagonal = projection_derivative(now.svd, ball)
    if h.size <= _SMALL:
        B = np.array([whole(unit.reshape(h.shape)).reshape(-1) for unit in np.eye(h.size)])
        system = h.reshape(-1, 1) * B + s * (np.eye(h.size) - B)  # B is symmetric
        return np.linalg.solve(system, -now.off.reshape(-1)).reshape(h.shape)
    root, _ = projection_derivative(now.svd, ball, root=True)
    scale = h * diagonal + s * (1 - diagonal)
    w, rest = np.zeros_like(now.z), -root(now.off)
    q = rest / scale
    size = first = float(np.vdot(rest, q))
    for _ in range(2000 if first > 0 else 0):
        image = root(h * root(q)) + s * (q - whole(q))
        step = size / float(np.vdot(q, image))
        w, rest = w + step * q, rest - step * image
        last, size = size, float(np.vdot(rest, rest / scale))
        if size <= max(close, 1e-14) ** 2 * first:
            break
        q = rest / scale + (size / last) * q
    u = root(w)
    return u - (now.off + h * u) / s


def _size(a: NDArray[Any]) -> float:
    return float(np.linalg.norm(a))
