"""The best intercepts for given predictions, one number an output."""

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.losses import JointLoss, Outputs, Softmax
from adafw.objectives.intercept import WithIntercept
from adafw.objectives.linear_model import LinearModel
from adafw.rows import DenseRows

Matrix = NDArray[Any]

_STEPS = 50  # Newton steps; 3 to 8 are usual
_EPS = float(np.finfo(np.float64).eps)


class Shifts(ABC):
    """argmin_b sum_i w_i l(z_i + b, y_i), and how it follows z."""

    #: w_i.
    weights: Matrix

    @abstractmethod
    def best(self, z: Matrix) -> Matrix:
        """b for predictions z of shape (m, k)."""

    @abstractmethod
    def inverse(self, s: Matrix) -> Matrix:
        """The (pseudo-)inverse of the k x k second derivative in b of the mean, s as of a loss."""


class SoftmaxShifts(Shifts):
    """Classes: b of mean 0 for which every class is predicted as often as it occurs.

    Newton's method on r_c = ln(up_c / down_c), up_c being the probability of class c summed over
    the samples of other classes, down_c that of the others over its own: r is nearly linear also
    where all probabilities are near 0 or 1. Where a step does not lower the largest |r|, a Newton
    step on the convex mean loss itself, cut until that descends, does. If that is not enough, as
    for predictions in the thousands, z / T is solved for T falling to 1, each from the last.
    """

    def __init__(self, y: Matrix, k: int, weights: Matrix) -> None:
        self.weights, self.k = weights.astype(np.float64), k
        share = np.bincount(y, self.weights, minlength=k)
        if not (share > 0).all():
            raise ValueError(
                "every class must have a sample of positive weight, else its best intercept is "
                f"infinite, got none of class number {int(np.argmin(share))}; leave it out, or fit "
                "without an intercept."
            )
        self.start = np.log(share / share.sum())
        # Inside, samples are columns in the order of their classes: sums over classes run along
        # whole rows, and what belongs to a class is one block.
        self.order = np.argsort(y, kind="stable")
        self.y, self.sorted = y[self.order], self.weights[self.order]
        self.ends = np.cumsum(np.bincount(y, minlength=k))
        self.places = np.arange(len(y))

    def best(self, z: Matrix) -> Matrix:
        double = np.ascontiguousarray(z[self.order].T, np.float64)
        b, done = self._solve(double, self.start - double.mean(axis=1))
        if not done:
            T = float(np.ptp(double)) / 4
            b = self.start * T
            while T > 1:
                b = T * self._solve(double / T, b / T)[0]
                T = max(1.0, T / 4)
            b, _ = self._solve(double, b)
        return np.asarray((b - b.mean()).astype(z.dtype))

    def _solve(self, z: Matrix, b: Matrix) -> tuple[Matrix, bool]:
        """(b, whether what is left is rounding error); z of shape (k, m), classes in order."""
        now, noise = self._sides(z, b), 4 * _EPS * max(1.0, math.sqrt(z.shape[1]) / 16)
        for _ in range(_STEPS):
            up, down, p, off = now
            if (np.abs(up - down) <= noise * (up + down)).all():
                return b, True
            step = self._newton(up, down, p)
            there = self._sides(z, b + step)
            # Far from the root the logarithms are no guide; the loss itself, which is convex, is.
            if not there[3] < 0.9 * off:
                step = self._descent(z, b, up - down, p)
                if not step.any():  # the loss has no digit left that could fall
                    return b, off < 1e-6
                there = self._sides(z, b + step)
            b, now = b + step, there
        return b, now[3] < 1e-6

    def _descent(self, z: Matrix, b: Matrix, g: Matrix, p: Matrix) -> Matrix:
        """Newton's step on the loss, cut until it descends; 0 where none is seen to."""
        weighted = self.sorted * p
        full = np.diag(weighted.sum(axis=1)) - weighted @ p.T
        # Singular along (1, .., 1), which changes no probability; the ridge leaves that alone.
        full += (1e-10 * float(np.trace(full)) + 1e-300) * np.eye(self.k)
        d = -np.linalg.solve(full, g)
        # No b needs to be further away than the scores are from each other.
        d *= min(1.0, float(np.ptp(z)) / max(float(np.abs(d).max()), 1e-300))
        value, slope, gamma = self._loss(z, b), float(g @ d), 1.0
        while gamma > 2.0**-60 and -gamma * slope > _EPS * value:
            if self._loss(z, b + gamma * d) < value + 1e-4 * gamma * slope:
                return np.asarray(gamma * d)
            gamma /= 2
        return np.zeros_like(b)

    def _loss(self, z: Matrix, b: Matrix) -> float:
        u = z + b[:, None]
        rest = u - u[self.y, self.places]
        top = np.maximum(rest.max(axis=0), 0)
        return float(self.sorted @ (top + np.log(np.exp(rest - top).sum(axis=0))))

    def inverse(self, s: Matrix) -> Matrix:
        w = self.weights / len(self.weights)
        weighted = w[:, None] * s
        full = np.diag(weighted.sum(axis=0)) - weighted.T @ s
        return np.linalg.pinv(full, rcond=1e-13, hermitian=True)

    def _sides(self, z: Matrix, b: Matrix) -> tuple[Matrix, Matrix, Matrix, float]:
        """(up, down, probabilities, largest |ln(up / down)|)."""
        p = z + b[:, None]
        np.exp(p - p.max(axis=0), out=p)
        p /= p.sum(axis=0)
        others = p.copy()
        others[self.y, self.places] = 0.0
        up = others @ self.sorted
        # 1 - p of the own class, as a sum: near p = 1 a difference would have no digits.
        down = np.add.reduceat(self.sorted * others.sum(axis=0), [0, *self.ends[:-1]])
        tiny = np.finfo(np.float64).tiny
        up, down = np.maximum(up, tiny), np.maximum(down, tiny)
        return up, down, p, float(np.abs(np.log(up / down)).max())

    def _newton(self, up: Matrix, down: Matrix, p: Matrix) -> Matrix:
        """-J^+ r with J_cl = d r_c / d b_l."""
        weighted = self.sorted * p
        mine, products = weighted[self.y, self.places], np.empty((self.k, self.k))
        for c, (first, last) in enumerate(zip([0, *self.ends[:-1]], self.ends, strict=True)):
            products[c] = p[:, first:last] @ mine[first:last]
        weighted[self.y, self.places] = 0.0
        rise = np.diag(weighted.sum(axis=1)) - weighted @ p.T
        fall = np.diag(np.add.reduceat(mine, [0, *self.ends[:-1]])) - products
        jacobian = rise / up[:, None] + fall / down[:, None]
        step = -np.linalg.lstsq(jacobian, np.log(up / down), rcond=1e-12)[0]
        largest = float(np.abs(step).max())
        return np.asarray(step * min(1.0, 50 / max(largest, 1e-300)))


