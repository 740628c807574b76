"""What a gradient estimator must know: line 2 of both templates."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from adafw.objectives.base import FiniteSum
from adafw.typing import Array


class GradientEstimator(ABC):
    """Estimates grad f(x_t) from few terms: one row of Table 1.

    To add one: a frozen dataclass with `init`, `update` and `evaluations`. Its state is a dict of
    arrays and numbers, which `update` may change in place. An x that it was given never changes
    afterwards and can be kept; a g that it returned is only read, until the next update.
    """

    #: Whether g_t = grad f(x_t), always.
    exact: ClassVar[bool] = False

    def check(self, f: FiniteSum) -> None:
        """Refuses an objective that lacks what the estimator needs, before any work."""

    @abstractmethod
    def init(self, f: FiniteSum, x: Array) -> dict[str, Any]:
        """The state before t = 0."""

    def layout(self, f: FiniteSum, x: Array, t: int) -> dict[str, Any]:
        """Arrays of the shapes and dtypes that the state at iteration t has; init's by default.

        States from files are held against it, so name here what comes in only later.
        """
        return self.init(f, x)

    @abstractmethod
    def update(
        self, f: FiniteSum, x: Array, t: int, state: dict[str, Any], rng: Any
    ) -> tuple[Array, dict[str, Any]]:
        """The estimate g_t and the next state. Indices come from `draw` alone."""

    @abstractmethod
    def evaluations(self, t: int, n_terms: int) -> int:
        """Gradients of terms f_i that the textbook algorithm evaluates in iteration t."""


def draw(rng: Any, n_terms: int, size: int) -> NDArray[np.integer[Any]]:
    """i_1 .. i_b, i.i.d. uniform: one call of the generator an iteration."""
    batch: NDArray[np.integer[Any]] = np.asarray(rng.integers(0, n_terms, size=size))
    return batch
