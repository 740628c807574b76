"""Adaptive gradients with the projection itself: Algorithm 2 and its kin."""

from dataclasses import dataclass, replace
from typing import Self, cast

from adafw.constraints.base import Constraint
from adafw.gradients.base import GradientEstimator
from adafw.metrics import AdaGrad, Metric
from adafw.objectives.base import FiniteSum
from adafw.schedules import Rate, RateLike, as_rate, at
from adafw.steps.base import Step
from adafw.typing import Array, StateDict


@dataclass(frozen=True)
class ProjectedStep(Step):
    """x <- the point of C nearest to x - eta_t m_t / h_t in the norm of H_t (Algorithm 2, line 4).

    `learning_rate` (eta_t > 0, or "auto" for `minimize`), `metric` (H_t and m_t).
    """

    learning_rate: RateLike
    metric: Metric = AdaGrad()

    def __post_init__(self) -> None:
        if not isinstance(self.metric, Metric):
            raise TypeError(f"metric must be one of adafw.metrics, got {self.metric!r}.")
        eta = as_rate(self.learning_rate)
        object.__setattr__(self, "learning_rate", eta)

    def check(self, f: FiniteSum, constraint: Constraint, gradient: GradientEstimator) -> None:
        if constraint.projection != "metric":
            raise TypeError(
                f"a projected step needs a set with a projection in a diagonal metric, which "
                f"{constraint!r} has not; use AdaptiveStep, which needs none."
            )

    @property
    def rate(self) -> Rate | None:
        return cast(Rate, self.learning_rate)  # by `as_rate`

    def with_rate(self, rate: float) -> Self:
        return replace(self, learning_rate=rate)

    def init(self, x: Array) -> StateDict:
        return self.metric.init(x)

    def prepare(self, f: FiniteSum, constraint: Constraint, x: Array, state: StateDict) -> None:
        self.metric.prepare(x)

    def update(
        self, f: FiniteSum, constraint: Constraint, x: Array, g: Array, t: int,
        state: StateDict,
    ) -> tuple[Array, StateDict]:  # fmt: skip
        m, h, state = self.metric.update(g, t, state)
        if not m.any():  # nothing to move for, and projecting x again would only round it
            return x, state
        return constraint.project(x - at(self.learning_rate, t) * m / h, h), state

    @property
    def most_lmo_calls(self) -> int:
        return 0
