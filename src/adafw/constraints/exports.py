"""The public names of adafw.constraints, imported when the first of them is asked for."""

from adafw.constraints.balls import L1Ball, L2Ball, LInfBall
from adafw.constraints.base import Constraint
from adafw.constraints.birkhoff import Birkhoff
from adafw.constraints.box import Box, Nonnegative
from adafw.constraints.columns import Columns
from adafw.constraints.group_ball import GroupBall
from adafw.constraints.hull import Hull
from adafw.constraints.k_sparse import KSparse
from adafw.constraints.line_balls import ColumnBall, RMSBall, RowBall
from adafw.constraints.lp_ball import LpBall
from adafw.constraints.monotone import Monotone
from adafw.constraints.nuclear_ball import NuclearBall
from adafw.constraints.polytope import Polytope
from adafw.constraints.product import Product
from adafw.constraints.simplex import Simplex, UnitSimplex
from adafw.constraints.spectral_ball import SpectralBall
from adafw.constraints.user_set import UserSet

__all__ = [
    "Birkhoff",
    "Box",
    "ColumnBall",
    "Columns",
    "Constraint",
    "GroupBall",
    "Hull",
    "KSparse",
    "L1Ball",
    "L2Ball",
    "LInfBall",
    "LpBall",
    "Monotone",
    "Nonnegative",
    "NuclearBall",
    "Polytope",
    "Product",
    "RMSBall",
    "RowBall",
    "Simplex",
    "SpectralBall",
    "UnitSimplex",
    "UserSet",
]
