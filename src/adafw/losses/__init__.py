"""Losses l(z, y) of predictions z and a target y, without any factor 1/2.

A new loss is one line here: `names` takes the short name that its class declares. In this order
front ends list them.
"""
# ruff: noqa: I001

from typing import TYPE_CHECKING, TypeAlias

from adafw.later import public
from adafw.losses.joint import JointLoss as JointLoss
from adafw.losses.joint import Outputs as Outputs
from adafw.losses.joint import Softmax as Softmax
from adafw.losses.scalar import Logistic as Logistic
from adafw.losses.scalar import SquaredHinge as SquaredHinge
from adafw.losses.scalar import SmoothedHinge as SmoothedHinge
from adafw.losses.scalar import Squared as Squared
from adafw.losses.scalar import Huber as Huber
from adafw.losses.scalar import Poisson as Poisson
from adafw.losses.scalar import Loss as Loss
from adafw.losses.scalar import Task as Task

#: Of one prediction a sample, or of several.
AnyLoss: TypeAlias = Loss | JointLoss

if not TYPE_CHECKING:  # type checkers go by `as`
    __all__ = public(vars(), but=("TYPE_CHECKING", "TypeAlias", "public"))
