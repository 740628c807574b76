"""Steps on many atoms: coordinate descent on the model, then conjugate gradients on its face."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adafw.rows import Rows
from adafw.steps.corrective.point import Point, Vector

#: A step that has to be cut below this had a model without the curvature it met: up to so many
#: models know it.
SHORT, MODELS = 0.1, 3
#: Epochs of a descent where the set binds, and before it does.
EPOCHS, FIRST_EPOCHS = 10, 3
#: The violation that ends a descent, as a share of the one that it began with.
ENOUGH = 0.1
#: Conjugate gradient steps at most, and the residual that ends them.
CG_STEPS, CG_RESIDUAL = 100, 0.02
#: Share of the face that may change its sign, which ends them too.
TURNED = 0.01
#: Share of the face that may change in a descent for conjugate gradients to be worth their cost.
CALM_SHARE = 0.05


@dataclass
class Working:
    """The chosen coordinates of x, the gradient there, and what is known of the set around x."""

    rows: Rows
    chosen: NDArray[np.int64]
    x: Vector
    g: Vector
    radius: float
    signed: bool
    bound: bool  #: whether sum |x| = radius is to hold
    price: float  #: on sum |x| as long as it is not
    calm: bool  #: whether few coordinates came and went of late
    seed: int


def descent(at: Working, point: Point) -> tuple[Vector, bool, bool]:
    """(weights on the chosen coordinates with a lower value, whether the set binds, and is calm).

    Coordinate descent finds the face, conjugate gradients the point on it. Where the face hardly
    changes, only what is new on it descends: a descent over all of it would shake what is settled.
    """
    w, t = at.x, 0.0
    for attempt in range(MODELS):
        model = _Model(at, point)
        w, bound = model.minimiser(at.calm and attempt == 0)
        dz, promised, toll = model.way(w, bound)
        t = point.step_size(dz, min(promised, 0.0), toll)
        if at.calm and attempt == 0:
            if t >= SHORT and model.solved:
                break
            continue  # the face has to change after all
        if t >= SHORT or -promised <= 1e-9 * abs(point.value):
            break
        point.bends = point.raised_bends(dz)
    if not (t > SHORT**2 and promised < 0):
        w, t = _plain_step(at, point, model)
    new = w if t == 1.0 else at.x + t * (w - at.x)
    changed = int(np.count_nonzero((new != 0) != (at.x != 0)))
    calm = t >= SHORT and changed <= max(2, CALM_SHARE * int(np.count_nonzero(new)))
    return new, bound, calm and (model.solved or not at.calm)


def _plain_step(at: Working, point: Point, model: "_Model") -> tuple[Vector, float]:
    """(w, step size) of something simpler, where the multiplier did not settle.

    First a descent with the multiplier held, scaled into the set; then the Frank-Wolfe step, which
    always descends.
    """
    for w in (model.held(), model.vertex()):
        dz, promised, toll = model.way(w, at.bound)
        t = point.step_size(dz, promised, toll) if promised < 0 else 0.0
        if t > SHORT**2:
            return w, t
    return w, t


def product(at: Working, w: Vector) -> Vector:
    """A w, for weights of the chosen coordinates."""
    from adafw.kernels import descent as kernels

    z = np.zeros(at.rows.shape[0])
    kernels.add_columns(at.rows.column_arrays(), at.chosen.view(np.uint64), w, z)
    return z


class _Model:
    """<g, w - x> + <w - x, H (w - x)> / 2 on the chosen coordinates, an intercept taken out."""

    def __init__(self, at: Working, point: Point) -> None:
        from adafw.kernels import descent as kernels

        self.kernels, self.at, self.point = kernels, at, point
        self.solved = False
        self.columns, self.numbers = at.rows.column_arrays(), at.chosen.view(np.uint64)
        size = at.chosen.size
        self.diagonal, self.mixed = np.empty(size), np.empty(size)
        kernels.diagonals(self.columns, self.numbers, point.bends, self.diagonal, self.mixed)
        self.total = self.slope = 0.0
        if point.free:
            self.total, self.slope = float(point.bends.sum()), float(point.slopes.sum())
            rest = self.diagonal - self.mixed**2 / max(self.total, 1e-300)
            self.diagonal = np.maximum(rest, 1e-14 * self.diagonal)
        else:
            self.mixed[:] = 0.0
        self.diagonal += 1e-8 * float(self.diagonal.mean()) + 1e-300

    def minimiser(self, calm: bool) -> tuple[Vector, bool]:
        """(w, whether the set binds): a point of the set where the model is low."""
        at = self.at
        w, bound = at.x.copy(), at.bound
        if bound and calm:
            fresh = np.flatnonzero(at.x == 0)
            if fresh.size:
                self._descend(w, -float(at.g @ at.x) / at.radius, False, FIRST_EPOCHS, fresh)
        else:
            bound = self._find_face(w)
        if bound and abs(float(np.abs(w).sum()) - at.radius) <= 0.1 * at.radius:
            _onto_sphere(w, np.flatnonzero(w), self.diagonal, at.radius)
            changed = np.count_nonzero((w != 0) != (at.x != 0))
            if calm or changed <= max(2, CALM_SHARE * np.count_nonzero(w)):
                self.solved = self._polish(w, np.flatnonzero(w))
        norm = float(np.abs(w).sum())
        if norm > at.radius or (bound and norm > 0.9 * at.radius):
            w *= at.radius / norm
        return w, bound

    def held(self) -> Vector:
        """A few epochs with the multiplier held, scaled into the set."""
        at, w = self.at, self.at.x.copy()
        multiplier = max(-float(at.g @ at.x) / at.radius, 0.0) if at.bound else at.price
        self._descend(w, multiplier, False, FIRST_EPOCHS)
        norm = float(np.abs(w).sum())
        return np.asarray(w * (at.radius / norm)) if norm > at.radius else w

    def vertex(self) -> Vector:
        """The linear minimiser."""
        at, w = self.at, np.zeros_like(self.at.x)
        j = int(np.argmax(np.abs(at.g) if at.signed else -at.g))
        w[j] = -at.radius * np.sign(at.g[j]) if at.signed else at.radius
        return w

    def way(self, w: Vector, bound: bool) -> tuple[Vector, float, float]:
        """(A (w - x) + shift of b, the slope on it, its price)."""
        at, d = self.at, w - self.at.x
        dz = np.zeros(self.point.z.size)
        self.kernels.add_columns(self.columns, self.numbers, d, dz)
        dz += self.point.shift(float(self.mixed @ d), self.total)
        toll = 0.0 if bound else at.price * float(np.abs(w).sum() - np.abs(at.x).sum())
        return dz, float(at.g @ d) + toll, toll

    def _find_face(self, w: Vector) -> bool:
        """Coordinate descent in place; whether the set binds in the end."""
        at = self.at
        steepest = float(np.abs(at.g).max())
        if not at.bound:
            self._descend(w, at.price, False, FIRST_EPOCHS)
            if float(np.abs(w).sum()) <= at.radius:
                return False
        multiplier = max(at.price, 1e-3 * steepest)
        if at.bound:
            multiplier = max(-float(at.g @ at.x) / at.radius, 1e-3 * steepest)
        self._descend(w, multiplier, True, EPOCHS)
        return True

    def _descend(
        self, w: Vector, multiplier: float, binding: bool, epochs: int,
        only: NDArray[np.int64] | None = None,
    ) -> None:  # fmt: skip
        at = self.at
        some = slice(None) if only is None else only
        part, x, g = w[some].copy(), at.x[some], at.g[some]
        dz = np.zeros(self.point.z.size)
        if part is not w and (part != x).any():
            self.kernels.add_columns(self.columns, self.numbers[some], part - x, dz)
        mixed = self.mixed[some]
        model = self.kernels.Model(
            self.columns, self.numbers[some], g, self.point.bends, self.diagonal[some], mixed,
            self.total, self.slope + float(mixed @ (part - x)),
        )  # fmt: skip
        bound = self.kernels.Bound(at.radius, at.signed, binding)
        enough = ENOUGH * _violation(g, x, multiplier, at.signed)
        self.kernels.descend(model, bound, part, dz, multiplier, epochs, enough, at.seed)
        w[some] = part

    def _polish(self, w: Vector, face: NDArray[np.int64]) -> bool:
        """Conjugate gradients over the face, sum |w| kept, in place; whether they came to an end.

        Preconditioned by the diagonal. A weight that would change its sign becomes 0.
        """
        at, bends = self.at, self.point.bends
        working = at.rows.working(at.chosen[face])
        signs, give, mixed = np.sign(w[face]), 1 / self.diagonal[face], self.mixed[face]
        across = float(give.sum())

        def hessian(d: Vector) -> Vector:
            out = working.product(bends, d)
            return out - mixed * (float(mixed @ d) / self.total) if self.total > 0 else out

        def flat(r: Vector) -> Vector:
            """The preconditioned residual, less what would change sum |w|."""
            y = give * r
            return y - give * signs * (float(signs @ y) / across)

        moved = np.zeros(self.point.z.size)
        self.kernels.add_columns(self.columns, self.numbers, w - at.x, moved)
        moved += self.point.shift(float(self.mixed @ (w - at.x)), self.total)
        start = -working.combine(self.point.slopes + bends * moved)
        r = start.copy()
        y = flat(r)
        p, rest = y, float(r @ y)
        enough = CG_RESIDUAL**2 * rest
        d = np.zeros(face.size)
        for _ in range(CG_STEPS):
            image = hessian(p)
            bend = float(p @ image)
            if not bend > 0:
                break
            a = rest / bend
            turned = np.count_nonzero(signs * (w[face] + d + a * p) < 0)
            if turned > max(2, TURNED * face.size):  # far out of the face
                break
            d += a * p
            r -= a * image
            y = flat(r)
            before, rest = rest, float(r @ y)
            if not rest > enough:
                break
            p = y + (rest / before) * p
        new = w[face] + d
        d = np.where(np.sign(new) == signs, new, 0.0) - w[face]
        if not float(d @ (hessian(d) / 2 - start)) < 0:  # what was cut off was worth more
            return False
        w[face] += d
        return not rest > enough


def _onto_sphere(w: Vector, face: NDArray[np.int64], diagonal: Vector, radius: float) -> None:
    """sum |w| = radius by the shortest way in the metric of the diagonal, signs kept; in place.

    A plain scaling is far stiffer: near the minimum it would undo what the descent has gained.
    """
    signs, give = np.sign(w[face]), 1 / diagonal[face]
    missing = radius - float(np.abs(w[face]).sum())
    new = w[face] + signs * give * (missing / float(give.sum()))
    w[face] = np.where(np.sign(new) == signs, new, 0.0)


def _violation(g: Vector, x: Vector, multiplier: float, signed: bool) -> float:
    inside = np.maximum((np.abs(g) if signed else -g) - multiplier, 0.0)
    return float(np.where(x != 0, np.abs(g + multiplier * np.sign(x)), inside).sum())
