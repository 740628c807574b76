"""Template 3: a few Frank-Wolfe steps on the subproblem of an adaptive-gradient method."""

from dataclasses import dataclass
from typing import Any

from adafw import checks
from adafw.arrays import dot
from adafw.constraints.base import Constraint
from adafw.metrics import AdaGrad, Metric
from adafw.objectives.base import FiniteSum
from adafw.schedules import as_rate, as_schedule
from adafw.steps.base import Step
from adafw.typing import Array


@dataclass(frozen=True)
class AdaptiveStep(Step):
    """K Frank-Wolfe steps, from y = x_t, on Q_t(y) = <m_t, y> + ||y - x_t||^2_{H_t} / (2 eta_t).

    `learning_rate` (eta_t > 0, or "auto" in `minimize`; inf leaves the linear term alone),
    `inner_steps` (K >= 1), `max_step` (gamma_t in [0, 1], the bound on each step), `metric` (H_t
    and m_t), `inner_gap` (phi_t >= 0: the alternative of section 3.1, where the inner loop also
    ends as soon as the Frank-Wolfe gap of Q_t is at most phi_t, and K is the most it may do).
    """

    learning_rate: Any
    inner_steps: int = 5
    max_step: Any = 1.0
    metric: Metric = AdaGrad()
    inner_gap: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.metric, Metric):
            raise TypeError(f"metric must be one of adafw.metrics, got {self.metric!r}.")
        eta = as_rate(self.learning_rate, infinite=True)
        object.__setattr__(self, "learning_rate", eta)
        object.__setattr__(self, "inner_steps", checks.integer(self.inner_steps, "inner_steps", 1))
        object.__setattr__(self, "max_step", as_schedule(self.max_step, "max_step", 0, 1))
        if self.inner_gap is not None:
            object.__setattr__(self, "inner_gap", as_schedule(self.inner_gap, "inner_gap", 0))

    def init(self, x: Array) -> dict[str, Any]:
        return self.metric.init(x)

    def update(
        self, f: FiniteSum, constraint: Constraint, x: Array, g: Array, t: int,
        state: dict[str, Any],
    ) -> tuple[Array, dict[str, Any]]:  # fmt: skip
        m, h, state = self.metric.update(g, t, state)  # line 3
        eta, bound, y = self.learning_rate(t), self.max_step(t), x  # line 4
        for _ in range(self.inner_steps):  # line 5
            grad_q = m + h * (y - x) / eta  # line 6
            d = constraint.lmo(grad_q) - y  # line 7
            if self.inner_gap is not None and -dot(grad_q, d) <= self.inner_gap(t):
                break
            gamma = short_step(grad_q, d, h, eta, bound)  # line 8
            y = y + gamma * d  # line 9
        return y, state  # line 11

    @property
    def most_lmo_calls(self) -> int:
        return self.inner_steps


def short_step(grad_q: Array, d: Array, h: Array, eta: float, bound: float) -> float:
    """min(-eta <grad Q, d> / <d, H d>, bound): the minimiser of Q on the way along d (line 8).

    0 when d does not descend, which is rounding at a minimiser of Q, or when d = 0; so that
    neither 0 / 0 nor inf * 0 is ever formed.
    """
    slope, curvature = -float(dot(grad_q, d)), float(dot(d, h * d))
    if not (slope > 0 and curvature > 0):
        return 0.0
    return bound if eta * slope >= bound * curvature else eta * slope / curvature
