"""SAGA's estimate: CSFW's table of slopes, used without bias."""

from dataclasses import dataclass

import numpy as np

from adafw.gradients.base import GradientEstimator, Table, draw
from adafw.gradients.sampling import FromTable
from adafw.objectives import SeparableSum
from adafw.random import IndexSource
from adafw.typing import Array


@dataclass(frozen=True)
class SAGA(FromTable):
    """g_t = G + (m / |B|) sum_{i in B} (fresh_i - alpha_i) a_i, G = sum_i alpha_i a_i.

    fresh_i = phi_i'(<a_i, x_t>) / m replaces alpha_i once g_t is formed; alpha starts at 0. B holds
    a repeated index once: of a given size, every B is as likely as any other, so E g_t is the
    gradient. `batch_size` (b_t): m // 100 if None. b_t evaluations an iteration, one number a row.
    Every hundred epochs G is made anew from the alpha_i, as CSFW's sum is. Needs
    f_i(x) = phi_i(<a_i, x>). Defazio, Bach, Lacoste-Julien (2014); with Frank-Wolfe steps Reddi,
    Sra, Poczos, Smola (2016).
    """

    #: Its steps follow g_t, whose noise the table's own sum does not tell.
    remembered = GradientEstimator.remembered

    def update(  # type: ignore[override]  # `check` refuses other sums
        self, f: SeparableSum, x: Array, t: int, state: Table, rng: IndexSource
    ) -> tuple[Array, Table]:
        batch = np.unique(draw(rng, f.n_terms, self.b(t, f.n_terms)))
        alpha = state["alpha"]
        old = f.combine(alpha) if self.is_renewed(t, f.n_terms) else state["gradient"]
        fresh, change = f.refresh(x, alpha[batch], batch)
        alpha[batch] = fresh
        state["gradient"] = old + change
        return old + (f.n_terms / len(batch)) * change, state
