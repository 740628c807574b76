"""The ball of the group norm: the sum of the l2 norms of groups of coordinates."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw import arrays, checks
from adafw.arrays import Constant, finite, group_sums, namespace
from adafw.called import NEEDED, Called
from adafw.constraints import projections
from adafw.constraints.base import (
    RadialSet,
    check_order,
    check_shape,
    check_sizes,
    excess,
    metric_like,
)
from adafw.typing import AnyArray, AnyDType, Shape


@dataclass(frozen=True, eq=False)
class GroupBall(RadialSet):
    """{x : sum over groups G of ||x_G||_2 <= radius}.

    `groups` holds an integer label per coordinate, and has the shape of the points.

    lmo: -radius g_G / ||g_G||_2 on the group of largest ||g_G||_2, of equal ones that with the
    lowest label; 0 if g = 0; O(n).
    project: any metric; Euclidean O(n log n), else by nested Newton searches, O(n) a step.
    """

    called = Called("group", "sum of the groups' norms <= radius", {"groups": NEEDED})
    radius: float
    groups: AnyArray
    projection = "metric"

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", checks.radius(self.radius))
        given = Constant(self.groups, "groups").value
        if given.ndim == 0 or np.any(given != np.round(given)):
            raise ValueError("groups must be an array with an integer label per coordinate.")
        labels = np.unique(given, return_inverse=True)[1].reshape(given.shape)
        object.__setattr__(self, "groups", Constant(labels, "groups"))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.groups.value.shape)

    @cached_property
    def _count(self) -> int:
        return int(self.groups.value.max()) + 1

    def _norms(self, x: AnyArray) -> AnyArray:
        """l2 norms of the groups, of an x whose squares are in range."""
        return namespace(x).sqrt(group_sums(x * x, self.groups.index_like(x), self._count))

    def lmo(self, g: AnyArray) -> AnyArray:
        g = finite(g, "g")
        check_shape(g, self.shape, "GroupBall")
        xp = namespace(g)
        # Scaled by the largest entry first, so that the squares neither overflow nor vanish.
        largest = xp.max(xp.abs(g))
        unit = g / xp.where(largest > 0, largest, xp.ones_like(largest))
        norms = self._norms(unit)
        best = xp.argmax(norms)
        length = xp.where(norms[best] > 0, norms[best], xp.ones_like(norms[best]))
        chosen = self.groups.index_like(g) == best
        v = xp.where(chosen & (unit != 0), unit * (-self.radius / length), xp.zeros_like(unit))
        return arrays.cast(v, g)

    def start(self, shape: Shape, dtype: AnyDType = float) -> AnyArray:
        check_sizes(shape, self.shape, "GroupBall")
        return arrays.zeros(shape, dtype)

    def diameter(self, shape: Shape, p: float = 2) -> float:
        check_sizes(shape, self.shape, "GroupBall")
        largest = int(np.bincount(self.groups.value.astype(np.int64).ravel()).max())
        return 2 * self.radius * float(largest ** max(0.0, 1 / check_order(p) - 1 / 2))

    def violation(self, x: AnyArray) -> float:
        check_shape(x, self.shape, "GroupBall")
        # Relative to the radius before squaring, for radii whose square is out of range.
        return excess(self._norms(arrays.double(x) / self.radius).sum() - 1, 1.0)

    def project(self, x: AnyArray, h: AnyArray | None = None) -> AnyArray:
        x = finite(x, "x")
        check_shape(x, self.shape, "GroupBall")
        labels = self.groups.index_like(x)
        return projections.group_ball(x, metric_like(h, x), self.radius, labels, self._count)

    def __repr__(self) -> str:
        return f"GroupBall(radius={self.radius}, {self._count} groups of {self.groups.value.size})"


def consecutive(n: int, size: int) -> NDArray[np.integer[Any]]:
    """Labels of groups of `size` coordinates each, one after the other; the last may be shorter."""
    return np.arange(checks.integer(n, "n", 1)) // checks.integer(size, "size", 1)
