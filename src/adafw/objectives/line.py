"""An objective on a line, as a line search sees it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """phi(gamma) = f(x + gamma d).

    `value` and `slope` give phi and phi' at gamma; `curvature` is phi'' where it is known to be
    one number, so that phi is a parabola, and None elsewhere.
    """

    value: Callable[[float], float]
    slope: Callable[[float], float]
    curvature: float | None = None
