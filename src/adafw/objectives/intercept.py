"""A linear model with an intercept that no set bounds."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.objectives.base import SeparableSum
from adafw.objectives.line import Line
from adafw.objectives.linear_model import Curves, LinearModel
from adafw.typing import Array, Batch, Plain


@dataclass
class _Known:
    """The last A x asked for, b(x), and there, once they are known, gradient and `curves`."""

    z: Array | None
    b: float
    gradient: Array | None = None
    curves: Curves | None = None


class WithIntercept(SeparableSum):
    """F(x) = min_b f(x, b), where f(x, b) is the mean loss of predictions <a_i, x> + b.

    F is convex if f is, and grad F(x) = grad_x f(x, b(x)) at the minimiser b(x), where the
    derivative in b is 0: so the Frank-Wolfe gap of F at x is that of f at (x, b(x)), a bound on
    f(x, b(x)) - min f over x in the set and all b. Every full evaluation solves for b(x), which
    is a function of x alone; batches, which cannot, use the number `intercept`: set it to
    `best_intercept(x)` now and then. Cost: a few more passes over the m predictions.

    Parameters
    ----------
    model : the linear model without intercept. With both signs of slopes at hand, b(x) exists;
        it does not for labels of one kind, or for counts that are all 0.
    """

    has_hessian = True

    def __init__(self, model: LinearModel) -> None:
        if not model.loss.has_second:
            raise TypeError(
                "an intercept needs a loss that knows its second derivative, which "
                f"{type(model.loss).__name__} does not; define `second`, or fit without one."
            )
        self.model = model
        self.rows = model.rows
        self.n_terms, self.shape, self.dtype = model.n_terms, model.shape, model.dtype
        self.convex, self.curvature = model.convex, model.curvature
        weight = model.sample_weight
        self._weighted = None if weight is None or weight.all() else np.flatnonzero(weight)
        self._last = _Known(None, 0.0)
        self.remembers, self.remote = True, model.remote
        #: The best constant prediction, b(0).
        self.constant = self._best_constant()
        self.intercept = self.constant

    def best_intercept(self, x: Array) -> float:
        """b(x)."""
        return self.predictions(x)[1]

    def value(self, x: Array) -> float:
        if self.model.in_one_pass:
            return self.curves(x)[0]
        z, b = self.predictions(x)
        return self.model.value_at(z + b)

    def curves(self, x: Array) -> tuple[float, NDArray[Any], NDArray[Any]]:
        """`LinearModel.curves_at` the predictions A x + b(x), remembered for the last x."""
        z, b = self.predictions(x)
        if self._last.curves is None:
            self._last.curves = self.model.curves_at(z + b)
        return self._last.curves

    def gradient(self, x: Array, batch: Batch = None) -> Array:
        if batch is not None:
            how = self.model.pull(batch, len(batch), shift=self.intercept)
            return self.rows.pull(x, how, batch)[1]
        z, b = self.predictions(x)
        if self._last.gradient is None:
            if self.model.in_one_pass:
                slopes = self.curves(x)[1]
            else:
                slopes = self.model.slopes_at(z + b) / self.n_terms
            self._last.gradient = self.rows.combine(slopes)
        return self._last.gradient.copy()

    def slopes(self, x: Array, batch: Batch = None) -> NDArray[Any]:
        if batch is not None:
            return self.slopes_at(self.rows.dot(x, batch), batch)
        z, b = self.predictions(x)
        return self.model.slopes_at(z + b)

    def slopes_at(self, z: NDArray[Any], batch: Batch = None) -> NDArray[Any]:
        return self.model.slopes_at(z + self.intercept, batch)

    def combine(self, weights: NDArray[Any], batch: Batch = None) -> Array:
        return self.rows.combine(weights, batch)

    def refresh(
        self, x: Array, alpha: NDArray[Any], batch: NDArray[np.integer[Any]]
    ) -> tuple[NDArray[Any], Array]:
        how = self.model.pull(batch, self.n_terms, alpha, self.intercept)
        slopes, change = self.rows.pull(x, how, batch)
        return slopes / self.n_terms, change

    def status(self) -> str:
        return self.model.status()

    def along(self, x: Array, d: Array) -> Line:
        """With A x and A d computed once, a point on the line costs O(m) a Newton step for b."""
        (z, b), dz = self.predictions(x), self.rows.dot(d)

        def at(gamma: float) -> NDArray[Any]:
            if gamma == 0:
                return z + b
            u = z + gamma * dz
            return u + self.shift(u)

        return Line(
            value=lambda gamma: self.model.value_at(at(gamma)),
            slope=lambda gamma: float(
                np.mean(self.model.slopes_at(at(gamma)) * dz, dtype=np.float64)
            ),
        )

    def hessian(self, x: Array, tried: Sequence[Array] = ()) -> NDArray[Any]:
        """That of the model at b(x), less what following b(x) saves: a rank of one."""
        z, b = self.predictions(x)
        ends = [z + self.rows.dot(d) for d in tried]
        moves = [end + self.shift(end) - (z + b) for end in ends]
        bends = self.model.bends(z + b, moves) / self.n_terms
        full, total = self.rows.gram(bends), float(bends.sum(dtype=np.float64))
        if not total > 0:
            return full
        mixed = self.rows.combine(bends)
        return full - np.outer(mixed, mixed / total)

    def hessian_product(self, x: Array) -> Callable[[Array], Array]:
        """d -> A^T (h * (A d - <h, A d> / sum h)), h = phi'' / m at b(x), which follows d."""
        z, b = self.predictions(x)
        bends = self.model.seconds_at(z + b) / self.n_terms
        total = float(bends.sum(dtype=np.float64))

        def product(d: Array) -> Array:
            move = self.rows.dot(d)
            follow = float(bends @ move) / total if total > 0 else 0.0
            return self.rows.combine(bends * (move - follow))

        return product

    @property
    def lower_bound(self) -> float:
        """That of the model: no intercept makes a loss smaller than it can be."""
        return self.model.lower_bound

    @property
    def smoothness(self) -> float:
        """That of the model: minimising over b lowers the curvature."""
        return self.model.smoothness

    def describe(self) -> Plain:
        return {"name": "WithIntercept", "model": self.model.describe()}

    def __repr__(self) -> str:
        return f"WithIntercept({self.model!r})"

    def predictions(self, x: Array) -> tuple[NDArray[Any], float]:
        """A x and b(x), remembered for the last x: value, gradient and line ask in turn."""
        z, _ = self.model.predictions(x)
        if self._last.z is not z:  # z is the same object for as long as x is the same
            self._last = _Known(z, self.shift(z))
        return z, self._last.b

    def remember(self, x: Array, z: NDArray[Any], curves: Curves | None = None) -> None:
        """Takes z for A x, of someone who had to compute it anyway; b(x) is still to be found."""
        self.model.remember(x, z)

    def _best_constant(self) -> float:
        """b(0): the root of the sum of slopes, from a bracket grown by doubling."""
        zeros = np.zeros(self.n_terms, self.dtype)
        total = self._sides(zeros, 0.0)[0]
        if total == 0:
            return 0.0
        direction = -math.copysign(1.0, total)
        near, far, now = 0.0, direction, total
        while (now := self._sides(zeros, far)[0]) * direction < 0:
            if abs(now) < 1e-100 * abs(total):  # it dies out and never turns
                raise ValueError(
                    "y must hold targets of more than one kind (both labels, or a count above 0), "
                    "else the best intercept is infinite; fit without an intercept."
                )
            near, far = far, 2 * far
        return self._root(zeros, min(near, far), max(near, far), (near + far) / 2)

    def shift(self, z: NDArray[Any]) -> float:
        """The b that minimises the mean loss of z + b.

        Slopes grow with z, so the sum of slopes is <= 0 where all z + b are at most the best
        constant, and >= 0 where all are at least that. Where a stretch of b is best, the one that
        is found depends on the weighted rows alone: k copies of a row are a weight of k.
        """
        weighted = z if self._weighted is None else z[self._weighted]
        low, high = self.constant - float(weighted.max()), self.constant - float(weighted.min())
        return float(self._root(z, low, high, self.constant - self.model.mean(z)))

    def _root(self, z: NDArray[Any], low: float, high: float, b: float) -> float:
        """Newton's method on ln(sum of positive slopes) - ln(sum of negative ones), in a bracket.

        The logarithms make it nearly linear also where all losses are exponentially small. A
        guess outside the bracket, or one that did not halve the imbalance, gives way to the
        middle. It ends where the sum is rounding error.
        """
        before = math.inf
        noise = 2 * float(np.finfo(z.dtype).eps)
        for _ in range(200):  # 60 halvings exhaust a bracket; Newton's steps are 3 to 6
            total, up, down, up_slope, down_slope = self._sides(z, b)
            if abs(total) <= noise * (up + down) < math.inf:
                return b
            low, high = (b, high) if total < 0 else (low, b)
            guess, off = math.nan, math.inf
            if up > 0 and down > 0:
                off = abs(math.log(up / down))
                steep = up_slope / up + down_slope / down
                guess = b - math.log(up / down) / steep if steep > 0 else math.nan
            if not (low < guess < high) or off > before / 2:
                guess = low + (high - low) / 2
            before = off
            if abs(guess - b) <= noise * max(1.0, abs(b)) / 4:
                return guess
            b = guess
        return b

    def _sides(self, z: NDArray[Any], b: float) -> tuple[float, float, float, float, float]:
        """Sum of slopes at z + b; its positive and its negative part, and how fast each moves."""
        up, down, up_slope, down_slope = self.model.sides_at(z, b)
        return up - down, up, down, up_slope, down_slope
