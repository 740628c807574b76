"""Balls of matrices whose rows, or columns, are bounded one by one; the ball of the RMS norm."""

import math
from abc import abstractmethod
from dataclasses import dataclass

from adafw import arrays, checks
from adafw.arrays import finite, namespace
from adafw.constraints import projections
from adafw.constraints.base import RadialSet, check_order, excess, metric_like
from adafw.constraints.matrices import as_matrix, check_point_shape, matrix_shape
from adafw.typing import AnyArray as Array
from adafw.typing import AnyDType, Shape


@dataclass(frozen=True, eq=False, init=False, repr=False)
class LineBall(RadialSet):
    """{X : ||x_i||_2 <= radius for every line x_i}, a line being a row or a column of X.

    lmo: -radius g_i / ||g_i||_2 in every line, 0 where g_i = 0; O(n).
    project: any metric, line by line; Euclidean O(n).
    """

    radius: float
    matrix: tuple[int, int] | None
    projection = "metric"

    def __init__(self, radius: float, shape: tuple[int, int] | None = None) -> None:
        object.__setattr__(self, "radius", checks.radius(radius))
        object.__setattr__(self, "matrix", matrix_shape(shape))

    @property
    @abstractmethod
    def axis(self) -> int:
        """The axis that counts the lines."""

    @property
    def shape(self) -> tuple[int, ...] | None:
        return None if self.matrix is None else (self.matrix[0] * self.matrix[1],)

    def _lines(self, x: Array) -> Array:
        """The lines as rows."""
        a = as_matrix(x, self.matrix, type(self).__name__)
        return a if self.axis == 0 else a.T

    def _points(self, lines: Array, like: Array) -> Array:
        """The other way: lines as rows to a point shaped as `like`, in its dtype."""
        return arrays.cast(lines if self.axis == 0 else lines.T, like).reshape(like.shape)

    def lmo(self, g: Array) -> Array:
        g = finite(g, "g")
        directions, _ = _units(self._lines(g))
        return self._points((-self.radius) * directions + 0.0, g)  # the sum turns -0 into 0

    def start(self, shape: Shape, dtype: AnyDType = float) -> Array:
        check_point_shape(shape, self.matrix, type(self).__name__)
        return arrays.zeros(shape, dtype)

    def diameter(self, shape: Shape, p: float = 2) -> float:
        sizes = check_point_shape(shape, self.matrix, type(self).__name__)
        count, length = sizes[self.axis], sizes[1 - self.axis]
        p = check_order(p)
        return 2 * self.radius * float(count ** (1 / p)) * length ** max(0.0, 1 / p - 1 / 2)

    def violation(self, x: Array) -> float:
        _, lengths = _units(arrays.double(self._lines(x)))
        return excess(namespace(x).max(lengths) - self.radius, self.radius)

    def project(self, x: Array, h: Array | None = None) -> Array:
        x = finite(x, "x")
        h = metric_like(h, x)
        lines = arrays.double(self._lines(x))
        directions, lengths = _units(lines)
        outside = lengths > self.radius
        xp = namespace(lines)
        nearest = xp.where(outside[:, None], self.radius * directions, lines)
        if h is not None:
            weights = self._lines(h)
            for i in xp.argwhere(outside).reshape(-1).tolist():
                nearest[i] = projections.l2_ball(lines[i], weights[i], self.radius)
        return self._points(nearest, x)

    def __repr__(self) -> str:
        shape = "" if self.matrix is None else f", shape={self.matrix}"
        return f"{type(self).__name__}(radius={self.radius}{shape})"


class RowBall(LineBall):
    """{X : ||row||_2 <= radius for every row} over matrices; over vectors, with `shape`.

    The dual norm is the sum of the rows' l2 norms. lmo and project: see `LineBall`.
    """

    @property
    def axis(self) -> int:
        return 0


class ColumnBall(LineBall):
    """{X : ||column||_2 <= radius for every column} over matrices; over vectors, with `shape`.

    The dual norm is the sum of the columns' l2 norms. lmo and project: see `LineBall`.
    """

    @property
    def axis(self) -> int:
        return 1


@dataclass(frozen=True, eq=False)
class RMSBall(RadialSet):
    """{x : sqrt(mean of x_i^2) <= radius}: the l2 ball of radius * sqrt(n), whatever n is.

    lmo: -radius g / rms(g), 0 if g = 0; O(n).
    project: any metric, as that of `L2Ball`.
    """

    radius: float
    projection = "metric"

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", checks.radius(self.radius))

    def _length(self, x: Array) -> float:
        return self.radius * math.sqrt(arrays.size(x))

    def lmo(self, g: Array) -> Array:
        direction, _ = arrays.unit(finite(g, "g"))
        return (-self._length(g)) * direction + 0.0

    def start(self, shape: Shape, dtype: AnyDType = float) -> Array:
        return arrays.zeros(shape, dtype)

    def diameter(self, shape: Shape, p: float = 2) -> float:
        n = math.prod(arrays.as_shape(shape))
        return 2 * self.radius * math.sqrt(n) * n ** max(0.0, 1 / check_order(p) - 1 / 2)

    def violation(self, x: Array) -> float:
        length = self._length(x)
        return excess(arrays.norm(arrays.double(x)) - length, length)

    def project(self, x: Array, h: Array | None = None) -> Array:
        x = finite(x, "x")
        return projections.l2_ball(x, metric_like(h, x), self._length(x))


def _units(lines: Array) -> tuple[Array, Array]:
    """(rows over their l2 norms, the norms), 0 / 0 being 0; squares neither overflow nor vanish."""
    xp = namespace(lines)
    wide = lines if lines.dtype.itemsize > 2 else arrays.single(lines)
    largest = xp.amax(xp.abs(wide), 1)
    scaled = wide / xp.where(largest > 0, largest, xp.ones_like(largest))[:, None]
    lengths = xp.sqrt((scaled * scaled).sum(1))
    directions = scaled / xp.where(lengths > 0, lengths, xp.ones_like(lengths))[:, None]
    return directions, largest * lengths
