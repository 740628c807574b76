"""A diagonal and a few directions of large curvature: a Hessian as far as solving costs nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.floating[Any]]

_ROUNDS = 20  # of active sets, at most


@dataclass(frozen=True)
class Spiked:
    """P = diag(rest) + V V^T, rest > 0, with few columns in V, or none."""

    rest: Vector
    V: NDArray[np.floating[Any]]

    def product(self, s: Vector) -> Vector:
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
        """argmin of <slopes, s> + <s, P s> / 2 over lower <= s <= upper.

        By active sets, primal and dual at once (Bergounioux, Ito, Kunisch 1999); what they have
        not settled after some rounds is clipped.
        """
        if not self.V.shape[1]:
            return np.clip(-slopes / self.rest, lower, upper)
        diagonal = self.rest + np.square(self.V).sum(axis=1)
        s, pull = np.zeros_like(slopes), slopes
        side = np.full(s.size, 2, np.int8)
        for _ in range(_ROUNDS):
            aim = s - pull / diagonal
            now = (aim > upper).astype(np.int8) - (aim < lower)
            if (now == side).all():
                break
            side = now
            s = np.where(side < 0, lower, np.where(side > 0, upper, 0))
            s = s + self.inverse(side == 0)(-slopes - self.product(s))
            pull = np.where(side == 0, 0, slopes + self.product(s))
        return np.clip(s, lower, upper)


def diagonal(scale: Vector) -> Spiked:
    """P = diag(scale)."""
    return Spiked(scale, np.empty((scale.size, 0), scale.dtype))
