"""The l1 ball of matrices: a working set of coefficients of all outputs, and descent on its model.

Classes, or targets, share the ball: which of them a feature is worth its weight in is found, not
given.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from adafw.constraints import L1Ball
from adafw.constraints.base import Constraint
from adafw.objectives import MatrixModel
from adafw.objectives.base import FiniteSum
from adafw.steps.corrective.base import Corrector, Memory
from adafw.steps.corrective.conjugate import solve
from adafw.steps.corrective.joining import Shape, steepest
from adafw.steps.corrective.joint_newton import MOST, WORK, JointGram, JointPoint, JointRows
from adafw.steps.corrective.newton import Weights, effort, newton_steps
from adafw.steps.corrective.point import ARMIJO
from adafw.steps.corrective.remembering import recall_predictions
from adafw.typing import Array

if TYPE_CHECKING:
    from adafw.kernels.joint_descent import JointModel

Vector = NDArray[Any]

#: Coefficients that join at least; those that are there may be joined by twice as many.
FIRST = 64
#: Epochs of a descent where the set binds, and before it does; the violation that ends one.
EPOCHS, FIRST_EPOCHS, ENOUGH = 20, 3, 0.1
#: Share of the face that may change in a descent for conjugate gradients to be worth their cost;
#: how many, the residual that ends them, and the share that may turn its sign, which does too.
SETTLED, CG_STEPS, CG_RESIDUAL, TURNED = 0.005, 50, 0.03, 0.01
#: A step cut below this had a model without the curvature it met: up to so many models know it.
SHORT, MODELS = 0.1, 3


class JointCorrector(Corrector[MatrixModel]):
    """L1Ball, for `MatrixModel`: min f over the hull of radius * (+- e_jc), (j, c) in a set.

    The steepest coefficients join. On few, f is minimised by the Newton steps of `newton`, whose
    matrix is the whole second derivative of the joint loss (`joint_newton`). On many, that model is
    minimised over the hull by coordinate descent (`kernels.joint_descent`), and the step to its
    minimiser is cut until f descends. State: predictions, and where the multiplier is.
    """

    sets: tuple[type, ...] = (L1Ball,)

    def fits(self, f: FiniteSum, constraint: Constraint) -> bool:
        known = isinstance(f, MatrixModel) and f.rows.by_coordinates
        return known and type(constraint.bare) is L1Ball

    def prepare(self, f: MatrixModel, x: Array, state: Memory) -> None:
        _compile(f)
        recall_predictions(f, x, state)

    def init(self, x: Array) -> Memory:
        return {}

    def improve(
        self, f: MatrixModel, constraint: Constraint, x: Array, g: Array, t: int, state: Memory
    ) -> tuple[Array, Memory]:
        g = g.astype(np.float64, copy=False)
        radius = constraint.scale
        if not float(np.vdot(g, x - constraint.lmo(g))) > 0:
            return x, state
        support = np.flatnonzero(x)
        norm = float(np.abs(x.reshape(-1)[support]).sum())
        slack = max(0.0, radius - norm)
        # A step that was cut short leaves some slack, though the set binds.
        bound = slack <= 1e-9 * radius or (bool(state.get("bound")) and slack < 0.1 * radius)
        level = float(state.get("level", -1.0))
        if state.get("norm", -1.0) > 0.99 * norm:
            level = 0.0  # weight no longer grows: the set does not bind, and nothing must cost
        flat, slopes = x.reshape(-1), g.reshape(-1)
        room = max(FIRST, 2 * support.size)
        fresh, must, price = steepest(Shape(radius), flat, slopes, support, bound, level, room)
        chosen = np.sort(np.concatenate([support, fresh]))
        note: Memory = {"level": price, "norm": norm, "bound": int(bound)}
        if (few := _newton(f, x, g, chosen, slack, price, radius, must)) is not None:
            return _placed(f, *few, note)
        at = _Working(f, x, g, chosen, radius, bound, price, t)
        w, bound = at.improved()
        new = np.zeros_like(x)
        new.reshape(-1)[chosen] = w
        note["bound"] = int(bound)
        return _placed(f, new, at.product(w), note)


def _placed(f: MatrixModel, x: Array, z: Vector, note: Memory) -> tuple[Array, Memory]:
    """(x, state): A X is at hand, unless x was rounded after it."""
    if x.dtype == np.float64:
        f.remember(x, z)
        note["predictions"] = z
    return x, note


def _newton(
    f: MatrixModel, x: Array, g: Vector, chosen: NDArray[np.int64], slack: float, price: float,
    radius: float, fresh: int,
) -> tuple[Array, Vector] | None:  # fmt: skip
    """(X, A X) after Newton steps on these coefficients; None where they are too many."""
    if chosen.size > MOST or not f.rows.listed:
        return None
    working = JointRows(f, chosen)
    if working.work > WORK:
        return None
    w, slopes = x.reshape(-1)[chosen].astype(np.float64), g.reshape(-1)[chosen]
    signs = np.where(w != 0, np.sign(w), np.where(slopes > 0, -1.0, 1.0))
    at = Weights(signs, np.abs(w), slack if slack > 1e-9 * radius else 0.0, True, True, price)
    gap = float(np.vdot(g, x)) + radius * float(np.abs(g).max())
    newton_steps(JointPoint(f, x), JointGram(working), at, gap, effort(fresh, chosen.size - fresh))
    w = at.signs * at.u
    w *= min(1.0, radius / max(float(at.u.sum()), 1e-300))
    new = np.zeros_like(x)
    new.reshape(-1)[chosen] = w
    return new, working.plain_dot(w)


#: Kinds of data whose kernels are compiled in this process.
_COMPILED: set[tuple[object, ...]] = set()


def _compile(f: MatrixModel) -> None:
    """One iteration on the first rows, so that no kernel is compiled while the clock runs."""
    rows = f.rows.take(np.arange(min(8, f.n_terms)))
    kind = (*(str(part.dtype) for part in rows.column_arrays()), f.loss.coupled)
    if kind in _COMPILED:
        return
    _COMPILED.add(kind)
    small = MatrixModel(rows, f.y[: rows.shape[0]], f.loss, n_outputs=f.n_outputs)
    x = np.zeros((rows.shape[1], f.n_outputs))
    g = small.gradient(x).astype(np.float64)
    _newton(small, x, g, np.arange(min(3, x.size)), 1.0, 0.0, 1.0, 3)
    for bound in (False, True):
        at = _Working(small, x, g, np.arange(min(3, x.size)), 1.0, bound, 0.0, 0)
        at.improved()
        at._polish(at._model(small.seconds_at(at.z), np.ones((f.n_outputs,) * 2)), at.w + 0.1)


@dataclass
class _Working:
    """The chosen coefficients of x, and the model of f around them."""

    f: MatrixModel
    x: Array
    g: Vector
    chosen: NDArray[np.int64]
    radius: float
    bound: bool  #: whether sum |x| = radius is to hold
    price: float  #: on sum |x| as long as it is not
    seed: int

    def __post_init__(self) -> None:
        from adafw.kernels import joint_descent

        self.kernels = joint_descent
        k = self.f.n_outputs
        wanted, places = np.unique(self.chosen // k, return_inverse=True)
        rows, numbers = self.f.rows.holding(wanted)  # descent goes through them one by one
        self.features, self.outputs = numbers[places].view(np.uint64), self.chosen % k
        self.w = self.x.reshape(-1)[self.chosen].astype(np.float64)
        self.slopes = self.g.reshape(-1)[self.chosen]
        self.columns = rows.column_arrays()
        self.weights = self.f.term_weights.astype(np.float64) / self.f.n_terms
        z, b = self.f.predictions(self.x)
        self.z = z.astype(np.float64) + b
        self.value = self.f.value_at(self.z)

    def improved(self) -> tuple[Vector, bool]:
        """(weights of a lower value, whether the set binds)."""
        s = self.f.seconds_at(self.z)
        for _ in range(MODELS):
            model = self._model(s)
            w, bound = self._minimiser(model)
            dz = self._way(model, w)
            toll = 0.0 if bound else self.price * float(np.abs(w).sum() - np.abs(self.w).sum())
            t = self._step_size(dz, float(self.slopes @ (w - self.w)) + toll, toll)
            if t >= SHORT:
                break
            # The second derivative is concave in s: at a mean of two it is no less than theirs.
            s = (s + self.f.seconds_at(self.z + dz)) / 2
        if t < SHORT**2:
            w, bound = self._vertex(), self.bound
            t = self._step_size(self._way(model, w), float(self.slopes @ (w - self.w)), 0.0)
        return (w if t == 1.0 else self.w + t * (w - self.w)), bound

    def product(self, w: Vector) -> Vector:
        """A W, for weights of the chosen coefficients."""
        z = np.zeros((self.f.n_outputs, self.f.n_terms))
        self.kernels.moves(self.columns, self.features, self.outputs, w, z)
        return np.ascontiguousarray(z.T)

    def _model(self, s: Vector, inverse: Vector | None = None) -> "JointModel":
        loss = self.f.loss
        if inverse is None:
            inverse = self.f.follow(s) if self.f.has_intercept else np.zeros((0, 0))
        turned, diagonal = np.ascontiguousarray(s.T, np.float64), np.empty(self.chosen.size)
        self.kernels.diagonals(
            self.columns, self.features, self.outputs, turned, self.weights, loss.coupled, diagonal
        )
        diagonal += 1e-8 * float(diagonal.mean()) + 1e-300
        return self.kernels.JointModel(
            self.columns, self.features, self.outputs, self.slopes, turned, self.weights, diagonal,
            loss.coupled, inverse,
        )  # fmt: skip

    def _minimiser(self, model: "JointModel") -> tuple[Vector, bool]:
        """(w in the set where the model is low, whether the set binds)."""
        w, bound = self.w.copy(), self.bound
        dz = np.zeros((self.f.n_outputs, self.f.n_terms))
        mean, shift = np.zeros(self.f.n_terms), np.zeros(self.f.n_outputs)
        steepest = float(np.abs(self.slopes).max())

        def descend(multiplier: float, binding: bool, epochs: int) -> None:
            enough = ENOUGH * _violation(self.slopes, self.w, multiplier)
            self.kernels.descend(
                model, self.radius, binding, w, dz, mean, shift, multiplier, epochs, enough,
                self.seed,
            )  # fmt: skip

        multiplier = max(-float(self.slopes @ self.w) / self.radius, 1e-3 * steepest)
        if not bound:
            descend(self.price, False, FIRST_EPOCHS)
            bound = float(np.abs(w).sum()) > self.radius
            multiplier = max(self.price, 1e-3 * steepest)
        if bound:
            descend(multiplier, True, EPOCHS)
            _onto_sphere(w, model.diagonal, self.radius)
            changed = np.count_nonzero((w != 0) != (self.w != 0))
            if w.any() and changed <= max(2, SETTLED * np.count_nonzero(w)):
                self._polish(model, w)
        norm = float(np.abs(w).sum())
        if norm > self.radius or (bound and norm > 0.9 * self.radius):
            w *= self.radius / norm
        return w, bound

    def _polish(self, model: "JointModel", w: Vector) -> None:
        """Conjugate gradients over the face of w, sum |w| kept, in place.

        Preconditioned by the diagonal. A weight that would change its sign becomes 0.
        """
        face = np.flatnonzero(w)
        part = model._replace(
            features=self.features[face], outputs=self.outputs[face], g=np.zeros(face.size),
            diagonal=model.diagonal[face],
        )  # fmt: skip
        signs, give, here = np.sign(w[face]), 1 / part.diagonal, w[face]
        across = float(give.sum())

        def tangent(r: Vector) -> Vector:
            y = give * r
            return y - give * signs * (float(signs @ y) / across)

        def product(d: Vector) -> tuple[Vector, Vector]:
            dz, mean = self._moved(part, d)
            image = np.empty(face.size)
            self.kernels.slopes(part, dz, mean, image)
            return image, np.empty(0)

        def leaves(d: Vector) -> bool:
            turned = np.count_nonzero(signs * (here + d) < 0)
            return bool(turned > max(2, TURNED * face.size))

        dz, mean = self._moved(model, w - self.w)
        slopes = np.empty(face.size)
        self.kernels.slopes(part._replace(g=model.g[face]), dz, mean, slopes)
        d = solve(product, -slopes, tangent, CG_RESIDUAL, CG_STEPS, leave=leaves).d
        new = np.where(signs * (here + d) > 0, here + d, 0.0)
        _onto_sphere(new, part.diagonal, self.radius)
        d = new - here
        if float(d @ (slopes + product(d)[0] / 2)) < 0:  # what was cut off was not worth more
            w[face] = new

    def _moved(self, model: "JointModel", d: Vector) -> tuple[Vector, Vector]:
        """(moves of the predictions, their means), the intercepts following."""
        dz, mean = np.zeros((self.f.n_outputs, self.f.n_terms)), np.zeros(self.f.n_terms)
        self.kernels.moves(self.columns, model.features, model.outputs, d, dz)
        if model.coupled:
            self.kernels.mean_moves(model.s, dz, mean)
        if model.settle.size:
            self.kernels.settle(model, dz, mean, np.zeros(self.f.n_outputs))
        return dz, mean

    def _vertex(self) -> Vector:
        """The linear minimiser."""
        w, a = np.zeros_like(self.w), int(np.argmax(np.abs(self.slopes)))
        w[a] = -self.radius * np.sign(self.slopes[a])
        return w

    def _way(self, model: "JointModel", w: Vector) -> Vector:
        """What w - x moves in the predictions, the intercepts following."""
        return np.ascontiguousarray(self._moved(model, w - self.w)[0].T)

    def _step_size(self, dz: Vector, slope: float, toll: float) -> float:
        """1, or less until f + toll is low enough; 0 if that never is."""
        noise, t = 4 * float(np.finfo(np.float64).eps) * abs(self.value), 1.0
        if not slope < 0:
            return 0.0
        for _ in range(40):
            new = self.f.value_at(self.z + t * dz) + t * toll
            if new <= self.value + ARMIJO * t * slope + noise:
                return t
            bend = new - self.value - t * slope
            best = -slope * t * t / (2 * bend) if bend > 0 and np.isfinite(bend) else 0.0
            t = min(max(best, 0.1 * t), 0.5 * t)
        return 0.0


def _onto_sphere(w: Vector, diagonal: Vector, radius: float) -> None:
    """sum |w| = radius by the shortest way in the metric of the diagonal, signs kept; in place."""
    face = np.flatnonzero(w)
    if not face.size:
        return
    signs, give = np.sign(w[face]), 1 / diagonal[face]
    missing = radius - float(np.abs(w[face]).sum())
    new = w[face] + signs * give * (missing / float(give.sum()))
    w[face] = np.where(np.sign(new) == signs, new, 0.0)


def _violation(g: Vector, x: Vector, multiplier: float) -> float:
    inside = np.maximum(np.abs(g) - multiplier, 0.0)
    return float(np.where(x != 0, np.abs(g + multiplier * np.sign(x)), inside).sum())
