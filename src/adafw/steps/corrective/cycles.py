"""Brief coordinate descents: for columns at hand that have little to do with each other.

On such columns an epoch leaves a third to a half of what is missing, for two passes over the
columns in use. A Gram matrix would cost as much as a dozen epochs, and its model no fewer steps.
"""

import numpy as np

from adafw.constraints.base import Constraint
from adafw.objectives.kinds import Linear, model_of
from adafw.steps.corrective.base import Memory
from adafw.steps.corrective.descent import BRIEF, FLAT, Working, descent, diagonals, product
from adafw.steps.corrective.joining import FALL, Shape, filling, steepest
from adafw.steps.corrective.point import Point, Vector
from adafw.steps.corrective.remembering import reach
from adafw.steps.corrective.start import Outset, inside, placed, shape_of
from adafw.typing import Array

#: Columns above which they pay, of rows that are kept by columns.
NARROW = 512
#: Atoms above which they do: of fewer, a Gram matrix costs little.
FEW = 256
#: Rows there must be for each column: with fewer, those in use have much to do with each other.
ROWS_FOR_EACH = 2
#: Share of the violation that a descent may leave: columns that keep more have more to do with each
#: other, and a Gram matrix is worth its cost.
LEFT = 0.4


def pay(f: Linear, sampled: bool = False) -> bool:
    """Whether they may; of `sampled` rows, whether they may on all."""
    rows, _ = model_of(f).rows.plain
    m, n = rows.shape[0], rows.shape[-1]
    return rows.turned and n > NARROW and (sampled or m >= ROWS_FOR_EACH * n) and rows.alike


def near(f: Linear, constraint: Constraint, x: Array, g: Array) -> bool:
    """Whether the first of them, from x, is expected to fill the set with many atoms."""
    shape = shape_of(constraint)
    if shape is None or not pay(f):
        return False
    slopes = g.astype(np.float64, copy=False)
    steep = np.abs(slopes) if shape.signed else -slopes
    price = _price(shape, x, slopes, _everywhere(Point(f, x)))
    return price > FALL * float(steep.max()) and int(np.count_nonzero(steep > price)) > FEW


def cycled(f: Linear, start: Outset, t: int, state: Memory) -> tuple[Array, Memory] | None:
    """What such a descent leads to; None if a Gram matrix is the better way.

    All that the gradient names join at once. Before the set binds, weight has the price at which
    the model's diagonal would fill it, if that is above the usual one: the set then binds at once.
    """
    shape, x, g, support = start.shape, start.x, start.g, start.support
    if start.related or not pay(f, "sample" in state):
        return None
    point, curvature, least = Point(f, x), None, 0.0
    bound = start.bound and (not shape.open or float(g[support] @ x[support]) < 0)
    if not bound:
        curvature = _everywhere(point)
        least = _price(shape, x, g, curvature)
    fresh, _, price = steepest(shape, x, g, support, bound, start.level, x.size, least)
    if support.size + fresh.size <= FEW:
        return None
    fills = 0 < least >= price
    note = start.note(price, state)
    if "sample" in state:
        return x, note  # all rows cost too little here for a part of them to say so much
    wanted = x != 0
    wanted[fresh] = True
    chosen = np.flatnonzero(wanted)
    at = Working(
        *point.rows.holding(chosen), x[chosen].astype(np.float64), start.slopes(chosen),
        shape.radius, shape.signed, bound or fills, price, calm=False, seed=t,
        pace=BRIEF, curvature=curvature,
    )  # fmt: skip
    found = descent(at, point)
    w = inside(found.w, shape)
    note["bound"], note["calm"] = int(found.bound), int(found.calm)
    if found.left > LEFT:
        note["related"] = 1
    if start.bound:
        note["gap"] = start.gap
    note["reach"], precise = reach(f, x, point.z, state)
    if w is found.w and not point.free and x.dtype == np.float64 and precise:
        return placed(f, x, chosen, w, point.z, note, point.curves)
    return placed(f, x, chosen, w, product(at, w), note)


def _price(shape: Shape, x: Array, g: Vector, curvature: tuple[Vector, Vector]) -> float:
    """The price at which the set is filled; where it is low, columns without curvature do that."""
    diagonal, _ = curvature
    return filling(shape, x, g, diagonal + FLAT * float(diagonal.mean()))


def _everywhere(point: Point) -> tuple[Vector, Vector]:
    """The diagonal of all columns."""
    return diagonals(point.rows, np.arange(point.rows.shape[1]), point)
