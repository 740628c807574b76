"""Brief coordinate descents: for columns at hand that have little to do with each other.

On such columns an epoch leaves a third to a half of what is missing, for two passes over the
columns in use. A Gram matrix would cost as much as a dozen epochs, and its model no fewer steps.
Where the loss is one that kernels know, a step is some models in one call (`kernels/brief.py`).
"""

import numpy as np

from adafw.constraints.base import Constraint
from adafw.objectives.kinds import Linear, model_of
from adafw.steps.corrective.base import Memory
from adafw.steps.corrective.descent import (
    BRIEF,
    FLAT,
    Descended,
    Working,
    descent,
    diagonals,
    product,
)
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
#: The same of several models in one call, an epoch: of the first ones, which have to find the face
#: and the multiplier, and of the others.
LEFT_AT_FIRST, LEFT_LATER = 0.8, 0.65
#: Models in a call, epochs before the set binds and where it does, the share of its violation that
#: ends a descent, and that of the first one's that ends all: for the first call and the others.
FIRST_CALL, LATER_CALLS = (4, 3, 2, 0.1, 0.02), (4, 3, 2, 0.1, 0.0005)


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
    if _compiled(f, shape):
        return True
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
    known, sampled = float(state.get("multiplier", 0.0)), "sample" in state
    compiled = not sampled and _compiled(f, shape)
    bound = start.bound or (compiled and known > 0)
    bound = bound and (not shape.open or float(g[support] @ x[support]) < 0)
    if not bound:
        curvature = _everywhere(point)
        least = _price(shape, x, g, curvature)
    fall = 0.0 if compiled else FALL  # all columns are looked at again after the first model
    fresh, _, price = steepest(shape, x, g, support, bound, start.level, x.size, least, fall)
    if support.size + fresh.size <= (0 if compiled else FEW):
        return None
    fills = 0 < least >= price
    note = start.note(price, state)
    if sampled:
        return x, note  # all rows cost too little here for a part of them to say so much
    wanted = np.full(x.size, compiled and not bound) | (x != 0)
    wanted[fresh] = True
    chosen = np.flatnonzero(wanted)
    at = Working(
        *point.rows.holding(chosen), x[chosen].astype(np.float64), start.slopes(chosen),
        shape.radius, shape.signed, bound or fills, price, calm=False, seed=t,
        pace=BRIEF, curvature=curvature,
    )  # fmt: skip
    quick = None
    if compiled:
        quick = _in_one_call(at, point, known if bound else 0.0, note)
    found = quick or descent(at, point)
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


def compile_call(at: Working, point: Point) -> None:
    """What steps of this kind may not have met, where they may come: short columns are enough."""
    rows, _ = point.model.rows.plain
    if rows.turned and point.model.in_one_pass:
        _in_one_call(at, point, 0.0, {})


def _compiled(f: Linear, shape: Shape) -> bool:
    """Whether several models are one call, which pays for fewer atoms and from the first point on.

    Labels that are written out have columns that are related, which a first call would not tell.
    """
    model = model_of(f)
    rows, _ = model.rows.plain
    return shape.open and model.in_one_pass and not rows.labels


def _in_one_call(at: Working, point: Point, known: float, note: Memory) -> Descended | None:
    """Several models; None where not even one led anywhere. `note` keeps the multiplier, if the set
    binds; `known` is the last one."""
    from adafw.kernels.brief import Rounds, Scored, Setting, brief

    model, w, whole = point.model, at.x.copy(), at.curvature is not None
    assert model.loss_code is not None
    largest = float(at.rows.largest)
    setting = Setting(at.radius, at.signed, at.bound, at.price, known, point.free, largest, whole)
    rounds = Rounds(*(FIRST_CALL if whole else LATER_CALLS), at.seed)
    done, binding, left, multiplier, value, z, slopes, bends = brief(
        Scored(model.loss_code, model.y, model.term_weights), at.rows.column_arrays(),
        at.chosen.view(np.uint64), setting, rounds, w, at.g, point.value, point.z, point.slopes,
        point.bends,
    )  # fmt: skip
    if not done:
        return None
    point.start(z, (value, slopes, bends))
    if binding:
        note["multiplier"] = multiplier
    related = left > (LEFT_AT_FIRST if whole else LEFT_LATER)
    return Descended(w, binding, False, 1.0 if related else 0.0)


def _price(shape: Shape, x: Array, g: Vector, curvature: tuple[Vector, Vector]) -> float:
    """The price at which the set is filled; where it is low, columns without curvature do that."""
    diagonal, _ = curvature
    return filling(shape, x, g, diagonal + FLAT * float(diagonal.mean()))


def _everywhere(point: Point) -> tuple[Vector, Vector]:
    """The diagonal of all columns."""
    return diagonals(point.rows, np.arange(point.rows.shape[1]), point)
