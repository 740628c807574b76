"""The problem all solvers are given, its certified optimum, and how far a point is from it."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

import adafw


@dataclass(frozen=True, eq=False)
class Problem:
    """Logistic loss over the l1 ball, and the penalised problem with the same minimiser.

    If x solves min f over ||x||_1 <= radius and the constraint binds, it also solves
    min f(w) + penalty ||w||_1 with penalty = max_j |grad f(x)_j|: what the peers are given.
    """

    name: str
    A: object
    y: np.ndarray
    radius: float

    @cached_property
    def f(self):
        return adafw.LinearModel(self.A, self.y, adafw.losses.Logistic())

    @cached_property
    def columns(self):
        """A by columns, as the coordinate descent methods want it."""
        return sparse.csc_matrix(self.A)

    @cached_property
    def smoothness(self) -> float:
        """The Lipschitz constant of grad f, for FISTA."""
        largest = svds(self.A, 1, return_singular_vectors=False)[0]
        return float(0.25 * largest**2 / len(self.y))

    @cached_property
    def reference(self):
        """A run whose gap, 1e-8 of f(0) - f*, certifies its value as the optimum."""
        algorithm = adafw.AdaGrad(1.0, gradient=adafw.gradients.CSFW())
        return adafw.minimize(
            self.f, adafw.L1Ball(self.radius), algorithm, max_epochs=4000, gap_tolerance=1e-9
        )

    @cached_property
    def penalty(self) -> float:
        return float(np.abs(self.f.gradient(self.reference.x)).max())

    @cached_property
    def optimum(self) -> float:
        return self.reference.value

    def suboptimality(self, w, penalised: bool) -> float:
        """f(w) - f*, plus penalty (||w||_1 - radius) for a peer, in units of f(0) - f*."""
        excess = self.penalty * (np.abs(w).sum() - self.radius) if penalised else 0.0
        scale = np.log(2.0) - self.optimum
        return (self.f.value(np.asarray(w, float)) + excess - self.optimum) / scale
