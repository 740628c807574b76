"""What estimators that draw b_t terms share: the size of their batches, and what they remember."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from adafw.gradients.base import (
    GradientEstimator,
    Recursion,
    Snapshot,
    Table,
    check_separable,
    draw,
    renews,
)
from adafw.objectives.base import FiniteSum
from adafw.random import IndexSource
from adafw.schedules import BatchSizeLike, BatchSizeRule, Share, as_batch_size
from adafw.typing import Array, S


@dataclass(frozen=True)
class Sampling(GradientEstimator[S]):
    """An estimator that draws b_t terms in iteration t: `batch_size`, the usual one if None."""

    #: b_t where nobody gives another.
    usual_size: ClassVar[BatchSizeRule] = Share(100)

    batch_size: BatchSizeLike | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "batch_size", as_batch_size(self.batch_size, self.usual_size))

    def b(self, t: int, n_terms: int) -> int:
        """b_t."""
        rule: Any = self.batch_size  # made one by `as_batch_size`
        return int(rule(t, n_terms))


@dataclass(frozen=True)
class FromTable(Sampling[Table]):
    """One that keeps alpha_i = phi_i'(<a_i, x>) / m of the last x that asked for term i."""

    def check(self, f: FiniteSum) -> None:
        check_separable(f, type(self).__name__)

    def init(self, f: FiniteSum, x: Array) -> Table:
        return {"alpha": np.zeros(f.n_terms, x.dtype), "gradient": np.zeros_like(x)}

    def is_renewed(self, t: int, n_terms: int) -> bool:
        """Whether the sum of alpha_i a_i is made anew before iteration t."""
        return renews(t, n_terms, self.b)

    def evaluations(self, t: int, n_terms: int) -> int:
        return self.b(t, n_terms)

    def remembered(self, state: Table) -> Array | None:
        found: Array = state["gradient"]
        return found


@dataclass(frozen=True)
class FromSnapshots(Sampling[Snapshot]):
    """One that corrects a minibatch by the exact gradient at the last snapshot.

    m evaluations at a snapshot, which draws nothing, 2 b_t elsewhere.
    """

    @abstractmethod
    def is_snapshot(self, t: int) -> bool:
        """Whether the gradient of iteration t is exact, and kept."""

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
        batch = draw(rng, f.n_terms, self.b(t, f.n_terms))
        correction = f.gradient(x, batch) - f.gradient(state["snapshot"], batch)
        return state["snapshot_gradient"] + correction, state

    def exact_point(self, state: Snapshot, t: int) -> tuple[Array, Array] | None:
        return (state["snapshot"], state["snapshot_gradient"]) if t else None

    def evaluations(self, t: int, n_terms: int) -> int:
        return n_terms if self.is_snapshot(t) else 2 * self.b(t, n_terms)


@dataclass(frozen=True)
class Recursive(Sampling[Recursion]):
    """One that moves its last estimate by differences between two iterates."""

    def init(self, f: FiniteSum, x: Array) -> Recursion:
        return {}

    def layout(self, f: FiniteSum, x: Array, t: int) -> Recursion:
        return {"gradient": x, "last_x": x} if t else {}
