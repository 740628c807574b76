"""Corrective steps on the l1 ball and the simplices: atoms are signed coordinates."""

import numpy as np
from numpy.typing import NDArray

from adafw.constraints import L1Ball, Simplex, UnitSimplex
from adafw.constraints.base import Constraint
from adafw.objectives import LinearModel
from adafw.objectives.base import FiniteSum
from adafw.objectives.kinds import Linear, model_of
from adafw.objectives.linear_model import Curves
from adafw.rows import Rows
from adafw.steps.corrective.base import Corrector, Memory
from adafw.steps.corrective.descent import CALM_SHARE, Working, descent, product
from adafw.steps.corrective.joining import Shape, steepest
from adafw.steps.corrective.newton import (
    GROWING,
    Gram,
    Weights,
    compile_rest,
    effort,
    newton_steps,
)
from adafw.steps.corrective.point import Point, Vector, largest_entries
from adafw.steps.corrective.remembering import keep, reach, recall
from adafw.steps.corrective.sample import LEAST_ROWS
from adafw.typing import Array, MatrixLike

#: Atoms up to which the Hessian may be a matrix: while many come and go, and once few do.
MANY, MOST_ATOMS = 1000, 3000
#: Atoms that join at least, on short data and on long, which begin near the minimum (`sample`);
#: how many times those that are there at most.
FIRST, FIRST_OF_LONG, GROWTH = 128, 32, 2.0
#: Columns up to which all that may join do so at once, where a Gram matrix of them is cheap: of
#: sparse rows and of dense ones.
NARROW, NARROW_DENSE = 512, 100
#: A working set that holds all that is wanted is kept if it is at most so many times as large.
ALIKE = 1.2
#: Atoms from which on four times as many join.
MANY_ATOMS = 350
#: Kinds of data whose kernels are compiled in this process.
_COMPILED: set[tuple[object, ...]] = set()


class AtomCorrector(Corrector[Linear]):
    """min f over the hull of radius * (+- e_j) for j in a working set, which grows.

    The atoms that the gradient names are those with the steepest slopes: the linear minimiser is
    the first of them. On up to 1000 atoms f is minimised by Newton steps whose models are solved by
    pairwise steps (`newton`), on more by coordinate descent on its model (`descent`).
    """

    sets: tuple[type, ...] = (L1Ball, Simplex, UnitSimplex)
    few = True

    def fits(self, f: FiniteSum, constraint: Constraint) -> bool:
        if not isinstance(f, Linear) or _shape(constraint) is None:
            return False
        model = model_of(f)
        rows, centred = model.rows.plain
        return rows.by_coordinates and (model.loss.quadratic or not centred)

    def prepare(self, f: Linear, x: Array, state: Memory) -> None:
        model = model_of(f)
        rows, _ = model.rows.plain
        kind = (rows.kind, model.loss_code, model.term_weights.size > 0)
        if kind not in _COMPILED:
            _COMPILED.add(kind)
            _compile(model, rows)
        recall(f, x, state)

    def init(self, x: Array) -> Memory:
        return {}

    def improve(
        self, f: Linear, constraint: Constraint, x: Array, g: Array, t: int, state: Memory
    ) -> tuple[Array, Memory]:
        shape = _shape(constraint)
        assert shape is not None
        g = g.astype(np.float64, copy=False)
        gap = constraint.gap(x, g)
        if not gap > 0:
            return x, state
        support, (rows, centred) = np.flatnonzero(x), model_of(f).rows.plain
        norm = float(np.abs(x[support]).sum())
        slack = max(0.0, shape.radius - norm) if shape.open else 0.0
        if slack <= 1e-9 * shape.radius:
            slack = 0.0
        # A step that was cut short leaves some slack, though the set binds.
        bound = slack == 0.0 or (bool(state.get("bound")) and slack < 0.1 * shape.radius)
        level = float(state.get("level", -1.0))
        if state.get("norm", -1.0) > 0.99 * norm:
            level = 0.0  # weight no longer grows: the set does not bind, and nothing must cost
        whole = x.size <= (NARROW if rows.listed else NARROW_DENSE)
        long = f.n_terms >= LEAST_ROWS or bool(state.get("sample"))
        first = x.size if whole else FIRST_OF_LONG if long else FIRST
        room = _room(support.size, first)
        level = 0.0 if whole else level
        fresh, must, price = steepest(shape, x, g, support, bound, level, room)
        note: Memory = {"level": price, "norm": norm, "bound": int(bound)}
        if "sample" in state:
            note["sample"] = 1
        chosen = _in_order(x.size, support, fresh, state)
        point = Point(f, x)
        w = x[chosen].astype(np.float64)
        calm = bool(state.get("calm")) and must <= CALM_SHARE * support.size
        if chosen.size <= (MOST_ATOMS if calm else MANY):
            working = point.model.working(chosen)
            if working.gram_pays:
                signs = np.where(w != 0, np.sign(w), -np.sign(g[chosen])) if shape.signed else 1.0
                signs = np.where(signs == 0, 1.0, signs) * np.ones(chosen.size)
                atoms = Weights(signs, np.abs(w), slack, shape.open, shape.signed, price)
                gram = Gram(working, x.size, state)
                known = g[chosen] if x.dtype == np.float64 and not centred else None
                how = effort(must, support.size, whole, long)
                newton_steps(point, gram, atoms, gap, how, known)
                reached = atoms.signs * atoms.u
                w = _inside(reached, shape)
                note.update(gram.save())
                note["calm"] = 1
                note["reach"], precise = reach(f, x, point.z, state)
                if w is reached and not point.free and x.dtype == np.float64 and precise:
                    # What the steps have led to, rounded once a step.
                    return _placed(f, x, chosen, w, point.z, note, point.curves)
                return _placed(f, x, chosen, w, working.dot(w), note)
        slopes = g[chosen]
        if not shape.open:
            # On sum x = radius a constant slope means nothing; this one makes the multiplier > 0.
            multiplier = -float(slopes @ w) / shape.radius
            slopes = slopes - max(0.0, float(np.abs(slopes + multiplier).max()) - multiplier)
        at = Working(
            *point.rows.holding(chosen),
            w,
            slopes,
            shape.radius,
            shape.signed,
            bound,
            price,
            calm,
            t,
        )
        w, bound, calm = descent(at, point)
        w = _inside(w, shape)
        note["bound"], note["calm"] = int(bound), int(calm)
        return _placed(f, x, chosen, w, product(at, w), note)

    def active_set(
        self, constraint: Constraint, x: Array, state: Memory
    ) -> tuple[NDArray[np.float64], MatrixLike]:
        """Vertices with the weights |x_j| / radius.

        What is missing to the sum 1 is the weight of the origin: a vertex of the unit simplex, half
        +radius e_j and half -radius e_j in the l1 ball.
        """
        from scipy.sparse import csr_array

        shape = _shape(constraint)
        assert shape is not None
        columns = np.flatnonzero(x)
        weights = np.abs(x[columns]).astype(np.float64) / shape.radius
        values = np.sign(x[columns]) * shape.radius
        rest = 1.0 - float(weights.sum())
        if rest > 1e-15 and shape.open:
            j = int(np.argmin(np.abs(x)))  # not used, if there is one
            ends = [shape.radius, -shape.radius] if shape.signed else [0.0]
            columns = np.append(columns, [j] * len(ends))
            values = np.append(values, ends)
            weights = np.append(weights, [rest / len(ends)] * len(ends))
        starts = np.arange(columns.size + 1)
        atoms = csr_array((values, columns, starts), shape=(columns.size, x.size))
        return weights / weights.sum(), atoms


