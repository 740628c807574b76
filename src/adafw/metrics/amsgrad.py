"""AMSGrad's metric, with momentum: lines 5 to 8 of Algorithm 7."""

import math
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from adafw import checks
from adafw.metrics.base import Metric
from adafw.typing import Array


class MaxMoments(TypedDict):
    """m_{t-1}, s_{t-1} and the largest s so far."""

    momentum: Array
    mean_squares: Array
    max_squares: Array


@dataclass(frozen=True)
class AMSGrad(Metric[MaxMoments]):
    """h_t = offset + sqrt(max_{s <= t} s_s), with the moving averages m_t of g and s_t of g^2.

    m_t = b_m m_{t-1} + (1 - b_m) g_t and s_t = b_s s_{t-1} + (1 - b_s) g_t^2, both without bias
    correction. `betas` (b_m, b_s), b_m < sqrt(b_s); `offset` (delta) > 0. Reddi, Kale, Kumar
    (2018); Algorithm 7.
    """

    betas: tuple[float, float] = (0.9, 0.99)
    offset: float = 1e-8
    momentum = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "betas", check_betas(self.betas))
        object.__setattr__(self, "offset", checks.real(self.offset, "offset", 0, above=True))

    def init(self, x: Array) -> MaxMoments:
        return {
            "momentum": np.zeros_like(x),
            "mean_squares": np.zeros_like(x),
            "max_squares": np.zeros_like(x),
        }

    def update(self, g: Array, t: int, state: MaxMoments) -> tuple[Array, Array, MaxMoments]:
        beta_m, beta_s = self.betas
        state["momentum"] = beta_m * state["momentum"] + (1 - beta_m) * g
        state["mean_squares"] = beta_s * state["mean_squares"] + (1 - beta_s) * g**2
        np.maximum(state["max_squares"], state["mean_squares"], out=state["max_squares"])
        return state["momentum"], self.offset + np.sqrt(state["max_squares"]), state


def check_betas(betas: tuple[float, float]) -> tuple[float, float]:
    """(b_m, b_s) in [0, 1[ with b_m < sqrt(b_s), as Reddi et al. require."""
    try:
        beta_m, beta_s = betas
    except (TypeError, ValueError):
        raise TypeError(f"betas must be a pair of numbers, got {betas!r}.") from None
    beta_m = checks.real(beta_m, "betas[0]", 0, 1)
    beta_s = checks.real(beta_s, "betas[1]", 0, 1)
    if not beta_m < math.sqrt(beta_s) < 1:
        raise ValueError(f"betas must satisfy beta_m < sqrt(beta_s) < 1, got {(beta_m, beta_s)}.")
    return beta_m, beta_s
