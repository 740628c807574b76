"""What a step must know: how x_{t+1} follows from x_t and the estimate g_t."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic

from numpy.typing import NDArray

from adafw.constraints.base import Constraint
from adafw.gradients.base import GradientEstimator
from adafw.objectives.base import FiniteSum
from adafw.schedules import Rate
from adafw.typing import Array, MatrixLike, S


class Step(ABC, Generic[S]):
    """Moves x inside the set.

    Its state is a dict of arrays and numbers, which `update` may change in place; a
    TypedDict S says which. x and g are only read, and a new x is returned.
    """

    #: Whether an iteration is so dear that the gap, known after it for free, is looked at at once.
    dear: ClassVar[bool] = False
    #: Numbers that its state may hold: of which type, and from where to where.
    numbers: ClassVar[Mapping[str, tuple[type[int] | type[float], float, float]]] = {}

    @property
    def rate(self) -> Rate | None:
        """eta_t, or "auto" while that is left to `minimize`; None of a step that has none."""
        return None

    def with_rate(self, rate: float) -> "Step[S]":
        """The same step with another eta, where `rate` is not None."""
        raise TypeError(f"{type(self).__name__} has no learning rate to change.")

    def check(self, f: FiniteSum, constraint: Constraint, gradient: GradientEstimator) -> None:
        """Refuses a problem that lacks what the step needs, before any work."""

    @abstractmethod
    def init(self, x: Array) -> S:
        """The state before t = 0."""

    def begin(self, f: FiniteSum, constraint: Constraint, x: Array) -> Array:
        """Where a run from x begins, before anything is measured: x, unless f is infinite there."""
        return x

    def query(self, x: Array, t: int, state: S) -> Array:
        """The point at which iteration t asks for the gradient: x, unless the step says another."""
        return x

    def active_set(
        self, constraint: Constraint, x: Array, state: S
    ) -> tuple[NDArray[Any], MatrixLike] | None:
        """(weights, atoms) with x = weights @ atoms, if the step keeps them."""
        return None

    def layout(self, x: Array, t: int) -> S:
        """Arrays of the shapes and dtypes that the state at iteration t has; init's by default."""
        return self.init(x)

    def prepare(self, f: FiniteSum, constraint: Constraint, x: Array, state: S) -> None:
        """Before the clock runs, at x with this state: compiles what `update` will need."""

    @abstractmethod
    def update(
        self, f: FiniteSum, constraint: Constraint, x: Array, g: Array, t: int,
        state: S,
    ) -> tuple[Array, S]:  # fmt: skip
        """(x_{t+1}, state)."""

    @property
    @abstractmethod
    def most_lmo_calls(self) -> int:
        """LMO calls of one iteration at most; a limit on LMO calls is kept by this number."""
