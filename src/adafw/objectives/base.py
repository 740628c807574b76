"""What an objective must know: f(x) = (1/m) sum_i f_i(x)."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from adafw.arrays import dot
from adafw.describe import describe, digest
from adafw.objectives.line import Line
from adafw.typing import Array, Batch, Plain

if TYPE_CHECKING:
    from adafw.losses import AnyLoss
    from adafw.rows.base import Rows


class Unavailable(ConnectionError):
    """The data of an objective cannot be reached any more; `state` is where to go on from.

    `reason` is what happened, `way` what helps. `state` is that of the run that `minimize` had to
    give up, and None outside of one; `resume` is what a fit made of it adds.
    """

    def __init__(self, reason: str, way: str = "connect again") -> None:
        super().__init__(reason)
        self.reason, self.way = reason, way

    def __str__(self) -> str:
        return (
            f"{self.reason}; {self.way}, make the objective anew and go on with state=error.state."
        )

    state: Any = None  # a `State`, and a `Resume`: both stand above
    resume: Any = None


class FiniteSum(ABC):
    """f = mean of f_1 .. f_m."""

    #: m, the number of terms.
    n_terms: int
    #: Whether f is convex; only then does value - gap bound the minimum from below.
    convex: bool
    #: Shape of x, or None if the objective does not know it.
    shape: tuple[int, ...] | None = None
    #: dtype of x.
    dtype: np.dtype[Any] = np.dtype(np.float64)
    #: Whether f is a SeparableSum, which CSFW asks for.
    separable: bool = False
    #: Whether f remembers value and gradient of the last x, so that asking again costs nothing.
    remembers: bool = False
    #: Whether f knows its second derivatives, which Newton steps ask for.
    has_hessian: bool = False
    #: Whether its terms are on other machines, so that asking may raise `Unavailable`.
    remote: bool = False

    @abstractmethod
    def value(self, x: Array) -> float:
        """f(x)."""

    @abstractmethod
    def gradient(self, x: Array, batch: Batch = None) -> Array:
        """Mean of grad f_i(x) over i in the batch, repeats counted; None means all terms."""

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        """Both at x, for less than the sum of their costs where they share work."""
        return self.value(x), self.gradient(x)

    @abstractmethod
    def describe(self) -> Plain:
        """Plain numbers that tell this objective from another."""

    def along(self, x: Array, d: Array) -> Line:
        """f on the line x + gamma d: what a line search asks for."""
        return Line(
            value=lambda gamma: self.value(x + gamma * d),
            slope=lambda gamma: float(dot(self.gradient(x + gamma * d), d)),
        )

    def hessian(self, x: Array, tried: Sequence[Array] = ()) -> NDArray[Any]:
        """H(x), a symmetric matrix with one row and column an entry of x.

        Each d of `tried`, a step that went too far, raises H to the curvature met on its way.
        """
        raise TypeError(f"{self!r} does not know its second derivatives.")

    def hessian_product(self, x: Array) -> Callable[[Array], Array]:
        """The function d -> H(x) d, from products alone: H itself is never formed."""
        raise TypeError(f"{self!r} does not know its second derivatives.")

    def status(self) -> str:
        """What a live line should say besides; nothing where all data are here."""
        return ""

    @property
    def lower_bound(self) -> float:
        """A number that f is nowhere below, whatever x is; -inf if none is known."""
        return -math.inf

    @property
    def smoothness(self) -> float:
        """An L with ||grad f(x) - grad f(y)||_2 <= L ||x - y||_2 for all x, y."""
        raise TypeError(
            f"{self!r} does not know its smoothness constant L; give it, or use a step size that "
            "needs none, such as LineSearch() or Backtracking()."
        )


class SeparableSum(FiniteSum):
    """f_i(x) = phi_i(<a_i, x>): what CSFW asks for."""

    separable = True
    #: a_1 .. a_m.
    rows: "Rows"
    #: The largest sup of phi_i'', over all i; inf if there is none.
    curvature: float

    @abstractmethod
    def slopes(self, x: Array, batch: Batch = None) -> NDArray[Any]:
        """phi_i'(<a_i, x>) for i in the batch."""

    @abstractmethod
    def slopes_at(self, z: NDArray[Any], batch: Batch = None) -> NDArray[Any]:
        """phi_i'(z_i) for i in the batch."""

    @abstractmethod
    def combine(self, weights: NDArray[Any], batch: Batch = None) -> Array:
        """sum of weights_i a_i over the batch."""

    def refresh(
        self, x: Array, alpha: NDArray[Any], batch: NDArray[np.integer[Any]]
    ) -> tuple[NDArray[Any], Array]:
        """(fresh, sum of (fresh_i - alpha_i) a_i), fresh_i = phi_i'(<a_i, x>) / m for the batch.

        `alpha` holds the entries of the batch.
        """
        fresh = self.slopes(x, batch) / self.n_terms
        return fresh, self.combine(fresh - alpha, batch)


def smoothness_of(loss: "AnyLoss", rows: "Rows", weights: NDArray[Any] | None) -> float:
    """curvature * ||A||_2^2 / m, with the rows of A scaled by the roots of the weights."""
    if math.isinf(loss.curvature):
        raise TypeError(
            f"{type(loss).__name__} has no bound on its curvature, so f has no smoothness constant "
            "L; use LineSearch() or Backtracking(), or give an L that holds on the set."
        )
    norm, _ = rows.spectral_norm(weights)
    return loss.curvature * norm**2 / rows.shape[0]


def described_data(
    name: str, loss: "AnyLoss", rows: "Rows", y: NDArray[Any], sample_weight: NDArray[Any] | None
) -> dict[str, Plain]:
    """What tells the mean loss of predictions on these rows from another."""
    return {
        "name": name,
        "loss": describe(loss),
        "A": rows.describe(),
        "y": digest(y),
        "sample_weight": describe(sample_weight),
    }
