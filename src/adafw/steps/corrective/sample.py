"""A first point from a part of the rows: most of the way at a fraction of its price."""

from typing import Any

import numpy as np

from adafw.constraints.base import Constraint
from adafw.objectives import LinearModel, WithIntercept
from adafw.steps.corrective.base import Corrector, Memory
from adafw.typing import Array

#: One row in so many, of data with so many rows at least.
EVERY, LEAST_ROWS = 8, 16_384
#: Rows of the sample for each atom: fewer, and its minimiser says little about all rows.
ROWS_AN_ATOM = 10
#: Iterations on the sample, and the share of the value that its gap ends them at.
ITERATIONS, ENOUGH = 8, 1e-2


def solved_on_sample(
    corrector: Corrector, f: Any, constraint: Constraint, x: Array
) -> tuple[Array, Memory] | None:
    """(a point near the minimiser over every eighth row, what is to be remembered), or None.

    None if there are too few rows, they are not at hand, or the point is no better than x for all
    rows. The sample is given up where it needs so many atoms that it would learn its own noise.
    """
    part = _sample(f)
    if part is None:
        return None
    y, state = x, corrector.init(x)
    for _ in range(ITERATIONS):
        value, g = part.value_and_gradient(y)
        if constraint.gap(y, g) <= ENOUGH * abs(value):
            break
        new, kept = corrector.improve(part, constraint, y, g, 1, state)
        if ROWS_AN_ATOM * np.count_nonzero(new) > part.n_terms:
            break
        y, state = new, kept
    if y is x or not f.value(y) < f.value(x):
        return None
    return y, {"level": state["level"], "norm": state["norm"], "bound": state["bound"]}


def _sample(f: Any) -> Any:
    """The objective of every eighth row; None where that is not worth while, or has none."""
    model: LinearModel = f.model if isinstance(f, WithIntercept) else f
    if f.n_terms < LEAST_ROWS or model.rows.remote or model.rows.streamed:
        return None
    rows = np.arange(0, f.n_terms, EVERY)
    weights = None if model.sample_weight is None else model.sample_weight[rows]
    if weights is not None and not weights.any():
        return None
    part = LinearModel(model.rows.take(rows), model.y[rows], model.loss, weights)
    if not isinstance(f, WithIntercept):
        return part
    try:
        return WithIntercept(part)
    except ValueError:  # no best intercept: labels of one kind
        return None
