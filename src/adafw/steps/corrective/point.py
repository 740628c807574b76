"""Where a corrective step stands: predictions, intercept, and the derivatives of f in them."""

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.objectives import WithIntercept
from adafw.objectives.kinds import Linear, model_of
from adafw.typing import Array

Vector = NDArray[np.float64]

#: Share of the descent that the slope promises which a step must reach (Armijo).
ARMIJO = 1e-4


class Standpoint(ABC):
    """f as a function of predictions z, moved along; `slopes` and `bends` are its derivatives."""

    #: Whether an intercept is yet to be taken out of models.
    free: bool
    z: Vector
    value: float
    slopes: Vector
    bends: Vector

    @abstractmethod
    def curves_at(self, z: Vector) -> tuple[float, Vector, Vector]:
        """(value, slopes, bends) at z."""

    @abstractmethod
    def raised_bends(self, dz: Vector) -> Vector:
        """Second derivatives no less than their mean between z and z + dz: what was met there."""

    def over(self, raised: Vector) -> Vector:
        """Bends that know what `raised_bends` met before the last move."""
        return np.maximum(raised, self.bends)

    def start(self, z: Vector, known: tuple[float, Vector, Vector] | None = None) -> None:
        """Stands at z."""
        self.z = z
        self.value, self.slopes, self.bends = known or self.curves_at(z)
        self._tried: tuple[float, Vector, float, Vector, Vector] | None = None

    @property
    def curves(self) -> tuple[float, Vector, Vector]:
        """As `curves_at` gives them."""
        return self.value, self.slopes, self.bends

    def shift(self, mixed_move: float, total: float) -> float:
        """How b moves best, to second order, when x moves: mixed_move = <A^T bends, dx>."""
        if not self.free or not total > 0:
            return 0.0
        return -(float(self.slopes.sum()) + mixed_move) / total

    def step_size(self, dz: Vector, slope: float, toll: float = 0.0) -> float:
        """1, or less until f(z + t dz) + t toll is low enough, or as low as rounding lets it be.

        `slope` is the model's, toll included.
        """
        noise = 4 * float(np.finfo(np.float64).eps) * abs(self.value)
        t = 1.0
        for _ in range(40):
            z = self.z + dz if t == 1.0 else self.z + t * dz
            known = self.curves_at(z)
            new = known[0] + t * toll
            self._tried = (t, z, *known)
            if new <= self.value + ARMIJO * t * slope + noise:
                return t
            bend = new - self.value - t * slope
            best = -slope * t * t / (2 * bend) if bend > 0 and math.isfinite(bend) else 0.0
            t = min(max(best, 0.1 * t), 0.5 * t)
        return 0.0

    def move(self, dz: Vector, t: float) -> None:
        """z <- z + t dz; the step size that was tried last costs nothing more."""
        if self._tried is None or self._tried[0] != t:
            z = self.z + t * dz
            self._tried = (t, z, *self.curves_at(z))
        _, self.z, self.value, self.slopes, self.bends = self._tried
        self._tried = None


class Point(Standpoint):
    """f(x, b) as a function of the predictions z = A x + b, moved along as x and b move.

    `slopes` and `bends` are phi_i' / m and phi_i'' / m; an intercept b, where there is one, moves
    with x: a step takes it out of its model (`free`). Rows less their mean are rows with an
    intercept: of squares, whose bends are the weights of that mean, it is the same model.
    """

    def __init__(self, f: Linear, x: Array) -> None:
        self.model = model_of(f)
        self.rows, centred = self.model.rows.plain
        self.free = isinstance(f, WithIntercept) or centred
        z, b = f.predictions(x)
        if z.dtype == np.float64 and not centred:
            self.start(z + b if b else z, f.curves(x))
        else:
            self.start(z.astype(np.float64) + b)

    def curves_at(self, z: Vector) -> tuple[float, Vector, Vector]:
        return self.model.curves_at(z)

    def raised_bends(self, dz: Vector) -> Vector:
        return np.asarray(self.model.bends(self.z, [dz]) / self.model.n_terms)


def largest_entries(values: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Positions of the largest `count` entries; ties at the end go to the lowest positions."""
    if values.size <= count:
        return np.arange(values.size)
    part = np.argpartition(-values, count)[:count]
    least = values[part].min()
    above = np.flatnonzero(values > least)
    return np.sort(np.concatenate([above, np.flatnonzero(values == least)[: count - above.size]]))
