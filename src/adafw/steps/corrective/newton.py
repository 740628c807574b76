"""Newton steps on few atoms: the Hessian is a matrix, its model solved by pairwise steps."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.rows.working import WorkingRows
from adafw.steps.corrective.point import Point, Vector

#: A row of the Gram matrix is made anew when its bend moved by more than this share.
STALE = 0.2
#: A step that has to be cut below this had a model without the curvature it met.
SHORT = 0.1
#: Pairwise steps an atom between two exact steps on the face.
SWEEPS = 3


@dataclass
class Weights:
    """Weights u > 0 of atoms signs_j e_j, and what is left to the radius (slack).

    `open` if the slack is an atom: sum u <= radius; else sum u = radius. `level` is a price on
    sum u, which keeps u small while atoms are missing.
    """

    signs: Vector
    u: Vector
    slack: float
    open: bool
    level: float = 0.0

    def gap(self, slopes: Vector) -> float:
        """max over the hull of <slopes, u - v>; the slack has slope 0."""
        least = float(slopes.min())
        if self.open:
            least = min(least, 0.0)
        return float(self.u @ (slopes - least)) - (self.slack * least if self.open else 0.0)


class Gram:
    """A_S^T diag(bends) A_S, kept from step to step and refreshed where it is stale."""

    def __init__(self, working: WorkingRows, chosen: NDArray[np.int64], state: dict[str, Any]):
        self.working, self.chosen = working, chosen
        size = chosen.size
        self.lower = np.zeros((size, size))
        self.bends: Vector | None = None
        if not _fits(state, working.size):
            return
        before = state["chosen"]
        known = np.isin(chosen, before, assume_unique=True)
        if 2 * np.count_nonzero(known) < size:
            return  # cheaper anew
        old = np.searchsorted(before, chosen[known])
        self.lower[np.ix_(known, known)] = state["gram"][np.ix_(old, old)]
        self.bends = state["bends"].copy()
        if not known.all():
            working.add_columns(self.bends, ~known, self.lower)

    def follow(self, bends: Vector) -> None:
        """Brings it to these bends, but for rows that hardly moved."""
        if self.bends is None:
            self.bends = bends.copy()
            self.working.add_gram(bends, self.lower)
            return
        stale = np.abs(bends - self.bends) > STALE * self.bends
        if stale.any():
            self.working.add_gram(np.where(stale, bends - self.bends, 0.0), self.lower)
            self.bends[stale] = bends[stale]

    def model(self, signs: Vector, free: bool) -> tuple[Vector, Vector, float]:
        """(Hessian in the weights, A^T bends, sum of bends); the last two for an intercept."""
        from adafw.kernels.working_set import model_matrix

        assert self.bends is not None
        mixed, total = np.zeros(signs.size), 0.0
        if free:
            mixed, total = self.working.combine(self.bends), float(self.bends.sum())
        out = np.empty_like(self.lower)
        model_matrix(self.lower, signs, mixed, total, out)
        return out, mixed, total

    def save(self) -> dict[str, Any]:
        return {"chosen": self.chosen, "gram": self.lower, "bends": self.bends}


def _fits(state: dict[str, Any], m: int) -> bool:
    """Whether a state holds a Gram matrix, and one that the kernels can take."""
    shapes = [np.shape(state.get(key, 0.0)) for key in ("chosen", "gram", "bends")]
    return len(shapes[0]) == 1 and shapes[1] == 2 * shapes[0] and shapes[2] == (m,)


def newton_steps(
    point: Point, gram: Gram, at: Weights, gap: float, steps: int, accuracy: float
) -> None:
    """At most so many Newton steps in place, until the gap on these atoms is 0.1 `gap`.

    Each model is solved to `accuracy` of the gap on its atoms.
    """
    raised: Vector | None = None
    for step in range(steps):
        gram.follow(point.bends if raised is None else np.maximum(raised, point.bends))
        matrix, mixed, total = gram.model(at.signs, point.free)
        slopes = gram.working.combine(point.slopes)
        if point.free and total > 0:
            slopes -= mixed * (float(point.slopes.sum()) / total)
        slopes = at.signs * slopes + at.level
        now = at.gap(slopes)
        if step and now <= 0.1 * gap:
            return
        u, slack = minimise(matrix, slopes.copy(), at, accuracy * now)
        d = u - at.u
        slope = min(float(slopes @ d), -float(d @ (matrix @ d)) / 2)
        if not slope < 0:
            return
        dz = gram.working.dot(at.signs * d)
        dz += point.shift(float(mixed @ (at.signs * d)), total)
        toll = at.level * float(d.sum())
        t = point.step_size(dz, slope, toll)
        raised = point.raised_bends(dz) if t < SHORT else None
        if t == 0.0:
            if raised is None:
                return
            continue
        at.u = u if t == 1.0 else at.u + t * d
        at.slack = slack if t == 1.0 else at.slack + t * (slack - at.slack)
        point.move(dz, t)


def minimise(matrix: Vector, slopes: Vector, at: Weights, tolerance: float) -> tuple[Vector, float]:
    """(u, slack) of the model's minimiser: pairwise steps, and exact ones on the face they find."""
    from adafw.kernels.working_set import pairwise

    u, slack = at.u.copy(), at.slack
    for _ in range(50):
        most = SWEEPS * u.size + 10
        done, gap, slack = pairwise(matrix, slopes, u, slack, at.open, tolerance, most)
        if gap <= tolerance or done < most:
            break
        slack = _on_face(matrix, slopes, u, slack, at.open)
    return u, slack


def _on_face(matrix: Vector, slopes: Vector, u: Vector, slack: float, open_: bool) -> float:
    """The minimiser on the face of u, or as far towards it as u stays in the set; in place."""
    from scipy.linalg import cho_factor, cho_solve

    for _ in range(5):
        face = np.flatnonzero(u > 0)
        if face.size < 2:
            return slack
        try:
            factor = cho_factor(matrix[np.ix_(face, face)], lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return slack  # the model cannot tell the atoms apart: pairwise steps can
        sides = np.column_stack([-slopes[face], np.ones(face.size)])
        solved = cho_solve(factor, sides, check_finite=False)
        d, along = solved[:, 0], solved[:, 1]
        tight = not (open_ and slack > 0)
        if tight:  # sum u stays
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
        slopes += t * (matrix[:, face] @ d)
        if t == 1.0:
            return slack
    return slack
