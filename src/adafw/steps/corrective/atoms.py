"""Corrective steps on the l1 ball and the simplices: atoms are signed coordinates."""

import numpy as np
from numpy.typing import NDArray

from adafw.constraints import L1Ball, Simplex, UnitSimplex
from adafw.constraints.base import Constraint
from adafw.objectives import LinearModel
from adafw.objectives.base import FiniteSum
from adafw.objectives.kinds import Linear, model_of
from adafw.rows import Rows
from adafw.steps.corrective.base import Corrector, Memory
from adafw.steps.corrective.cycles import NARROW, compile_call, cycled, near
from adafw.steps.corrective.descent import CALM_SHARE, Working, descent, product
from adafw.steps.corrective.gram import Gram
from adafw.steps.corrective.joining import steepest
from adafw.steps.corrective.newton import GROWING, Weights, compile_rest, effort, newton_steps
from adafw.steps.corrective.point import Point, largest_entries
from adafw.steps.corrective.remembering import reach, recall
from adafw.steps.corrective.sample import LEAST_ROWS
from adafw.steps.corrective.start import Outset, inside, placed, shape_of
from adafw.typing import Array, MatrixLike

#: Atoms up to which the Hessian may be a matrix: while many come and go, and once few do.
MANY, MOST_ATOMS = 1000, 3000
#: Atoms that join at least, on short data and on long, which begin near the minimum (`sample`);
#: how many times those that are there at most.
FIRST, FIRST_OF_LONG, GROWTH = 128, 32, 2.0
#: Columns of dense rows up to which all that may join do so at once, where a Gram matrix of them is
#: cheap; of sparse ones: `NARROW`.
NARROW_DENSE = 100
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
    pairwise steps (`newton`), on more by coordinate descent on its model (`descent`); and by brief
    descents (`cycles`) on many columns that are at hand and have little to do with each other.
    """

    sets: tuple[type, ...] = (L1Ball, Simplex, UnitSimplex)
    few = True
    doubles = True

    def fits(self, f: FiniteSum, constraint: Constraint) -> bool:
        if not isinstance(f, Linear) or shape_of(constraint) is None:
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
            with np.errstate(all="ignore"):  # of so few rows anything may come
                _compile(model, rows)
        recall(f, x, state)

    def init(self, x: Array) -> Memory:
        return {}

    def improve(
        self, f: Linear, constraint: Constraint, x: Array, g: Array, t: int, state: Memory
    ) -> tuple[Array, Memory]:
        shape = shape_of(constraint)
        assert shape is not None
        g = g.astype(np.float64, copy=False)
        gap = constraint.gap(x, g)
        if not gap > 0:
            return x, state
        start = Outset.of(shape, x, g, gap, state)
        if (found := cycled(f, start, t, state)) is not None:
            return found
        support, (rows, centred) = start.support, model_of(f).rows.plain
        whole = x.size <= (NARROW if rows.listed else NARROW_DENSE)
        long = f.n_terms >= LEAST_ROWS or bool(state.get("sample"))
        first = x.size if whole else FIRST_OF_LONG if long else FIRST
        level = 0.0 if whole else start.level
        room = _room(support.size, first)
        fresh, must, price = steepest(shape, x, g, support, start.bound, level, room)
        note = start.note(price, state)
        chosen = _in_order(x.size, support, fresh, state)
        point = Point(f, x)
        w = x[chosen].astype(np.float64)
        calm = bool(state.get("calm")) and must <= CALM_SHARE * support.size
        if chosen.size <= (MOST_ATOMS if calm else MANY):
            working = point.model.working(chosen)
            if working.gram_pays:
                signs = np.where(w != 0, np.sign(w), -np.sign(g[chosen])) if shape.signed else 1.0
                signs = np.where(signs == 0, 1.0, signs) * np.ones(chosen.size)
                atoms = Weights(signs, np.abs(w), start.slack, shape.open, shape.signed, price)
                gram = Gram(working, x.size, state)
                known = g[chosen] if x.dtype == np.float64 and not centred else None
                how = effort(must, support.size, whole, long)
                newton_steps(point, gram, atoms, gap, how, known)
                reached = atoms.signs * atoms.u
                w = inside(reached, shape)
                note.update(gram.save())
                note["calm"] = 1
                note["reach"], precise = reach(f, x, point.z, state)
                if w is reached and not point.free and x.dtype == np.float64 and precise:
                    # What the steps have led to, rounded once a step.
                    return placed(f, x, chosen, w, point.z, note, point.curves)
                return placed(f, x, chosen, w, working.dot(w), note)
        at = Working(
            *point.rows.holding(chosen), w, start.slopes(chosen), shape.radius, shape.signed,
            start.bound, price, calm, t,
        )  # fmt: skip
        result = descent(at, point)
        note["bound"], note["calm"] = int(result.bound), int(result.calm)
        w = inside(result.w, shape)
        return placed(f, x, chosen, w, product(at, w), note)

    def near(self, f: Linear, constraint: Constraint, x: Array, g: Array) -> bool:
        return near(f, constraint, x, g)

    def active_set(
        self, constraint: Constraint, x: Array, state: Memory
    ) -> tuple[NDArray[np.float64], MatrixLike]:
        """Vertices with the weights |x_j| / radius.

        What is missing to the sum 1 is the weight of the origin: a vertex of the unit simplex, half
        +radius e_j and half -radius e_j in the l1 ball.
        """
        from scipy.sparse import csr_array

        shape = shape_of(constraint)
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


def _compile(model: LinearModel, rows: Rows) -> None:
    """Both ways on the first rows, so that their kernels are compiled."""
    few = np.arange(min(8, model.n_terms))
    weights = None if model.sample_weight is None else np.ones(few.size)
    small = LinearModel(rows.few(few), model.y[few], model.loss, weights)
    n = rows.shape[1]
    x = np.zeros(n)
    point, g = Point(small, x), small.gradient(x).astype(np.float64)
    small.rows.mean_squares(np.ones(few.size))
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
        product(at, descent(at, Point(small, x)).w)
    compile_call(at, Point(small, x))
