"""CSFW's estimate: one stored slope per row, refreshed on a minibatch."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from adafw.gradients.base import GradientEstimator, Table, check_separable, draw, renews
from adafw.objectives.base import FiniteSum
from adafw.random import IndexSource
from adafw.schedules import Share, as_batch_size
from adafw.typing import Array


@dataclass(frozen=True)
class CSFW(GradientEstimator[Table]):
    """g_t = sum_i alpha_i a_i, with alpha_i = phi_i'(<a_i, x_t>) / m refreshed for i in the batch.

    Needs f_i(x) = phi_i(<a_i, x>), as in `LinearModel`, and one number per row; alpha starts at 0.
    `batch_size` (b_t): m // 100 if None. Table 1, row CSFW (Negiar et al. 2020); Algorithm 6.
    b_t evaluations an iteration. Every hundred epochs the sum is made anew from the alpha_i, which
    costs no evaluation, so that rounding errors of the updates do not add up for ever.
    """

    batch_size: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "batch_size", as_batch_size(self.batch_size, Share(100)))

    def check(self, f: FiniteSum) -> None:
        check_separable(f, "CSFW")

    def init(self, f: FiniteSum, x: Array) -> Table:
        return {"alpha": np.zeros(f.n_terms, x.dtype), "gradient": np.zeros_like(x)}

    def update(
        self, f: Any, x: Array, t: int, state: Table, rng: IndexSource
    ) -> tuple[Array, Table]:
        # An index drawn twice counts once: added twice, g would drift from sum alpha_i a_i.
        batch = np.unique(draw(rng, f.n_terms, self.batch_size(t, f.n_terms)))
        alpha = state["alpha"]
        if self.is_renewed(t, f.n_terms):
            state["gradient"] = f.combine(alpha)
        fresh, change = f.refresh(x, alpha[batch], batch)
        state["gradient"] = state["gradient"] + change
        alpha[batch] = fresh
        return state["gradient"], state

    def is_renewed(self, t: int, n_terms: int) -> bool:
        """Whether the sum of alpha_i a_i is made anew before iteration t."""
        return renews(t, n_terms, self.batch_size)

    def evaluations(self, t: int, n_terms: int) -> int:
        return int(self.batch_size(t, n_terms))

    def remembered(self, state: Table) -> Array | None:
        found: Array = state["gradient"]
        return found
