"""STORC's estimate: SVRF's, with a snapshot at the start of every stage."""

from dataclasses import dataclass
from typing import Any

from adafw.gradients.base import GradientEstimator, Snapshot, draw
from adafw.objectives.base import FiniteSum
from adafw.random import IndexSource
from adafw.schedules import Share, Stages, as_batch_size
from adafw.typing import Array


@dataclass(frozen=True)
class StagedSVRG(GradientEstimator[Snapshot]):
    """g_t = grad f(w) + (1/b_t) sum_i (grad f_i(x_t) - grad f_i(w)), w where the stage began.

    Stages are those of `schedules.Stages`; the gradient is exact at their first iterations, which
    draw nothing. `batch_size` (b_t): m // 100 if None. m evaluations at a snapshot, 2 b_t
    elsewhere. Hazan and Luo (2016), algorithm 2.
    """

    batch_size: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "batch_size", as_batch_size(self.batch_size, Share(100)))

    def init(self, f: FiniteSum, x: Array) -> Snapshot:
        return {}

    def layout(self, f: FiniteSum, x: Array, t: int) -> Snapshot:
        return {"snapshot": x, "snapshot_gradient": x} if t else {}

    def update(
        self, f: FiniteSum, x: Array, t: int, state: Snapshot, rng: IndexSource
    ) -> tuple[Array, Snapshot]:
        if Stages().around(t)[0] == t:
            g = f.gradient(x)
            return g, {"snapshot": x, "snapshot_gradient": g}
        batch = draw(rng, f.n_terms, self.batch_size(t, f.n_terms))
        correction = f.gradient(x, batch) - f.gradient(state["snapshot"], batch)
        return state["snapshot_gradient"] + correction, state

    def evaluations(self, t: int, n_terms: int) -> int:
        exact = Stages().around(t)[0] == t
        return n_terms if exact else 2 * int(self.batch_size(t, n_terms))
