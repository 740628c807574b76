"""The data of a fit, checked and prepared once for all its targets."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adafw.losses import AnyLoss, JointLoss
from adafw.memory import machine_bytes
from adafw.objectives import LinearModel, MatrixModel, WithIntercept
from adafw.rows import Rows, as_rows
from adafw.typing import Array, MatrixLike

#: The largest feature or target: sums of squares of it are finite.
LARGEST = 1e145
#: Share of memory for a sample of rows that are on a disk or on other machines.
SHARE = 0.1


#: b of one output, or of each of several.
Intercept: TypeAlias = float | NDArray[Any]


@dataclass(frozen=True)
class Risk:
    """The mean loss `f` of the coefficients alone, and the best intercept for given ones."""

    f: LinearModel | WithIntercept | MatrixModel
    intercept: Callable[[Array], Intercept]

    def value_at(self, x: Array, b: Intercept) -> float:
        """The mean loss with an intercept b that need not be the best one."""
        f, shift = self.f, b - self.intercept(x)
        if isinstance(f, MatrixModel):
            return f.value_at(f.rows.dot_matrix(x) + b)
        if isinstance(f, WithIntercept):
            return f.model.value_at(f.rows.dot(x) + b)
        return f.value_at(f.rows.dot(x) + shift)


class Design:
    """Rows a_i and weights w_i, and what does not depend on the targets.

    Parameters
    ----------
    A : an array, a sparse matrix or rows; checked and digested here and nowhere after.
    weights : one a row, None for all 1.
    finite : A has been looked through for NaN and infinity already.
    passing : the data are soon gone: arrays that are mostly 0 are not worth a sparse copy.
    """

    def __init__(
        self, A: MatrixLike, weights: NDArray[Any] | None = None, finite: bool = False,
        passing: bool = False,
    ) -> None:  # fmt: skip
        rows = as_rows(A, finite)
        self.rows = (rows if passing else rows.without_zeros()).described()
        self.weights = weights
        _check_size(self.rows.largest, "features")

    @property
    def doubled(self) -> "Design":
        """The same data, nothing copied, with iterates of float64."""
        # Not kept where it is this one: data that know themselves stay until a collection.
        return self if self.rows.dtype == np.float64 else self._wide

    @cached_property
    def _wide(self) -> "Design":
        return Design._of(self.rows.doubled().described(), self)

    @cached_property
    def centred(self) -> tuple[Rows, NDArray[Any]]:
        """The rows less their weighted mean, and that mean."""
        rows, mean = self.rows.centred(self.weights)
        return rows.described(), mean

    @cached_property
    def scale(self) -> NDArray[Any]:
        """The features' variances as a metric.

        A feature that hardly varies has a gradient of 0 but for rounding; it gets the largest
        variance, so that rounding does not become a step.
        """
        weights = np.ones(self.rows.shape[0]) if self.weights is None else self.weights
        variances = self.rows.variances(weights)
        largest = float(variances.max())
        if not largest > 0:
            return np.ones_like(variances)
        # A variance is a difference of squares: below 1e-10 of the largest it may be rounding.
        return np.where(variances > 1e-10 * largest, variances, largest)

    def risk(
        self, y: NDArray[Any], loss: AnyLoss, fit_intercept: bool, outputs: int | None = None
    ) -> Risk:
        """The mean loss of <a_i, x> + b, minimised over b, which lies outside the set.

        A loss of several predictions has a matrix of coefficients, of as many columns as classes
        or targets (`outputs`, if not all occur in y).

        Squares of residuals: rows and targets less their weighted means, for which b = 0 is best,
        whatever x is. Other losses: `WithIntercept`.
        """
        _check_size(float(np.abs(y).max(initial=0.0)), "targets")
        if isinstance(loss, JointLoss):
            joint = MatrixModel(
                self.rows, y, loss, self.weights, n_outputs=outputs, intercept=fit_intercept
            )
            return Risk(joint, joint.best_intercept)
        if not fit_intercept:
            return Risk(LinearModel(self.rows, y, loss, self.weights), lambda x: 0.0)
        if loss.quadratic and loss.residual:
            # Their mean is where the sum of the parabolas, all of one curvature, is least.
            best = -loss.slope(np.zeros_like(y), y) / loss.curvature  # where each loss is least
            mean_y = float(np.average(best, weights=self.weights))
            rows, mean = self.centred
            model = LinearModel(rows, y - mean_y, loss, self.weights)
            return Risk(model, lambda x: float(mean_y - mean @ x))
        f = WithIntercept(LinearModel(self.rows, y, loss, self.weights))
        return Risk(f, f.best_intercept)

    def sample(self, y: NDArray[Any], size: int, seed: int) -> tuple["Design", NDArray[Any]]:
        """At most `size` rows and their targets, both labels among them; always in memory."""
        m, elsewhere = self.rows.shape[0], self.rows.streamed or self.rows.remote
        if elsewhere:
            size = min(size, max(2, int(SHARE * machine_bytes() * m / (12 * self.rows.stored + 1))))
        if m <= size and not elsewhere:
            return self, y
        chosen = np.arange(m)
        if m > size:
            some = np.random.default_rng(seed).choice(m, size, replace=False)
            # With the extreme targets in it, no label is missing and a count above 0 is there.
            needed = [np.argmin(y, axis=0), np.argmax(y, axis=0)]
            if y.dtype.kind in "iu":  # class numbers
                needed = [np.unique(y, return_index=True)[1]]
            chosen = np.unique(np.concatenate([some[2:], *map(np.atleast_1d, needed)]))
        part = Design._of(self.rows.take(chosen), self)
        if self.weights is not None:
            weights = self.weights[chosen]
            part.weights = weights if weights.any() else None
        return part, y[chosen]

    @classmethod
    def _of(cls, rows: Rows, whole: "Design") -> "Design":
        """Rows that come from checked ones, and are not checked again."""
        part = cls.__new__(cls)
        part.rows, part.weights = rows, whole.weights
        return part


def _check_size(largest: float, what: str) -> None:
    """Refuses numbers whose squares overflow."""
    if not largest <= LARGEST:  # NaN is refused, too
        raise ValueError(
            f"{what} must be at most {LARGEST:g} in size, as their squares are needed, got "
            f"{largest:g}; change their unit."
        )
