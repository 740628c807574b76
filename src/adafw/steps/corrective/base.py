"""What a corrector must know: one kind of set, and how f descends over it to second order."""

from typing import Any, Protocol, TypeAlias, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from adafw.constraints.base import Constraint
from adafw.objectives.base import FiniteSum
from adafw.typing import Array, MatrixLike


class Memory(TypedDict, total=False):
    """What correctors keep from one iteration to the next; each reads only what it left."""

    #: Of the working set: its members, their Gram matrix and the bends that are in it.
    chosen: NDArray[np.int64]
    gram: NDArray[np.float64]
    bends: NDArray[np.float64]
    #: The largest sum of bends that was in it since it was made.
    held: float
    #: Whether few members change (1), whether the set binds (1), the price on weight, sum |x|.
    calm: int
    bound: int
    level: float
    norm: float
    #: The multiplier of the set, where brief descents left one.
    multiplier: float
    #: 1 where columns were found to have much to do with each other.
    related: int
    #: 1 where the rows are a sample of longer data.
    sample: int
    #: A x, bit for bit, and its largest entry since it was computed as a product.
    predictions: NDArray[np.float64]
    reach: float
    #: The last x, the gradient there, how often in turn gaps have hardly fallen, and whether the
    #: matrix began as a diagonal.
    before: NDArray[Any]
    slopes: NDArray[Any]
    stuck: int
    alone: int
    #: Of vertices or of a hull, or rates of the outer steps.
    weights: NDArray[Any]
    #: How many times the loss is to be stretched in the next iteration.
    stretch: float
    #: Of single precision: the last gap, -1 once steps are taken in double precision.
    last: float
    #: The last gap, the word of a shuffle, the factors of a matrix.
    gap: float
    word: int
    left: NDArray[Any]
    right: NDArray[Any]


#: The kinds of objective that a corrector takes.
F = TypeVar("F", bound=FiniteSum, contravariant=True)


class Corrector(Protocol[F]):
    """One outer iteration of a corrective step on the sets that it knows.

    To add one: a file with a class of these members, a line in `step.CORRECTORS`.
    """

    #: Sets that it knows.
    sets: tuple[type, ...]
    #: Whether most coefficients are 0 on them.
    few: bool = False
    #: Whether an iteration on a few rows before the clock runs compiles what it needs.
    rehearsed: bool = False

    #: Whether in single precision it takes steps in double where gaps hardly fall (`precise`).
    doubles: bool = False

    def fits(self, f: FiniteSum, constraint: Constraint) -> bool:
        """Whether it knows both."""

    def prepare(self, f: F, x: Array, state: Memory) -> None:
        """Before the clock runs: compiles what a rehearsal does not, and tells f of the state."""

    def init(self, x: Array) -> Memory:
        """Its state before t = 0: plain arrays and numbers."""

    def improve(
        self, f: F, constraint: Constraint, x: Array, g: Array, t: int, state: Memory
    ) -> tuple[Array, Memory]:
        """A point of the set with a lower value than x, from the exact gradient g at x."""

    def near(self, f: F, constraint: Constraint, x: Array, g: Array) -> bool:
        """Whether one iteration leads so far from x that it needs no sample to begin with."""
        return False

    def active_set(
        self, constraint: Constraint, x: Array, state: Memory
    ) -> tuple[NDArray[np.float64], MatrixLike] | None:
        """(weights, atoms) with x = weights @ atoms, where the set has few enough vertices."""
        return None


#: One of whatever objectives: `fits` says of which.
AnyCorrector: TypeAlias = Corrector[Any]
