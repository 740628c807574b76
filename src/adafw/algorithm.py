"""What an algorithm is: a gradient estimator and a step."""

from dataclasses import dataclass, field

from adafw.constraints.base import Constraint
from adafw.describe import describe
from adafw.gradients.base import GradientEstimator
from adafw.objectives.base import FiniteSum
from adafw.steps.base import Step
from adafw.typing import Plain


@dataclass(frozen=True)
class Algorithm:
    """Any gradient estimator (line 2 of both templates) with any step (the lines after it)."""

    gradient: GradientEstimator
    step: Step
    name: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.gradient, GradientEstimator):
            raise TypeError(f"gradient must be one of adafw.gradients, got {self.gradient!r}.")
        if not isinstance(self.step, Step):
            raise TypeError(f"step must be one of adafw.steps, got {self.step!r}.")
        if not self.name:
            parts = type(self.gradient).__name__, type(self.step).__name__
            object.__setattr__(self, "name", " + ".join(parts))

    def check(self, f: FiniteSum, constraint: Constraint) -> None:
        """Refuses a problem that lacks what the parts need, before any work."""
        self.gradient.check(f)
        self.step.check(f, constraint, self.gradient)

    def describe(self) -> Plain:
        """Both parts as plain numbers: what a state remembers of its algorithm."""
        return {"gradient": describe(self.gradient), "step": describe(self.step)}

    def __str__(self) -> str:
        return self.name
