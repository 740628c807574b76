"""SFW's estimate: the mean over a minibatch."""

from dataclasses import dataclass

from adafw.gradients.base import Nothing, draw
from adafw.gradients.sampling import Sampling
from adafw.objectives.base import FiniteSum
from adafw.random import IndexSource
from adafw.typing import Array


@dataclass(frozen=True)
class Minibatch(Sampling[Nothing]):
    """g_t = (1/b_t) sum_i grad f_i(x_t) over b_t indices drawn with replacement.

    Where b_t >= m it is the exact gradient, which costs no more than m evaluations, has no
    variance and draws nothing. `batch_size` (b_t): m // 100 if None. min(b_t, m) evaluations an
    iteration. Table 1, row SFW (Hazan and Luo 2016).
    """

    def init(self, f: FiniteSum, x: Array) -> Nothing:
        return {}

    def update(
        self, f: FiniteSum, x: Array, t: int, state: Nothing, rng: IndexSource
    ) -> tuple[Array, Nothing]:
        b = self.b(t, f.n_terms)
        batch = draw(rng, f.n_terms, b) if b < f.n_terms else None
        return f.gradient(x, batch), state

    def evaluations(self, t: int, n_terms: int) -> int:
        return min(n_terms, self.b(t, n_terms))
