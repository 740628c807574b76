"""What the second-order correctors share: models are minimised over the set until f descends."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from adafw.constraints.base import Constraint
from adafw.objectives.line import Line
from adafw.steps.corrective.base import Memory
from adafw.steps.corrective.curvature import Hessian, Vector, View
from adafw.steps.spectral import backtrack
from adafw.typing import Array

_SHORT = 0.1  # a step that has to be cut below this had a model without the curvature it met
_PART = 3  # times as far as f descended: where a model looks for curvature it did not know
FINE = 1e-3  # the share of the gap that a model may leave where gaps hardly fall
_MODELS = 4  # models of one step, each with the curvature that the ones before met


@dataclass(frozen=True)
class Position:
    """A point, its predictions and its value."""

    x: Array
    z: Vector
    value: float


def at(seen: View, x: Array) -> Position:
    """The position at x."""
    z = seen.predictions(x)
    return Position(x, z, seen.value(z))


def weighed(seen: View, x: Array, state: Memory) -> Vector:
    """What entries of x weigh in the predictions: of the state, or computed once."""
    known = state.get("weights")
    whole = isinstance(known, np.ndarray) and known.shape == x.shape and known.dtype == x.dtype
    if known is None or not whole or not (known > 0).all():
        known = state["weights"] = seen.weights(x)
    return known


def descend(
    seen: View, constraint: Constraint, here: Position, g: Array, weights: Vector,
    minimise: Callable[[Hessian], tuple[Array, Vector | None]],
    known: Callable[[], float] = lambda: 0.0,
) -> Position:  # fmt: skip
    """A step towards the minimiser over the set of the model at `here`; `here` if none descends.

    `minimise` returns a point of the set, and what it changes in the predictions, if it knows;
    `known` what the slope towards that is not above, as rounding may leave little of <g, d>.

    gamma = 1 or less until f descends (Armijo). Where gamma < 0.1, H did not know of the
    curvature on the way (a loss is flat far out): H takes in that of the part that came into
    question, three times as far as f descends, and the model is minimised anew; the lowest of
    the points that these lead to is taken, as such an H may know of far too much.
    Where the model's minimiser is no way down, the vertex that the LMO returns is.
    """
    tried: list[Vector] = []
    best = here
    while True:
        y, move = minimise(seen.hessian(here.z, weights, tried))
        d = y - here.x
        slope = min(float(np.vdot(g, d)), known())
        if not slope < 0:
            y, move = constraint.lmo(g), None
            d = y - here.x
            slope = float(np.vdot(g, d))
        if not slope < 0:
            return here
        move = seen.predict(d) if move is None or not move.size else move
        values: dict[float, float] = {}

        def value(gamma: float, move: Vector = move, values: dict[float, float] = values) -> float:
            values[gamma] = seen.value(here.z + gamma * move)
            return values[gamma]

        gamma = backtrack(
            Line(value, lambda _: np.nan), here.value, here.value, slope, here.x.dtype
        )
        if gamma > 0 and (best is here or values[gamma] < best.value):
            x = y if gamma == 1 else here.x + gamma * d
            best = Position(x, here.z + gamma * move, values[gamma])
        if gamma >= _SHORT or len(tried) == _MODELS - 1:
            return best
        tried.append(min(1.0, _PART * gamma) * move)


def forcing(gap: float, state: Memory) -> float:
    """The share of the gap of f that is good enough for a model: less, the faster gaps fall.

    After Eisenstat and Walker (1996); the last gap is state. Where it hardly fell, the model may
    have been too coarse for the last digits, and is solved well.
    """
    last = state.get("gap", 0.0)
    state["gap"] = gap
    if not last > 0:
        return 0.3
    return FINE if gap > 0.5 * last else min(0.3, max(0.03, gap / last))
