"""What a gradient estimator must know: line 2 of both templates."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, TypedDict

import numpy as np
from numpy.typing import NDArray

from adafw.objectives.base import FiniteSum
from adafw.random import IndexSource
from adafw.schedules import BatchSize
from adafw.typing import Array, S

#: Epochs after which a sum is made anew: what rounding has added up to by then is lost in the noise
#: of the last digits, and the pass over the data costs half a percent.
_EPOCHS = 100


#: Indices of a batch at most: more would not fit into memory.
MOST_DRAWN = 2**40


class Nothing(TypedDict):
    """The state of what remembers nothing."""


class Table(TypedDict):
    """alpha_i, one number a row, and sum_i alpha_i a_i."""

    alpha: Array
    gradient: Array


class Snapshot(TypedDict, total=False):
    """A point with its exact gradient; nothing before t = 0."""

    snapshot: Array
    snapshot_gradient: Array


class Recursion(TypedDict, total=False):
    """The last point with its estimate; nothing before t = 0."""

    gradient: Array
    last_x: Array


class GradientEstimator(ABC, Generic[S]):
    """Estimates grad f(x_t) from few terms: one row of Table 1.

    To add one: a frozen dataclass with `init`, `update` and `evaluations`. Its state is a dict of
    arrays and numbers, which `update` may change in place; a TypedDict S says which. An x that it
    was given never changes afterwards and can be kept; a g that it returned is only read, until
    the next update.
    """

    #: Whether g_t = grad f(x_t), always: such an estimator draws nothing, and gets no generator.
    exact: ClassVar[bool] = False
    #: Whether g_t has all errors of those before, back to the last that was exact.
    recursive: ClassVar[bool] = False

    def check(self, f: FiniteSum) -> None:
        """Refuses an objective that lacks what the estimator needs, before any work."""

    @abstractmethod
    def init(self, f: FiniteSum, x: Array) -> S:
        """The state before t = 0."""

    def layout(self, f: FiniteSum, x: Array, t: int) -> S:
        """Arrays of the shapes and dtypes that the state at iteration t has; init's by default.

        States from files are held against it, so name here what comes in only later.
        """
        return self.init(f, x)

    @abstractmethod
    def update(self, f: FiniteSum, x: Array, t: int, state: S, rng: IndexSource) -> tuple[Array, S]:
        """The estimate g_t and the next state. Indices come from `draw` alone."""

    @abstractmethod
    def evaluations(self, t: int, n_terms: int) -> int:
        """Gradients of terms f_i that the textbook algorithm evaluates in iteration t, at most."""

    def remembered(self, state: S) -> Array | None:
        """The sum of slopes of earlier iterates that steps follow, if the state holds one."""
        return None

    def exact_point(self, state: S, t: int) -> tuple[Array, Array] | None:
        """(x, grad f(x)) of some x, if the state before iteration t holds such a pair."""
        return None

    def spent(self, t: int, n_terms: int, state: S) -> int:
        """What iteration t did evaluate, by the state it left: less only where a coin decides."""
        return self.evaluations(t, n_terms)


def draw(rng: IndexSource, n_terms: int, size: int) -> NDArray[np.integer[Any]]:
    """i_1 .. i_b, i.i.d. uniform: one call of the generator an iteration."""
    if size > MOST_DRAWN:
        raise ValueError(
            f"batch_size must be at most {MOST_DRAWN} where a batch is drawn, got {float(size):g}; "
            f"an exact gradient takes {n_terms} terms."
        )
    batch: NDArray[np.integer[Any]] = np.asarray(rng.integers(0, n_terms, size=size))
    return batch


def coin(rng: IndexSource) -> float:
    """A number uniform in [0, 1[ of 53 bits: one call of the generator."""
    return int(rng.integers(0, 2**53, size=None)) / 2**53


def renews(t: int, n_terms: int, batch_size: BatchSize) -> bool:
    """Whether a sum of alpha_i a_i is made anew before iteration t: a matter of t alone."""
    if t == 0 or t % _EPOCHS:  # asked at every iteration: mostly without an epoch's length
        return False
    epoch = -(-n_terms // batch_size(t, n_terms))
    return t % (_EPOCHS * epoch) == 0


def check_separable(f: FiniteSum, name: str) -> None:
    """Refuses an objective whose terms are no functions phi_i(<a_i, x>)."""
    if not f.separable:
        raise TypeError(
            f"{name} needs an objective of terms phi_i(<a_i, x>), such as LinearModel, got {f!r};"
            " use Minibatch, SVRF, LSVRG, SPIDER, PAGE, Momentum or ORGFW instead."
        )