class OutputShifts(Shifts):
    """Targets of a regression: each has its own b, as in `WithIntercept`."""

    def __init__(self, loss: Outputs, y: Matrix, weights: Matrix) -> None:
        self.loss, self.y, self.weights = loss, y, weights.astype(np.float64)
        self.columns: list[WithIntercept] | None = None
        if not (loss.loss.quadratic and loss.loss.residual):
            nothing = DenseRows(np.zeros((len(y), 1), y.dtype))
            self.columns = [
                WithIntercept(LinearModel(nothing, column, loss.loss, weights)) for column in y.T
            ]

    def best(self, z: Matrix) -> Matrix:
        if self.columns is None:
            # Each parabola is least where its slope says; the sum, of one curvature, at their mean.
            least = z - self.loss.slope(z, self.y) / self.loss.curvature
            share = self.weights / self.weights.sum()
            return np.asarray((share @ (least - z)).astype(z.dtype))
        each = zip(self.columns, z.T, strict=True)
        return np.array([column.shift(np.ascontiguousarray(part)) for column, part in each],
                        z.dtype)  # fmt: skip

    def inverse(self, s: Matrix) -> Matrix:
        total = (self.weights / len(self.weights)) @ s
        return np.diag(np.divide(1.0, total, out=np.zeros_like(total), where=total > 0))


def shifts_for(loss: JointLoss, y: Matrix, k: int, weights: Matrix) -> Shifts:
    """What finds the intercepts of a loss."""
    if isinstance(loss, Softmax):
        return SoftmaxShifts(y, k, weights)
    if isinstance(loss, Outputs):
        return OutputShifts(loss, y, weights)
    raise TypeError(f"the best intercepts for {loss!r} are not known; fit without an intercept.")
