"""The second derivative on a working set as a matrix that is kept from step to step."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from adafw.kernels.parts import AtomModel
from adafw.rows.working import WorkingRows, moved
from adafw.steps.corrective.base import Memory

Vector = NDArray[np.float64]

#: A row of the Gram matrix is made anew when its bend moved by more than this share; where such a
#: matrix is too old for fast convergence, by more than the second.
STALE, STALE_EXACT = 0.2, 0.01
#: Share of the mean bend below which a row counts for little.
LITTLE = 0.3
#: A matrix that has held so many times as much as it is to hold is made anew: what is taken out
#: leaves its rounding behind.
FADED = 1e6
#: Rows for each atom that a sampled matrix has at least.
SAMPLED = 20
#: Products up to whose cost a Gram matrix is cheap.
CHEAP = 5.0


class Faces:
    """Cholesky's factor of the last face asked for, kept as long as its matrix holds."""

    def __init__(self) -> None:
        self._factor: Vector | None = None
        self._face: tuple[NDArray[Any], ...] = ()

    def forget(self) -> None:
        """The matrix has changed."""
        self._factor = None

    def factor(
        self, face: NDArray[np.int64], model: AtomModel, tight: bool = False
    ) -> Vector | None:
        """Of the model on these atoms; None if there is none.

        `tight`: of H + s 1 1^T with s > 0, which is the same where sum u stays, and is no closer
        to singular than H is there; atoms of which one combination tells nothing are the rule where
        few rows bend.
        """
        from scipy.linalg.lapack import dpotrf

        from adafw.kernels.working_set import face_matrix

        key = (face, model.signs[face], model.mixed[face], np.array([tight]))
        if self._factor is None or not all(map(np.array_equal, key, self._face)):
            matrix = np.zeros((face.size, face.size))
            face_matrix(model, face, matrix)
            if tight:
                matrix += float(matrix.diagonal().mean())
            # Its lower triangle by rows is an upper one by columns, LAPACK's own order; what
            # scipy.linalg asks before each call takes longer than the factor of a small face.
            self._factor, failed = dpotrf(matrix.T, clean=False, overwrite_a=True)
            if failed:
                self._factor = None
            self._face = key
        return self._factor


class Restricted(Protocol):
    """Rows restricted to a working set, as far as Newton steps ask."""

    @property
    def gram_work(self) -> float:
        """What a Gram matrix costs, in products."""

    def dot(self, w: Vector) -> Vector:
        """A_S w."""

    def combine(self, p: Vector) -> Vector:
        """A_S^T p."""


class Curvature(Protocol):
    """The second derivative on a working set, as Newton steps ask for it."""

    @property
    def working(self) -> Restricted:
        """The rows restricted to the set."""

    def follow(self, bends: Vector, stale_from: float, sampled: bool = False) -> None:
        """Brings it to these bends, but for rows that moved by less than this share."""

    def model(self, signs: Vector, free: bool) -> AtomModel:
        """The model's Hessian in the weights."""

    def factor(
        self, face: NDArray[np.int64], model: AtomModel, tight: bool = False
    ) -> Vector | None:
        """As that of `Faces`."""


