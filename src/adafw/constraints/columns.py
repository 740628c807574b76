"""A set for each column of a matrix."""

import math
from dataclasses import dataclass

import numpy as np

from adafw import arrays
from adafw.arrays import finite, namespace
from adafw.constraints.base import Constraint, check_order, metric_like
from adafw.typing import AnyArray, AnyDType, Plain, Shape


@dataclass(frozen=True, eq=False, repr=False)
class Columns(Constraint):
    """{X : every column of the matrix X in C}: one vector of C an output of a model.

    `column` is C, a set of vectors. lmo, project, start and violation go column by column;
    diameters add up as D_p^p = columns * D_p(C)^p.
    """

    column: Constraint

    def __post_init__(self) -> None:
        if not isinstance(self.column, Constraint):
            raise TypeError(f"Columns must be made of a set of vectors, got {self.column!r}.")
        for name in ("projection", "exact_diameter"):
            object.__setattr__(self, name, getattr(self.column, name))

    @property
    def scale(self) -> float:
        return self.column.scale

    def lmo(self, g: AnyArray) -> AnyArray:
        g = _matrix(finite(g, "g"))
        return _stacked([self.column.lmo(part) for part in _columns(g)])

    def gap(self, x: AnyArray, g: AnyArray) -> float:
        pairs = zip(_columns(_matrix(x)), _columns(_matrix(g)), strict=True)
        return math.fsum(self.column.gap(*pair) for pair in pairs)

    def start(self, shape: Shape, dtype: AnyDType = float) -> AnyArray:
        rows, columns = _sizes(shape)
        return _stacked([self.column.start((rows,), dtype) for _ in range(columns)])

    def diameter(self, shape: Shape, p: float = 2) -> float:
        rows, columns = _sizes(shape)
        width = self.column.diameter((rows,), p)
        return float(np.linalg.norm(np.full(columns, width), check_order(p)))

    def violation(self, x: AnyArray) -> float:
        worst = [self.column.violation(part) for part in _columns(_matrix(x))]
        return math.nan if any(math.isnan(amount) for amount in worst) else max(worst)

    def contains(self, x: AnyArray, tol: float | None = None) -> bool:
        return all(self.column.contains(part, tol) for part in _columns(_matrix(x)))

    def project(self, x: AnyArray, h: AnyArray | None = None) -> AnyArray:
        x = _matrix(finite(x, "x"))
        h = metric_like(h, x)
        if h is None:
            return _stacked([self.column.project(part) for part in _columns(x)])
        pairs = zip(_columns(x), _columns(h), strict=True)
        return _stacked([self.column.project(*pair) for pair in pairs])

    def describe(self) -> Plain:
        return {"name": "Columns", "column": self.column.describe()}

    def __repr__(self) -> str:
        return f"Columns({self.column!r})"


def _sizes(shape: Shape) -> tuple[int, int]:
    sizes = arrays.as_shape(shape)
    if len(sizes) != 2:
        raise ValueError(f"this Columns holds matrices, got shape {sizes}.")
    return sizes[0], sizes[1]


def _matrix(x: AnyArray) -> AnyArray:
    _sizes(tuple(x.shape))
    return x


def _columns(x: AnyArray) -> list[AnyArray]:
    contiguous = x.T.contiguous() if arrays.is_tensor(x) else np.ascontiguousarray(x.T)
    return list(contiguous)


def _stacked(parts: list[AnyArray]) -> AnyArray:
    return namespace(parts[0]).stack(parts, 1)
