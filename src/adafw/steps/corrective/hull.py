"""Corrective steps on the hull of given points: their weights are a point of a simplex."""

from typing import cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from adafw.constraints import Hull
from adafw.constraints.base import Constraint
from adafw.objectives import LinearModel
from adafw.objectives.base import FiniteSum
from adafw.objectives.kinds import Linear, model_of
from adafw.rows import Rows
from adafw.rows.working import DenseWorking
from adafw.steps.corrective.base import Corrector, Memory
from adafw.steps.corrective.gram import Gram
from adafw.steps.corrective.newton import CALM, GROWING, SETTLED, Weights, newton_steps
from adafw.steps.corrective.point import Point, Vector, largest_entries
from adafw.steps.corrective.remembering import recall_predictions
from adafw.typing import Array, MatrixLike

#: Vertices that join at least; else as many as take part already.
FIRST = 32
#: Weights below this are rounding errors.
LEAST = 1e-15


class HullCorrector(Corrector[Linear]):
    """min f(sum_j w_j a_j) over the w of vertices a_j in a working set, which grows.

    In w the objective is a linear model with the columns A a_j: each vertex that joins costs one
    product with the rows, and Newton steps see these columns alone (`newton`).
    """

    sets: tuple[type, ...] = (Hull,)
    rehearsed = True
    doubles = True

    def __init__(self) -> None:
        # (vertices, A a_j of those that take part) of the last hull, for the rows in use.
        self._images: WeakKeyDictionary[Rows, tuple[Vector, dict[int, Vector]]] = (
            WeakKeyDictionary()
        )

    def fits(self, f: FiniteSum, constraint: Constraint) -> bool:
        if not isinstance(f, Linear) or not isinstance(constraint.bare, Hull):
            return False
        model = model_of(f)
        # Rows less their mean are rows with an intercept, for squares: see `Point`.
        return len(constraint.bare.shape) == 1 and (model.loss.quadratic or not model.rows.plain[1])

    def prepare(self, f: Linear, x: Array, state: Memory) -> None:
        recall_predictions(f, x, state)

    def init(self, x: Array) -> Memory:
        return {}

    def improve(
        self, f: Linear, constraint: Constraint, x: Array, g: Array, t: int, state: Memory
    ) -> tuple[Array, Memory]:
        hull = cast(Hull, constraint.bare)
        points = hull.vertices.value
        vertices = np.asarray(points, np.float64)
        slopes = vertices @ g.astype(np.float64)
        w = _weights(hull, x, state)
        gap = float(w @ (slopes - slopes.min()))
        constraint.lmo(g)  # the one call that this iteration stands for
        if not gap > 0:
            return x, state
        chosen, fresh = _working_set(w, slopes, state)
        point = Point(f, x)
        columns = self._columns(point.model, points, chosen)
        working = DenseWorking(columns, chosen)
        at = Weights(np.ones(chosen.size), w[chosen], 0.0, open=False, signed=False)
        gram = Gram(working, len(w), state)
        effort = SETTLED if not fresh else CALM if fresh <= 0.05 * np.count_nonzero(w) else GROWING
        newton_steps(point, gram, at, gap, effort)
        u = np.where(at.u > LEAST, at.u, 0.0)
        w = np.zeros_like(w)
        w[chosen] = u / u.sum()
        new = (w[chosen] @ vertices[chosen]).astype(x.dtype)
        note = gram.save()
        note["weights"] = w
        if x.dtype == np.float64:
            f.remember(new, f.rows.shifted(columns @ w[chosen], new))
            note["predictions"] = f.predictions(new)[0]
        return new, note

    def active_set(
        self, constraint: Constraint, x: Array, state: Memory
    ) -> tuple[NDArray[np.float64], MatrixLike]:
        hull = cast(Hull, constraint)
        w = _weights(hull, x, state)
        used = np.flatnonzero(w)
        return w[used], np.asarray(hull.vertices.value)[used]

    def _columns(self, model: LinearModel, vertices: Vector, chosen: NDArray[np.int64]) -> Vector:
        """A a_j of the chosen vertices, side by side."""
        hull, known = self._images.get(model.rows, (None, {}))
        if hull is not vertices:  # the j-th vertex of another hull is another point
            known = {}
            self._images[model.rows] = (vertices, known)
        rows = model.rows.plain[0]
        for j in chosen:
            if int(j) not in known:
                known[int(j)] = rows.dot(vertices[j].astype(rows.dtype)).astype(np.float64)
        for j in set(known) - set(chosen.tolist()):
            del known[j]  # as large as the predictions: only those in use are kept
        return np.stack([known[int(j)] for j in chosen], axis=1)


def _weights(hull: Hull, x: Array, state: Memory) -> NDArray[np.float64]:
    """Those of x: known from the step before, else found."""
    known = state.get("weights")
    if isinstance(known, np.ndarray) and known.shape == (len(hull.vertices.value),):
        return known
    w = hull.weights(x.astype(np.float64))
    w = np.where(w > LEAST, w, 0.0)
    return np.asarray(w / w.sum())


def _working_set(w: Vector, slopes: Vector, state: Memory) -> tuple[NDArray[np.int64], int]:
    """(vertices, how many of them join): those in use, in the order of the last set, then others.

    Those with slopes below the mean of what is in use would lower f.
    """
    support = np.flatnonzero(w)
    out = np.where(w > 0, -np.inf, float(w @ slopes) - slopes)
    wanted = np.flatnonzero(out > 0)
    fresh = wanted[largest_entries(out[wanted], max(FIRST, support.size))]
    before = np.asarray(state.get("chosen", support[:0]))
    stay = before[w[before] > 0]
    others = np.setdiff1d(support, stay)
    return np.concatenate([stay, others, fresh]), fresh.size
