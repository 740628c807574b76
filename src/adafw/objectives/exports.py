"""The public names of adafw.objectives, imported when the first of them is asked for."""

from adafw.objectives.base import FiniteSum, SeparableSum
from adafw.objectives.counted import Counted
from adafw.objectives.intercept import WithIntercept
from adafw.objectives.line import Line
from adafw.objectives.linear_model import LinearModel
from adafw.objectives.matrix_completion import MatrixCompletion
from adafw.objectives.matrix_model import MatrixModel
from adafw.objectives.quadratic import Quadratic
from adafw.objectives.user_sum import UserSum

__all__ = [
    "Counted",
    "FiniteSum",
    "Line",
    "LinearModel",
    "MatrixCompletion",
    "MatrixModel",
    "Quadratic",
    "SeparableSum",
    "UserSum",
    "WithIntercept",
]
