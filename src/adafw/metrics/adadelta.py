"""AdaDelta's metric."""

from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from adafw import checks
from adafw.metrics.base import Metric
from adafw.typing import Array


class SquaredSteps(TypedDict):
    """s_{t-1} and u_{t-1}."""

    mean_squares: Array
    mean_squared_steps: Array


@dataclass(frozen=True)
class AdaDelta(Metric[SquaredSteps]):
    """h_t = sqrt(s_t + epsilon) / sqrt(u_{t-1} + epsilon), m_t = g_t.

    s_t = beta s_{t-1} + (1 - beta) g_t^2 follows the gradients, and then u_t = beta u_{t-1} +
    (1 - beta) (g_t / h_t)^2 the steps g_t / h_t, so that these have the units of x. `beta` in
    [0, 1[, `epsilon` > 0. Zeiler (2012), without his learning rate.
    """

    beta: float = 0.95
    epsilon: float = 1e-6

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", checks.real(self.beta, "beta", 0, 1, below=True))
        object.__setattr__(self, "epsilon", checks.real(self.epsilon, "epsilon", 0, above=True))

    def init(self, x: Array) -> SquaredSteps:
        return {"mean_squares": np.zeros_like(x), "mean_squared_steps": np.zeros_like(x)}

    def update(self, g: Array, t: int, state: SquaredSteps) -> tuple[Array, Array, SquaredSteps]:
        b, steps = self.beta, state["mean_squared_steps"]
        state["mean_squares"] = b * state["mean_squares"] + (1 - b) * g**2
        h = np.sqrt(state["mean_squares"] + self.epsilon) / np.sqrt(steps + self.epsilon)
        state["mean_squared_steps"] = b * steps + (1 - b) * (g / h) ** 2
        return g, h, state