def _shape(constraint: Constraint) -> Shape | None:
    ball = constraint.bare
    if type(ball) is L1Ball:
        return Shape(ball.radius, signed=True, open=True)
    if type(ball) is UnitSimplex:
        return Shape(ball.radius, signed=False, open=True)
    if type(ball) is Simplex:
        return Shape(ball.radius, signed=False, open=False)
    return None


def _room(used: int, least: int) -> int:
    """How many may join."""
    most = max(int(GROWTH * used), least)
    return 4 * most if used > MANY_ATOMS else most


def _in_order(
    n: int, support: NDArray[np.int64], fresh: NDArray[np.int64], state: Memory
) -> NDArray[np.int64]:
    """The working set: what is kept of the last one, in its order, then what joins."""
    if "chosen" not in state:
        return np.union1d(support, fresh)
    before = np.asarray(state["chosen"])
    used, known = np.zeros(n, bool), np.zeros(n, bool)
    used[support] = True
    known[before] = True
    alike = before.size <= ALIKE * (support.size + fresh.size)
    if alike and known[support].all() and known[fresh].all():
        return before
    known[:] = False
    stay = before[used[before]] if fresh.size else before
    known[stay] = True
    return np.concatenate([stay, support[~known[support]], fresh[~known[fresh]]])


def _inside(w: Vector, shape: Shape) -> Vector:
    """The weights within the set to the last digit."""
    norm = float(np.abs(w).sum())
    if norm > shape.radius or (not shape.open and norm > 0):
        return np.asarray(w * (shape.radius / norm))
    return w


def _placed(
    f: Linear, x: Array, chosen: NDArray[np.int64], w: Vector, z: Vector,
    note: Memory, curves: Curves | None = None,
) -> tuple[Array, Memory]:  # fmt: skip
    """(x with these entries, state): A x is at hand, and saves the next gradient a pass.

    `curves` are those at A x, if they are known, too.
    """
    new = np.zeros_like(x)
    new[chosen] = w + 0.0  # no -0.0, which would be printed
    if x.dtype == np.float64:
        keep(f, new, f.rows.shifted(z, new), note, curves)
    return new, note


def _compile(model: LinearModel, rows: Rows) -> None:
    """Both ways on the first rows, so that their kernels are compiled."""
    few = np.arange(min(8, model.n_terms))
    weights = None if model.sample_weight is None else np.ones(few.size)
    small = LinearModel(rows.few(few), model.y[few], model.loss, weights)
    n = rows.shape[1]
    x = np.zeros(n)
    point, g = Point(small, x), small.gradient(x).astype(np.float64)
    chosen = largest_entries(np.abs(g), 3)  # of others the first rows may have none
    working = small.working(chosen[:2])
    gram = Gram(working, n, {})
    newton_steps(
        point,
        gram,
        Weights(np.ones(working.chosen.size), x[working.chosen], 1.0, True, True),
        1.0,
        GROWING,
    )
    for columns in (np.arange(n - 1), chosen[::-1].copy()):  # found in passes and one by one
        small.working(columns)
    gram = Gram(small.working(chosen), n, gram.save())
    compile_rest(gram, Point(small, x))
    for bound in (False, True):
        start = x[chosen] + (1.0 / chosen.size if bound else 0.0)
        at = Working(small.rows, chosen, start, g[chosen], 1.0, True, bound, 0.1, bound, 0)
        product(at, descent(at, Point(small, x))[0])
