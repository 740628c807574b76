"""From features to scores, labels, means and probabilities: the only place that does it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.fitting.targets import losses_of
from adafw.losses import AnyLoss
from adafw.typing import MatrixLike


@dataclass(frozen=True, eq=False)
class LinearPredictor:
    """Coefficients, one row a score, intercepts, and what their scores mean.

    `classes`: labels in the order of the scores (two share one), None for numbers.
    """

    coef: NDArray[Any]
    intercept: NDArray[Any]
    classes: NDArray[Any] | None
    loss: AnyLoss

    def decision(self, X: MatrixLike) -> NDArray[Any]:
        """<a, x> + b: one number a row, or one column a score."""
        scores = np.asarray(X @ self.coef.T) + self.intercept
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """The label of a positive or the largest score; or the mean of the target."""
        scores = self.decision(X)
        if self.classes is None:
            return self.loss.mean(scores)
        return self.classes[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def predict_proba(self, X: MatrixLike) -> NDArray[Any]:
        """One column a class, where the loss knows probabilities."""
        if self.classes is None or not self.loss.has_probabilities:
            raise ValueError("probabilities are known for models with loss logistic only.")
        return self.loss.probabilities(self.decision(X))

    def losses(self, X: MatrixLike, y: NDArray[Any]) -> NDArray[Any]:
        """The loss of every row; for scores that were fitted one by one, the sum over them."""
        return losses_of(self.loss, self.decision(X), y, self.classes)
