"""Scalar losses l(z, y) of a prediction z and a target y, without any factor 1/2.

A loss knows numbers, not matrices: value, slope (the derivative in z) and a bound on its
curvature (the second derivative in z), which is inf where there is none.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.floating[Any]]


class Loss(ABC):
    """A smooth loss, entry by entry."""

    #: sup of the second derivative in z; inf if there is none.
    curvature: float
    #: whether the loss is a quadratic function of z, so that a line search is a formula.
    quadratic: ClassVar[bool] = False
    convex: ClassVar[bool] = True

    @abstractmethod
    def value(self, z: Vector, y: Vector) -> Vector:
        """l(z_i, y_i)."""

    @abstractmethod
    def slope(self, z: Vector, y: Vector) -> Vector:
        """The derivative of l in z at (z_i, y_i)."""

    def check(self, y: Vector) -> None:
        """Refuses targets that the loss cannot take."""


@dataclass(frozen=True)
class Squared(Loss):
    """(y - z)^2."""

    curvature: ClassVar[float] = 2.0  # type: ignore[misc]
    quadratic: ClassVar[bool] = True

    def value(self, z: Vector, y: Vector) -> Vector:
        return (z - y) ** 2

    def slope(self, z: Vector, y: Vector) -> Vector:
        return 2 * (z - y)


@dataclass(frozen=True)
class Logistic(Loss):
    """ln(1 + exp(-y z)), y in {-1, +1}."""

    curvature: ClassVar[float] = 0.25  # type: ignore[misc]

    def value(self, z: Vector, y: Vector) -> Vector:
        return np.logaddexp(0, -y * z)

    def slope(self, z: Vector, y: Vector) -> Vector:
        from scipy.special import expit

        return -y * expit(-y * z)

    def check(self, y: Vector) -> None:
        _check_signs(y, "Logistic")


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """max(0, 1 - y z)^2, y in {-1, +1}."""

    curvature: ClassVar[float] = 2.0  # type: ignore[misc]

    def value(self, z: Vector, y: Vector) -> Vector:
        return np.maximum(0, 1 - y * z) ** 2

    def slope(self, z: Vector, y: Vector) -> Vector:
        return -2 * y * np.maximum(0, 1 - y * z)

    def check(self, y: Vector) -> None:
        _check_signs(y, "SquaredHinge")


def _check_signs(y: Vector, name: str) -> None:
    wrong = y[np.abs(y) != 1]
    if wrong.size:
        raise ValueError(
            f"{name} takes labels -1 and +1, got {wrong[0]:g}; "
            "map the labels first, for instance with np.where(y == positive, 1, -1)."
        )
