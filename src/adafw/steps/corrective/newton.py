"""Newton steps on few atoms: the Hessian is a matrix, its model solved by pairwise steps."""

from dataclasses import dataclass

import numpy as np

from adafw.kernels.parts import AtomModel
from adafw.steps.corrective.gram import CHEAP, STALE, STALE_EXACT, Curvature, Gram
from adafw.steps.corrective.point import Point, Standpoint, Vector

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
        raised = point.raised_bends(came_into_question(t) * dz) if t < SHORT else None
        if t == 1.0:
            at.u, at.slack = u, slack
        else:
            at.place(held + t * d, signs)
        if t > 0.0:
            point.move(dz, t)


def came_into_question(t: float) -> float:
    """The share of a way whose curvature the next model knows, where f descended on a share t."""
    return min(1.0, PART * t) or 1.0


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
        tight = not (open_ and slack > 0)
        factor = gram.factor(face, model, tight)
        if factor is None:
            return slack  # the model cannot tell the atoms apart: pairwise steps can
        sides = np.column_stack([-slopes[face], np.ones(face.size)])
        solved, _ = dpotrs(factor, sides)
        d, along = solved[:, 0], solved[:, 1]
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
