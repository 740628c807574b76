"""CSFW's estimate: one stored slope per row, refreshed on a minibatch."""

from dataclasses import dataclass

import numpy as np

from adafw.gradients.base import Table, draw
from adafw.gradients.sampling import FromTable
from adafw.objectives import SeparableSum
from adafw.random import IndexSource
from adafw.typing import Array


@dataclass(frozen=True)
class CSFW(FromTable):
    """g_t = sum_i alpha_i a_i, with alpha_i = phi_i'(<a_i, x_t>) / m refreshed for i in the batch.

    Needs f_i(x) = phi_i(<a_i, x>), as in `LinearModel`, and one number per row; alpha starts at 0.
    `batch_size` (b_t): m // 100 if None. Table 1, row CSFW (Negiar et al. 2020); Algorithm 6.
    b_t evaluations an iteration. Every hundred epochs the sum is made anew from the alpha_i, which
    costs no evaluation, so that rounding errors of the updates do not add up for ever.
    """

    def update(  # type: ignore[override]  # `check` refuses other sums
        self, f: SeparableSum, x: Array, t: int, state: Table, rng: IndexSource
    ) -> tuple[Array, Table]:
        # An index drawn twice counts once: added twice, g would drift from sum alpha_i a_i.
        batch = np.unique(draw(rng, f.n_terms, self.b(t, f.n_terms)))
        alpha = state["alpha"]
        if self.is_renewed(t, f.n_terms):
            state["gradient"] = f.combine(alpha)
        fresh, change = f.refresh(x, alpha[batch], batch)
        state["gradient"] = state["gradient"] + change
        alpha[batch] = fresh
        return state["gradient"], state
