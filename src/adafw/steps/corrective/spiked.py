"""A diagonal and a few directions of large curvature: a Hessian as far as solving costs nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.floating[Any]]

_ROUNDS = 20  # faces looked at, at most, by either method
_SHARES = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01)  # of a step, the first that descends is taken


@dataclass(frozen=True)
class Spiked:
    """P = diag(rest) + V V^T, rest > 0, with few columns in V, or none."""

    rest: Vector
    V: NDArray[np.floating[Any]]

    def product(self, s: Vector) -> Vector:
        """P s."""
        return self.rest * s + self.V @ (self.V.T @ s)

    def inverse(self, free: NDArray[np.bool_]) -> Callable[[Vector], Vector]:
        """r -> P^-1 r among the free coordinates, 0 at others (Woodbury 1950)."""
        single = np.where(free, 1 / self.rest, 0).astype(self.rest.dtype)
        if not self.V.shape[1]:
            return lambda r: single * r
        scaled = single[:, None] * self.V
        core = np.linalg.inv(np.eye(self.V.shape[1]) + self.V.T @ scaled)

        def once(r: Vector) -> Vector:
            flat = single * r
            return flat - scaled @ (core @ (self.V.T @ flat))

        def apply(r: Vector) -> Vector:
            s = once(r)
            return s + once(r - self.product(s))  # where a spike is huge, what once rounded off

        return apply

    def nearest(self, slopes: Vector, lower: Vector, upper: Vector) -> Vector:
        """argmin of <slopes, s> + <s, P s> / 2 over lower <= s <= upper, or a point near it.

        By active sets, primal and dual at once (Bergounioux, Ito, Kunisch 1999), which need few
        rounds or go in circles: then by projected Newton steps (Bertsekas 1982) from where these
        were, which descend and may end early.
        """
        if not self.V.shape[1]:
            return np.clip(-slopes / self.rest, lower, upper)
        diagonal = self.rest + np.square(self.V).sum(axis=1)
        s, pull, side = np.zeros_like(slopes), slopes, np.full(slopes.shape, 2, np.int8)
        for _ in range(_ROUNDS):
            aim = s - pull / diagonal
            now = (aim > upper).astype(np.int8) - (aim < lower)
            if (now == side).all():
                return np.clip(s, lower, upper)
            side = now
            s = np.where(side < 0, lower, np.where(side > 0, upper, 0))
            s = s + self.inverse(side == 0)(-slopes - self.product(s))
            pull = np.where(side == 0, 0, slopes + self.product(s))
        return self._descended(slopes, np.clip(s, lower, upper), lower, upper)

    def _descended(self, slopes: Vector, s: Vector, lower: Vector, upper: Vector) -> Vector:
        for _ in range(_ROUNDS):
            pull = slopes + self.product(s)
            held = (s <= lower) & (pull > 0) | (s >= upper) & (pull < 0)
            step = self.inverse(~held)(-pull)
            for gamma in _SHARES:
                d = np.clip(s + gamma * step, lower, upper) - s
                along = float(np.vdot(pull, d))
                if along + float(np.vdot(d, self.product(d))) / 2 <= 1e-4 * along < 0:
                    break
            else:
                break
            s = s + d
        return np.clip(s, lower, upper)


def diagonal(scale: Vector) -> Spiked:
    """P = diag(scale)."""
    return Spiked(scale, np.empty((scale.size, 0), scale.dtype))
