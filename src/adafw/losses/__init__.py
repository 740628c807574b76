"""Losses l(z, y) of predictions z and a target y, without any factor 1/2."""

from typing import TypeAlias

from adafw.losses.joint import JointLoss, Outputs, Softmax
from adafw.losses.scalar import (
    Huber,
    Logistic,
    Loss,
    Poisson,
    SmoothedHinge,
    Squared,
    SquaredHinge,
    Task,
)

#: Of one prediction a sample, or of several.
AnyLoss: TypeAlias = Loss | JointLoss

__all__ = [
    "AnyLoss",
    "Huber",
    "JointLoss",
    "Logistic",
    "Loss",
    "Outputs",
    "Poisson",
    "SmoothedHinge",
    "Softmax",
    "Squared",
    "SquaredHinge",
    "Task",
]
