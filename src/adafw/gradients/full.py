"""The exact gradient."""

from dataclasses import dataclass
from typing import Any

from adafw.gradients.base import GradientEstimator
from adafw.objectives.base import FiniteSum
from adafw.typing import Array


@dataclass(frozen=True)
class Full(GradientEstimator):
    """g_t = grad f(x_t): Frank-Wolfe itself. m evaluations an iteration."""

    exact = True

    def init(self, f: FiniteSum, x: Array) -> dict[str, Any]:
        return {}

    def update(
        self, f: FiniteSum, x: Array, t: int, state: dict[str, Any], rng: Any
    ) -> tuple[Array, dict[str, Any]]:
        return f.gradient(x), state

    def evaluations(self, t: int, n_terms: int) -> int:
        return n_terms
