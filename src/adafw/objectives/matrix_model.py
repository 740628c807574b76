"""Empirical risk of a linear model whose coefficients are a matrix."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adafw.arrays import floating
from adafw.losses import JointLoss
from adafw.objectives.base import FiniteSum, described_data, smoothness_of
from adafw.objectives.line import Line
from adafw.objectives.shifts import Shifts, shifts_for
from adafw.rows import as_rows
from adafw.typing import Array, Batch, MatrixLike, Plain


class MatrixModel(FiniteSum):
    """F(X) = min_b sum_i w_i l(a_i X + b, y_i) / sum_i w_i, X of shape (features, outputs).

    The classes of a multinomial model, or the targets of a regression, in one problem: a set of
    matrices may bind them together. As in `WithIntercept`, grad F(X) is the gradient at the best
    b(X), so that the gap of F is that of the joint problem. Terms are f_i = m w_i l_i / sum w.
    A value or gradient costs a pass over the data with one product an output for each entry.

    Parameters
    ----------
    A : data, one sample a_i a row; an array or a scipy sparse matrix.
    y : what the loss takes: class numbers for `Softmax`, one column a target for `Outputs`.
    loss : one of `adafw.losses` of several predictions a sample.
    sample_weight : w_i >= 0, not all 0; None means 1.
    n_outputs : k, if there are more classes than occur in y.
    intercept : whether there is a b, one number an output, which no set bounds; without, b = 0.
    """

    remembers = True

    def __init__(
        self, A: MatrixLike, y: NDArray[Any], loss: JointLoss,
        sample_weight: ArrayLike | None = None, *, n_outputs: int | None = None,
        intercept: bool = False,
    ) -> None:  # fmt: skip
        if not isinstance(loss, JointLoss):
            raise TypeError(
                f"loss must be one of several predictions, such as losses.Softmax(), got {loss!r}."
            )
        self.rows = as_rows(A)
        self.n_terms, self.dtype, self.loss = self.rows.shape[0], self.rows.dtype, loss
        self.convex, self.remote = loss.convex, self.rows.remote
        self.has_hessian = loss.has_second
        self.y = loss.targets(y, self.dtype)
        if len(self.y) != self.n_terms:
            raise ValueError(
                f"y must have one entry per row of A, {self.n_terms}, got {len(self.y)}."
            )
        found = loss.outputs(self.y)
        self.n_outputs = found if n_outputs is None else n_outputs
        if self.n_outputs < found:
            raise ValueError(f"n_outputs must be at least {found}, got {n_outputs}.")
        self.shape = (self.rows.shape[1], self.n_outputs)
        self.sample_weight: NDArray[Any] | None = None
        #: m w_i / sum w.
        self.term_weights = np.ones(self.n_terms, self.dtype)
        if sample_weight is not None:
            self.sample_weight = self._checked(sample_weight)
            total = self.sample_weight.sum(dtype=np.float64)
            self.term_weights = (self.sample_weight * (self.n_terms / total)).astype(self.dtype)
        self._shifts: Shifts | None = None
        if intercept:
            self._shifts = shifts_for(loss, self.y, self.n_outputs, self.term_weights)
        #: What batches, which cannot find the best b, use for it.
        self.intercept = np.zeros(self.n_outputs, self.dtype)
        if self._shifts is not None:
            zero = np.zeros((self.n_terms, self.n_outputs), self.dtype)
            self.intercept = self._shifts.best(zero)
        self._last: tuple[Any, Any, Any, Any] = (None, None, None, None)  # x, A x, b(x), gradient

    def status(self) -> str:
        return self.rows.status()

    @property
    def has_intercept(self) -> bool:
        """Whether there is a b."""
        return self._shifts is not None

    def predictions(self, x: Array) -> tuple[NDArray[Any], NDArray[Any]]:
        """(A X, b(X)), remembered for the last X."""
        known = self._last[0]
        if known is None or known.dtype != x.dtype or not np.array_equal(known, x):
            self.remember(x, self.rows.dot_matrix(x))
        return self._last[1], self._last[2]

    def remember(self, x: Array, z: NDArray[Any]) -> None:
        """Takes z for A X: of someone who had to compute it anyway."""
        self._last = (x.copy(), z, self.shift(z), None)

    def best_intercept(self, x: Array) -> NDArray[Any]:
        """b(X)."""
        return self.predictions(x)[1]

    def shift(self, z: NDArray[Any]) -> NDArray[Any]:
        """The b that minimises the mean loss of z + b; 0 where there is none."""
        if self._shifts is None:
            return np.zeros(self.n_outputs, z.dtype)
        return self._shifts.best(z)

    def value(self, x: Array) -> float:
        z, b = self.predictions(x)
        return self.value_at(z + b)

    def value_at(self, z: NDArray[Any]) -> float:
        """The mean loss of predictions z, intercept included."""
        terms = self.loss.value(z, self.y) * self.term_weights
        return float(np.mean(terms, dtype=np.float64))

    def gradient(self, x: Array, batch: Batch = None) -> Array:
        if batch is not None:
            z = self.rows.dot_matrix(x, batch) + self.intercept
            return self.rows.combine_matrix(self.slopes_at(z, batch) / len(batch), batch)
        z, b = self.predictions(x)
        if self._last[3] is None:
            g = self.rows.combine_matrix(self.slopes_at(z + b) / self.n_terms)
            self._last = (*self._last[:3], g)
        return np.asarray(self._last[3].copy())

    def slopes_at(self, z: NDArray[Any], batch: Batch = None) -> NDArray[Any]:
        """Gradients of the terms in their predictions z, one row a sample."""
        some = slice(None) if batch is None else batch
        return self.loss.slope(z, self.y[some]) * self.term_weights[some, None]

    def seconds_at(self, z: NDArray[Any]) -> NDArray[Any]:
        """s of `JointLoss.second` for all samples, without their weights."""
        return self.loss.second(z, self.y)

    def follow(self, s: NDArray[Any]) -> NDArray[Any]:
        """The inverse of the second derivative in b, where s is that in the predictions."""
        assert self._shifts is not None
        return self._shifts.inverse(s)

    def along(self, x: Array, d: Array) -> Line:
        """With A X and A D computed once, a point on the line costs O(m k)."""
        (z, b), dz = self.predictions(x), self.rows.dot_matrix(d)

        def at(gamma: float) -> NDArray[Any]:
            u = z + gamma * dz
            return u + (b if gamma == 0 else self.shift(u))

        return Line(
            value=lambda gamma: self.value_at(at(gamma)),
            slope=lambda gamma: (
                float(np.vdot(self.slopes_at(at(gamma)), dz).astype(np.float64)) / self.n_terms
            ),
        )

    def hessian_product(self, x: Array) -> Callable[[Array], Array]:
        """D -> A^T (l'' (A D + db)) / m, db being how b(X) follows D: two passes for each D."""
        z, b = self.predictions(x)
        s = self.seconds_at(z + b)
        weights = (self.term_weights / self.n_terms)[:, None]
        follow = self.follow(s) if self.has_intercept else None

        def product(d: Array) -> Array:
            move = self.rows.dot_matrix(d)
            image = weights * self.loss.curve(s, move)
            if follow is not None:
                db = -(follow @ image.sum(axis=0))
                image = image + weights * self.loss.curve(s, np.broadcast_to(db, move.shape))
            return self.rows.combine_matrix(image)

        return product

    @cached_property
    def lower_bound(self) -> float:
        """The mean over the terms of what their loss is never below."""
        counts = self.term_weights > 0  # 0 * -inf is not 0
        least = self.loss.least(self.y[counts]) * self.term_weights[counts]
        return float(np.sum(least, dtype=np.float64)) / self.n_terms

    @cached_property
    def smoothness(self) -> float:
        """curvature * ||A||_2^2 / m, with the rows of A scaled by sqrt(m w_i / sum w)."""
        return smoothness_of(self.loss, self.rows, self.term_weights)

    def describe(self) -> Plain:
        return self._description

    @cached_property
    def _description(self) -> Plain:
        return {
            **described_data("MatrixModel", self.loss, self.rows, self.y, self.sample_weight),
            "n_outputs": self.n_outputs,
            "intercept": self.has_intercept,
        }

    def __repr__(self) -> str:
        return f"MatrixModel({self.rows}, {self.n_outputs} outputs, {self.loss!r})"

    def _checked(self, sample_weight: ArrayLike) -> NDArray[Any]:
        weight = floating(sample_weight, "sample_weight").astype(self.dtype)
        if weight.shape != (self.n_terms,):
            raise ValueError(
                f"sample_weight must have one entry per row of A, shape ({self.n_terms},), "
                f"got {weight.shape}."
            )
        total = weight.sum(dtype=np.float64)
        if not (weight >= 0).all() or not 0 < total < np.inf:
            raise ValueError(
                "sample_weight must be >= 0 in every entry, with a sum that is finite and > 0."
            )
        return weight
