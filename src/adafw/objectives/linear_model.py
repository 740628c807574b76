"""Empirical risk of a linear model."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.describe import describe, digest
from adafw.losses import Loss
from adafw.objectives.base import SeparableSum
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
        self.shape = (self.rows.shape[1],)
        self.dtype = self.rows.dtype
        self.loss = loss
        self.convex = loss.convex
        self.y = self._per_row(y, "y")
        loss.check(self.y)
        self.sample_weight = None
        self._weights: NDArray[Any] | None = None  # m w_i / sum w
        if sample_weight is not None:
            weight = self._per_row(sample_weight, "sample_weight")
            total = weight.sum(dtype=np.float64)
            if (weight < 0).any() or total <= 0:
                raise ValueError("sample_weight must be >= 0 in every entry and not 0 in all.")
            self.sample_weight = weight
            self._weights = (weight * (self.n_terms / total)).astype(self.dtype)

    @property
    def term_weights(self) -> NDArray[Any]:
        """m w_i / sum w; an empty array if all are 1."""
        return np.empty(0, self.dtype) if self._weights is None else self._weights

    def value(self, x: Array) -> float:
        losses = self.loss.value(self.rows.dot(x), self.y)
        if self._weights is not None:
            losses = losses * self._weights
        return float(np.mean(losses, dtype=np.float64))

    def gradient(self, x: Array, batch: Batch = None) -> Array:
        slopes = self.slopes(x, batch)
        return self.rows.combine(slopes / len(slopes), batch)

    def slopes(self, x: Array, batch: Batch = None) -> NDArray[Any]:
        y = self.y if batch is None else self.y[batch]
        slopes = self.loss.slope(self.rows.dot(x, batch), y)
        if self._weights is not None:
            slopes = slopes * (self._weights if batch is None else self._weights[batch])
        return slopes

    def combine(self, weights: NDArray[Any], batch: Batch = None) -> Array:
        return self.rows.combine(weights, batch)

    def describe(self) -> Plain:
        return {
            "name": "LinearModel",
            "loss": describe(self.loss),
            "A": self.rows.describe(),
            "y": digest(self.y),
            "sample_weight": describe(self.sample_weight),
        }

    def __repr__(self) -> str:
        m, n = self.rows.shape
        kind = self.rows.describe()["name"]
        return f"LinearModel({m} x {n} {kind}, {type(self.loss).__name__})"

    def _per_row(self, values: Any, name: str) -> NDArray[Any]:
        try:
            vector = np.asarray(values).astype(self.dtype)
        except (TypeError, ValueError):
            raise TypeError(f"{name} must be an array of numbers.") from None
        if vector.shape != (self.n_terms,):
            raise ValueError(
                f"{name} must have one entry per row of A, shape ({self.n_terms},), "
                f"got {vector.shape}."
            )
        if not np.isfinite(vector).all():
            raise ValueError(f"{name} must be finite, got NaN or infinity.")
        return vector
