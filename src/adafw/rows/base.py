"""The rows a_1 .. a_m of a data matrix, whatever it is stored as."""

import math
from abc import ABC, abstractmethod
from copy import copy
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from adafw.rows.sketch import Sketch
from adafw.rows.working import WorkingRows
from adafw.typing import Batch, Plain

Vector = NDArray[np.floating[Any]]
#: Predictions; mean loss, slopes and second derivatives of the terms, over m; gradient.
AtOnce: TypeAlias = tuple[Vector, tuple[float, Vector, Vector], Vector]


class Pull(Protocol):
    """How predictions of a batch become weights of its rows: plain data, so that it can travel."""

    def slopes(self, z: Vector) -> Vector:
        """phi_i'(z_i) for the batch."""

    def weights(self, slopes: Vector) -> Vector:
        """What the rows are combined with."""

    def part(self, which: NDArray[np.integer[Any]]) -> "Pull":
        """The same for some of the batch, by their positions in it."""


class Rows(ABC):
    """The matrix A, asked for products with a batch of its rows.

    Where x has several dimensions, the columns of A are the entries of x, row by row.
    """

    #: (m, *shape of x).
    shape: tuple[int, ...]
    #: What `describe` returns, if that is settled: see `described`.
    description: dict[str, Plain] | None = None
    #: Of points and products.
    dtype: np.dtype[Any]
    #: Whether `working` and `column_arrays` are known.
    by_coordinates: bool = False
    #: Whether rows are lists of their non-zeros, so that a column costs no more than its own.
    listed: bool = False
    #: Whether products run over a copy by columns, which is there from the first one on.
    turned: bool = False
    #: Whether columns, those of zeros aside, are of one size or so.
    alike: bool = False
    #: Whether all rows have as many entries, all of one value, as labels have that are written out:
    #: of such columns those of one kind of label have the same sum.
    labels: bool = False
    #: How many products with all rows a Gram matrix costs, where that is known to be few.
    gram_products: float = math.inf
    #: Whether `add_gram` is known.
    gram_grows: bool = False
    #: Whether `rough_curve` is cheaper than `curve`.
    rough: bool = False
    #: Whether columns are so far from 0 that rough products lose what they are less their means.
    far: bool = False
    #: Whether they are soon gone, or memory is dear: no copies are kept to make products faster.
    passing: bool = False
    #: Where in x, laid out flat, the one entry of each row is; None if rows have more than one.
    places: NDArray[np.integer[Any]] | None = None
    #: Whether they are on other machines: a product is then a round trip, and may fail.
    remote: bool = False
    #: What rows weigh, where a few of them weigh as much as all others: their squared lengths, in
    #: units of which columns are of one size; None of others.
    heavy: Vector | None = None
    #: Whether looking for NaN and infinity is a pass of theirs, of which more can be had.
    unseen: bool = False
    #: Whether they exceed memory, so that a pass reads a disk and a batch should be blocks.
    streamed: bool = False

    @abstractmethod
    def dot(self, x: Vector, batch: Batch = None) -> Vector:
        """<a_i, x> for i in the batch; None means all rows."""

    @abstractmethod
    def combine(self, weights: Vector, batch: Batch = None) -> Vector:
        """sum of weights_i a_i over the batch; None means all rows."""

    def pull(self, x: Vector, how: Pull, batch: NDArray[np.integer[Any]]) -> tuple[Vector, Vector]:
        """(slopes at <a_i, x>, sum of their weights times a_i) of a batch, in one round trip."""
        slopes = how.slopes(self.dot(x, batch))
        return slopes, self.combine(how.weights(slopes), batch)

    def loss_and_gradient(
        self, loss_code: int, x: Vector, y: Vector, weights: Vector
    ) -> tuple[float, Vector] | None:
        """(mean loss of the predictions, its gradient) in one pass; None if it would take two.

        `loss_code` is the kernels' number of the loss; `weights` may be empty.
        """
        found = self.at_once(loss_code, x, y, weights)
        return None if found is None else (found[1][0], found[2])

    def at_once(self, loss_code: int, x: Vector, y: Vector, weights: Vector) -> AtOnce | None:
        """(A x; the mean loss there, its terms' slopes / m and second derivatives / m; gradient).

        The same bits as one by one; None where one pass is not faster than two.
        """
        return None

    @property
    def kind(self) -> tuple[object, ...]:
        """What decides for which types kernels are compiled."""
        return type(self), self.dtype

    def status(self) -> str:
        """What a live line should say of them; nothing where they are here."""
        return ""

    def curve(self, weights: Vector, d: Vector) -> tuple[Vector, Vector]:
        """(A^T W A d, A d): a product with a Hessian, in one pass over the rows where that pays."""
        move = self.dot(d)
        return self.combine(weights * move), move

    def rough_curve(self, weights: Vector, d: Vector) -> tuple[Vector, Vector]:
        """`curve` to six digits, for steps: what they do is known as well as where they lead."""
        return self.curve(weights, d)

    def sketch(self, weights: Vector) -> Sketch | None:
        """The directions along which a_i / sqrt(weights) is long; None where that does not pay."""
        return None

    def dot_columns(self, p: Vector) -> Vector:
        """A^T p: what `combine` gives, to rounding; faster if it is asked for often.

        Rows that gain by it keep a copy of A, column by column, from the first call on.
        """
        return self.combine(p)

    def dot_matrix(self, x: Vector, batch: Batch = None) -> Vector:
        """a_i X for i in the batch, X of one row a column of A: one row a sample."""
        if not x.shape[1]:
            return np.empty((self.shape[0] if batch is None else len(batch), 0), self.dtype)
        return np.column_stack([self.dot(column, batch) for column in x.T])

    def combine_matrix(self, weights: Vector, batch: Batch = None) -> Vector:
        """sum of a_i^T weights_i over the batch: one row a column of A.

        Rows that gain by it keep a copy of A, column by column, from the first call for all on.
        """
        if not weights.shape[1]:
            return np.empty((self.shape[1], 0), self.dtype)
        return np.column_stack([self.combine(column, batch) for column in weights.T])

    @property
    @abstractmethod
    def stored(self) -> int:
        """Entries that exist in memory: what a pass over the rows costs."""

    @property
    @abstractmethod
    def largest(self) -> float:
        """max |a_ij|."""

    @abstractmethod
    def norms(self, p: float, axis: int = 1) -> Vector:
        """The lp norm of every row (axis 1) or column (axis 0), p = 1, 2 or inf, in float64."""

    @abstractmethod
    def spectral_norm(self, weights: Vector | None = None) -> tuple[float, bool]:
        """||W^(1/2) A||_2, with W = diag(weights), and whether it is exact; else it is a bound."""

    @abstractmethod
    def gram(self, weights: Vector) -> Vector:
        """A^T W A = sum_i w_i a_i a_i^T, a dense matrix, one row and column a column of A."""

    def add_gram(self, weights: Vector, total: Vector) -> None:
        """total += gram(weights)."""
        raise TypeError(f"{type(self).__name__} cannot add to a Gram matrix.")

    @abstractmethod
    def variances(self, weights: Vector) -> Vector:
        """sum_i w_i (a_ij - c_j)^2 / sum_i w_i for every column, c_j its mean; in float64."""

    def mean_squares(self, weights: Vector) -> Vector:
        """sum_i w_i a_ij^2 / sum_i w_i for every column; in float64."""
        spread = np.asarray(self.variances(weights), np.float64)
        means = np.asarray(self.combine(weights / weights.sum()), np.float64)
        return spread + means.reshape(spread.shape) ** 2

    def every(self, step: int) -> "Rows":
        """Every `step`-th row, the first among them; kept, where that is a copy."""
        return self.take(np.arange(0, self.shape[0], step))

    def some_moments(
        self, step: int, weights: NDArray[np.float64], lengths: NDArray[np.float64], centred: bool
    ) -> NDArray[np.float64]:
        """sum_k w_k a_k a_k^T over every `step`-th row, less their mean if `centred`; six digits.

        `lengths` are about what entries of the columns are.
        """
        raise TypeError(f"{type(self).__name__} have no sample of second moments.")

    def first_look(self, weights: Vector) -> Vector:
        """`combine`, in the pass that looks for NaN and infinity: of rows that were `unseen`."""
        raise TypeError(f"{type(self).__name__} are looked through by themselves.")

    def unrelated(self, centred: bool = False) -> bool:
        """Whether columns, less their means if `centred`, tell of each other no more than noise."""
        return False

    @abstractmethod
    def take(self, indices: NDArray[np.integer[Any]]) -> "Rows":
        """The rows of these numbers, in their order."""

    def few(self, indices: NDArray[np.integer[Any]]) -> "Rows":
        """`take` of a few, for which the same code runs as for all: what compiles it asks."""
        return self.take(indices)

    @abstractmethod
    def doubled(self) -> "Rows":
        """The same rows, nothing copied, whose points and products are float64."""

    def columns(self, indices: NDArray[np.integer[Any]]) -> "Rows":
        """The rows of these columns alone, in their order, of the same kind."""
        raise TypeError(f"{type(self).__name__} cannot be restricted to some columns.")

    @property
    def plain(self) -> "tuple[Rows, bool]":
        """(the rows as they are stored, whether their mean is subtracted from each)."""
        return self, False

    def shifted(self, z: Vector, x: Vector) -> Vector:
        """A x, from what the rows as they are stored give: `dot` of `plain`."""
        return z

    def working(self, chosen: NDArray[np.int64], last: WorkingRows | None = None) -> WorkingRows:
        """The chosen columns, in their order, as second-order steps multiply with them.

        `last` is what these rows returned before: columns found there need not be sought again.
        """
        raise TypeError(f"{type(self).__name__} cannot be restricted to some columns.")

    def column_arrays(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """(values, rows, starts) of all columns, one after the other, as the kernels take them."""
        raise TypeError(f"{type(self).__name__} cannot be read column by column.")

    def holding(self, chosen: NDArray[np.int64]) -> "tuple[Rows, NDArray[np.int64]]":
        """(rows with these columns in memory, their numbers there): itself, but for a disk's."""
        return self, chosen

    def centred(self, weights: Vector | None = None) -> "tuple[Rows, Vector]":
        """(rows a_i - c, c) with c = sum_i w_i a_i / sum_i w_i, w = 1 if None."""
        raise TypeError(f"{type(self).__name__} cannot be centred; fit without an intercept.")

    def block(self, part: slice) -> NDArray[Any]:
        """Some rows as a dense array."""
        raise TypeError(f"{type(self).__name__} cannot be written out as a dense array.")

    def parts(self) -> dict[str, NDArray[Any]]:
        """The arrays that make up the matrix, by the names that files of them have."""
        raise TypeError(f"{type(self).__name__} cannot be saved; save the matrix it is made of.")

    @abstractmethod
    def describe(self) -> dict[str, Plain]:
        """What tells this data from other data."""

    def without_zeros(self) -> "Rows":
        """The same rows as lists of what is not 0, in a copy, where that makes passes faster."""
        return self

    def described(self) -> "Rows":
        """The same rows, described now and not again: for an owner who lets no one change them."""
        rows = copy(self)
        rows.description = self.describe()
        return rows

    @abstractmethod
    def __str__(self) -> str:
        """Size and kind in a few words."""


K = TypeVar("K", bound=np.generic)


def mean_weights(weights: Vector | None, m: int) -> NDArray[np.float64]:
    """w_i / sum_i w_i in float64; 1 / m if None."""
    return np.full(m, 1 / m) if weights is None else weights / weights.sum(dtype=np.float64)


def read_only(array: NDArray[K]) -> NDArray[K]:
    """A view that cannot be written: memory-mapped and ordinary data then share compiled code."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def as_batch(batch: Batch, m: int) -> NDArray[np.uint64]:
    """Row numbers as the kernels take them, none outside the data; empty for None, all rows."""
    if batch is None:
        return read_only(np.empty(0, np.uint64))
    rows = np.ascontiguousarray(batch, np.int64).view(np.uint64)
    # A negative number is a huge unsigned one.
    if rows.size and rows.max() >= m:
        raise IndexError(f"a batch must hold row numbers from 0 to {m - 1}, got {batch}.")
    return read_only(rows)


def as_point(x: NDArray[K], size: int, name: str) -> NDArray[K]:
    """A contiguous read-only vector of floats, or an error if its length is not `size`."""
    if x.shape != (size,):
        raise ValueError(f"{name} must have shape ({size},), got {x.shape}.")
    return read_only(np.ascontiguousarray(x))
