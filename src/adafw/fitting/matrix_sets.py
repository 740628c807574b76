"""Named sets as sets of matrices: what they mean where classes or targets are fitted jointly."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from adafw.constraints import Box, Columns, Constraint
from adafw.names import Named

#: Parameters of sets of vectors that matrices have by themselves: rows are groups, and shapes.
OF_MATRICES = ("groups", "shape")


def set_of_matrices(
    entry: Named[Constraint], given: Mapping[str, Any], n: int, k: int
) -> Constraint:
    """The set of n x k matrices that a name stands for; `given` holds radius and parameters.

    Balls hold the matrix as a whole. A group is a row, one feature for all outputs, or the rows of
    one label. Bounds of a box are those of the rows. Other sets hold every column.
    """
    parameters = dict(given)
    if entry.per_column:
        return Columns(entry.make(**parameters))
    if "groups" in parameters:
        labels = parameters["groups"]
        rows = np.arange(n) if labels is ... else np.asarray(labels)
        if rows.shape == (n,):
            rows = np.repeat(rows[:, None], k, axis=1)
        parameters["groups"] = rows
    if "shape" in parameters:
        wanted = parameters.pop("shape")
        if wanted is not ... and tuple(wanted) != (n, k):
            raise ValueError(
                f"shape must be left out, or be that of the coefficients, ({n}, {k}), got {wanted}."
            )
    if entry.make is Box:
        for key in ("lower", "upper"):
            bound = np.asarray(parameters[key], dtype=float)
            parameters[key] = bound[:, None] * np.ones(k) if bound.shape == (n,) else bound
    return entry.make(**parameters)


def as_set_of_matrices(constraint: Constraint, n: int, k: int) -> Constraint:
    """A set object: as it is if it holds n x k matrices, each column in it if it holds vectors."""
    return Columns(constraint) if constraint.shape == (n,) else constraint
