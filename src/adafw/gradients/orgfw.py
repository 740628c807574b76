"""ORGFW's estimate: a minibatch with recursive momentum."""

from dataclasses import dataclass

from adafw.gradients.base import Recursion, draw
from adafw.gradients.sampling import Recursive
from adafw.objectives.base import FiniteSum
from adafw.random import IndexSource
from adafw.schedules import Power, as_schedule, at
from adafw.typing import Array, ScheduleLike


@dataclass(frozen=True)
class ORGFW(Recursive):
    """g_t = grad_B(x_t) + (1 - rho_t) (g_{t-1} - grad_B(x_{t-1})), grad_B a minibatch's mean.

    `batch_size` (b_t): m // 100 if None. `forgetting` (rho_t in [0, 1]): (t + 1)^(-2/3).
    Table 1, row ORGFW (Xie et al. 2020). b_0 evaluations at t = 0, 2 b_t afterwards.
    """

    forgetting: ScheduleLike = Power(1.0, -2 / 3)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "forgetting", as_schedule(self.forgetting, "forgetting", 0, 1))

    def update(
        self, f: FiniteSum, x: Array, t: int, state: Recursion, rng: IndexSource
    ) -> tuple[Array, Recursion]:
        batch = draw(rng, f.n_terms, self.b(t, f.n_terms))
        g = f.gradient(x, batch)
        if t > 0:
            last = state["gradient"] - f.gradient(state["last_x"], batch)
            g = g + (1 - at(self.forgetting, t)) * last
        return g, {"gradient": g, "last_x": x}

    def evaluations(self, t: int, n_terms: int) -> int:
        return self.b(t, n_terms) * (1 if t == 0 else 2)
