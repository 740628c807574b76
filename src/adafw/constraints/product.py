"""Sets side by side: each holds a stretch of the coordinates."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from adafw import arrays
from adafw.arrays import finite, namespace
from adafw.constraints.base import Constraint, check_order, check_shape, check_sizes, metric_like
from adafw.typing import AnyArray, AnyDType, Plain, Shape


@dataclass(frozen=True, eq=False, repr=False)
class Product(Constraint):
    """{x : its first n_1 entries in C_1, the next n_2 in C_2, ...}, x a vector.

    `blocks` is a list of pairs (set, size); a size may be a shape, such as (3, 3) for a Birkhoff
    polytope. lmo, project, start and violation go block by block, and cost what the blocks cost;
    diameters add up as D_p^p = sum of the blocks' D_p^p.
    """

    blocks: Sequence[tuple[Constraint, tuple[int, ...]]]

    def __post_init__(self) -> None:
        blocks = tuple(_block(block) for block in self.blocks)
        if not blocks:
            raise ValueError("a Product needs at least one pair (set, size), got none.")
        object.__setattr__(self, "blocks", blocks)
        kinds = {constraint.projection for constraint, _ in blocks}
        known = None if None in kinds else "euclidean" if "euclidean" in kinds else "metric"
        object.__setattr__(self, "projection", known)
        exact = all(constraint.exact_diameter for constraint, _ in blocks)
        object.__setattr__(self, "exact_diameter", exact)

    @property
    def shape(self) -> tuple[int, ...]:
        return (sum(math.prod(size) for _, size in self.blocks),)

    @property
    def scale(self) -> float:
        return max(constraint.scale for constraint, _ in self.blocks)

    def parts(self, *points: AnyArray) -> Iterator[tuple[Constraint, list[AnyArray]]]:
        """Each set with its stretch of the points, shaped as the set wants it."""
        begin = 0
        for constraint, size in self.blocks:
            end = begin + math.prod(size)
            yield constraint, [point[begin:end].reshape(size) for point in points]
            begin = end

    def _joined(self, parts: list[AnyArray]) -> AnyArray:
        return namespace(parts[0]).concatenate([part.reshape(-1) for part in parts])

    def lmo(self, g: AnyArray) -> AnyArray:
        g = finite(g, "g")
        check_shape(g, self.shape, "Product")
        return self._joined([constraint.lmo(part) for constraint, (part,) in self.parts(g)])

    def gap(self, x: AnyArray, g: AnyArray) -> float:
        return math.fsum(constraint.gap(*parts) for constraint, parts in self.parts(x, g))

    def start(self, shape: Shape, dtype: AnyDType = float) -> AnyArray:
        check_shape(arrays.zeros(shape, dtype), self.shape, "Product")
        return self._joined([constraint.start(size, dtype) for constraint, size in self.blocks])

    def diameter(self, shape: Shape, p: float = 2) -> float:
        check_sizes(shape, self.shape, "Product")
        widths = [constraint.diameter(size, p) for constraint, size in self.blocks]
        return float(np.linalg.norm(widths, check_order(p)))

    def violation(self, x: AnyArray) -> float:
        check_shape(x, self.shape, "Product")
        worst = [constraint.violation(part) for constraint, (part,) in self.parts(x)]
        return math.nan if any(math.isnan(amount) for amount in worst) else max(worst)

    def contains(self, x: AnyArray, tol: float | None = None) -> bool:
        check_shape(x, self.shape, "Product")
        return all(constraint.contains(part, tol) for constraint, (part,) in self.parts(x))

    def project(self, x: AnyArray, h: AnyArray | None = None) -> AnyArray:
        x = finite(x, "x")
        check_shape(x, self.shape, "Product")
        h = metric_like(h, x)
        if h is None:
            return self._joined([c.project(part) for c, (part,) in self.parts(x)])
        return self._joined([c.project(*parts) for c, parts in self.parts(x, h)])

    def describe(self) -> Plain:
        blocks = [[constraint.describe(), list(size)] for constraint, size in self.blocks]
        return {"name": "Product", "blocks": blocks}

    def __repr__(self) -> str:
        inner = ", ".join(
            f"({constraint!r}, {size[0] if len(size) == 1 else size})"
            for constraint, size in self.blocks
        )
        return f"Product([{inner}])"


def _block(block: object) -> tuple[Constraint, tuple[int, ...]]:
    """(set, shape) from what a user gives as one block."""
    if not isinstance(block, tuple | list) or len(block) != 2:
        raise TypeError(f"a block of a Product must be a pair (set, size), got {block!r}.")
    constraint, size = block
    if not isinstance(constraint, Constraint):
        raise TypeError(f"a block of a Product must begin with a set, got {constraint!r}.")
    shape = arrays.as_shape(size)
    if constraint.shape is not None and constraint.shape != shape:
        raise ValueError(f"{constraint!r} holds points of shape {constraint.shape}, got {size}.")
    constraint.start(shape)  # a set of matrices refuses vectors, and says what to do
    return constraint, shape
