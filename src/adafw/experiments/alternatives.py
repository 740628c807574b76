"""The two ways to use an adaptive metric that section 3.1 of the paper argues against."""

from dataclasses import dataclass
from typing import Any

from adafw import checks
from adafw.arrays import dot
from adafw.constraints.base import Constraint
from adafw.metrics import AdaGrad, Metric
from adafw.objectives.base import FiniteSum
from adafw.schedules import OpenLoop, as_schedule
from adafw.steps import AdaptiveStep, Step, short_step
from adafw.typing import Array

__all__ = ["AuditedStep", "DirectStep", "SolvedStep"]


@dataclass(frozen=True)
class DirectStep(Step):
    """x <- x + gamma_t (v - x), v = lmo(m_t / h_t): Frank-Wolfe along AdaGrad's direction.

    The subproblem is avoided altogether (section 3.1, first paragraph).
    """

    step_size: Any = OpenLoop()
    metric: Metric = AdaGrad()

    def __post_init__(self) -> None:
        object.__setattr__(self, "step_size", as_schedule(self.step_size, "step_size", 0, 1))

    def init(self, x: Array) -> dict[str, Any]:
        return self.metric.init(x)

    def update(
        self, f: FiniteSum, constraint: Constraint, x: Array, g: Array, t: int,
        state: dict[str, Any],
    ) -> tuple[Array, dict[str, Any]]:  # fmt: skip
        m, h, state = self.metric.update(g, t, state)
        return x + self.step_size(t) * (constraint.lmo(m / h) - x), state

    @property
    def most_lmo_calls(self) -> int:
        return 1


@dataclass(frozen=True)
class SolvedStep(Step):
    """Frank-Wolfe steps on Q_t until its gap is at most phi_t = accuracy phi / ((t + 1)(t + 2)).

    phi is the gap of Q_0 at x_0. The subproblem is solved ever more exactly, as in conditional
    gradient sliding (section 3.1, second paragraph; Lan and Zhou 2016), in `most_steps` at most.
    """

    learning_rate: Any
    accuracy: float = 1.0
    most_steps: int = 1000
    metric: Metric = AdaGrad()

    def __post_init__(self) -> None:
        eta = as_schedule(self.learning_rate, "learning_rate", 0, above=True)
        object.__setattr__(self, "learning_rate", eta)
        checks.real(self.accuracy, "accuracy", 0, above=True)
        checks.integer(self.most_steps, "most_steps", 1)

    def init(self, x: Array) -> dict[str, Any]:
        return {**self.metric.init(x), "first_gap": 0.0}

    def update(
        self, f: FiniteSum, constraint: Constraint, x: Array, g: Array, t: int,
        state: dict[str, Any],
    ) -> tuple[Array, dict[str, Any]]:  # fmt: skip
        m, h, state = self.metric.update(g, t, state)
        eta, y = self.learning_rate(t), x
        for _ in range(self.most_steps):
            grad_q = m + h * (y - x) / eta
            d = constraint.lmo(grad_q) - y
            gap = -float(dot(grad_q, d))
            state["first_gap"] = state["first_gap"] or gap
            if gap <= self.accuracy * state["first_gap"] / ((t + 1) * (t + 2)):
                break
            y = y + short_step(grad_q, d, h, eta, 1.0) * d
        return y, state

    @property
    def most_lmo_calls(self) -> int:
        return self.most_steps


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
