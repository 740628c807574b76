"""A diagonal and a few directions of large curvature: a Hessian as far as solving costs nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.floating[Any]]

_ROUNDS = 30  # Newton steps of a stage, at most
_EASED = ((1e4, 1e-2), (1e2, 1e-2), (1.0, 1e-12))  # rest; how near
_LEVEL = 0.5  # share of a first slope that the last one may have


@dataclass(frozen=True)
class Spiked:
    """P = diag(rest) + V V^T, rest > 0, with few columns in V, or none."""

    rest: Vector
    V: NDArray[np.floating[Any]]
    whole: bool = False  #: whether P is known to be nearly H, be it a diagonal

    @property
    def leads(self) -> bool:
        """Whether a step may lead where it says."""
        return self.whole or self.V.shape[1] > 0

    def raised(self, s: float) -> "Spiked":
        """P + s I."""
        return Spiked(self.rest + s, self.V)

    def product(self, s: Vector) -> Vector:
        """P s; of a diagonal, s may be a matrix."""
        flat: Vector = self.rest * s
        return flat + self.V @ (self.V.T @ s) if self.V.shape[1] else flat

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

        By its dual, which has one unknown a spike: for u in place of V^T s the rest is separable,
        s(u) = clip(-(slopes + V u) / rest), and the dual, concave and smooth, has the gradient
        r = V^T s(u) - u and the Hessians -(I + V_F^T V_F / rest_F), F the coordinates inside.
        Newton steps end once the right F is found; |r|^2 / 2 is how much s(u) is above the
        minimum. Where spikes are long, most steps change F: a larger rest, which shrinks to the
        true one, saves half of them.
        """
        if not self.V.shape[1]:
            return np.clip(-slopes / self.rest, lower, upper)
        V, rest = self.V.astype(np.float64, copy=False), self.rest.astype(np.float64, copy=False)
        u: Vector = np.zeros(V.shape[1])
        for times, close in _EASED:
            u, s = _highest(u, V, times * rest, slopes, lower, upper, close)
        return s.astype(slopes.dtype, copy=False)


def _highest(
    u: Vector, V: Vector, rest: Vector, slopes: Vector, lower: Vector, upper: Vector, close: float
) -> tuple[Vector, Vector]:
    """(u, s(u)) of `Spiked.nearest`, from u on; s(u) misses `close` of what it descends at most."""
    eye, pull = np.eye(u.size), slopes + V @ u
    for _ in range(_ROUNDS):
        aim = -pull / rest
        s = np.clip(aim, lower, upper)
        image = V.T @ s
        r = image - u
        if r @ r <= 2 * close * abs(slopes @ s + (s @ (rest * s) + image @ image) / 2):
            break
        inside = V[aim == s]
        du = np.linalg.solve(eye + inside.T @ (inside / rest[aim == s][:, None]), r)
        along, first, t = V @ du, float(du @ r), 1.0
        end = along @ np.clip(-(pull + along) / rest, lower, upper) - du @ (u + du)
        if abs(end) > _LEVEL * first:
            ends = np.array([-pull - rest * lower, -pull - rest * upper])
            t = _level(first, float(du @ du), ends, along, rest)
        u, pull = u + t * du, pull + t * along
    return u, s


def _level(first: float, flat: float, ends: Vector, along: Vector, rest: Vector) -> float:
    """t >= 0 where a slope that is `first` at 0 is 0: where the dual is highest on a line.

    It falls as fast as `flat` and along_j^2 / rest_j of all j inside the box, which is where
    t along_j is between the two `ends` of j: it is followed from one end to the next.
    """
    moving = along != 0
    a = along[moving]
    ends, bends = ends[:, moving] / a, a * a / rest[moving]
    enters, leaves = ends.min(axis=0), ends.max(axis=0)
    times = np.concatenate([enters, leaves])
    order = np.argsort(times)
    order = order[times[order] > 0]
    times = np.append(0.0, times[order])
    inside = float(bends[(enters <= 0) & (leaves > 0)].sum())
    falls = inside + np.append(0.0, np.cumsum(np.append(bends, -bends)[order]))
    falls = flat + np.maximum(falls, 0.0)
    fallen = np.append(0.0, np.cumsum(falls[:-1] * np.diff(times)))
    k = int(np.searchsorted(fallen, first, side="right")) - 1
    return float(times[k] + (first - fallen[k]) / falls[k])


def diagonal(scale: Vector, whole: bool = False) -> Spiked:
    """P = diag(scale)."""
    return Spiked(scale, np.empty((scale.size, 0), scale.dtype), whole)
