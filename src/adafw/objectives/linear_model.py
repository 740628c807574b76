"""Empirical risk of a linear model."""

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.arrays import floating
from adafw.describe import describe, digest
from adafw.losses import Loss
from adafw.objectives.base import SeparableSum
from adafw.objectives.line import Line
from adafw.rows import as_rows
from adafw.typing import Array, Batch, Plain


class LinearModel(SeparableSum):
    """f(x) = sum_i w_i l(<a_i, x>, y_i) / sum_i w_i, the mean loss of predictions <a_i, x>.

    Its terms are f_i = m w_i l_i / sum w, so that f is their mean and sampling stays uniform.

    Parameters
    ----------
    A : data, one sample a_i a row; an array or a scipy sparse matrix. float32 and float64 are
        kept (x and gradients then have that dtype), other dtypes and formats converted once.
    y : targets y_i, one a row.
    loss : one of `adafw.losses`.
    sample_weight : w_i >= 0, not all 0; None means 1.
    """

    def __init__(self, A: Any, y: Any, loss: Loss, sample_weight: Any = None) -> None:
        if not isinstance(loss, Loss):
            raise TypeError(f"loss must be one of adafw.losses, got {loss!r}.")
        self.rows = as_rows(A)
        self.n_terms = self.rows.shape[0]
        self.shape = self.rows.shape[1:]
        self.dtype = self.rows.dtype
        self.loss = loss
        self.convex = loss.convex
        self.has_hessian = loss.has_second
        self.y = self._per_row(y, "y")
        loss.check(self.y)
        self.sample_weight = None
        self._weights: NDArray[Any] | None = None  # m w_i / sum w
        if sample_weight is not None:
            weight = self._per_row(sample_weight, "sample_weight")
            total = weight.sum(dtype=np.float64)
            if (weight < 0).any() or not 0 < total < np.inf:
                raise ValueError(
                    "sample_weight must be >= 0 in every entry, with a sum that is finite and > 0."
                )
            self.sample_weight = weight
            self._weights = (weight * (self.n_terms / total)).astype(self.dtype)
        largest = 1.0 if self._weights is None else float(self._weights.max())
        self.curvature = loss.curvature * largest

    @property
    def term_weights(self) -> NDArray[Any]:
        """m w_i / sum w; an empty array if all are 1."""
        return np.empty(0, self.dtype) if self._weights is None else self._weights

    def value(self, x: Array) -> float:
        return self.value_at(self.rows.dot(x))

    def gradient(self, x: Array, batch: Batch = None) -> Array:
        slopes = self.slopes(x, batch)
        return self.rows.combine(slopes / len(slopes), batch)

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        z = self.rows.dot(x)
        return self.value_at(z), self.rows.combine(self.slopes_at(z) / self.n_terms)

    def slopes(self, x: Array, batch: Batch = None) -> NDArray[Any]:
        return self.slopes_at(self.rows.dot(x, batch), batch)

    def slopes_at(self, z: NDArray[Any], batch: Batch = None) -> NDArray[Any]:
        slopes = self.loss.slope(z, self.y if batch is None else self.y[batch])
        if self._weights is not None:
            slopes = slopes * (self._weights if batch is None else self._weights[batch])
        return slopes

    def seconds_at(self, z: NDArray[Any]) -> NDArray[Any]:
        """phi_i''(z_i) for all i."""
        seconds = self.loss.second(z, self.y)
        return seconds if self._weights is None else seconds * self._weights

    def value_at(self, z: NDArray[Any]) -> float:
        """The mean loss of predictions z."""
        return self.mean(self.loss.value(z, self.y))

    def combine(self, weights: NDArray[Any], batch: Batch = None) -> Array:
        return self.rows.combine(weights, batch)

    def along(self, x: Array, d: Array) -> Line:
        """With A x and A d computed once, a point on the line costs O(m)."""
        z, dz = self.rows.dot(x), self.rows.dot(d)
        curvature = None
        if self.loss.quadratic:
            curvature = self.loss.curvature * self.mean(dz**2)
        return Line(
            value=lambda gamma: self.value_at(z + gamma * dz),
            slope=lambda gamma: float(
                np.mean(self.slopes_at(z + gamma * dz) * dz, dtype=np.float64)
            ),
            curvature=curvature,
        )

    def hessian(self, x: Array, tried: Sequence[Array] = ()) -> NDArray[Any]:
        """A^T diag(phi'') A / m, phi_i'' being no less than its mean between x and x + d, d tried.

        O(m n^2) for dense rows.
        """
        bends = self.bends(self.rows.dot(x), [self.rows.dot(d) for d in tried])
        return self.rows.gram(bends / self.n_terms)

    def hessian_product(self, x: Array) -> Callable[[Array], Array]:
        """d -> A^T (phi'' * (A d)) / m: two products with the rows for each d."""
        bends = self.seconds_at(self.rows.dot(x)) / self.n_terms
        return lambda d: self.rows.combine(bends * self.rows.dot(d))

    def bends(self, z: NDArray[Any], moves: Sequence[NDArray[Any]] = ()) -> NDArray[Any]:
        """phi_i'' at z_i, or its mean between z_i and z_i + move_i where that is larger."""
        bends, slopes = self.seconds_at(z), self.slopes_at(z)
        for move in moves:
            change = self.slopes_at(z + move) - slopes
            # The difference quotient of a tiny move is rounding error.
            far = np.abs(move) > 1e-6 * (1 + np.abs(z))
            mean = np.divide(change, move, out=np.zeros_like(bends), where=far)
            bends = np.maximum(bends, mean)
        return bends

    @cached_property
    def lower_bound(self) -> float:
        """The mean over the terms of what their loss is never below."""
        least = self.loss.least(self.y)
        if self._weights is None:
            return float(np.mean(least, dtype=np.float64))
        counts = self._weights > 0  # 0 * -inf is not 0
        return float(np.sum(least[counts] * self._weights[counts], dtype=np.float64)) / self.n_terms

    @cached_property
    def smoothness(self) -> float:
        """curvature * ||A||_2^2 / m, with the rows of A scaled by sqrt(m w_i / sum w)."""
        if math.isinf(self.loss.curvature):
            raise TypeError(
                f"{type(self.loss).__name__} has no bound on its curvature, so f has no smoothness "
                "constant L; use LineSearch() or Backtracking(), or give an L that holds on the "
                "set."
            )
        norm, _ = self.rows.spectral_norm(self._weights)
        return self.loss.curvature * norm**2 / self.n_terms

    def describe(self) -> Plain:
        return self._description

    @cached_property
    def _description(self) -> Plain:
        # Taken once, as the smoothness is: on large data the digests cost more than a short run.
        return {
            "name": "LinearModel",
            "loss": describe(self.loss),
            "A": self.rows.describe(),
            "y": digest(self.y),
            "sample_weight": describe(self.sample_weight),
        }

    def __repr__(self) -> str:
        return f"LinearModel({self.rows}, {type(self.loss).__name__})"

    def mean(self, terms: NDArray[Any]) -> float:
        """sum_i w_i terms_i / sum_i w_i."""
        if self._weights is not None:
            terms = terms * self._weights
        return float(np.mean(terms, dtype=np.float64))

    def _per_row(self, values: Any, name: str) -> NDArray[Any]:
        vector = floating(values, name).astype(self.dtype)
        if vector.shape != (self.n_terms,):
            raise ValueError(
                f"{name} must have one entry per row of A, shape ({self.n_terms},), "
                f"got {vector.shape}."
            )
        if not np.isfinite(vector).all():
            raise ValueError(f"{name} must be finite, got NaN or infinity.")
        return vector
