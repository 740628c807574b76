"""Lower and upper bounds on every coordinate."""

from dataclasses import dataclass

import numpy as np

from adafw import arrays, checks
from adafw.arrays import Constant, finite, namespace
from adafw.called import NEEDED, Called
from adafw.constraints.base import (
    Constraint,
    check_order,
    check_shape,
    check_sizes,
    excess,
    metric_like,
)
from adafw.typing import AnyArray, AnyDType, Shape


@dataclass(frozen=True, eq=False)
class Box(Constraint):
    """{x : lower_i <= x_i <= upper_i}, bounds being finite numbers or arrays.

    lmo: lower_i where g_i > 0, upper_i where g_i < 0, their midpoint where g_i = 0; O(n).
    project: clipping, the same in every metric; O(n).
    """

    called = Called("box", "lower_i <= x_i <= upper_i", {"lower": NEEDED, "upper": NEEDED})
    lower: AnyArray
    upper: AnyArray
    projection = "metric"

    def __post_init__(self) -> None:
        lower, upper = Constant(self.lower, "lower"), Constant(self.upper, "upper")
        try:
            ordered = np.all(lower.value <= upper.value)
        except ValueError:
            raise ValueError(
                f"lower and upper must have shapes that fit, got {lower.value.shape} and "
                f"{upper.value.shape}."
            ) from None
        if not ordered:
            above = np.argmax(np.ravel(lower.value > upper.value))
            low, high = np.broadcast_arrays(lower.value, upper.value)
            raise ValueError(
                "lower must be <= upper in every entry, got "
                f"{low.flat[above]:g} > {high.flat[above]:g} at entry {above}."
            )
        largest = max(np.abs(lower.value).max(), np.abs(upper.value).max())
        if largest > checks.LONGEST:
            raise ValueError(
                f"lower and upper must be at most {checks.LONGEST:g} in size, got {largest:g}."
            )
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    @property
    def shape(self) -> tuple[int, ...] | None:
        shape = np.broadcast_shapes(self.lower.value.shape, self.upper.value.shape)
        return shape or None  # numbers bound points of any shape

    @property
    def scale(self) -> float:
        return float(max(np.abs(self.lower.value).max(), np.abs(self.upper.value).max())) or 1.0

    def lmo(self, g: AnyArray) -> AnyArray:
        g = finite(g, "g")
        check_shape(g, self.shape, "Box")
        xp, lower, upper = namespace(g), self.lower.like(g), self.upper.like(g)
        middle = lower / 2 + upper / 2  # their difference may be out of range
        if arrays.is_tensor(g) or self.shape is not None:
            return xp.where(g > 0, lower, xp.where(g < 0, upper, middle))
        # A look-up is four times as fast, as nothing has to be guessed: signs are random.
        side = (g > 0).view(np.int8) - (g < 0).view(np.int8) + np.int8(1)
        return np.stack([upper, middle, lower]).take(side).reshape(g.shape)

    def start(self, shape: Shape, dtype: AnyDType = float) -> AnyArray:
        return self.project(arrays.zeros(shape, dtype))

    def diameter(self, shape: Shape, p: float = 2) -> float:
        check_sizes(shape, self.shape, "Box")
        width = np.broadcast_to(self.upper.value - self.lower.value, arrays.as_shape(shape))
        return float(np.linalg.norm(width.ravel(), check_order(p)))

    def violation(self, x: AnyArray) -> float:
        check_shape(x, self.shape, "Box")
        below, above = self.lower.like(x) - x, x - self.upper.like(x)
        return excess(namespace(x).maximum(below, above).max(), self.scale)

    def project(self, x: AnyArray, h: AnyArray | None = None) -> AnyArray:
        x = finite(x, "x")
        check_shape(x, self.shape, "Box")
        metric_like(h, x)  # clipping is nearest in every metric, but a bad h is still refused
        return namespace(x).clip(x, self.lower.like(x), self.upper.like(x))


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Nonnegative(Box):
    """{x : 0 <= x_i <= radius}: the box of coefficients that must not be negative.

    lmo, project: those of `Box`. Where no entry reaches the radius, it stands for x >= 0 alone.
    """

    called = Called("nonnegative", "0 <= x_i <= radius")
    radius: float
    radial = True

    def __init__(self, radius: float) -> None:
        object.__setattr__(self, "radius", checks.radius(radius))
        object.__setattr__(self, "lower", 0.0)
        object.__setattr__(self, "upper", self.radius)
        self.__post_init__()

    @property
    def scale(self) -> float:
        return self.radius

    def __repr__(self) -> str:
        return f"Nonnegative(radius={self.radius})"
