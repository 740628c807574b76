"""The exact gradient."""

from dataclasses import dataclass

from adafw.gradients.base import GradientEstimator, Nothing
from adafw.objectives.base import FiniteSum
from adafw.random import IndexSource
from adafw.typing import Array


@dataclass(frozen=True)
class Full(GradientEstimator[Nothing]):
    """g_t = grad f(x_t): Frank-Wolfe itself. m evaluations an iteration."""

    exact = True

    def init(self, f: FiniteSum, x: Array) -> Nothing:
        return {}

    def update(
        self, f: FiniteSum, x: Array, t: int, state: Nothing, rng: IndexSource
    ) -> tuple[Array, Nothing]:
        return f.gradient(x), state

    def evaluations(self, t: int, n_terms: int) -> int:
        return n_terms
