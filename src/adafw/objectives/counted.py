"""An objective that counts how often it is asked."""

from typing import Any

from numpy.typing import NDArray

from adafw.objectives.base import FiniteSum, SeparableSum
from adafw.typing import Array, Batch, Plain


class Counted(SeparableSum):
    """Passes everything on to `objective` and counts what was really evaluated.

    `values` counts calls of f, `gradients` the terms f_i whose gradient was computed: m for a
    full one, the batch's length otherwise, a slope counting as a gradient. These are facts about
    a run; a trace's `gradient_evaluations` are those of the textbook algorithm.
    """

    def __init__(self, objective: FiniteSum) -> None:
        self.objective = objective
        self.n_terms = objective.n_terms
        self.convex = objective.convex
        self.separable = objective.separable
        self.shape = objective.shape
        self.dtype = objective.dtype
        self.values = 0
        self.gradients = 0

    def value(self, x: Array) -> float:
        self.values += 1
        return self.objective.value(x)

    def gradient(self, x: Array, batch: Batch = None) -> Array:
        self._count(batch)
        return self.objective.gradient(x, batch)

    def slopes(self, x: Array, batch: Batch = None) -> NDArray[Any]:
        self._count(batch)
        return self._separable().slopes(x, batch)

    def combine(self, weights: NDArray[Any], batch: Batch = None) -> Array:
        return self._separable().combine(weights, batch)

    def describe(self) -> Plain:
        return self.objective.describe()

    def _count(self, batch: Batch) -> None:
        self.gradients += self.n_terms if batch is None else len(batch)

    def _separable(self) -> SeparableSum:
        if not isinstance(self.objective, SeparableSum):
            raise TypeError(f"{self.objective!r} is no sum of functions phi_i(<a_i, x>).")
        return self.objective
