"""Kinds of objective whose predictions are linear in x, which fast paths and correctors go by."""

from typing import TypeAlias

from adafw.objectives.intercept import WithIntercept
from adafw.objectives.linear_model import LinearModel
from adafw.objectives.matrix_model import MatrixModel

#: Of one output, with an intercept or without.
Linear: TypeAlias = LinearModel | WithIntercept
#: Of one output or several.
Predicting: TypeAlias = LinearModel | WithIntercept | MatrixModel


def model_of(f: Linear) -> LinearModel:
    """Without its intercept."""
    return f.model if isinstance(f, WithIntercept) else f
