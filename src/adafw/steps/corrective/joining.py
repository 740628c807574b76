"""Which vertices radius * (+- e_j) join a working set, and what weight costs meanwhile."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adafw.steps.corrective.point import Vector, largest_entries

#: The price on weight, as a share of the largest slope left out, and how far it falls at a time.
PRICE, FALL = 0.3, 0.1
#: Share of the slope from which on atoms must join at which others join with them, once the set
#: binds: they would be missed an iteration later, which costs a pass over the data.
NEAR = 0.98


@dataclass(frozen=True)
class Shape:
    """sum |x| <= radius, all x >= 0 unless `signed`, = radius unless `open`."""

    radius: float
    signed: bool = True
    open: bool = True


def steepest(
    shape: Shape, x: Vector, g: Vector, support: NDArray[np.int64], bound: bool, level: float,
    room: int, least: float = 0.0, fall: float = FALL,
) -> tuple[NDArray[np.int64], int, float]:  # fmt: skip
    """(those that join, how many must, price on weight).

    Those must that are steeper than what those in use are on average.

    While the set does not bind, weight has a price, which falls to a tenth an iteration at most
    and stays near the steepest slope left out: without it, f would be minimised over few atoms with
    weights far too large. At most `room` join.
    """
    steep = np.abs(g) if shape.signed else -g
    most = float(steep.max())
    level = 0.0 if bound else max(fall * (most if level < 0 else min(level, most)), least)
    multiplier = -float(g[support] @ x[support]) / shape.radius
    if shape.open:
        multiplier = max(multiplier, level)
    steep[support] = -np.inf
    wanted = np.flatnonzero(steep > multiplier)
    if wanted.size <= room:
        if bound and wanted.size:
            # On sum x = radius the multiplier may be below 0.
            near = np.flatnonzero(steep > multiplier - (1 - NEAR) * abs(multiplier))
            return near[largest_entries(steep[near], room)], wanted.size, level
        return wanted, wanted.size, level
    kept = largest_entries(steep[wanted], room)
    others = float(np.delete(steep[wanted], kept).max())
    return wanted[kept], room, 0.0 if bound else max(level, PRICE * others)


def filling(shape: Shape, x: Vector, g: Vector, bends: Vector) -> float:
    """The price at which the separable model with these second derivatives fills the set; or 0.

    The sum of its minimiser's sizes is convex and falls with the price: Newton's method from 0
    rises to it.
    """
    known = bends > np.finfo(np.float64).tiny
    each = bends[known]
    ends = each * x[known] - g[known]
    ends, give, price = np.abs(ends) if shape.signed else ends, 1 / each, 0.0
    for _ in range(30):
        beyond = ends > price
        missing = float(((ends[beyond] - price) * give[beyond]).sum()) - shape.radius
        if not missing > 1e-6 * shape.radius:
            break
        price += missing / float(give[beyond].sum())
    return price
