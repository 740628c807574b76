"""Momentum's estimate: a running average of minibatch gradients."""

from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from adafw.gradients.base import GradientEstimator, draw
from adafw.objectives.base import FiniteSum
from adafw.random import IndexSource
from adafw.schedules import Capped, Power, Share, as_batch_size, as_schedule
from adafw.typing import Array


class Running(TypedDict):
    """d_{t-1}."""

    gradient: Array


@dataclass(frozen=True)
class Momentum(GradientEstimator[Running]):
    """d_t = (1 - rho_t) d_{t-1} + rho_t grad_B(x_t), grad_B a minibatch's mean, d_{-1} = 0.

    `batch_size` (b_t): m // 100 if None. `forgetting` (rho_t in [0, 1]): 4 / (t + 8)^(2/3), which
    is 1 at t = 0. The variance of d_t goes to 0 with a batch of constant size, even 1. b_t
    evaluations an iteration. Mokhtari, Hassani, Karbasi (2020), algorithm 1.
    """

    batch_size: Any = None
    forgetting: Any = Capped(Power(4.0, -2 / 3, shift=8), 1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "batch_size", as_batch_size(self.batch_size, Share(100)))
        object.__setattr__(self, "forgetting", as_schedule(self.forgetting, "forgetting", 0, 1))

    def init(self, f: FiniteSum, x: Array) -> Running:
        return {"gradient": np.zeros_like(x)}

    def update(
        self, f: FiniteSum, x: Array, t: int, state: Running, rng: IndexSource
    ) -> tuple[Array, Running]:
        batch = draw(rng, f.n_terms, self.batch_size(t, f.n_terms))
        rho = self.forgetting(t)
        g = (1 - rho) * state["gradient"] + rho * f.gradient(x, batch)
        return g, {"gradient": g}

    def evaluations(self, t: int, n_terms: int) -> int:
        return int(self.batch_size(t, n_terms))
