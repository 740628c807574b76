"""Momentum's estimate: a running average of minibatch gradients."""

from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from adafw.gradients.base import draw
from adafw.gradients.sampling import Sampling
from adafw.objectives.base import FiniteSum
from adafw.random import IndexSource
from adafw.schedules import Capped, Power, as_schedule, at
from adafw.typing import Array, ScheduleLike


class Running(TypedDict):
    """d_{t-1}."""

    gradient: Array


@dataclass(frozen=True)
class Momentum(Sampling[Running]):
    """d_t = (1 - rho_t) d_{t-1} + rho_t grad_B(x_t), grad_B a minibatch's mean, d_{-1} = 0.

    `batch_size` (b_t): m // 100 if None. `forgetting` (rho_t in [0, 1]): 4 / (t + 8)^(2/3), which
    is 1 at t = 0. The variance of d_t goes to 0 with a batch of constant size, even 1. b_t
    evaluations an iteration. Mokhtari, Hassani, Karbasi (2020), algorithm 1.
    """

    forgetting: ScheduleLike = Capped(Power(4.0, -2 / 3, shift=8), 1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "forgetting", as_schedule(self.forgetting, "forgetting", 0, 1))

    def init(self, f: FiniteSum, x: Array) -> Running:
        return {"gradient": np.zeros_like(x)}

    def update(
        self, f: FiniteSum, x: Array, t: int, state: Running, rng: IndexSource
    ) -> tuple[Array, Running]:
        batch = draw(rng, f.n_terms, self.b(t, f.n_terms))
        rho = at(self.forgetting, t)
        g = (1 - rho) * state["gradient"] + rho * f.gradient(x, batch)
        return g, {"gradient": g}

    def evaluations(self, t: int, n_terms: int) -> int:
        return self.b(t, n_terms)
