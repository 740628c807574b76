"""Where an iteration on the l1 ball or a simplex begins, and how it ends: weights into a point."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adafw.constraints import L1Ball, Simplex, UnitSimplex
from adafw.constraints.base import Constraint
from adafw.objectives.kinds import Linear
from adafw.objectives.linear_model import Curves
from adafw.steps.corrective.base import Memory
from adafw.steps.corrective.joining import Shape
from adafw.steps.corrective.point import Vector
from adafw.steps.corrective.remembering import keep
from adafw.typing import Array

#: Share of the last gap that a brief descent may leave once the set binds: columns on which it
#: leaves more have more to do with each other, and a Gram matrix is worth its cost.
LEFT_OF_GAP = 0.7


def shape_of(constraint: Constraint) -> Shape | None:
    """What atoms of the set may do; None if it has none with one coordinate each."""
    ball = constraint.bare
    if type(ball) is L1Ball:
        return Shape(ball.radius, signed=True, open=True)
    if type(ball) is UnitSimplex:
        return Shape(ball.radius, signed=False, open=True)
    if type(ball) is Simplex:
        return Shape(ball.radius, signed=False, open=False)
    return None


@dataclass(frozen=True)
class Outset:
    """x in the set, the gradient there in double precision, and what is known of both."""

    shape: Shape
    x: Array
    g: Vector
    support: NDArray[np.int64]
    norm: float
    slack: float
    bound: bool  #: whether the set binds
    level: float  #: the last price on sum |x|, -1 if there was none
    gap: float
    related: bool  #: whether columns have much to do with each other

    @classmethod
    def of(cls, shape: Shape, x: Array, g: Vector, gap: float, state: Memory) -> "Outset":
        """From what the last iteration left."""
        support = np.flatnonzero(x != 0)  # several times as fast as of numbers
        norm = float(np.abs(x[support]).sum())
        slack = max(0.0, shape.radius - norm) if shape.open else 0.0
        if slack <= 1e-9 * shape.radius:
            slack = 0.0
        # A step that was cut short leaves some slack, though the set binds.
        bound = slack == 0.0 or (bool(state.get("bound")) and slack < 0.1 * shape.radius)
        level = float(state.get("level", -1.0))
        if state.get("norm", -1.0) > 0.99 * norm:
            level = 0.0  # weight no longer grows: the set does not bind, and nothing must cost
        slow = bound and gap > LEFT_OF_GAP * state.get("gap", np.inf)
        related = slow or bool(state.get("related"))
        return cls(shape, x, g, support, norm, slack, bound, level, gap, related)

    def note(self, price: float, state: Memory) -> Memory:
        """What every iteration leaves to the next one."""
        note: Memory = {"level": price, "norm": self.norm, "bound": int(self.bound)}
        if "sample" in state:
            note["sample"] = state["sample"]
        if self.related:
            note["related"] = 1
        return note

    def slopes(self, chosen: NDArray[np.int64]) -> Vector:
        """g on these columns, so that the multiplier is above 0 where the set binds.

        On sum x = radius a constant slope means nothing: one is added.
        """
        slopes = self.g[chosen]
        if self.shape.open:
            return slopes
        multiplier = -float(slopes @ self.x[chosen].astype(np.float64)) / self.shape.radius
        return slopes - max(0.0, float(np.abs(slopes + multiplier).max()) - multiplier)


def inside(w: Vector, shape: Shape) -> Vector:
    """The weights within the set to the last digit."""
    norm = float(np.abs(w).sum())
    if norm > shape.radius or (not shape.open and norm > 0):
        return np.asarray(w * (shape.radius / norm))
    return w


def placed(
    f: Linear, x: Array, chosen: NDArray[np.int64], w: Vector, z: Vector,
    note: Memory, curves: Curves | None = None,
) -> tuple[Array, Memory]:  # fmt: skip
    """(x with these entries, state): A x is at hand, and saves the next gradient a pass.

    `curves` are those at A x, if they are known, too.
    """
    new = np.zeros_like(x)
    new[chosen] = w + 0.0  # no -0.0, which would be printed
    if x.dtype == np.float64:
        keep(f, new, f.rows.shifted(z, new), note, curves)
    return new, note
