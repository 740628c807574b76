"""An objective that counts how often it is asked."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.objectives.base import FiniteSum, SeparableSum
from adafw.objectives.line import Line
from adafw.rows.base import Rows
from adafw.typing import Array, Batch, Plain


class Counted(SeparableSum):
    """Passes everything on to `objective` and counts what was really evaluated.

    `values` counts calls of f, `gradients` the terms f_i whose gradient was computed: m for a
    full one, the batch's length otherwise, a slope counting as a gradient; `hessians` counts
    second derivatives, formed or multiplied with. These are facts about a run; a trace's
    `gradient_evaluations` are those of the textbook algorithm.
    """

    def __init__(self, objective: FiniteSum) -> None:
        self.objective = objective
        self.n_terms = objective.n_terms
        self.convex = objective.convex
        self.separable = objective.separable
        self.has_hessian = objective.has_hessian
        self.shape = objective.shape
        self.dtype = objective.dtype
        self.remote = objective.remote
        self.values = 0
        self.gradients = 0
        self.hessians = 0

    def value(self, x: Array) -> float:
        self.values += 1
        return self.objective.value(x)

    def gradient(self, x: Array, batch: Batch = None) -> Array:
        self._count(batch)
        return self.objective.gradient(x, batch)

    def slopes(self, x: Array, batch: Batch = None) -> NDArray[Any]:
        self._count(batch)
        return self._separable().slopes(x, batch)

    def slopes_at(self, z: NDArray[Any], batch: Batch = None) -> NDArray[Any]:
        self._count(batch)
        return self._separable().slopes_at(z, batch)

    def combine(self, weights: NDArray[Any], batch: Batch = None) -> Array:
        return self._separable().combine(weights, batch)

    def refresh(
        self, x: Array, alpha: NDArray[Any], batch: NDArray[np.integer[Any]]
    ) -> tuple[NDArray[Any], Array]:
        self._count(batch)
        return self._separable().refresh(x, alpha, batch)

    def status(self) -> str:
        return self.objective.status()

    def along(self, x: Array, d: Array) -> Line:
        line = self.objective.along(x, d)

        def value(gamma: float) -> float:
            self.values += 1
            return line.value(gamma)

        def slope(gamma: float) -> float:
            self._count(None)
            return line.slope(gamma)

        return Line(value, slope, line.curvature)

    def hessian(self, x: Array, tried: Sequence[Array] = ()) -> NDArray[Any]:
        self.hessians += 1
        return self.objective.hessian(x, tried)

    def hessian_product(self, x: Array) -> Callable[[Array], Array]:
        product = self.objective.hessian_product(x)

        def counted(d: Array) -> Array:
            self.hessians += 1
            return product(d)

        return counted

    @property
    def lower_bound(self) -> float:
        return self.objective.lower_bound

    @property
    def smoothness(self) -> float:
        return self.objective.smoothness

    @property
    def rows(self) -> Rows:  # type: ignore[override]
        """a_1 .. a_m, where the objective is a sum of functions of <a_i, x>."""
        return self._separable().rows

    @property
    def curvature(self) -> float:  # type: ignore[override]
        """The curvature of the objective's terms."""
        return self._separable().curvature

    def describe(self) -> Plain:
        return self.objective.describe()

    def _count(self, batch: Batch) -> None:
        self.gradients += self.n_terms if batch is None else len(batch)

    def _separable(self) -> SeparableSum:
        if not isinstance(self.objective, SeparableSum):
            raise TypeError(f"{self.objective!r} is no sum of functions phi_i(<a_i, x>).")
        return self.objective
