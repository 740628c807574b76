"""Data, loss and intercept as one objective."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.losses import Loss
from adafw.objectives import LinearModel, WithIntercept
from adafw.rows import Rows, as_rows
from adafw.typing import Array

#: The largest feature or target: sums of squares of it are finite.
LARGEST = 1e145


@dataclass(frozen=True)
class Problem:
    """The objective `f` of the coefficients alone, and the best intercept for given ones."""

    f: LinearModel | WithIntercept
    intercept: Callable[[Array], float]
    rows: Rows
    weights: NDArray[Any]

    def value_at(self, x: Array, b: float) -> float:
        """The mean loss with an intercept b that need not be the best one."""
        f, shift = self.f, b - self.intercept(x)
        if isinstance(f, WithIntercept):
            return f.model.value_at(f.rows.dot(x) + b)
        return f.value_at(f.rows.dot(x) + shift)

    def scale(self) -> NDArray[Any]:
        """The features' variances as a metric.

        A feature that hardly varies has a gradient of 0 but for rounding; it gets the largest
        variance, so that rounding does not become a step.
        """
        variances = self.rows.variances(self.weights)
        largest = float(variances.max())
        if not largest > 0:
            return np.ones_like(variances)
        return np.where(variances > 1e-10 * largest, variances, largest)


def make_problem(
    A: Any, y: NDArray[Any], loss: Loss, sample_weight: NDArray[Any] | None, fit_intercept: bool
) -> Problem:
    """The mean loss of <a_i, x> + b, minimised over b, which lies outside the set.

    Squares of residuals: rows and targets less their weighted means, for which b = 0 is best,
    whatever x is. Other losses: `WithIntercept`.
    """
    rows = as_rows(A)
    _check_size(rows, y)
    weights = np.ones(rows.shape[0]) if sample_weight is None else sample_weight
    if not fit_intercept:
        return Problem(LinearModel(rows, y, loss, sample_weight), lambda x: 0.0, rows, weights)
    if loss.quadratic and loss.residual:
        best = -loss.slope(np.zeros_like(y), y) / loss.curvature  # where each loss is least
        mean_y = float(np.average(best, weights=sample_weight))
        inner, mean = rows.centred(sample_weight)
        model = LinearModel(inner, y - mean_y, loss, sample_weight)
        return Problem(model, lambda x: float(mean_y - mean @ x), rows, weights)
    f = WithIntercept(LinearModel(rows, y, loss, sample_weight))
    return Problem(f, f.best_intercept, rows, weights)


def _check_size(rows: Rows, y: NDArray[Any]) -> None:
    """Refuses numbers whose squares overflow."""
    for largest, what in (
        (rows.largest, "features"),
        (max(float(y.max()), -float(y.min())), "targets"),
    ):
        if largest > LARGEST:
            raise ValueError(
                f"{what} must be at most {LARGEST:g} in size, as their squares are needed, got "
                f"{largest:g}; change their unit."
            )
