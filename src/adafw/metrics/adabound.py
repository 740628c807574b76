"""AdaBound's metric: Adam between two bounds that close in on each other."""

from dataclasses import dataclass

import numpy as np

from adafw.metrics.adam import Adam, Moments
from adafw.metrics.base import Metric
from adafw.metrics.clipped import bounds_at, closing_bounds
from adafw.typing import Array, ScheduleLike


@dataclass(frozen=True)
class AdaBound(Metric[Moments]):
    """Adam's momentum, and Adam's h_t with 1 / h_t clipped to [lower_t, upper_t].

    `lower` and `upper` bound the rates 1 / h_t: `lower` must be positive and nondecreasing,
    `upper` nonincreasing and above it. `betas` and `offset` as in Adam. Luo, Xiong, Liu, Sun
    (2019), who let both tend to one rate r: r - r / (c (t + 1) + 1) and r + r / (c (t + 1)).
    """

    lower: ScheduleLike
    upper: ScheduleLike
    betas: tuple[float, float] = (0.9, 0.99)
    offset: float = 1e-8
    momentum = True

    def __post_init__(self) -> None:
        adam = Adam(self.betas, self.offset)
        object.__setattr__(self, "betas", adam.betas)
        object.__setattr__(self, "offset", adam.offset)
        lower, upper = closing_bounds(self.lower, self.upper)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    def init(self, x: Array) -> Moments:
        return Adam(self.betas, self.offset).init(x)

    def update(self, g: Array, t: int, state: Moments) -> tuple[Array, Array, Moments]:
        lower, upper = bounds_at(t, self.lower, self.upper)
        m, h, state = Adam(self.betas, self.offset).update(g, t, state)
        return m, np.clip(h, 1 / upper, 1 / lower), state
