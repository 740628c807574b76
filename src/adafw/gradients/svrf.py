"""SVRF's estimate: a minibatch corrected by the exact gradient at a snapshot."""

from dataclasses import dataclass
from typing import Any

from adafw import checks
from adafw.gradients.base import GradientEstimator, Snapshot, draw
from adafw.objectives.base import FiniteSum
from adafw.random import IndexSource
from adafw.schedules import LinearGrowth, as_batch_size
from adafw.typing import Array


@dataclass(frozen=True)
class SVRF(GradientEstimator[Snapshot]):
    """g_t = grad f(z) + (1/b_t) sum_i (grad f_i(x_t) - grad f_i(z)), z the last snapshot.

    Snapshots are taken at t = 2^(k + k0) - 2^k0, where the gradient is exact (Remark 3.6).
    `batch_size` (b_t): t up to m // 10 if None. Table 1, row SVRF (Hazan and Luo 2016);
    Algorithm 5. m evaluations at a snapshot, 2 b_t elsewhere.
    """

    batch_size: Any = None
    k0: int = 4

    def __post_init__(self) -> None:
        object.__setattr__(self, "batch_size", as_batch_size(self.batch_size, LinearGrowth()))
        object.__setattr__(self, "k0", checks.integer(self.k0, "k0", 0))

    def is_snapshot(self, t: int) -> bool:
        """Whether t = 2^(k + k0) - 2^k0 for some k."""
        shifted = t + (1 << self.k0)
        return shifted & (shifted - 1) == 0

    def init(self, f: FiniteSum, x: Array) -> Snapshot:
        return {}

    def layout(self, f: FiniteSum, x: Array, t: int) -> Snapshot:
        return {"snapshot": x, "snapshot_gradient": x} if t else {}

    def update(
        self, f: FiniteSum, x: Array, t: int, state: Snapshot, rng: IndexSource
    ) -> tuple[Array, Snapshot]:
        if self.is_snapshot(t):
            g = f.gradient(x)
            return g, {"snapshot": x, "snapshot_gradient": g}
        batch = draw(rng, f.n_terms, self.batch_size(t, f.n_terms))
        correction = f.gradient(x, batch) - f.gradient(state["snapshot"], batch)
        return state["snapshot_gradient"] + correction, state

    def evaluations(self, t: int, n_terms: int) -> int:
        return n_terms if self.is_snapshot(t) else 2 * int(self.batch_size(t, n_terms))
