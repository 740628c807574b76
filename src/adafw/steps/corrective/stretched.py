"""From far out: a loss that bends over as wide a range as predictions lie, then over less and less.

Where most residuals are many times Huber's delta, few rows bend, and models say nothing of the
others; where predictions are hundreds above the logarithms of the counts, a Newton step on exp
brings them down by 1. A loss that bends over T times as wide a range (`Loss.stretched`) has neither
trouble, and its minimiser over the set is a good start for T / 4.
"""

import math

import numpy as np

from adafw.constraints.base import Constraint
from adafw.objectives import LinearModel, WithIntercept
from adafw.objectives.base import FiniteSum
from adafw.objectives.kinds import Linear, model_of
from adafw.steps.corrective.base import AnyCorrector, Memory
from adafw.typing import Array

#: How far out a run must begin, and by how much T falls at a time.
FAR, FALL = 8.0, 4.0
#: Iterations for one T, and the share of its value that a gap ends them at.
ITERATIONS, ENOUGH = 8, 1e-2


def stretch(f: FiniteSum, x: Array) -> float:
    """T at x; 0 where it is near, or the loss has no wider form."""
    if not isinstance(f, Linear):
        return 0.0
    model = model_of(f)
    z, b = f.predictions(x)
    times = model.loss.stretch(z + b, model.y)
    return times if np.isfinite(times) and times > FAR else 0.0


def finite_start(corrector: AnyCorrector, f: FiniteSum, constraint: Constraint, x: Array) -> Array:
    """x, or where f is infinite there a point where it is not, if the stretched f leads to one."""
    if not isinstance(f, Linear) or math.isfinite(model_of(f).loss.curvature):
        return x
    with np.errstate(over="ignore", invalid="ignore"):
        if math.isfinite(f.value(x)) or not (times := stretch(f, x)):
            return x
        found = unstretched(corrector, f, constraint, x, times, corrector.init(x))
    return x if found is None else found[0]


def unstretched(
    corrector: AnyCorrector,
    f: Linear,
    constraint: Constraint,
    x: Array,
    times: float,
    state: Memory,
) -> tuple[Array, Memory] | None:
    """(a lower point, what is to be remembered) from f stretched so many times, or less.

    None if there is no lower one before f itself is reached. Linear minimisations are not counted.
    """
    y, before = x, f.value(x)
    while times > 1.0:
        y = _minimised(corrector, _stretched(f, times), constraint.bare, y, state)
        times /= FALL
        if y is not x and f.value(y) < before:
            memory = corrector.init(y)
            for name in ("level", "norm", "bound", "weights"):  # the rest belongs to this T
                if name in state:
                    memory[name] = state[name]
            if times > 1.0:
                memory["stretch"] = times
            return y, memory
    return None


def _minimised(
    corrector: AnyCorrector, f: Linear, ball: Constraint, x: Array, state: Memory
) -> Array:
    """A point near the minimiser of f over the ball, from x."""
    for name in ("chosen", "gram", "bends", "held", "predictions", "reach"):
        state.pop(name, None)  # type: ignore[misc]
    for k in range(ITERATIONS):
        value, g = f.value_and_gradient(x)
        if not np.isfinite(g).all() or ball.gap(x, g) <= ENOUGH * abs(value):
            break
        new, kept = corrector.improve(f, ball, x, g, k + 1, state)
        state.update(kept)
        if new is x:
            break
        x = new
    return x


def _stretched(f: Linear, times: float) -> Linear:
    model = model_of(f)
    wide = LinearModel(model.rows, model.y, model.loss.stretched(times), model.sample_weight)
    return WithIntercept(wide) if isinstance(f, WithIntercept) else wide
