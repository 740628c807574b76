"""A set given by functions of the user's: its linear minimisation, and whatever else is known."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from adafw import arrays
from adafw.arrays import finite
from adafw.constraints.base import Constraint, check_shape, metric_like
from adafw.typing import AnyArray, AnyDType, Plain, Shape


@dataclass(frozen=True, eq=False, init=False, repr=False)
class UserSet(Constraint):
    """A set known through functions of yours.

    Parameters
    ----------
    lmo : function of g, returns a minimiser of <g, v> over the set.
    start : a point of the set, or a function of (shape, dtype) that returns one.
    contains : function of x, tells whether x is in the set; without it no point is checked.
    project : function of (x, h), returns the nearest point in the norm of diag(h); h may be None.
    """

    _lmo: Callable[[AnyArray], AnyArray]
    _start: AnyArray
    _contains: Callable[[AnyArray], bool] | None
    _project: Callable[[AnyArray, AnyArray | None], AnyArray] | None

    def __init__(
        self,
        lmo: Callable[[AnyArray], AnyArray],
        start: AnyArray | Callable[[Shape, AnyDType], AnyArray],
        contains: Callable[[AnyArray], bool] | None = None,
        project: Callable[[AnyArray, AnyArray | None], AnyArray] | None = None,
    ) -> None:
        if not callable(lmo):
            raise TypeError(f"lmo must be a function of g, got {type(lmo).__name__}.")
        if start is None:
            raise TypeError("start must be a point of the set or a function that returns one.")
        values = {
            "_lmo": lmo,
            "_start": start if callable(start) else finite(start, "start"),
            "_contains": contains,
            "_project": project,
            "projection": None if project is None else "metric",
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)  # frozen from here on

    @property
    def shape(self) -> tuple[int, ...] | None:
        return None if callable(self._start) else tuple(self._start.shape)

    def lmo(self, g: AnyArray) -> AnyArray:
        g = finite(g, "g")
        v = finite(self._lmo(g), "the point that lmo returned")
        if tuple(v.shape) != tuple(g.shape):
            raise ValueError(
                f"lmo must return an array of the shape of g, {tuple(g.shape)}, "
                f"got {tuple(v.shape)}."
            )
        return v

    def start(self, shape: Shape, dtype: AnyDType = float) -> AnyArray:
        if callable(self._start):
            return self._start(arrays.as_shape(shape), dtype)
        point = arrays.zeros(shape, dtype)
        check_shape(point, self.shape, "UserSet")
        point[...] = arrays.Constant(self._start, "start").like(point)
        return point

    def diameter(self, shape: Shape, p: float = 2) -> float:
        raise TypeError("a UserSet does not know its diameter; give it where it is asked for.")

    def violation(self, x: AnyArray) -> float:
        if self._contains is None:
            return math.nan
        return 0.0 if self._contains(x) else math.inf

    def contains(self, x: AnyArray, tol: float | None = None) -> bool:
        return self._contains is None or bool(self._contains(x))

    def project(self, x: AnyArray, h: AnyArray | None = None) -> AnyArray:
        if self._project is None:
            return super().project(x, h)
        x = finite(x, "x")
        return self._project(x, metric_like(h, x))

    def describe(self) -> Plain:
        return {"name": "UserSet", "lmo": getattr(self._lmo, "__qualname__", "lmo")}

    def __eq__(self, other: object) -> bool:
        return self is other  # two functions cannot be compared

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"UserSet(lmo={getattr(self._lmo, '__name__', 'lmo')})"
