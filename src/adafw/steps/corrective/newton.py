"""Newton steps on few atoms: the Hessian is a matrix, its model solved by pairwise steps."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from adafw.kernels.parts import AtomModel
from adafw.rows.working import WorkingRows, moved
from adafw.steps.corrective.base import Memory
from adafw.steps.corrective.point import Point, Standpoint, Vector

#: A row of the Gram matrix is made anew when its bend moved by more than this share; where such a
#: matrix is too old for fast convergence, by more than the second.
STALE, STALE_EXACT = 0.2, 0.01
#: Share of the mean bend below which a row counts for little.
LITTLE = 0.3
#: A matrix that has held so many times as much as it is to hold is made anew: what is taken out
#: leaves its rounding behind.
FADED = 1e6
#: A step that has to be cut below this had a model without the curvature it met.
SHORT = 0.1
#: How many times as far as f descended the next model knows the curvature.
PART = 3.0
EPS = float(np.finfo(np.float64).eps)
#: Pairwise steps an atom between two exact steps on the face.
SWEEPS = 3


@dataclass
class Weights:
    """Weights u > 0 of atoms signs_j e_j, and what is left to the radius (slack).

    `open` if the slack is an atom: sum u <= radius; else sum u = radius. Where atoms are `signed`,
    one of weight 0 may change its sign. `level` is a price on sum u, which keeps u small while
    atoms are missing.
    """

    signs: Vector
    u: Vector
    slack: float
    open: bool
    signed: bool
    level: float = 0.0

    def gap(self, slopes: Vector) -> float:
        """max over the hull of <slopes, w - v>, price included; the slack has slope 0."""
        own = self.signs * slopes + self.level
        least = self.level - float(np.abs(slopes).max()) if self.signed else float(own.min())
        if self.open:
            least = min(least, 0.0)
        return float(self.u @ (own - least)) - (self.slack * least if self.open else 0.0)

    def place(self, w: Vector, signs: Vector) -> None:
        """Takes the signed weights w; an atom of weight 0 has its sign from `signs`."""
        total = float(self.u.sum()) + self.slack
        self.u, self.signs = np.abs(w), np.where(w != 0, np.sign(w), signs)
        if self.open:
            self.slack = max(0.0, total - float(self.u.sum()))

    def noise(self, slopes: Vector) -> float:
        """A gap that may be rounding error."""
        return 16 * EPS * (float(self.u.sum()) + self.slack) * float(np.abs(slopes).max())


class Faces:
    """Cholesky's factor of the last face asked for, kept as long as its matrix holds."""

    def __init__(self) -> None:
        self._factor: Vector | None = None
        self._face: tuple[NDArray[Any], ...] = ()

    def forget(self) -> None:
        """The matrix has changed."""
        self._factor = None

    def factor(self, face: NDArray[np.int64], model: AtomModel) -> Vector | None:
        """Of the model on these atoms; None if there is none."""
        from scipy.linalg.lapack import dpotrf

        from adafw.kernels.working_set import face_matrix

        key = (face, model.signs[face], model.mixed[face])
        if self._factor is None or not all(map(np.array_equal, key, self._face)):
            matrix = np.zeros((face.size, face.size))
            face_matrix(model, face, matrix)
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

    def factor(self, face: NDArray[np.int64], model: AtomModel) -> Vector | None:
        """Of the model on these atoms; None if there is none."""


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

    def factor(self, face: NDArray[np.int64], model: AtomModel) -> Vector | None:
        """Of the model on these atoms; None if there is none."""
        return self.faces.factor(face, model)

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


@dataclass(frozen=True)
class Effort:
    """How far Newton steps go: how many, which share of the gap ends them, how exact models are."""

    steps: int
    enough: float
    accuracy: float


#: While atoms join, when few do, and once none does; where all that there are joined at once.
GROWING, CALM, SETTLED = Effort(2, 0.1, 3e-2), Effort(4, 1e-3, 1e-2), Effort(12, 1e-3, 3e-2)
WHOLE = Effort(6, 1e-4, 1e-2)
#: The same from all rows: what this leaves is below the usual tolerance, and no second gradient
#: has to say so first.
WHOLE_SHORT = Effort(6, 1e-5, 1e-2)
#: Steps of such a set whose Hessian may be that of a sample.
FIRST_STEPS = 3
#: Atoms up to which models are solved as exactly as that at hardly any cost.
FEW, FINE = 512, 1e-3
#: Share of the atoms in use that may join for a working set to be calm; where the first of them
#: come from a sample, and are most of those that will be needed.
JOINING, JOINING_SAMPLED = 0.05, 0.5
#: Products up to whose cost a Gram matrix is cheap.
CHEAP = 5.0
#: Rows for each atom that a sampled matrix has at least.
SAMPLED = 20
#: Steps that leave more than this share of the gap have a model that is too old.
SLOW = 0.3


def effort(fresh: int, support: int, whole: bool = False, sampled: bool = False) -> Effort:
    """How far steps go when so many atoms join those in use.

    `whole` if all that there are did, `sampled` if those in use come from a sample of the rows.
    """
    if fresh > (JOINING_SAMPLED if sampled and not whole else JOINING) * support:
        return GROWING if not whole else WHOLE if sampled else WHOLE_SHORT
    return CALM if fresh else SETTLED


