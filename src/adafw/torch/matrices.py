"""Sets of matrices on tensors of any shape: a weight is taken as a matrix (out, rest)."""

import math

from torch import Tensor

from adafw.constraints import Constraint

#: Names of the sets that hold matrices.
_MATRIX_SETS = frozenset({"NuclearBall", "SpectralBall", "Birkhoff"})


def matrix_shape(constraint: Constraint, shape: tuple[int, ...]) -> tuple[int, ...]:
    """(out, rest) for sets of matrices, the shape itself for others."""
    if type(constraint).__name__ not in _MATRIX_SETS or getattr(constraint, "shape", None):
        return shape
    return (shape[0], math.prod(shape[1:])) if shape else (1, 1)


def as_points(constraint: Constraint, x: Tensor) -> Tensor:
    """x in the shape that the set wants."""
    return x.reshape(matrix_shape(constraint, tuple(x.shape)))


def lmo(constraint: Constraint, g: Tensor) -> Tensor:
    """A minimiser of <g, v> over the set, shaped as g."""
    return constraint.lmo(as_points(constraint, g)).reshape(g.shape)
