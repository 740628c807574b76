"""A set that counts how often it is asked."""

from typing import Any

from numpy.typing import NDArray

from adafw.constraints.base import Constraint
from adafw.typing import AnyArray, AnyDType, Plain, Shape


class CountedSet(Constraint):
    """Passes everything on to `constraint`, counting LMO calls and projections."""

    def __init__(self, constraint: Constraint) -> None:
        self.constraint = constraint
        self.called = constraint.called  # type: ignore[misc]
        self.projection = constraint.projection  # type: ignore[misc]
        self.exact_diameter = constraint.exact_diameter  # type: ignore[misc]
        self.radial = constraint.radial  # type: ignore[misc]
        self.lmo_calls = 0
        self.projections = 0

    def lmo(self, g: AnyArray) -> AnyArray:
        self.lmo_calls += 1
        return self.constraint.lmo(g)

    def project(self, x: AnyArray, h: AnyArray | None = None) -> AnyArray:
        self.projections += 1
        return self.constraint.project(x, h)

    def start(self, shape: Shape, dtype: AnyDType = float) -> AnyArray:
        return self.constraint.start(shape, dtype)

    def diameter(self, shape: Shape, p: float = 2) -> float:
        return self.constraint.diameter(shape, p)

    def gap(self, x: AnyArray, g: AnyArray) -> float:
        self.lmo_calls += 1
        return self.constraint.gap(x, g)

    def minimise_quadratic(
        self, centre: AnyArray, linear: AnyArray, matrix: NDArray[Any]
    ) -> NDArray[Any] | None:
        return self.constraint.minimise_quadratic(centre, linear, matrix)

    def violation(self, x: AnyArray) -> float:
        return self.constraint.violation(x)

    def contains(self, x: AnyArray, tol: float | None = None) -> bool:
        return self.constraint.contains(x, tol)

    def describe(self) -> Plain:
        return self.constraint.describe()

    @property
    def bare(self) -> Constraint:
        return self.constraint.bare

    @property
    def scale(self) -> float:
        return self.constraint.scale

    @property
    def shape(self) -> tuple[int, ...] | None:
        return self.constraint.shape
