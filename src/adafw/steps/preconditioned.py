"""The first alternative of section 3.1: the LMO called on the direction of an adaptive gradient."""

from dataclasses import dataclass

from adafw.constraints.base import Constraint
from adafw.metrics import AdaGrad, Metric
from adafw.objectives.base import FiniteSum
from adafw.schedules import OpenLoop, as_schedule, at
from adafw.steps.base import Step
from adafw.steps.rules import StepRule
from adafw.typing import Array, ScheduleLike, StateDict


@dataclass(frozen=True)
class PreconditionedStep(Step):
    """v = lmo(m_t / h_t), x <- x + gamma_t (v - x).

    For ablation: the paper advises against it, as v - x may point elsewhere than -m_t / h_t and
    need not descend. `step_size` (gamma_t in [0, 1]): 2 / (t + 2); `metric` (H_t and m_t).
    """

    step_size: ScheduleLike = OpenLoop()
    metric: Metric = AdaGrad()

    def __post_init__(self) -> None:
        if not isinstance(self.metric, Metric):
            raise TypeError(f"metric must be one of adafw.metrics, got {self.metric!r}.")
        if isinstance(self.step_size, StepRule):
            raise TypeError(
                f"step_size must be a schedule, got {self.step_size!r}: a line search needs a "
                "direction that descends, which v - x need not be here."
            )
        object.__setattr__(self, "step_size", as_schedule(self.step_size, "step_size", 0, 1))

    def init(self, x: Array) -> StateDict:
        return self.metric.init(x)

    def prepare(self, f: FiniteSum, constraint: Constraint, x: Array, state: StateDict) -> None:
        self.metric.prepare(x)

    def update(
        self, f: FiniteSum, constraint: Constraint, x: Array, g: Array, t: int,
        state: StateDict,
    ) -> tuple[Array, StateDict]:  # fmt: skip
        m, h, state = self.metric.update(g, t, state)
        v = constraint.lmo(m / h)
        if not m.any():  # every point minimises <0, v>: there is nothing to move for
            return x, state
        return x + at(self.step_size, t) * (v - x), state

    @property
    def most_lmo_calls(self) -> int:
        return 1
