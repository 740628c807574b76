"""Vectors whose entries rise: effects that may only grow with a dose, a rank, an age."""

from dataclasses import dataclass

import numpy as np

from adafw import arrays, checks
from adafw.arrays import finite
from adafw.called import Called
from adafw.constraints.base import RadialSet, check_order, excess, metric_like
from adafw.typing import AnyArray, AnyDType, Shape


@dataclass(frozen=True, eq=False)
class Monotone(RadialSet):
    """{x : -radius <= x_1 <= x_2 <= ... <= x_n <= radius}, x a vector.

    lmo: the best of the n + 1 steps from -radius to radius, the first of equal ones; 0 if g = 0;
    O(n).
    project: any metric, by pooling adjacent violators, then clipping; O(n) (Barlow and others,
    1972).
    """

    called = Called("monotone", "-radius <= x_1 <= ... <= x_n <= radius", per_column=True)
    radius: float
    projection = "metric"

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", checks.radius(self.radius))

    def lmo(self, g: AnyArray) -> AnyArray:
        g = _vector(finite(g, "g"))
        slopes = arrays.host(g).astype(np.float64)
        if not slopes.any():
            return arrays.like(np.zeros_like(slopes), g)
        # Entries before the step are -radius: worth twice the sum of their slopes.
        step = int(np.argmax(np.concatenate([[0.0], np.cumsum(slopes)])))
        v = np.full(len(slopes), self.radius)
        v[:step] = -self.radius
        return arrays.like(v, g)

    def start(self, shape: Shape, dtype: AnyDType = float) -> AnyArray:
        return _vector(arrays.zeros(shape, dtype))

    def diameter(self, shape: Shape, p: float = 2) -> float:
        n = arrays.as_shape(shape)[0]
        return float(2 * self.radius * n ** (1 / check_order(p)))

    def violation(self, x: AnyArray) -> float:
        entries = arrays.host(_vector(x)).astype(np.float64)
        if not np.isfinite(entries).all():
            return float("nan")
        falls = -np.diff(entries)
        outside = np.abs(entries).max() - self.radius
        return excess(max(falls.max(initial=0.0), outside), self.radius)

    def project(self, x: AnyArray, h: AnyArray | None = None) -> AnyArray:
        from scipy.optimize import isotonic_regression

        x = _vector(finite(x, "x"))
        h = metric_like(h, x)
        weights = None if h is None else arrays.host(h).astype(np.float64)
        found = isotonic_regression(arrays.host(x).astype(np.float64), weights=weights).x
        return arrays.like(np.clip(found, -self.radius, self.radius), x)


def _vector(x: AnyArray) -> AnyArray:
    if len(x.shape) != 1:
        raise ValueError(f"this Monotone holds vectors, got shape {tuple(x.shape)}.")
    return x
