"""The public names of adafw.constraints, imported when the first of them is asked for.

A new set is one line here: adafw exports it, too, and `names` takes the short name that its class
declares. In this order front ends list them.
"""
# ruff: noqa: I001

from typing import TYPE_CHECKING

from adafw.constraints.balls import L1Ball as L1Ball
from adafw.constraints.balls import L2Ball as L2Ball
from adafw.constraints.balls import LInfBall as LInfBall
from adafw.constraints.lp_ball import LpBall as LpBall
from adafw.constraints.simplex import Simplex as Simplex
from adafw.constraints.simplex import UnitSimplex as UnitSimplex
from adafw.constraints.k_sparse import KSparse as KSparse
from adafw.constraints.group_ball import GroupBall as GroupBall
from adafw.constraints.nuclear_ball import NuclearBall as NuclearBall
from adafw.constraints.spectral_ball import SpectralBall as SpectralBall
from adafw.constraints.box import Nonnegative as Nonnegative
from adafw.constraints.monotone import Monotone as Monotone
from adafw.constraints.box import Box as Box
from adafw.constraints.hull import Hull as Hull
from adafw.constraints.polytope import Polytope as Polytope
from adafw.constraints.birkhoff import Birkhoff as Birkhoff
from adafw.constraints.base import Constraint as Constraint
from adafw.constraints.columns import Columns as Columns
from adafw.constraints.line_balls import ColumnBall as ColumnBall
from adafw.constraints.line_balls import RMSBall as RMSBall
from adafw.constraints.line_balls import RowBall as RowBall
from adafw.constraints.product import Product as Product
from adafw.constraints.user_set import UserSet as UserSet
from adafw.later import public

if not TYPE_CHECKING:  # type checkers go by `as`
    __all__ = public(vars(), but=("TYPE_CHECKING", "public"))
