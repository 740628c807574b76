"""Slopes of the losses, one prediction at a time."""

import math

from adafw.kernels.codes import LOGISTIC, SQUARED
from adafw.kernels.jit import jit


@jit
def slope(loss: int, z: float, y: float) -> float:
    """The derivative in z of the loss with that number."""
    if loss == SQUARED:
        return 2.0 * (z - y)
    if loss == LOGISTIC:
        return -y / (1.0 + math.exp(y * z))
    return -2.0 * y * max(0.0, 1.0 - y * z)
