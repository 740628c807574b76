"""Empirical risk of a linear model."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adafw.arrays import floating
from adafw.kernels import codes
from adafw.losses import Logistic, Loss, Squared, SquaredHinge
from adafw.objectives.base import SeparableSum, described_data, smoothness_of
from adafw.objectives.line import Line
from adafw.rows import as_rows, check_finite
from adafw.rows.working import WorkingRows
from adafw.typing import Array, Batch, MatrixLike, Plain

#: Losses that the kernels know, exact types only: a subclass may do anything.
_CODES: dict[type, int] = {
    Squared: codes.SQUARED,
    Logistic: codes.LOGISTIC,
    SquaredHinge: codes.SQUARED_HINGE,
}


#: Mean value, slopes and second derivatives, as `LinearModel.curves_at` gives them.
Curves: TypeAlias = tuple[float, NDArray[Any], NDArray[Any]]


@dataclass
class _Point:
    """The last x asked for, A x, and there, once they are known, gradient and `curves_at`."""

    x: Array | None
    z: Array
    gradient: Array | None = None
    curves: Curves | None = None

    def is_at(self, x: Array) -> bool:
        known = self.x
        # By the operator: numpy.array_equal takes longer than a small problem's own product.
        return (
            known is not None
            and known.dtype == x.dtype
            and known.shape == x.shape
            and bool((known == x).all())
        )


@dataclass(frozen=True)
class TermPull:
    """w_i phi'(z_i + shift) for a batch, and the weights slopes / scale - minus of its rows."""

    loss: Loss
    y: NDArray[Any]
    term_weights: NDArray[Any] | None
    scale: int
    minus: NDArray[Any] | None = None
    shift: float = 0.0

    def slopes(self, z: NDArray[Any]) -> NDArray[Any]:
        slopes = self.loss.slope(z + self.shift if self.shift else z, self.y)
        if self.term_weights is None:
            return slopes
        # Of weight 0, infinite ones too are 0.
        return np.where(self.term_weights > 0, slopes, 0) * self.term_weights

    def weights(self, slopes: NDArray[Any]) -> NDArray[Any]:
        weights = slopes / self.scale
        return weights if self.minus is None else weights - self.minus

    def part(self, which: NDArray[np.integer[Any]]) -> "TermPull":
        def of(values: NDArray[Any] | None) -> NDArray[Any] | None:
            return None if values is None else values[which]

        return TermPull(
            self.loss, self.y[which], of(self.term_weights), self.scale, of(self.minus), self.shift
        )


def check_loss(loss: object) -> None:
    """Refuses what is no loss of one prediction."""
    if not isinstance(loss, Loss):
        raise TypeError(f"loss must be one of adafw.losses, got {loss!r}.")


