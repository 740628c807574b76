"""Losses of several predictions a sample: classes, or targets, that are learned together."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from adafw.losses.scalar import Loss, Task, Vector


class JointLoss(ABC):
    """A smooth loss of k predictions a sample: z has shape (m, k), values (m,), slopes that of z.

    What it declares means what it does in `Loss`; `curvature` bounds the largest eigenvalue of the
    k x k second derivative of a sample.
    """

    curvature: float
    lower_bound: float = -math.inf
    convex: ClassVar[bool] = True
    task: ClassVar[Task] = "regression"
    has_probabilities: ClassVar[bool] = False
    #: Whether the second derivative is diag(s) - s s^T, s being that of `second`; else diag(s).
    coupled: ClassVar[bool] = False
    #: Whether `second` is known.
    has_second: ClassVar[bool] = True

    @abstractmethod
    def value(self, z: Vector, y: Vector) -> Vector:
        """l(z_i, y_i)."""

    @abstractmethod
    def slope(self, z: Vector, y: Vector) -> Vector:
        """The gradient of l in z at (z_i, y_i)."""

    @abstractmethod
    def second(self, z: Vector, y: Vector) -> Vector:
        """s of shape (m, k): the second derivative of a sample is diag(s) - s s^T, or diag(s)."""

    @abstractmethod
    def targets(self, y: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
        """y as the loss takes it, one row a sample; what it cannot take is refused."""

    @abstractmethod
    def outputs(self, y: NDArray[Any]) -> int:
        """How many predictions a sample the targets ask for."""

    def curve(self, s: Vector, dz: Vector) -> Vector:
        """The second derivative times dz, from s = second(z, y)."""
        if not self.coupled:
            return s * dz
        return np.asarray(s * (dz - np.einsum("ij,ij->i", s, dz)[:, None]))

    def least(self, y: Vector) -> Vector:
        """A number <= min_z l(z, y_i), rounding included, for every i."""
        return np.full(len(y), self.lower_bound)

    def mean(self, z: Vector) -> Vector:
        """What a regression predicts at z."""
        return z

    def probabilities(self, z: Vector) -> Vector:
        """One column a class."""
        raise TypeError(f"{type(self).__name__} knows no probabilities; Softmax does.")


@dataclass(frozen=True)
class Softmax(JointLoss):
    """ln(sum_c exp(z_c)) - z_y, y in {0, ..., k - 1}: multinomial logistic regression.

    Its second derivative diag(p) - p p^T, p = softmax(z), has no eigenvalue above 1/2 (Boehning
    1992). Adding one number to all z of a sample changes nothing.
    """

    curvature: ClassVar[float] = 0.5  # type: ignore[misc]
    lower_bound = 0.0
    task = "classification"
    has_probabilities = True
    coupled = True

    def value(self, z: Vector, y: NDArray[Any]) -> Vector:
        own = np.take_along_axis(z, y[:, None], axis=1)
        with np.errstate(over="ignore"):  # inf is the honest value, and ends a run
            rest = z - own
        top = np.maximum(rest.max(axis=1), 0)  # of its own class the rest is 0
        each = np.exp(rest - top[:, None])
        # Less 1, which log1p adds: a small loss has all its digits, as line searches need them.
        each[np.arange(len(y)), y] = np.expm1(-top)
        return np.asarray(top + np.log1p(each.sum(axis=1)))

    def slope(self, z: Vector, y: Vector) -> Vector:
        p = self.probabilities(z)
        rows = np.arange(len(y))
        p[rows, y] = 0.0  # 1 - p loses the digits of the others where p is near 1
        p[rows, y] = -p.sum(axis=1)
        return p

    def second(self, z: Vector, y: Vector) -> Vector:
        return self.probabilities(z)

    def targets(self, y: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
        labels = np.asarray(y)
        if labels.ndim != 1 or labels.dtype.kind not in "iu" or (labels.size and labels.min() < 0):
            raise ValueError(
                "Softmax takes class numbers 0, 1, ..., one integer a row; number the labels "
                "first, for instance with np.unique(y, return_inverse=True)[1]."
            )
        return labels.astype(np.int64)

    def outputs(self, y: NDArray[Any]) -> int:
        return int(y.max()) + 1

    def probabilities(self, z: Vector) -> Vector:
        each = np.exp(z - z.max(axis=1, keepdims=True))
        each /= each.sum(axis=1, keepdims=True)
        return np.asarray(each)


@dataclass(frozen=True)
class Outputs(JointLoss):
    """sum_c l(z_c, y_c): one scalar loss for each of k targets, which share a set."""

    loss: Loss

    @property
    def curvature(self) -> float:  # type: ignore[override]
        """That of the loss."""
        return self.loss.curvature

    @property
    def lower_bound(self) -> float:  # type: ignore[override]
        """0 if that of the loss is at least 0: the number of targets is not known here."""
        return 0.0 if self.loss.lower_bound >= 0 else -math.inf

    @property
    def convex(self) -> bool:  # type: ignore[override]
        """That of the loss."""
        return self.loss.convex

    @property
    def has_second(self) -> bool:  # type: ignore[override]
        """That of the loss."""
        return self.loss.has_second

    @property
    def task(self) -> Task:  # type: ignore[override]
        """That of the loss."""
        return self.loss.task

    def value(self, z: Vector, y: Vector) -> Vector:
        return np.asarray(self.loss.value(z, y).sum(axis=1))

    def slope(self, z: Vector, y: Vector) -> Vector:
        return self.loss.slope(z, y)

    def second(self, z: Vector, y: Vector) -> Vector:
        return self.loss.second(z, y)

    def least(self, y: Vector) -> Vector:
        return np.asarray(self.loss.least(y).sum(axis=1))

    def mean(self, z: Vector) -> Vector:
        return self.loss.mean(z)

    def targets(self, y: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
        values = np.asarray(y)
        if values.ndim != 2 or values.dtype.kind not in "biuf":
            raise ValueError(
                f"Outputs takes numbers, one column a target, got {values.dtype} of shape "
                f"{values.shape}."
            )
        values = values.astype(dtype)
        if not np.isfinite(values).all():
            raise ValueError("y must be finite, got NaN or infinity.")
        self.loss.check(values)
        return values

    def outputs(self, y: NDArray[Any]) -> int:
        return int(y.shape[1])
