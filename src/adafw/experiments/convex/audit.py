"""How often bounds on the inner step sizes would have been active."""

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

from adafw.constraints.base import Constraint
from adafw.constraints.counted import CountedSet
from adafw.objectives.base import FiniteSum
from adafw.schedules import at
from adafw.steps import AdaptiveStep, Step, short_step
from adafw.typing import Array, StateDict


@dataclass(frozen=True)
class AuditedStep(Step):
    """An AdaptiveStep that is watched: what it does is its own, bit for bit.

    In its state: `inner` steps made, how many `exceeded` the theorems' gamma_t = 2 / (t + 2), how
    many were `cut` at 1. All that is seen is what the step asks of the set: the gradients of its
    subproblem and the vertices it gets, from which the size of each inner step follows.
    """

    step: AdaptiveStep

    def init(self, x: Array) -> StateDict:
        return {**self.step.init(x), "inner": 0, "exceeded": 0, "cut": 0}

    def update(
        self, f: FiniteSum, constraint: Constraint, x: Array, g: Array, t: int,
        state: StateDict,
    ) -> tuple[Array, StateDict]:  # fmt: skip
        _, h, _ = self.step.metric.update(g, t, deepcopy(state))  # the H_t that the step will use
        eta, bound = at(self.step.learning_rate, t), at(self.step.max_step, t)
        sizes: list[float] = []
        y = x

        def see(grad_q: Array, vertex: Array) -> None:
            nonlocal y
            d = vertex - y
            sizes.append(short_step(grad_q, d, h, eta, math.inf))
            y = y + min(sizes[-1], bound) * d

        after, state = self.step.update(f, _Watched(constraint, see), x, g, t, state)
        if not (y == after).all():
            raise ArithmeticError(f"the watched steps end elsewhere than {self.step} does.")
        state["inner"] += len(sizes)
        state["exceeded"] += sum(gamma > 2 / (t + 2) for gamma in sizes)
        state["cut"] += sum(gamma > 1 for gamma in sizes)
        return after, state

    @property
    def most_lmo_calls(self) -> int:
        return self.step.most_lmo_calls


class _Watched(CountedSet):
    """A set that tells `see` every gradient it is asked for a vertex by, and the vertex."""

    def __init__(self, constraint: Constraint, see: Callable[[Array, Array], None]) -> None:
        super().__init__(constraint)
        self.see = see

    def lmo(self, g: Array) -> Array:
        vertex = super().lmo(g)
        self.see(g, vertex)
        return vertex
