"""Lu and Freund's estimate: slopes at averaged predictions of the vertices."""

from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from adafw.gradients.base import check_separable, draw
from adafw.gradients.sampling import Sampling
from adafw.objectives import LinearModel
from adafw.objectives.base import FiniteSum
from adafw.random import IndexSource
from adafw.schedules import OpenLoop, as_schedule, at
from adafw.typing import Array, ScheduleLike


class Averages(TypedDict, total=False):
    """s_j, their slopes / m, g_{t-1} and x_{t-1}; nothing before t = 0."""

    predictions: Array
    alpha: Array
    gradient: Array
    last_x: Array


@dataclass(frozen=True)
class LuFreund(Sampling[Averages]):
    """g_t = (1/m) sum_j phi_j'(s_j) a_j, s_j <- (1 - rho_t) s_j + rho_t <a_j, v_{t-1}> for j in B.

    v_{t-1} = x_{t-1} + (x_t - x_{t-1}) / gamma_{t-1} is the vertex that the last step went to, so
    `step_size` (gamma_t) must be that of the step; s_j, one number a row, follows <a_j, x_t>.
    `forgetting` (rho_t in [0, 1]): 2 p / (2 p + t) with p = m / b_t if None. `batch_size` (b_t):
    m // 100 if None, repeats once. s starts at A x_0, with m evaluations; b_t afterwards. Needs
    f_i(x) = phi_i(<a_i, x>). Lu and Freund (2021), whose method has b_t = 1 and
    `schedules.LuFreundStep(m)` for gamma_t; other gamma_t that go to 0 do as well (measured in
    docs/which_algorithm.md). `FrankWolfeStep` refuses another gamma_t than this one; steps of
    other kinds are taken, though nothing is proven of them: adaptive ones may not converge.
    """

    step_size: ScheduleLike = OpenLoop()
    forgetting: ScheduleLike | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        gamma = as_schedule(self.step_size, "step_size", 0, 1, above=True)
        object.__setattr__(self, "step_size", gamma)
        if self.forgetting is not None:
            rho = as_schedule(self.forgetting, "forgetting", 0, 1)
            object.__setattr__(self, "forgetting", rho)

    def check(self, f: FiniteSum) -> None:
        check_separable(f, "LuFreund")

    def init(self, f: FiniteSum, x: Array) -> Averages:
        return {}

    def layout(self, f: FiniteSum, x: Array, t: int) -> Averages:
        if t == 0:
            return {}
        row = np.zeros(f.n_terms, x.dtype)
        return {"predictions": row, "alpha": row, "gradient": x, "last_x": x}

    def update(  # type: ignore[override]  # `check` refuses other sums
        self, f: LinearModel, x: Array, t: int, state: Averages, rng: IndexSource
    ) -> tuple[Array, Averages]:
        m = f.n_terms
        if t == 0:
            s = f.rows.dot(x)
            alpha = f.slopes_at(s) / m
            g = f.combine(alpha)
            return g, {"predictions": s, "alpha": alpha, "gradient": g, "last_x": x}
        b, s, last = self.b(t, m), state["predictions"], state["last_x"]
        batch = np.unique(draw(rng, m, b))
        v = last + (x - last) / at(self.step_size, t - 1)
        rho = 2 * m / (2 * m + b * t) if self.forgetting is None else at(self.forgetting, t)
        fresh = (1 - rho) * s[batch] + rho * f.rows.dot(v, batch)
        slopes = f.slopes_at(fresh, batch) / m
        state["gradient"] = state["gradient"] + f.combine(slopes - state["alpha"][batch], batch)
        s[batch], state["alpha"][batch], state["last_x"] = fresh, slopes, x
        return state["gradient"], state

    def evaluations(self, t: int, n_terms: int) -> int:
        return n_terms if t == 0 else self.b(t, n_terms)
