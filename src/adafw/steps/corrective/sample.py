"""A first point from a part of the rows: most of the way at a fraction of its price."""

import numpy as np

from adafw.constraints.base import Constraint
from adafw.objectives import LinearModel, WithIntercept
from adafw.objectives.base import FiniteSum
from adafw.objectives.kinds import Linear, model_of
from adafw.steps.corrective.base import AnyCorrector, Memory
from adafw.typing import Array

#: One row in so many, of data with so many rows at least.
EVERY, LEAST_ROWS = 8, 16_384
#: Rows of the sample for each coefficient: fewer, and its minimiser says little about all rows.
ROWS_EACH = 10
#: Iterations on the sample, and the share of the value that its gap ends them at.
ITERATIONS, ENOUGH = 8, 1e-2
#: Bytes of a sample that has to travel, at most, and of a stored entry with its column's number.
TRAVEL, ENTRY = 1 << 26, 12


def solved_on_sample(
    corrector: AnyCorrector, f: FiniteSum, constraint: Constraint, x: Array, g: Array
) -> tuple[Array, Memory] | None:
    """(a point near the minimiser over every eighth row, what is to be remembered), or None.

    None if there are too few rows, they are on a disk (where it saved no passes), x is no plain
    start, the corrector is as good as there from x (`near`), or the point is no better than x for
    all rows. The sample is given up where it needs so many coefficients that it would learn its own
    noise. Linear minimisations over it are not counted, nor its gradients.
    """
    if np.count_nonzero(x) > 1 or f.n_terms < LEAST_ROWS or corrector.near(f, constraint, x, g):
        return None
    if (part := _sample(f, corrector.few, x.size)) is None:
        return None
    ball, y, state = constraint.bare, x, corrector.init(x)
    state["sample"] = 1
    for _ in range(ITERATIONS):
        value, g = part.value_and_gradient(y)
        if ball.gap(y, g) <= ENOUGH * abs(value):
            break
        new, kept = corrector.improve(part, ball, y, g, 1, state)
        if new is y or (corrector.few and ROWS_EACH * np.count_nonzero(new) > part.n_terms):
            break
        y, state = new, kept
    before = f.value(x)  # first, so that what f remembers is at y, where the next iteration begins
    if y is x or not f.value_and_gradient(y)[0] < before:  # in one pass, where there is one
        return None
    memory = corrector.init(y)
    for name in ("level", "norm", "bound"):  # the rest belongs to the rows of the sample
        if name in state:
            memory[name] = state[name]
    return y, memory


def _sample(f: FiniteSum, few: bool, n: int) -> LinearModel | WithIntercept | None:
    """The objective of every eighth row; None where that is not worth while, or has none."""
    if not isinstance(f, Linear) or f.n_terms < LEAST_ROWS:
        return None
    model = model_of(f)
    every = EVERY
    if model.rows.remote:  # the same rows as here, but for data of more than some 500 MB
        every = max(every, -(-ENTRY * model.rows.stored // TRAVEL))
    rows = np.arange(0, f.n_terms, every)
    enough = rows.size >= LEAST_ROWS // EVERY and (few or ROWS_EACH * n <= rows.size)
    if model.rows.streamed or not enough:
        return None
    weights = None if model.sample_weight is None else model.sample_weight[rows]
    if weights is not None and not weights.any():
        return None
    some = model.rows.take(rows)
    # So that steps on them are of the kind of those on all rows.
    some.plain[0].turned = model.rows.plain[0].turned
    part = LinearModel(some, model.y[rows], model.loss, weights)
    if not isinstance(f, WithIntercept):
        return part
    try:
        return WithIntercept(part)
    except ValueError:  # no best intercept: labels of one kind
        return None
