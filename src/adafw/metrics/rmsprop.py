"""RMSProp's metric."""

from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from adafw import checks
from adafw.metrics.base import Metric
from adafw.typing import Array


class MeanSquares(TypedDict):
    """s_{t-1}."""

    mean_squares: Array


@dataclass(frozen=True)
class RMSProp(Metric[MeanSquares]):
    """h_t = offset + sqrt(s_t), s_t = beta s_{t-1} + (1 - beta) g_t^2, m_t = g_t.

    `beta` in [0, 1[, how much of the past is kept; `offset` (delta) > 0. Tieleman and Hinton
    (2012).
    """

    beta: float = 0.9
    offset: float = 1e-8

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", checks.real(self.beta, "beta", 0, 1, below=True))
        object.__setattr__(self, "offset", checks.real(self.offset, "offset", 0, above=True))

    def init(self, x: Array) -> MeanSquares:
        return {"mean_squares": np.zeros_like(x)}

    def update(self, g: Array, t: int, state: MeanSquares) -> tuple[Array, Array, MeanSquares]:
        state["mean_squares"] = self.beta * state["mean_squares"] + (1 - self.beta) * g**2
        return g, self.offset + np.sqrt(state["mean_squares"]), state
