"""An objective as second-order steps see it: values, gradients and products with its Hessian."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.kernels.parts import Csr
from adafw.objectives import MatrixModel, WithIntercept
from adafw.objectives.base import FiniteSum
from adafw.objectives.kinds import Linear, model_of
from adafw.objectives.linear_model import Curves
from adafw.rows import Rows
from adafw.steps.corrective.base import Memory
from adafw.steps.corrective.gram import FADED, LITTLE, STALE, STALE_EXACT, held
from adafw.steps.corrective.nearly import (
    SMALL,
    Near,
    few_bend,
    forms_matrix,
    may_form_matrix,
    nearly,
    tell,
)
from adafw.steps.corrective.spiked import diagonal
from adafw.typing import Array

Vector = NDArray[np.floating[Any]]
#: d -> (H d, the change of the predictions along d, empty where it is not known).
Product = Callable[[Vector], tuple[Vector, Vector]]

_FAINT = 1e-280  # mean squares that are 0: of smaller numbers, products have no digits
_CONSTANT = 1e-13  # share of a column's mean square that is rounding of its variance
_UNKNOWN = np.empty(0)


@dataclass(frozen=True)
class ColumnHessian:
    """H = A^T diag(bends) A - mixed mixed^T / total by the columns of A (CSR arrays of A^T).

    The second term is that of an intercept minimised out; without one, total is 0.
    """

    arrays: Csr
    bends: Vector
    mixed: Vector
    total: float


@dataclass(frozen=True)
class Hessian:
    """H as a product, and as more where that is cheap: a small matrix, or its columns.

    `scale` estimates its diagonal, positive in every entry; `image` is H x as a function of the
    predictions at x, where that is half a product; `whole` makes the matrix.
    """

    product: Product
    scale: Vector
    matrix: NDArray[Any] | None = None
    columns: Callable[[], ColumnHessian] | None = None
    near: Callable[[], Near] | None = None
    image: Callable[[Vector], Vector] | None = None
    whole: Callable[[], NDArray[Any]] | None = None

    def nearly(self) -> Near:
        """P ~ H, to solve with where products are dear."""
        return diagonal(self.scale) if self.near is None else self.near()


class View(ABC):
    """f as a function of predictions z, which are linear in x: along a line they cost no product.

    `weights`, where known: the squared lengths of the columns of the linear map, which are what
    makes steps independent of the features' units. They are computed once, and are state.
    """

    #: Whether products with H need all digits, not only those that tell a direction.
    exact = True
    #: Whether gaps hardly fall, so that a matrix may be worth more than it costs.
    slow = False
    #: Where a matrix may be kept from model to model, if anywhere.
    memory: Memory | None = None

    @property
    def rough(self) -> bool:
        """Whether products, and the moves of predictions they tell, have six digits alone."""
        return False

    @property
    def guided(self) -> bool:
        """Whether a part of the rows tells of H, so that a model costs few products with all."""
        return False

    @abstractmethod
    def weights(self, x: Array) -> Vector:
        """What an entry of x weighs in the predictions, positive; 1 where unknown."""

    @abstractmethod
    def predict(self, x: Array) -> Vector:
        """z at x, a linear function."""

    def predictions(self, x: Array) -> Vector:
        """z at the iterate x, which the objective may remember."""
        return self.predict(x)

    @abstractmethod
    def value(self, z: Vector) -> float:
        """f where the predictions are z."""

    @abstractmethod
    def gradient(self, z: Vector) -> Array:
        """The gradient in x where the predictions are z."""

    @abstractmethod
    def hessian(self, z: Vector, weights: Vector, moves: Sequence[Vector] = ()) -> Hessian:
        """H at z.

        Each of `moves`, a step in z that went too far, raises H to the curvature met on its way.
        """


def column_weights(rows: Rows, w: Vector, centred: bool) -> NDArray[np.float64]:
    """The weighted mean squares of the columns, less their means where these do not count.

    A column that is constant but for rounding has slopes that are rounding: it weighs as much as
    the heaviest, so that they do not become steps.
    """
    found = squares = rows.mean_squares(w)
    if centred:
        spread = np.asarray(rows.variances(w), np.float64)
        found = np.where(spread > _CONSTANT * squares, spread, 0.0)
    return np.where(found > _FAINT, found, float(found.max()) or 1.0)


class Predictions(View):
    """A linear model, z = A x; an intercept follows z and is minimised out."""

    def __init__(self, f: Linear) -> None:
        self.f = f
        self.model = model_of(f)
        self.rows = f.rows
        self._last: tuple[Vector, Vector, Curves] | None = None

    @property
    def rough(self) -> bool:
        # A few products do not pay for a copy.
        if not self.rows.rough or self.exact or forms_matrix(self.rows):
            return False
        if tell(self.rows, SMALL):
            return False
        return not (isinstance(self.f, WithIntercept) and self.rows.far)

    def weights(self, x: Array) -> Vector:
        m = self.f.n_terms
        w = self.model.term_weights if self.model.term_weights.size else np.ones(m, self.f.dtype)
        return column_weights(self.rows, w, isinstance(self.f, WithIntercept)).astype(x.dtype)

    def predict(self, x: Array) -> Vector:
        return self.rows.dot(x)

    def predictions(self, x: Array) -> Vector:
        return self.f.predictions(x)[0]

    def value(self, z: Vector) -> float:
        return float(self._curves(z)[1][0])

    def gradient(self, z: Vector) -> Array:
        return self.rows.combine(self._curves(z)[1][1].astype(self.f.dtype, copy=False))

    def hessian(self, z: Vector, weights: Vector, moves: Sequence[Vector] = ()) -> Hessian:
        shifted, (_, _, bends) = self._curves(z)
        if moves:
            ends = [self._shifted(z + move) - shifted for move in moves]
            bends = self.model.bends(shifted, ends) / self.f.n_terms
        bends = bends.astype(z.dtype, copy=False)  # double where steps are, whatever the data
        total = float(bends.sum(dtype=np.float64))
        follows = isinstance(self.f, WithIntercept) and total > 0
        mixed = self.rows.combine(bends) if follows else np.zeros(0, bends.dtype)

        curve = self.rows.rough_curve if self.rough else self.rows.curve

        def less(image: Vector, move: Vector) -> Vector:
            """The intercept takes up the mean of what the predictions do."""
            return image - mixed * (float(bends @ move) / total) if follows else image

        def product(d: Vector) -> tuple[Vector, Vector]:
            image, move = curve(bends, d)
            return less(image, move), move

        def along(z: Vector) -> Vector:
            return less(self.rows.combine(bends * z) if z.any() else np.zeros_like(scale), z)

        scale = weights * (total or 1.0)

        def whole() -> NDArray[Any]:
            matrix = self._gram(bends)
            return matrix - np.outer(mixed, mixed / total) if follows else matrix

        slow = self.slow and may_form_matrix(self.rows)
        if slow or forms_matrix(self.rows) or few_bend(self.rows, bends):
            matrix = whole()
            return Hessian(lambda d: (matrix @ d, _UNKNOWN), scale, matrix)
        stored, centred = self.rows.plain
        # What an intercept follows does not feel the centre.
        rows = stored if centred and follows else self.rows
        if not rows.listed:
            near = lambda: nearly(self.rows, weights, bends, follows, self.memory)  # noqa: E731
            return Hessian(product, scale, near=near, image=along, whole=whole)

        def columns() -> ColumnHessian:
            own = rows.combine(bends) if follows and rows is not self.rows else mixed
            return ColumnHessian(rows.column_arrays(), bends, own, total if follows else 0.0)

        return Hessian(product, scale, None, columns, image=along, whole=whole)

    def _anew(self, bends: Vector, kept: Memory) -> Vector:
        gram = self.rows.gram(bends).astype(np.float64)
        kept["gram"], kept["bends"] = gram, bends.astype(np.float64)
        kept["held"] = float(bends.sum())
        return gram

    def _gram(self, bends: Vector) -> Vector:
        """A^T diag(bends) A; of sparse rows those alone are made anew whose bends have changed."""
        from adafw.kernels.working_set import take_stale

        rows, kept = self.rows, self.memory
        if kept is None or not rows.gram_grows or self.f.dtype != np.float64:
            return rows.gram(bends)
        gram, known = kept.get("gram"), kept.get("bends")
        shapes = [] if gram is None or known is None else [np.shape(gram), np.shape(known)]
        if gram is None or known is None or shapes != [2 * rows.shape[1:], bends.shape]:
            return self._anew(bends, kept)
        total, most = float(bends.sum()), held(kept, known)
        if most > FADED * total:
            return self._anew(bends, kept)
        kept["held"] = max(most, total)
        change = np.empty_like(known)
        stale, least = (STALE_EXACT, 0.0) if self.exact else (STALE, LITTLE * float(known.mean()))
        if take_stale(bends, known, stale, least, change):
            rows.add_gram(change, gram)
        return gram

    @property
    def guided(self) -> bool:
        return tell(self.rows) and not forms_matrix(self.rows)

    def _curves(self, z: Vector) -> tuple[Vector, Curves]:
        """(z + b; value, slopes and bends there): of the last z, asked for in turn."""
        last = self._last
        if last is None or not (last[0] is z or np.array_equal(last[0], z)):
            shifted = self._shifted(z)
            last = self._last = (z, shifted, self.model.curves_at(shifted))
        return last[1], last[2]

    def _shifted(self, z: Vector) -> Vector:
        return z + self.f.shift(z) if isinstance(self.f, WithIntercept) else z


class JointPredictions(View):
    """Several outputs at once, Z = A X; their intercepts follow Z and are minimised out.

    x may be X or, for steps that know vectors only, its entries in one row: `flat`.
    """

    def __init__(self, f: MatrixModel, flat: bool = False) -> None:
        self.f, self.rows = f, f.rows
        self.shape = (-1,) if flat else f.shape
        self.term_weights = (f.term_weights / f.n_terms)[:, None]

    def weights(self, x: Array) -> Vector:
        spread = self.spread()[:, None] * np.ones(self.f.n_outputs)
        return spread.reshape(self.shape).astype(x.dtype)

    def spread(self) -> Vector:
        """What a feature weighs in the predictions."""
        return column_weights(self.rows, self.f.term_weights, self.f.has_intercept)

    def predict(self, x: Array) -> Vector:
        return self.rows.dot_matrix(np.ascontiguousarray(x.reshape(self.f.shape)))

    def predictions(self, x: Array) -> Vector:
        return self.f.predictions(x.reshape(self.f.shape))[0]

    def value(self, z: Vector) -> float:
        return self.f.value_at(z + self.f.shift(z))

    def gradient(self, z: Vector) -> Array:
        return self._pulled(self.f.slopes_at(z + self.f.shift(z)) / self.f.n_terms)

    def seconds(self, z: Vector, moves: Sequence[Vector] = ()) -> Vector:
        """s of `JointLoss.second` at z, raised to what was met on the way of `moves`.

        The second derivative is concave in s: at a mean of two it is no less than their mean.
        """
        s = self.f.seconds_at(z + self.f.shift(z))
        for move in moves:
            end = z + move
            s = (s + self.f.seconds_at(end + self.f.shift(end))) / 2
        # A loss may be flat far out.
        return s if self.f.loss.coupled else np.maximum(s, 1e-6 * float(s.max()))

    def totals(self, s: Vector) -> Vector:
        """The mean second derivative in each output, positive."""
        each = (self.term_weights * (s * (1 - s) if self.f.loss.coupled else s)).sum(axis=0)
        return np.maximum(each, max(1e-3 * float(each.max()), 1e-300))

    def bending(self, s: Vector) -> Callable[[Vector], Vector]:
        """dz -> how the slopes change, intercepts following."""
        loss, follow = self.f.loss, self.f.follow(s) if self.f.has_intercept else None

        def bent(dz: Vector) -> Vector:
            if follow is not None:
                slopes = (self.term_weights * loss.curve(s, dz)).sum(axis=0)
                dz = dz - (follow @ slopes).astype(dz.dtype)
            return self.term_weights * loss.curve(s, dz)

        return bent

    def hessian(self, z: Vector, weights: Vector, moves: Sequence[Vector] = ()) -> Hessian:
        s = self.seconds(z, moves)
        bent, scale = self.bending(s), weights.reshape(self.f.shape) * self.totals(s)

        def product(d: Vector) -> tuple[Vector, Vector]:
            move = self.predict(d)
            return self._pulled(bent(move)), move

        return Hessian(product, scale.reshape(self.shape).astype(weights.dtype))

    def _pulled(self, each: Vector) -> Array:
        return np.asarray(self.rows.combine_matrix(each)).reshape(self.shape)


class Points(View):
    """Any objective with second derivatives; z is x itself."""

    def __init__(self, f: FiniteSum) -> None:
        self.f = f

    def weights(self, x: Array) -> Vector:
        return np.ones_like(x)

    def predict(self, x: Array) -> Vector:
        return x

    def value(self, z: Vector) -> float:
        return self.f.value(z)

    def gradient(self, z: Vector) -> Array:
        return self.f.gradient(z)

    def hessian(self, z: Vector, weights: Vector, moves: Sequence[Vector] = ()) -> Hessian:
        product = self.f.hessian_product(z)
        size = float(np.abs(product(np.ones_like(z))).mean())
        return Hessian(lambda d: (product(d), d), weights * (size or 1.0))


def view(f: FiniteSum) -> View:
    """How second-order steps see f."""
    if isinstance(f, MatrixModel):
        return JointPredictions(f)
    return Predictions(f) if isinstance(f, Linear) else Points(f)
