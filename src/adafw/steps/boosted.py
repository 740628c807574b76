"""Boosted steps: several LMO calls chase the negative gradient before x moves."""

import math
from dataclasses import dataclass

from adafw import checks
from adafw.arrays import dot
from adafw.constraints.base import Constraint
from adafw.gradients.base import GradientEstimator
from adafw.objectives.base import FiniteSum
from adafw.schedules import OpenLoop, as_schedule, at
from adafw.steps.base import Step
from adafw.steps.rules import StepRule
from adafw.typing import Array, ScheduleLike, StateDict


@dataclass(frozen=True)
class BoostedStep(Step):
    """x <- x + gamma_t d / Lambda, d = sum_k lambda_k u_k a matching pursuit of -g over v - x.

    Round k adds the multiple of u = v - x, v = lmo(d + g), or of -d / ||d||, that comes nearest to
    what is left of -g; it ends when the cosine of d and -g rises by less than `improvement`
    (delta in ]0, 1[), or after `rounds` (K; None: as many as there are, fewer than 2 / delta).
    Lambda, the sum of the lambda, makes d a direction inside the set. `step_size` (gamma_t in
    [0, 1]): a schedule or a `StepRule`. One LMO call a round. Combettes and Pokutta (2020),
    algorithm 2, with delta = 1e-3.
    """

    step_size: ScheduleLike | StepRule = OpenLoop()
    rounds: int | None = None
    improvement: float = 1e-3

    def __post_init__(self) -> None:
        if not isinstance(self.step_size, StepRule):
            object.__setattr__(self, "step_size", as_schedule(self.step_size, "step_size", 0, 1))
        if self.rounds is not None:
            object.__setattr__(self, "rounds", checks.integer(self.rounds, "rounds", 1))
        delta = checks.real(self.improvement, "improvement", 0, 1, above=True, below=True)
        object.__setattr__(self, "improvement", delta)

    def check(self, f: FiniteSum, constraint: Constraint, gradient: GradientEstimator) -> None:
        if isinstance(self.step_size, StepRule):
            self.step_size.check(f, gradient)

    def init(self, x: Array) -> StateDict:
        return {}

    def update(
        self, f: FiniteSum, constraint: Constraint, x: Array, g: Array, t: int,
        state: StateDict,
    ) -> tuple[Array, StateDict]:  # fmt: skip
        if not g.any():
            return x, state
        d = self._direction(constraint, x, g)
        if d is None:
            return x, state
        if isinstance(self.step_size, StepRule):
            gamma, state = self.step_size(f, x, g, d, t, state)
        else:
            gamma = at(self.step_size, t)
        return x + gamma * d, state

    def _direction(self, constraint: Constraint, x: Array, g: Array) -> Array | None:
        """d / Lambda; None where no vertex descends, which is rounding at a minimiser."""
        d, total, aligned = g * 0, 0.0, -1.0
        for _ in range(self.most_lmo_calls):
            left = -g - d
            u = constraint.lmo(-left) - x
            length, back = _norm(d), False
            if length > 0 and -float(dot(left, d)) / length > float(dot(left, u)):
                u, back = -d / length, True
            square = float(dot(u, u))
            share = float(dot(left, u)) / square if square > 0 else 0.0
            if not share > 0:
                break
            longer = d + share * u
            # Squares of tiny entries underflow, and 0 / 0 would be no cosine.
            now = -float(dot(g, longer)) / max(_norm(g) * _norm(longer), 1e-300)
            if now - aligned < self.improvement:
                break
            d, aligned = longer, now
            total = total * (1 - share / length) if back else total + share
        return d / total if total > 0 else None

    @property
    def most_lmo_calls(self) -> int:
        # Every round but the last raises a cosine, which starts at -1, by `improvement`.
        most = math.floor(min(2 / self.improvement, checks.LARGEST - 1)) + 1
        return most if self.rounds is None else min(most, self.rounds)


def _norm(x: Array) -> float:
    return math.sqrt(float(dot(x, x)))
