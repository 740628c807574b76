"""Local steps: every part iterates on its own rows, and the points are averaged."""

import math
from dataclasses import dataclass
from typing import Any

from adafw import checks
from adafw.algorithm import Algorithm
from adafw.constraints.base import Constraint
from adafw.constraints.counted import CountedSet
from adafw.distributed.model import DistributedLinearModel
from adafw.gradients.base import GradientEstimator, Nothing
from adafw.objectives.base import FiniteSum
from adafw.random import IndexSource
from adafw.schedules import OpenLoop
from adafw.steps import FrankWolfeStep
from adafw.steps.base import Step
from adafw.steps.rules import StepRule
from adafw.typing import Array, ScheduleLike


def LocalCSFW(
    iterations: int = 100,
    step_size: ScheduleLike | StepRule = OpenLoop(),
    share: float = 0.01,
    seed: int = 0,
) -> Algorithm:
    """CSFW with `iterations` local ones a round trip, on batches of that share of a part's rows.

    A round: the exact gradient at x, then on every part CSFW's iterations from x with its own rows,
    whose estimate starts at that gradient and moves by the part's own slopes alone; x becomes the
    mean of the points reached, weighted by rows. Two round trips, whatever `iterations` is: for
    slow networks. At equal work plain CSFW is better (docs/distributed.md).
    """
    local = LocalSteps(FrankWolfeStep(step_size), iterations, share, seed)
    return Algorithm(ExactAndLocal(local.iterations, local.share), local, "LocalCSFW")


@dataclass(frozen=True)
class ExactAndLocal(GradientEstimator[Nothing]):
    """grad f(x_t), with the evaluations of the local iterations that follow counted."""

    iterations: int
    share: float
    exact = True

    def init(self, f: FiniteSum, x: Array) -> Nothing:
        return {}

    def update(
        self, f: FiniteSum, x: Array, t: int, state: Nothing, rng: IndexSource
    ) -> tuple[Array, Nothing]:
        return f.gradient(x), state

    def evaluations(self, t: int, n_terms: int) -> int:
        return n_terms + self.iterations * math.ceil(self.share * n_terms)


@dataclass(frozen=True)
class LocalSteps(Step[Nothing]):
    """x_{t+1} = sum_k (m_k / m) x_k, x_k reached by part k in `iterations` steps from x_t.

    `step` : what each of them does; its schedules go on from round to round, its own state does
    not. LMO calls are counted for one part: they run at the same time.
    """

    step: Step
    iterations: int = 100
    share: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        checks.integer(self.iterations, "iterations", 1)
        checks.integer(self.seed, "seed", 0)
        if not 0 < self.share <= 1:
            raise ValueError(f"share must be a number in ]0, 1], got {self.share!r}.")

    def check(self, f: FiniteSum, constraint: Constraint, gradient: GradientEstimator) -> None:
        if not isinstance(f, DistributedLinearModel):
            raise TypeError(f"LocalSteps need a DistributedLinearModel, got {f!r}; use CSFW().")
        if not gradient.exact:
            raise TypeError(
                f"LocalSteps need exact gradients, got those of {type(gradient).__name__}."
            )

    def init(self, x: Array) -> Nothing:
        return {}

    def update(
        self, f: Any, constraint: Constraint, x: Array, g: Array, t: int, state: Nothing
    ) -> tuple[Array, Nothing]:
        new = f.local_points(
            x,
            {
                "gradient": g, "t": t * self.iterations, "step": self.step, "seed": self.seed,
                "constraint": constraint.bare, "iterations": self.iterations, "share": self.share,
            },
        )  # fmt: skip
        if isinstance(constraint, CountedSet):
            constraint.lmo_calls += self.iterations
        return new, state

    @property
    def most_lmo_calls(self) -> int:
        return self.iterations
