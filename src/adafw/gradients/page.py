"""PAGE's estimate: SPIDER's recursion, begun anew by the toss of a coin."""

from dataclasses import dataclass

from adafw.gradients.base import Recursion, coin, draw
from adafw.gradients.sampling import Sampling
from adafw.objectives.base import FiniteSum
from adafw.random import IndexSource
from adafw.schedules import as_probability, at
from adafw.typing import Array, ScheduleLike


class TossedRecursion(Recursion, total=False):
    """The last estimate, and whether it was exact (1) or not (0)."""

    exact: int


@dataclass(frozen=True)
class PAGE(Sampling[TossedRecursion]):
    """g_t = g_{t-1} + grad_B(x_t) - grad_B(x_{t-1}), or grad f(x_t) at t = 0 and by a coin.

    The gradient is exact if the coin falls below `probability` (p_t in [0, 1]; b_t / (m + b_t) if
    None). `batch_size` (b_t): m // 100 if None. m evaluations at an exact gradient, 2 b_t
    elsewhere. Li, Bao, Zhang, Richtarik (2021), algorithm 1; with Frank-Wolfe steps Beznosikov,
    Dobre, Gidel (2024), algorithm 1.
    """

    recursive = True
    probability: ScheduleLike | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "probability", as_probability(self.probability))

    def init(self, f: FiniteSum, x: Array) -> TossedRecursion:
        return {}

    def layout(self, f: FiniteSum, x: Array, t: int) -> TossedRecursion:
        return {"gradient": x, "last_x": x, "exact": 0} if t else {}

    def update(
        self, f: FiniteSum, x: Array, t: int, state: TossedRecursion, rng: IndexSource
    ) -> tuple[Array, TossedRecursion]:
        b = self.b(t, f.n_terms)
        p = b / (f.n_terms + b) if self.probability is None else at(self.probability, t)
        exact = coin(rng) < p or t == 0  # the coin is tossed at t = 0 too
        if exact:
            g = f.gradient(x)
        else:
            batch = draw(rng, f.n_terms, b)
            g = state["gradient"] + (f.gradient(x, batch) - f.gradient(state["last_x"], batch))
        return g, {"gradient": g, "last_x": x, "exact": int(exact)}

    def exact_point(self, state: TossedRecursion, t: int) -> tuple[Array, Array] | None:
        return (state["last_x"], state["gradient"]) if t and state["exact"] else None

    def evaluations(self, t: int, n_terms: int) -> int:
        return max(n_terms, 2 * self.b(t, n_terms))

    def spent(self, t: int, n_terms: int, state: TossedRecursion) -> int:
        return n_terms if state["exact"] else 2 * self.b(t, n_terms)