class Gram:
    """A_S^T diag(bends) A_S, kept from step to step and refreshed where it is stale."""

    def __init__(self, working: WorkingRows, n: int, state: Memory):
        from adafw.kernels.working_set import moved_gram

        self.working = working
        size = working.chosen.size
        self.bends: Vector | None = None
        self.held = 0.0  #: the largest sum of bends since it was made
        self._mirrored, self.faces = False, Faces()
        self._sampling: tuple[int, Vector] = (0, np.zeros(0))
        self.diagonal = np.zeros(0)
        known = _fits(state, working.size)
        if known and not working.remote and np.array_equal(state["chosen"], working.chosen):
            # States are moved along in place, unless a product may fail half way.
            self.matrix, self.bends = state["gram"], state["bends"]
            self.held = held(state, self.bends)
            return
        self.matrix = np.zeros((size, size))
        if not known:
            return
        new, kept = moved(state["chosen"], working.chosen, n)
        if 2 * kept < size:
            return  # cheaper anew
        moved_gram(state["gram"], new, self.matrix)
        self.bends = state["bends"].copy()
        self.held = held(state, self.bends)
        working.add_gram(self.bends, self.matrix, kept)

    def follow(self, bends: Vector, stale_from: float, sampled: bool = False) -> None:
        """Brings it to these bends, but for rows that moved by less than this share.

        If `sampled`, a part of the rows stands for all, where the matrix is dear otherwise; only
        its diagonal is that of all rows.
        """
        from adafw.kernels.working_set import mirror, take_stale

        self.diagonal = np.zeros(0)
        if sampled and (every := self._every()) > 1:
            self.diagonal = self.working.squares(bends)
            bends = bends * self._shares(every)
        total = float(bends.sum())
        if self.bends is None or self.held > FADED * total:
            self.matrix[:] = 0.0
            self.bends, self.held = bends.copy(), total
            self.working.add_gram(bends, self.matrix)
        else:
            change = np.empty_like(bends)
            # Rows that count for little do so no longer once a model has been too old: to a column
            # that no other row has, they are all there is.
            least = LITTLE * float(self.bends.mean()) if stale_from > STALE_EXACT else 0.0
            count = take_stale(bends, self.bends, stale_from, least, change)
            self.held = max(self.held, total)
            if self._mirrored:
                if count:
                    self.working.renew_gram(change, count, self.matrix)
                    self.faces.forget()
                return
            if count:
                self.working.add_gram(change, self.matrix)
        mirror(self.matrix)
        self._mirrored = True
        self.faces.forget()

    def _shares(self, every: int) -> Vector:
        """What the rows of a sample count for, 0 for those that are not in it.

        The same rows at each step, so that what is known of them can be kept.
        """
        if self._sampling[0] != every:
            chosen = np.random.default_rng(0).random(self.working.size) < 1 / every
            share = chosen.size / max(1, int(chosen.sum()))
            self._sampling = every, np.where(chosen, share, 0.0)
        return self._sampling[1]

    def _every(self) -> int:
        """One row in so many is enough: a power of two, so that samples lie in one another."""
        rows = self.working.size / (SAMPLED * max(1, self.working.chosen.size))
        return 1 << int(np.log2(max(1.0, min(self.working.gram_work / CHEAP, rows))))

    def model(self, signs: Vector, free: bool) -> AtomModel:
        """The model's Hessian in the weights; an intercept is taken out if it is `free`."""
        from adafw.kernels.working_set import diagonal_of

        assert self.bends is not None
        mixed, total = np.zeros(signs.size), 0.0
        if free:
            mixed, total = self.working.combine(self.bends), float(self.bends.sum())
        diagonal = np.empty(signs.size)
        diagonal_of(self.matrix, self.diagonal, mixed, total, diagonal)
        return AtomModel(self.matrix, diagonal, signs, mixed, total)

    def factor(
        self, face: NDArray[np.int64], model: AtomModel, tight: bool = False
    ) -> Vector | None:
        """As that of `Faces`."""
        return self.faces.factor(face, model, tight)

    def save(self) -> Memory:
        """For the next iteration, whose working set shares most of this one."""
        assert self.bends is not None
        return {
            "chosen": self.working.chosen, "gram": self.matrix, "bends": self.bends,
            "held": self.held,
        }  # fmt: skip


def held(state: Memory, bends: Vector) -> float:
    """The largest sum of bends that the matrix of a state has held."""
    return max(float(state.get("held", 0.0)), float(bends.sum()))


def _fits(state: Memory, m: int) -> bool:
    """Whether a state holds a Gram matrix, and one that the kernels can take."""
    kept = (state.get("chosen", 0.0), state.get("gram", 0.0), state.get("bends", 0.0))
    shapes = [np.shape(part) for part in kept]
    return len(shapes[0]) == 1 and shapes[1] == 2 * shapes[0] and shapes[2] == (m,)
