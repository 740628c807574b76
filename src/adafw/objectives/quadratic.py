"""A quadratic model of an objective around a point."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.arrays import dot
from adafw.objectives.base import FiniteSum
from adafw.objectives.line import Line
from adafw.typing import Array, Batch, Plain


class Quadratic(FiniteSum):
    """Q(y) = <g, y - x> + <y - x, H (y - x)> / 2, as one term: what a Newton step minimises.

    `centre` (x), `linear` (g), `matrix` (H, symmetric and positive semidefinite).
    """

    n_terms = 1
    convex = True
    has_hessian = True

    def __init__(self, centre: Array, linear: Array, matrix: NDArray[Any]) -> None:
        self.centre, self.linear, self.matrix = centre, linear, matrix
        self.shape, self.dtype = centre.shape, centre.dtype

    def value(self, x: Array) -> float:
        d = x - self.centre
        return float(dot(self.linear, d) + dot(d, self.matrix @ d) / 2)

    def gradient(self, x: Array, batch: Batch = None) -> Array:
        return self.linear + self.matrix @ (x - self.centre)

    def along(self, x: Array, d: Array) -> Line:
        value, slope = self.value(x), float(dot(self.gradient(x), d))
        bend = float(dot(d, self.matrix @ d))
        return Line(
            value=lambda gamma: value + gamma * slope + gamma**2 * bend / 2,
            slope=lambda gamma: slope + gamma * bend,
            curvature=bend,
        )

    def hessian(self, x: Array, tried: Sequence[Array] = ()) -> NDArray[Any]:
        return self.matrix

    def hessian_product(self, x: Array) -> Callable[[Array], Array]:
        return lambda d: self.matrix @ d

    def describe(self) -> Plain:
        return {"name": "Quadratic", "n": int(np.size(self.centre))}
