"""Sets: what can be minimised over, each with its linear minimisation and its projection."""

from adafw.constraints.balls import L1Ball, L2Ball, LInfBall
from adafw.constraints.base import Constraint
from adafw.constraints.box import Box
from adafw.constraints.simplex import Simplex, UnitSimplex
from adafw.constraints.user_set import UserSet

__all__ = [
    "Box",
    "Constraint",
    "L1Ball",
    "L2Ball",
    "LInfBall",
    "Simplex",
    "UnitSimplex",
    "UserSet",
]