class LinearModel(SeparableSum):
    """f(x) = sum_i w_i l(<a_i, x>, y_i) / sum_i w_i, the mean loss of predictions <a_i, x>.

    Its terms are f_i = m w_i l_i / sum w, so that f is their mean and sampling stays uniform.

    Parameters
    ----------
    A : data, one sample a_i a row; an array or a scipy sparse matrix. float32 and float64 are
        kept (x and gradients then have that dtype), other dtypes and formats converted once.
        Not to be changed while the model is in use, which knows sums and copies of it.
    y : targets y_i, one a row.
    loss : one of `adafw.losses`.
    sample_weight : w_i >= 0, not all 0; None means 1.
    """

    def __init__(
        self, A: MatrixLike, y: ArrayLike, loss: Loss, sample_weight: ArrayLike | None = None
    ) -> None:
        check_loss(loss)
        self.rows = as_rows(A, later=True)
        self.n_terms = self.rows.shape[0]
        self.shape = self.rows.shape[1:]
        self.dtype = self.rows.dtype
        self.loss = loss
        self.remembers = True
        self.remote = self.rows.remote
        #: The number by which the kernels know the loss; None if they do not.
        self.loss_code = _CODES.get(type(loss))
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
        self._last = _Point(None, np.empty(0))
        self._working: WorkingRows | None = None
        if self.rows.unseen and self.rows is not A:
            self._look()

    def _look(self) -> None:
        """Looks for NaN, and in that pass makes the gradient at 0, where most runs begin."""
        zeros = np.zeros(self.n_terms)
        if self.in_one_pass:
            curves = self.curves_at(zeros)
            gradient = self.rows.first_look(curves[1])
            self._last = _Point(np.zeros(self.rows.shape[1:]), zeros, gradient, curves)
        check_finite(self.rows)

    @property
    def term_weights(self) -> NDArray[Any]:
        """m w_i / sum w; an empty array if all are 1."""
        return np.empty(0, self.dtype) if self._weights is None else self._weights

    def predictions(self, x: Array) -> tuple[NDArray[Any], float]:
        """(A x, 0), remembered for the last x: value, gradient, record and step ask in turn."""
        return self._at(x).z, 0.0

    def remember(self, x: Array, z: NDArray[Any], curves: Curves | None = None) -> None:
        """Takes z for A x, and `curves_at` it, of someone who had to compute them anyway."""
        self._last = _Point(x.copy(), z, curves=curves)

    def working(self, chosen: NDArray[np.int64]) -> WorkingRows:
        """The stored rows restricted to these columns; kept, as the next set will be much alike."""
        if self._working is None or not np.array_equal(self._working.chosen, chosen):
            self._working = self.rows.plain[0].working(chosen, self._working)
        return self._working

    def curves(self, x: Array) -> tuple[float, NDArray[Any], NDArray[Any]]:
        """`curves_at` the predictions of x, remembered for the last x."""
        return self._curves_of(self._at(x))

    @property
    def in_one_pass(self) -> bool:
        """Whether value, slopes and second derivatives come from one compiled pass.

        They then always do, also where only one is asked for: what was asked before must not
        change a bit.
        """
        return self.loss_code is not None and self.dtype == np.float64

    def _curves_of(self, point: "_Point") -> Curves:
        if point.curves is None:
            point.curves = self.curves_at(point.z)
        return point.curves

    def value(self, x: Array) -> float:
        return self._value_at(self._at(x))

    def gradient(self, x: Array, batch: Batch = None) -> Array:
        if batch is not None:
            return self.rows.pull(x, self.pull(batch, len(batch)), batch)[1]
        return self._gradient_at(self._at(x, whole=True))

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        point = self._at(x, whole=True)
        return self._value_at(point), self._gradient_at(point)

    def _value_at(self, point: "_Point") -> float:
        return float(self._curves_of(point)[0]) if self.in_one_pass else self.value_at(point.z)

    def _gradient_at(self, point: "_Point") -> Array:
        if point.gradient is None:
            if self.in_one_pass:
                slopes = self._curves_of(point)[1]
            else:
                slopes = self.slopes_at(point.z) / self.n_terms
            point.gradient = self.rows.combine(slopes)
        return point.gradient.copy()  # what is remembered must not change in a caller's hands

    def slopes(self, x: Array, batch: Batch = None) -> NDArray[Any]:
        z = self._at(x).z if batch is None else self.rows.dot(x, batch)
        return self.slopes_at(z, batch)

    def slopes_at(self, z: NDArray[Any], batch: Batch = None) -> NDArray[Any]:
        slopes = self.loss.slope(z, self.y if batch is None else self.y[batch])
        return self._weighed(slopes, batch)

    def pull(
        self,
        batch: NDArray[np.integer[Any]],
        scale: int,
        minus: Array | None = None,
        shift: float = 0.0,
    ) -> TermPull:
        """What `Rows.pull` makes of the terms of a batch, with `shift` added to predictions."""
        weights = None if self._weights is None else self._weights[batch]
        return TermPull(self.loss, self.y[batch], weights, scale, minus, shift)

    def refresh(
        self, x: Array, alpha: NDArray[Any], batch: NDArray[np.integer[Any]]
    ) -> tuple[NDArray[Any], Array]:
        slopes, change = self.rows.pull(x, self.pull(batch, self.n_terms, alpha), batch)
        return slopes / self.n_terms, change

    def status(self) -> str:
        return self.rows.status()

    def seconds_at(self, z: NDArray[Any]) -> NDArray[Any]:
        """phi_i''(z_i) for all i."""
        return self._weighed(self.loss.second(z, self.y))

    def value_at(self, z: NDArray[Any]) -> float:
        """The mean loss of predictions z; the same bits as in `curves_at`."""
        if self.in_one_pass and z.dtype == np.float64:
            return float(self.curves_at(z)[0])
        return self.mean(self.loss.value(z, self.y))

    def curves_at(self, z: NDArray[Any]) -> tuple[float, NDArray[Any], NDArray[Any]]:
        """(mean loss, slopes / m, second derivatives / m) of predictions z, in float64."""
        if self.loss_code is None:
            slopes, bends = self.slopes_at(z), self.seconds_at(z)
            return self.value_at(z), slopes / self.n_terms, bends / self.n_terms
        from adafw.kernels.curves import curves

        slopes, bends = np.empty(self.n_terms), np.empty(self.n_terms)
        value = curves(self.loss_code, z, self.y, self.term_weights, slopes, bends)
        return value, slopes, bends

    def sides_at(self, z: NDArray[Any], b: float) -> tuple[float, float, float, float]:
        """The positive and the negative slopes at z + b, each summed; then their derivatives."""
        if self.loss_code is None:
            slopes, seconds = self.slopes_at(z + b), self.seconds_at(z + b)
            up = slopes > 0
            return (
                float(np.sum(slopes, where=up, dtype=np.float64)),
                -float(np.sum(slopes, where=~up, dtype=np.float64)),
                float(np.sum(seconds, where=up, dtype=np.float64)),
                float(np.sum(seconds, where=~up, dtype=np.float64)),
            )
        from adafw.kernels.curves import sides

        return sides(self.loss_code, z, b, self.y, self.term_weights)

    def combine(self, weights: NDArray[Any], batch: Batch = None) -> Array:
        return self.rows.combine(weights, batch)

    def along(self, x: Array, d: Array) -> Line:
        """With A x and A d computed once, a point on the line costs O(m)."""
        z, dz = self._at(x).z, self.rows.dot(d)
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
        bends = self.bends(self._at(x).z, [self.rows.dot(d) for d in tried])
        return self.rows.gram(bends / self.n_terms)

    def hessian_product(self, x: Array) -> Callable[[Array], Array]:
        """d -> A^T (phi'' * (A d)) / m: two products with the rows for each d."""
        bends = self.seconds_at(self._at(x).z) / self.n_terms
        return lambda d: self.rows.combine(bends * self.rows.dot(d))

    def bends(self, z: NDArray[Any], moves: Sequence[NDArray[Any]] = ()) -> NDArray[Any]:
        """phi_i'' at z_i, or its mean between z_i and z_i + move_i where that is larger."""
        bends, slopes = self.seconds_at(z), self.slopes_at(z)
        for move in moves:
            change = self.slopes_at(z + move) - slopes
            # The difference quotient of a tiny move is rounding error.
            far = np.abs(move) > 1e-6 * (1 + np.abs(z))
            mean = np.divide(change, move, out=np.zeros_like(bends), where=far)
            # Beyond what a number can say: no matrix that took it in would ever lose it again.
            bends = np.where(np.isfinite(mean), np.maximum(bends, mean), bends)
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
        return smoothness_of(self.loss, self.rows, self._weights)

    def describe(self) -> Plain:
        return self._description

    @cached_property
    def _description(self) -> Plain:
        # Taken once, as the smoothness is: on large data the digests cost more than a short run.
        return described_data("LinearModel", self.loss, self.rows, self.y, self.sample_weight)

    def __repr__(self) -> str:
        return f"LinearModel({self.rows}, {type(self.loss).__name__})"

    def mean(self, terms: NDArray[Any]) -> float:
        """sum_i w_i terms_i / sum_i w_i."""
        return float(np.mean(self._weighed(terms), dtype=np.float64))

    def _weighed(self, terms: NDArray[Any], batch: Batch = None) -> NDArray[Any]:
        """Terms times their weights; of weight 0, infinite ones too are 0."""
        if self._weights is None:
            return terms
        weights = self._weights if batch is None else self._weights[batch]
        if not math.isfinite(self.loss.curvature):
            terms = np.where(weights > 0, terms, 0)
        return np.asarray(terms * weights)

    def _at(self, x: Array, whole: bool = False) -> "_Point":
        """What is known of x; with the gradient, if it is asked for and costs no second pass."""
        # Compared by its entries: a run may move its x in place.
        if self._last.is_at(x):
            return self._last
        if not x.any():  # most runs begin at 0, where no pass is needed
            self._last = _Point(x.copy(), np.zeros(self.n_terms, x.dtype))
            return self._last
        known = None
        if whole and self.in_one_pass and self.loss_code is not None and x.dtype == np.float64:
            known = self.rows.at_once(self.loss_code, x, self.y, self.term_weights)
        if known is None:
            self._last = _Point(x.copy(), self.rows.dot(x))
        else:
            z, curves, gradient = known
            self._last = _Point(x.copy(), z, gradient, curves)
        return self._last

    def _per_row(self, values: ArrayLike, name: str) -> NDArray[Any]:
        vector = floating(values, name).astype(self.dtype)
        if vector.shape != (self.n_terms,):
            raise ValueError(
                f"{name} must have one entry per row of A, shape ({self.n_terms},), "
                f"got {vector.shape}."
            )
        if not np.isfinite(vector).all():
            raise ValueError(f"{name} must be finite, got NaN or infinity.")
        return vector