def newton_steps(
    point: Standpoint, gram: Curvature, at: Weights, gap: float, effort: Effort,
    known: Vector | None = None,
) -> None:  # fmt: skip
    """Newton steps in place, until the gap on these atoms is `effort.enough` of `gap`.

    The matrix of a step may be that of an earlier one, and so its factors: a step then costs a few
    products, and still leaves little of the gap. `known`: slopes of f at the start, if they are.
    """
    raised: Vector | None = None
    before = np.inf
    # Where the matrix is cheap, it is never old.
    stale = STALE if gram.working.gram_work > CHEAP else STALE_EXACT
    for step in range(effort.steps):
        bends = point.bends if raised is None else point.over(raised)
        slopes = gram.working.combine(point.slopes) if step or known is None else known
        excess = float(point.slopes.sum()) if point.free else 0.0
        now, noise = at.gap(slopes), at.noise(slopes)
        # Before the matrix follows: what has been reached needs none.
        if step and not excess and now <= max(effort.enough * gap, noise):
            return
        whole = effort in (WHOLE, WHOLE_SHORT)
        gram.follow(bends, stale, effort is GROWING or (whole and step < FIRST_STEPS))
        held, signs = at.signs * at.u, at.signs
        at.signs = signs.copy()  # those of atoms that the model turns
        model = gram.model(at.signs, point.free)
        if model.total > 0:
            slopes -= model.mixed * (excess / model.total)
            now, noise = at.gap(slopes), at.noise(slopes)
        if (step and now <= effort.enough * gap) or now <= noise:
            return
        if now > SLOW * before and effort is not GROWING:
            stale = STALE_EXACT  # from the next step on
        before = now
        reached = at.signs * slopes + at.level
        accuracy = effort.accuracy if at.u.size > FEW or whole or effort is GROWING else FINE
        u, slack = minimise(gram, model, reached, at, max(accuracy * now, noise))
        d = at.signs * u - held
        toll = at.level * float(u.sum() - at.u.sum())
        # The model's own slopes at the end less those at the start are H d.
        bend = float(d @ (at.signs * (reached - at.level) - slopes))
        slope = min(float(slopes @ d) + toll, -bend / 2)
        if not slope < 0:
            at.signs = signs
            return
        dz = gram.working.dot(d)
        dz += point.shift(float(model.mixed @ d), model.total)
        t = point.step_size(dz, slope, toll)
        raised = point.raised_bends(min(1.0, PART * t) * dz) if t < SHORT else None
        if t == 1.0:
            at.u, at.slack = u, slack
        else:
            at.place(held + t * d, signs)
        if t > 0.0:
            point.move(dz, t)


def minimise(
    gram: Curvature, model: AtomModel, slopes: Vector, at: Weights, tolerance: float
) -> tuple[Vector, float]:
    """(u, slack) of the model's minimiser: pairwise steps, and exact ones on the face they find.

    The slopes follow in place.
    """
    from adafw.kernels.pairwise import pairwise

    u, slack = at.u.copy(), at.slack
    for _ in range(50):
        most = SWEEPS * u.size + 10
        shape = (at.open, at.signed, at.level)
        done, gap, slack = pairwise(model, slopes, u, slack, shape, tolerance, most)
        if gap <= tolerance or done < most:
            break
        slack = _on_face(gram, model, slopes, u, slack, at.open)
    return u, slack


def _on_face(
    gram: Curvature, model: AtomModel, slopes: Vector, u: Vector, slack: float, open_: bool
) -> float:
    """The minimiser on the face of u, or as far towards it as u stays in the set; in place."""
    from scipy.linalg.lapack import dpotrs

    from adafw.kernels.pairwise import move_atoms

    for _ in range(5):
        face = np.flatnonzero(u > 0)
        if face.size < 2:
            return slack
        factor = gram.factor(face, model)
        if factor is None:
            return slack  # the model cannot tell the atoms apart: pairwise steps can
        sides = np.column_stack([-slopes[face], np.ones(face.size)])
        solved, _ = dpotrs(factor, sides)
        d, along = solved[:, 0], solved[:, 1]
        tight = not (open_ and slack > 0)
        for _ in range(2 * tight):  # sum u stays; what cancels leaves rounding, and is taken again
            d = d - along * (d.sum() / along.sum())
        if not np.isfinite(d).all():
            return slack
        falling = d < 0
        reach = u[face][falling] / -d[falling]
        t = min(1.0, float(reach.min())) if reach.size else 1.0
        grown = 0.0 if tight else float(d.sum())
        full = grown > 0 and t * grown >= slack
        t = slack / grown if full else t
        u[face] = np.maximum(u[face] + t * d, 0.0)
        if t < 1.0 and not full:
            u[face[falling][int(reach.argmin())]] = 0.0
        slack = 0.0 if full else slack - t * grown
        move_atoms(model, face, t * d, slopes)
        if t == 1.0:
            return slack
    return slack


def compile_rest(gram: Gram, point: Point) -> None:
    """What Newton steps on a few rows may not have met: factors, and a sample of the rows."""
    size = gram.working.chosen.size
    gram.follow(point.bends, STALE)
    gram.working.squares(point.bends)
    gram.working.renew_gram(np.zeros_like(point.bends), 0, gram.matrix)
    u = np.full(size, 1.0 / size)
    model = gram.model(np.ones(size), True)
    _on_face(gram, model, gram.working.combine(point.slopes), u, 0.0, False)
