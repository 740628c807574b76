"""Loopless SVRG's estimate: SVRF's, with snapshots by the toss of a coin."""

from dataclasses import dataclass
from typing import Any

from adafw.gradients.base import GradientEstimator, Snapshot, coin, draw
from adafw.objectives.base import FiniteSum
from adafw.random import IndexSource
from adafw.schedules import Share, as_batch_size, as_probability
from adafw.typing import Array


class TossedSnapshot(Snapshot, total=False):
    """A snapshot, and whether the last estimate was exact (1) or not (0)."""

    exact: int


@dataclass(frozen=True)
class LSVRG(GradientEstimator[TossedSnapshot]):
    """g_t = grad f(w) + grad_B(x_t) - grad_B(w), w the last point with an exact gradient.

    The gradient at x_t is exact, and w becomes x_t, at t = 0 and whenever a coin falls below
    `probability` (p_t in [0, 1]; b_t / m if None: then m evaluations come once in m / b_t
    iterations). `batch_size` (b_t): m // 100 if None. m evaluations at an exact gradient, 2 b_t
    elsewhere. Hofmann, Lucchi, Lacoste-Julien, McWilliams (2015); Kovalev, Horvath, Richtarik
    (2020); with Frank-Wolfe steps Nazykov et al. (2024).
    """

    batch_size: Any = None
    probability: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "batch_size", as_batch_size(self.batch_size, Share(100)))
        object.__setattr__(self, "probability", as_probability(self.probability))

    def init(self, f: FiniteSum, x: Array) -> TossedSnapshot:
        return {}

    def layout(self, f: FiniteSum, x: Array, t: int) -> TossedSnapshot:
        return {"snapshot": x, "snapshot_gradient": x, "exact": 0} if t else {}

    def update(
        self, f: FiniteSum, x: Array, t: int, state: TossedSnapshot, rng: IndexSource
    ) -> tuple[Array, TossedSnapshot]:
        b = self.batch_size(t, f.n_terms)
        p = min(1.0, b / f.n_terms) if self.probability is None else self.probability(t)
        if coin(rng) < p or t == 0:  # the coin is tossed at t = 0 too
            g = f.gradient(x)
            return g, {"snapshot": x, "snapshot_gradient": g, "exact": 1}
        batch = draw(rng, f.n_terms, b)
        state["exact"] = 0
        correction = f.gradient(x, batch) - f.gradient(state["snapshot"], batch)
        return state["snapshot_gradient"] + correction, state

    def evaluations(self, t: int, n_terms: int) -> int:
        return max(n_terms, 2 * int(self.batch_size(t, n_terms)))

    def spent(self, t: int, n_terms: int, state: TossedSnapshot) -> int:
        return n_terms if state["exact"] else 2 * int(self.batch_size(t, n_terms))
