"""Loopless SVRG's estimate: SVRF's, with snapshots by the toss of a coin."""

from dataclasses import dataclass

from adafw.gradients.base import Snapshot, coin, draw
from adafw.gradients.sampling import Sampling
from adafw.objectives.base import FiniteSum
from adafw.random import IndexSource
from adafw.schedules import as_probability, at
from adafw.typing import Array, ScheduleLike


class TossedSnapshot(Snapshot, total=False):
    """A snapshot, and whether the last estimate was exact (1) or not (0)."""

    exact: int


@dataclass(frozen=True)
class LSVRG(Sampling[TossedSnapshot]):
    """g_t = grad f(w) + grad_B(x_t) - grad_B(w), w the last point with an exact gradient.

    The gradient at x_t is exact, and w becomes x_t, at t = 0 and whenever a coin falls below
    `probability` (p_t in [0, 1]; b_t / m if None: then m evaluations come once in m / b_t
    iterations). `batch_size` (b_t): m // 100 if None. m evaluations at an exact gradient, 2 b_t
    elsewhere. Hofmann, Lucchi, Lacoste-Julien, McWilliams (2015); Kovalev, Horvath, Richtarik
    (2020); with Frank-Wolfe steps Nazykov et al. (2024).
    """

    probability: ScheduleLike | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "probability", as_probability(self.probability))

    def init(self, f: FiniteSum, x: Array) -> TossedSnapshot:
        return {}

    def layout(self, f: FiniteSum, x: Array, t: int) -> TossedSnapshot:
        return {"snapshot": x, "snapshot_gradient": x, "exact": 0} if t else {}

    def update(
        self, f: FiniteSum, x: Array, t: int, state: TossedSnapshot, rng: IndexSource
    ) -> tuple[Array, TossedSnapshot]:
        if self.is_exact(t, f.n_terms, coin(rng)):  # the coin is tossed at t = 0 too
            g = f.gradient(x)
            return g, {"snapshot": x, "snapshot_gradient": g, "exact": 1}
        batch = draw(rng, f.n_terms, self.b(t, f.n_terms))
        state["exact"] = 0
        correction = f.gradient(x, batch) - f.gradient(state["snapshot"], batch)
        return state["snapshot_gradient"] + correction, state

    def is_exact(self, t: int, n_terms: int, toss: float) -> bool:
        """Whether the gradient of iteration t is exact, its coin having fallen to `toss`."""
        if self.probability is not None:
            return toss < at(self.probability, t) or t == 0
        return toss < self.b(t, n_terms) / n_terms or t == 0

    def exact_point(self, state: TossedSnapshot, t: int) -> tuple[Array, Array] | None:
        return (state["snapshot"], state["snapshot_gradient"]) if t else None

    def evaluations(self, t: int, n_terms: int) -> int:
        return max(n_terms, 2 * self.b(t, n_terms))

    def spent(self, t: int, n_terms: int, state: TossedSnapshot) -> int:
        return n_terms if state["exact"] else 2 * self.b(t, n_terms)
