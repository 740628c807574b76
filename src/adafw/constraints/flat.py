"""A set of matrices as one of vectors."""

from typing import Any

from numpy.typing import NDArray

from adafw.constraints.base import Constraint
from adafw.typing import AnyArray, AnyDType, Plain, Shape


class FlatSet(Constraint):
    """The points of `constraint`, of this shape, laid out flat: for methods that know vectors."""

    def __init__(self, constraint: Constraint, shape: tuple[int, ...]) -> None:
        self.constraint, self.point_shape = constraint, shape
        self.projection = constraint.projection  # type: ignore[misc]

    def lmo(self, g: AnyArray) -> AnyArray:
        return self.constraint.lmo(g.reshape(self.point_shape)).reshape(-1)

    def gap(self, x: AnyArray, g: AnyArray) -> float:
        return self.constraint.gap(x.reshape(self.point_shape), g.reshape(self.point_shape))

    def project(self, x: AnyArray, h: AnyArray | None = None) -> AnyArray:
        h = None if h is None else h.reshape(self.point_shape)
        return self.constraint.project(x.reshape(self.point_shape), h).reshape(-1)

    def start(self, shape: Shape, dtype: AnyDType = float) -> AnyArray:
        return self.constraint.start(self.point_shape, dtype).reshape(-1)

    def diameter(self, shape: Shape, p: float = 2) -> float:
        return self.constraint.diameter(self.point_shape, p)

    def minimise_quadratic(
        self, centre: AnyArray, linear: AnyArray, matrix: NDArray[Any]
    ) -> NDArray[Any] | None:
        return self.constraint.minimise_quadratic(centre, linear, matrix)

    def violation(self, x: AnyArray) -> float:
        return self.constraint.violation(x.reshape(self.point_shape))

    def describe(self) -> Plain:
        return self.constraint.describe()

    @property
    def bare(self) -> Constraint:
        return self

    @property
    def scale(self) -> float:
        return self.constraint.scale
