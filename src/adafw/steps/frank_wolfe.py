"""Template 1: a step towards the vertex that the LMO returns."""

from dataclasses import dataclass

from adafw.constraints.base import Constraint
from adafw.gradients import LuFreund
from adafw.gradients.base import GradientEstimator
from adafw.objectives.base import FiniteSum
from adafw.schedules import OpenLoop, as_schedule, at
from adafw.steps.base import Step
from adafw.steps.rules import StepRule
from adafw.typing import Array, ScheduleLike, StateDict


@dataclass(frozen=True)
class FrankWolfeStep(Step):
    """v = lmo(g), x <- x + gamma_t (v - x).

    `step_size` (gamma_t in [0, 1]): 2 / (t + 2), another schedule, or a `StepRule`. `averaging`
    (delta_t in [0, 1]): None, or a heavy ball, v = lmo(c_t) with the average of all gradients
    c_t = (1 - delta_t) c_{t-1} + delta_t g_t, c_0 = g_0; delta_t = 2 / (t + 2) has a proven rate
    (Li, Sadeghi, Giannakis 2021).
    """

    step_size: ScheduleLike | StepRule = OpenLoop()
    averaging: ScheduleLike | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.step_size, StepRule):
            object.__setattr__(self, "step_size", as_schedule(self.step_size, "step_size", 0, 1))
        elif self.averaging is not None:
            raise TypeError(
                f"step_size must be a schedule where averaging is one, got {self.step_size!r}: a "
                "search needs a direction that descends, which an averaged gradient's need not be."
            )
        if self.averaging is not None:
            object.__setattr__(self, "averaging", as_schedule(self.averaging, "averaging", 0, 1))

    def check(self, f: FiniteSum, constraint: Constraint, gradient: GradientEstimator) -> None:
        if isinstance(self.step_size, StepRule):
            self.step_size.check(f, gradient)
        elif isinstance(gradient, LuFreund) and not _alike(gradient.step_size, self.step_size):
            raise ValueError(
                f"LuFreund follows steps of its own step_size, {gradient.step_size!r}, got "
                f"{self.step_size!r}: give both the same, as LuFreundFW(step_size) does."
            )

    def init(self, x: Array) -> StateDict:
        return {}

    def layout(self, x: Array, t: int) -> StateDict:
        return {"average": x} if t and self.averaging is not None else {}

    def update(
        self, f: FiniteSum, constraint: Constraint, x: Array, g: Array, t: int,
        state: StateDict,
    ) -> tuple[Array, StateDict]:  # fmt: skip
        if self.averaging is not None:
            g = state["average"] = _average(g, at(self.averaging, t), t, state)
        d = constraint.lmo(g) - x  # line 3
        if not g.any():  # every point minimises <0, v>: there is nothing to move for
            return x, state
        if isinstance(self.step_size, StepRule):
            gamma, state = self.step_size(f, x, g, d, t, state)
        else:
            gamma = at(self.step_size, t)
        return x + gamma * d, state  # line 4

    @property
    def most_lmo_calls(self) -> int:
        return 1


def _alike(one: ScheduleLike, other: ScheduleLike) -> bool:
    """Whether two schedules are one, as far as their first values tell."""
    return all(at(one, t) == at(other, t) for t in range(3))


def _average(g: Array, delta: float, t: int, state: StateDict) -> Array:
    return g if t == 0 else (1 - delta) * state["average"] + delta * g
