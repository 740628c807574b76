"""What a corrector must know: one kind of set, and how f descends over it to second order."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from adafw.constraints.base import Constraint
from adafw.objectives.base import FiniteSum
from adafw.typing import Array


class Corrector(Protocol):
    """One outer iteration of a corrective step on the sets that it knows.

    To add one: a file with a class of these members, a line in `step.CORRECTORS`.
    """

    #: Sets that it knows.
    sets: tuple[type, ...]

    def fits(self, f: FiniteSum, constraint: Constraint) -> bool:
        """Whether it knows both."""

    def prepare(self, f: Any, x: Array, state: dict[str, Any]) -> None:
        """Before the clock runs: compiles, and tells f what the state knows of x."""

    def init(self, x: Array) -> dict[str, Any]:
        """Its state before t = 0: plain arrays and numbers."""

    def improve(
        self, f: Any, constraint: Any, x: Array, g: Array, t: int, state: dict[str, Any]
    ) -> tuple[Array, dict[str, Any]]:
        """A point of the set with a lower value than x, from the exact gradient g at x."""

    def active_set(
        self, constraint: Any, x: Array, state: dict[str, Any]
    ) -> tuple[NDArray[np.float64], Any] | None:
        """(weights, atoms) with x = weights @ atoms, where the set has few enough vertices."""
        return None
