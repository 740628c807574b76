"""Where a corrective step stands: predictions, intercept, and the derivatives of f in them."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.objectives import LinearModel, WithIntercept
from adafw.typing import Array

Vector = NDArray[np.float64]

#: Share of the descent that the slope promises which a step must reach (Armijo).
ARMIJO = 1e-4


class Point:
    """f(x, b) as a function of the predictions z = A x + b, moved along as x and b move.

    `slopes` and `bends` are phi_i' / m and phi_i'' / m; an intercept b, where there is one, moves
    with x: a step takes it out of its model (`Point.free`). Rows less their mean are rows with an
    intercept: of squares, whose bends are the weights of that mean, it is the same model.
    """

    def __init__(self, f: LinearModel | WithIntercept, x: Array) -> None:
        self.model: LinearModel = f.model if isinstance(f, WithIntercept) else f
        self.rows, centred = self.model.rows.plain
        self.free = isinstance(f, WithIntercept) or centred
        z, b = f.predictions(x)
        if z.dtype == np.float64 and not centred:
            self.z, known = (z + b if b else z), f.curves(x)
        else:
            self.z = z.astype(np.float64) + b
            known = self.model.curves_at(self.z)
        self.value, self.slopes, self.bends = known
        self._tried: tuple[float, Vector, float, Vector, Vector] | None = None

    @property
    def curves(self) -> tuple[float, Vector, Vector]:
        """As `LinearModel.curves_at` gives them."""
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
            known = self.model.curves_at(z)
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
            self._tried = (t, z, *self.model.curves_at(z))
        _, self.z, self.value, self.slopes, self.bends = self._tried
        self._tried = None

    def raised_bends(self, dz: Vector) -> Vector:
        """Second derivatives no less than their mean between z and z + dz: what was met there."""
        return np.asarray(self.model.bends(self.z, [dz]) / self.model.n_terms)


def largest_entries(values: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Positions of the largest `count` entries; ties at the end go to the lowest positions."""
    if values.size <= count:
        return np.arange(values.size)
    part = np.argpartition(-values, count)[:count]
    least = values[part].min()
    above = np.flatnonzero(values > least)
    return np.sort(np.concatenate([above, np.flatnonzero(values == least)[: count - above.size]]))
