"""SPIDER's estimate: the last one, moved by the difference of two minibatch gradients."""

from dataclasses import dataclass

from adafw.gradients.base import Recursion, draw
from adafw.gradients.sampling import Recursive
from adafw.objectives.base import FiniteSum
from adafw.random import IndexSource
from adafw.schedules import Doubling
from adafw.typing import Array


@dataclass(frozen=True)
class SPIDER(Recursive):
    """g_t = g_{t-1} + (1/b_t) sum_i (grad f_i(x_t) - grad f_i(x_{t-1})), exact at t + 1 = 2^k.

    This is the published, recursive form (Yurtsever et al. 2019, Shen et al. 2019); Table 1
    prints the snapshot's gradient in place of g_{t-1}, which is a misprint.
    `batch_size` (b_t): 2^floor(log2(t + 1)) up to m if None. m evaluations at t + 1 = 2^k, 2 b_t
    elsewhere.
    """

    recursive = True
    usual_size = Doubling()

    def update(
        self, f: FiniteSum, x: Array, t: int, state: Recursion, rng: IndexSource
    ) -> tuple[Array, Recursion]:
        if _is_power_of_two(t + 1):
            g = f.gradient(x)
        else:
            batch = draw(rng, f.n_terms, self.b(t, f.n_terms))
            g = state["gradient"] + (f.gradient(x, batch) - f.gradient(state["last_x"], batch))
        return g, {"gradient": g, "last_x": x}

    def exact_point(self, state: Recursion, t: int) -> tuple[Array, Array] | None:
        return (state["last_x"], state["gradient"]) if t and _is_power_of_two(t) else None

    def evaluations(self, t: int, n_terms: int) -> int:
        return n_terms if _is_power_of_two(t + 1) else 2 * self.b(t, n_terms)


def _is_power_of_two(n: int) -> bool:
    return n & (n - 1) == 0
