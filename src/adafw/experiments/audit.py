"""How often bounds on the inner step sizes would have been active."""

from dataclasses import dataclass
from typing import Any

from adafw.constraints.base import Constraint
from adafw.objectives.base import FiniteSum
from adafw.steps import AdaptiveStep, Step, short_step
from adafw.typing import Array


@dataclass(frozen=True)
class AuditedStep(Step):
    """An AdaptiveStep that also counts how often bounds on its inner steps would have bound.

    In its state: `inner` steps made, how many `exceeded` the theorems' gamma_t = 2 / (t + 2), how
    many were cut at 1. The iterates are those of the step with max_step = 1.
    """

    step: AdaptiveStep

    def init(self, x: Array) -> dict[str, Any]:
        return {**self.step.init(x), "inner": 0, "exceeded": 0, "cut": 0}

    def update(
        self, f: FiniteSum, constraint: Constraint, x: Array, g: Array, t: int,
        state: dict[str, Any],
    ) -> tuple[Array, dict[str, Any]]:  # fmt: skip
        m, h, state = self.step.metric.update(g, t, state)
        eta, y = self.step.learning_rate(t), x
        for _ in range(self.step.inner_steps):
            grad_q = m + h * (y - x) / eta
            d = constraint.lmo(grad_q) - y
            gamma = short_step(grad_q, d, h, eta, float("inf"))
            state["inner"] += 1
            state["exceeded"] += gamma > 2 / (t + 2)
            state["cut"] += gamma > 1
            y = y + min(gamma, 1.0) * d
        return y, state

    @property
    def most_lmo_calls(self) -> int:
        return self.step.most_lmo_calls
