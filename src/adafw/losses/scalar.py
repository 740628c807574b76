"""Losses of one prediction a sample.

A loss knows numbers, not matrices: value, slope (the derivative in z) and what others would have
to ask its type for: bounds, the kind of its targets, and what a prediction z means.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adafw import checks
from adafw.called import Called

Vector = NDArray[np.floating[Any]]
Task: TypeAlias = Literal["classification", "regression"]


class Loss(ABC):
    """A smooth loss, one number a sample.

    z holds one prediction a sample; losses of several are `JointLoss`.
    """

    #: How front ends call the loss; None if they do not.
    called: ClassVar[Called | None] = None
    #: sup of the second derivative in z; inf if there is none.
    curvature: float
    #: No value is below it, whatever z and y are; `least` may know more once y is given.
    lower_bound: float = -math.inf
    convex: ClassVar[bool] = True
    #: Whether the loss is a quadratic function of z, so that a line search is a formula.
    quadratic: ClassVar[bool] = False
    #: Whether the loss depends on z - y alone.
    residual: ClassVar[bool] = False
    #: What y is: one of the labels -1 and +1, or a number, which is at least `least_target`.
    task: ClassVar[Task] = "regression"
    least_target: ClassVar[float] = -math.inf
    #: Whether `second`, and whether `probabilities`, is defined: set by defining it.
    has_second: ClassVar[bool] = False
    has_probabilities: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # A flag of its own could say otherwise than the class does.
        cls.has_second = cls.second is not Loss.second
        cls.has_probabilities = cls.probabilities is not Loss.probabilities

    @abstractmethod
    def value(self, z: Vector, y: Vector) -> Vector:
        """l(z_i, y_i)."""

    @abstractmethod
    def slope(self, z: Vector, y: Vector) -> Vector:
        """The derivative of l in z at (z_i, y_i)."""

    def second(self, z: Vector, y: Vector) -> Vector:
        """The second derivative in z; where it jumps, either of its two values."""
        raise TypeError(
            f"{type(self).__name__} does not know its second derivative, which Newton steps and "
            "an intercept need."
        )

    def least(self, y: Vector) -> Vector:
        """A number <= min_z l(z, y_i), rounding included, for every i."""
        return np.full(y.shape, self.lower_bound)

    def stretch(self, z: Vector, y: Vector) -> float:
        """How many times as wide the loss had to bend for predictions z to be near; 0 if unknown.

        Far from where a loss bends it is flat, or so steep that its second derivative tells of
        next to nothing: Newton steps then get nowhere.
        """
        return 0.0

    def stretched(self, times: float) -> "Loss":
        """A loss with the same slopes far out that bends over so many times as wide a range."""
        return self

    def mean(self, z: Vector) -> Vector:
        """What a regression predicts at z: the mean of y, of which z is a function."""
        return z

    def probabilities(self, z: Vector) -> Vector:
        """One column a class, for one prediction (two classes) or one a class."""
        raise TypeError(f"{type(self).__name__} knows no probabilities; Logistic does.")

    def check(self, y: Vector) -> None:
        """Refuses targets that the loss cannot take."""


@dataclass(frozen=True)
class Squared(Loss):
    """(y - z)^2."""

    called = Called("squared", "(y - z)^2")
    curvature: ClassVar[float] = 2.0  # type: ignore[misc]
    lower_bound = 0.0
    quadratic = True
    residual = True

    def value(self, z: Vector, y: Vector) -> Vector:
        return (z - y) ** 2

    def slope(self, z: Vector, y: Vector) -> Vector:
        return 2 * (z - y)

    def second(self, z: Vector, y: Vector) -> Vector:
        return np.full_like(z, 2)


@dataclass(frozen=True)
class Logistic(Loss):
    """ln(1 + exp(-y z)), y in {-1, +1}."""

    called = Called("logistic", "ln(1 + exp(-y z)), with probabilities")
    curvature: ClassVar[float] = 0.25  # type: ignore[misc]
    lower_bound = 0.0
    task = "classification"

    def value(self, z: Vector, y: Vector) -> Vector:
        return np.logaddexp(0, -y * z)

    def slope(self, z: Vector, y: Vector) -> Vector:
        from scipy.special import expit

        return -y * expit(-y * z)

    def second(self, z: Vector, y: Vector) -> Vector:
        from scipy.special import expit

        return expit(z) * expit(-z)

    def stretch(self, z: Vector, y: Vector) -> float:
        return float(np.mean(np.abs(z))) / 4

    def stretched(self, times: float) -> Loss:
        return Stretched(self, times)

    def probabilities(self, z: Vector) -> Vector:
        """The logistic function of z, as two columns, or normalised over the classes."""
        from scipy.special import expit

        if z.ndim == 1:
            return np.column_stack([expit(-z), expit(z)])
        each = expit(z)
        total = each.sum(axis=1, keepdims=True)
        return np.divide(each, total, out=np.full_like(each, 1 / each.shape[1]), where=total > 0)

    def check(self, y: Vector) -> None:
        _check_signs(y, "Logistic")


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """max(0, 1 - y z)^2, y in {-1, +1}."""

    called = Called("squared_hinge", "max(0, 1 - y z)^2")
    curvature: ClassVar[float] = 2.0  # type: ignore[misc]
    lower_bound = 0.0
    task = "classification"

    def value(self, z: Vector, y: Vector) -> Vector:
        return np.maximum(0, 1 - y * z) ** 2

    def slope(self, z: Vector, y: Vector) -> Vector:
        return -2 * y * np.maximum(0, 1 - y * z)

    def second(self, z: Vector, y: Vector) -> Vector:
        return np.where(y * z < 1, z.dtype.type(2), z.dtype.type(0))

    def check(self, y: Vector) -> None:
        _check_signs(y, "SquaredHinge")


@dataclass(frozen=True)
class Huber(Loss):
    """r^2 for |r| <= delta, 2 delta |r| - delta^2 beyond, with r = z - y (Huber 1964).

    `delta` > 0: where the parabola ends and its tangent goes on.
    """

    called = Called("huber", "quadratic up to |y - z| = delta, linear beyond", {"delta": 1})
    delta: float = 1.0
    curvature: ClassVar[float] = 2.0  # type: ignore[misc]
    lower_bound = 0.0
    residual = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", checks.real(self.delta, "delta", 0, above=True))

    def value(self, z: Vector, y: Vector) -> Vector:
        # c (2 |r| - c) is both branches, without squaring an |r| that is far out.
        size = np.abs(z - y)
        c = np.minimum(size, self.delta)
        return c * (2 * size - c)

    def slope(self, z: Vector, y: Vector) -> Vector:
        return 2 * np.clip(z - y, -self.delta, self.delta)

    def second(self, z: Vector, y: Vector) -> Vector:
        return np.where(np.abs(z - y) < self.delta, z.dtype.type(2), z.dtype.type(0))

    def stretch(self, z: Vector, y: Vector) -> float:
        return float(np.median(np.abs(z - y))) / (4 * self.delta)

    def stretched(self, times: float) -> Loss:
        return Stretched(self, times)


@dataclass(frozen=True)
class SmoothedHinge(Loss):
    """s^2 / (2 width) for 0 <= s <= width, s - width / 2 beyond, 0 for s < 0; s = 1 - y z.

    The hinge loss max(0, s) with its kink rounded off (Rennie and Srebro 2005): it lies between
    the hinge and the hinge less width / 2. `width` > 0; y in {-1, +1}.
    """

    called = Called("smoothed_hinge", "the hinge, its kink rounded off", {"width": 1})
    width: float = 1.0
    lower_bound = 0.0
    task = "classification"

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", checks.real(self.width, "width", 0, above=True))

    @property
    def curvature(self) -> float:  # type: ignore[override]
        """1 / width."""
        return 1 / self.width

    def value(self, z: Vector, y: Vector) -> Vector:
        s = np.maximum(0, 1 - y * z)
        c = np.minimum(s, self.width)
        return c / self.width * (s - c / 2)

    def slope(self, z: Vector, y: Vector) -> Vector:
        return -y * (np.clip(1 - y * z, 0, self.width) / self.width)

    def second(self, z: Vector, y: Vector) -> Vector:
        s = 1 - y * z
        inside = (s > 0) & (s < self.width)
        return np.where(inside, z.dtype.type(self.curvature), z.dtype.type(0))

    def stretch(self, z: Vector, y: Vector) -> float:
        return float(np.median(np.abs(1 - y * z))) / (4 * self.width)

    def stretched(self, times: float) -> Loss:
        return SmoothedHinge(self.width * times)

    def check(self, y: Vector) -> None:
        _check_signs(y, "SmoothedHinge")


@dataclass(frozen=True)
class Poisson(Loss):
    """exp(z) - y z, y >= 0: minus the log-likelihood of counts y of mean exp(z), less ln(y!).

    Its curvature has no bound: a set must keep z small, and a step size cannot come from L.
    """

    called = Called("poisson", "for counts of mean exp(z)")
    curvature: ClassVar[float] = np.inf  # type: ignore[misc]
    least_target = 0.0

    def value(self, z: Vector, y: Vector) -> Vector:
        with np.errstate(over="ignore"):  # inf is the honest value, and ends a run
            return np.exp(z) - y * z

    def slope(self, z: Vector, y: Vector) -> Vector:
        with np.errstate(over="ignore"):
            return np.exp(z) - y

    def second(self, z: Vector, y: Vector) -> Vector:
        with np.errstate(over="ignore"):
            return np.exp(z)

    def least(self, y: Vector) -> Vector:
        """y - y ln y, reached at z = ln y; 0, its limit, at y = 0."""
        y = y.astype(np.float64)
        log = np.log(np.where(y > 0, y, 1.0))
        return y * (1 - log) - 4 * np.finfo(np.float64).eps * y * (1 + np.abs(log))

    def stretch(self, z: Vector, y: Vector) -> float:
        """The row furthest above rules all others; those below that count have no curvature."""
        off = z - np.log(np.maximum(y, 1))
        below = float(np.mean(np.maximum(-off, 0), where=y > 0)) if y.any() else 0.0
        return max(float(off.max()), below) / 4

    def stretched(self, times: float) -> Loss:
        return StretchedPoisson(times)

    def mean(self, z: Vector) -> Vector:
        """exp(z)."""
        with np.errstate(over="ignore"):
            return np.exp(z)

    def check(self, y: Vector) -> None:
        if (y < 0).any():
            raise ValueError(f"Poisson takes targets y >= 0, got {y.min():g}.")


@dataclass(frozen=True)
class Stretched(Loss):
    """T l(z / T, y) for another loss l, or T l(z / T, y / T) where that knows z - y alone."""

    loss: Loss
    times: float

    @property
    def curvature(self) -> float:  # type: ignore[override]
        """That of l / T."""
        return self.loss.curvature / self.times

    def _own(self, y: Vector) -> Vector:
        return y / self.times if self.loss.residual else y

    def value(self, z: Vector, y: Vector) -> Vector:
        return self.times * self.loss.value(z / self.times, self._own(y))

    def slope(self, z: Vector, y: Vector) -> Vector:
        return self.loss.slope(z / self.times, self._own(y))

    def second(self, z: Vector, y: Vector) -> Vector:
        return self.loss.second(z / self.times, self._own(y)) / self.times


@dataclass(frozen=True)
class StretchedPoisson(Loss):
    """T q exp((z - ln q) / T) - y z with q = max(y, 1): `Poisson` for T = 1.

    Minima stay at ln y for y >= 1.
    """

    times: float
    curvature: ClassVar[float] = np.inf  # type: ignore[misc]

    def _mean(self, z: Vector, y: Vector) -> Vector:
        q = np.maximum(y, 1)
        with np.errstate(over="ignore"):
            return q * np.exp((z - np.log(q)) / self.times)

    def value(self, z: Vector, y: Vector) -> Vector:
        return self.times * self._mean(z, y) - y * z

    def slope(self, z: Vector, y: Vector) -> Vector:
        return self._mean(z, y) - y

    def second(self, z: Vector, y: Vector) -> Vector:
        return self._mean(z, y) / self.times


def _check_signs(y: Vector, name: str) -> None:
    wrong = y[np.abs(y) != 1]
    if wrong.size:
        raise ValueError(
            f"{name} takes labels -1 and +1, got {wrong[0]:g}; "
            "map the labels first, for instance with np.where(y == positive, 1, -1)."
        )
