"""A Hessian from some of the rows, as a matrix: what to solve with where features are few."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.floating[Any]]

_RIDGE = 1e-6  # share of its diagonal by which a matrix is surely positive
_ROUNDS = 60  # faces looked at, at most
_SWEEPS = 16  # of coordinate steps, which name the next
_FAST = 1e-2  # share of the gap that so many may leave to be followed by as many more
_CLOSE = 1e-10  # share of the decrease that may be missing
_SECANTS, _NEAR = 30, 1e-6  # steps to a multiplier; share of a step that may miss the sphere
_DIGITS = 1e-15  # share of the largest slope that is rounding
_SHARES = tuple(2.0**-k for k in range(10))  # of a step on a face that are looked at


@dataclass(frozen=True)
class Sampled:
    """P, symmetric and positive definite; what `Spiked` is with a few directions."""

    P: NDArray[np.float64]

    #: As those of `Spiked`.
    leads = whole = True

    def raised(self, s: float) -> "Sampled":
        """P + s I."""
        return Sampled(self.P + s * np.eye(len(self.P)))

    def product(self, s: Vector) -> Vector:
        """P s."""
        return self.P @ s

    def inverse(self, free: NDArray[np.bool_]) -> Callable[[Vector], Vector]:
        """r -> P^-1 r among the free coordinates, 0 at others; by the diagonal of a bad P."""
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        chosen = np.flatnonzero(free)
        part = self.P if chosen.size == free.size else self.P[np.ix_(chosen, chosen)]
        try:
            factor = cho_factor(part, check_finite=False) if chosen.size else None
        except LinAlgError:
            single = np.where(free, 1 / self.P.diagonal(), 0.0)
            return lambda r: (single * r).astype(r.dtype, copy=False)

        def apply(r: Vector) -> Vector:
            out = np.zeros(free.shape, r.dtype)
            if factor is not None:
                out[chosen] = cho_solve(factor, r[chosen], check_finite=False)
            return out

        return apply

    def nearest(self, slopes: Vector, lower: Vector, upper: Vector, share: float = 0.0) -> Vector:
        """argmin of <slopes, s> + <s, P s> / 2 over lower <= s <= upper, or a point near it.

        By coordinate steps that name a face, and the minimiser on it, as far as it descends inside
        the box (after More and Toraldo 1991). `share` of the gap may be left.
        """
        from adafw.kernels.coordinates import matrix_sweep

        low, high = lower.astype(np.float64), upper.astype(np.float64)
        s = np.clip(np.zeros(slopes.size), low, high)
        pull, order = slopes + self.P @ s, np.arange(slopes.size)
        noise = _DIGITS * float(np.abs(slopes).max(initial=0.0)) * float((high - low).sum())
        gap = matrix_sweep(self.P, low, high, s, pull, order)
        noise = max(noise, share * gap)
        for _ in range(_ROUNDS):
            before = gap
            for _ in range(_SWEEPS):
                gap = matrix_sweep(self.P, low, high, s, pull, order)
            if gap <= max(_CLOSE * abs(float(np.vdot(slopes + pull, s)) / 2), noise):
                break
            if gap < _FAST * before:
                continue
            free = (low < s) & (s < high)
            d = self._inside(s, self.inverse(free)(-pull), pull, low, high)
            s, pull = np.clip(s + d, low, high), pull + self.P @ d
        return s.astype(slopes.dtype, copy=False)

    def nearest_in_ball(self, x: Vector, slopes: Vector, radius: float) -> Vector:
        """argmin of <slopes, y - x> + <y - x, P (y - x)> / 2 over ||y|| <= radius.

        y = (P + s)^-1 b, s by Newton's method on 1 / ||y||, which comes from the left (More and
        Sorensen 1983), from the multiplier that x has; to what y differs from x.
        """
        from scipy.linalg import solve_triangular
        from scipy.linalg.lapack import dposv

        # In units of the radius, whose square may be 0.
        P, start = radius * self.P, x.astype(np.float64) / radius
        b, diagonal = P @ start - slopes, P.diagonal().copy()
        y, s = start, max(0.0, -float(np.vdot(slopes, start)))
        for _ in range(_SECANTS):
            np.fill_diagonal(P, diagonal + s)
            factor, found, failed = dposv(P, b)
            length = float(np.linalg.norm(found))
            if failed or not 0 < length < np.inf:
                break
            y, off = found, length - 1
            if abs(off) <= _NEAR * float(np.linalg.norm(y - start)) or (s == 0 and off < 0):
                break
            along = solve_triangular(factor, y / length, trans="T", check_finite=False)
            if not (bend := float(along @ along)) > 0:
                break
            s = max(0.0, s + off / bend)
        y *= radius / max(1.0, float(np.linalg.norm(y)))
        return y.astype(slopes.dtype, copy=False)

    def _inside(self, s: Vector, step: Vector, pull: Vector, low: Vector, high: Vector) -> Vector:
        """What of a step to a minimiser, or of a share of it, descends most inside the box."""
        room = np.where(step > 0, high - s, low - s)
        bound = float(np.divide(room, step, out=np.ones_like(step), where=step != 0).min())
        shares = np.array([*_SHARES, min(1.0, bound)])  # the last is never cut, and does descend
        steps = np.clip(s + shares[:, None] * step, low, high) - s
        change = steps @ pull + np.einsum("ij,ij->i", steps, steps @ self.P) / 2
        return np.asarray(steps[int(change.argmin())])


def sampled(P: NDArray[np.float64], scale: Vector) -> Sampled:
    """P from a sample; of a column that it has little of, all rows know the diagonal: `scale`."""
    known, raised = P.diagonal(), P.copy()
    np.fill_diagonal(raised, np.where(known < scale / 2, scale, known) + _RIDGE * scale)
    return Sampled(raised)
