"""Adam's metric, with momentum."""

from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from adafw import checks
from adafw.metrics.amsgrad import check_betas
from adafw.metrics.base import Metric
from adafw.typing import Array


class Moments(TypedDict):
    """m_{t-1} and s_{t-1}, biased."""

    momentum: Array
    mean_squares: Array


@dataclass(frozen=True)
class Adam(Metric[Moments]):
    """h_t = offset + sqrt(s_t / (1 - b_s^(t+1))) and the momentum m_t / (1 - b_m^(t+1)).

    m_t = b_m m_{t-1} + (1 - b_m) g_t and s_t = b_s s_{t-1} + (1 - b_s) g_t^2 start at 0; the
    quotients correct that bias. `betas` (b_m, b_s), b_m < sqrt(b_s); `offset` (delta) > 0. Kingma
    and Ba (2015).
    """

    betas: tuple[float, float] = (0.9, 0.99)
    offset: float = 1e-8
    momentum = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "betas", check_betas(self.betas))
        object.__setattr__(self, "offset", checks.real(self.offset, "offset", 0, above=True))

    def init(self, x: Array) -> Moments:
        return {"momentum": np.zeros_like(x), "mean_squares": np.zeros_like(x)}

    def update(self, g: Array, t: int, state: Moments) -> tuple[Array, Array, Moments]:
        beta_m, beta_s = self.betas
        state["momentum"] = beta_m * state["momentum"] + (1 - beta_m) * g
        state["mean_squares"] = beta_s * state["mean_squares"] + (1 - beta_s) * g**2
        m = state["momentum"] / (1 - beta_m ** (t + 1))
        s = state["mean_squares"] / (1 - beta_s ** (t + 1))
        return m, self.offset + np.sqrt(s), state
