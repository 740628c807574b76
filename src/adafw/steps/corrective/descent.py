"""Steps on many atoms: coordinate descent on the model; thorough ones end on its face by CG."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adafw.rows import Rows
from adafw.steps.corrective.newton import came_into_question
from adafw.steps.corrective.point import Point, Vector

#: A step that has to be cut below this had a model without the curvature it met: up to so many
#: models know it.
SHORT, MODELS = 0.1, 3
#: Epochs of a descent before the set binds.
FIRST_EPOCHS = 3
#: Brief descents begin so often, at most, until f falls along what they found.
TRIES = 3
#: Conjugate gradient steps at most, and the residual that ends them.
CG_STEPS, CG_RESIDUAL = 100, 0.02
#: Share of the face that may change its sign, which ends them too.
TURNED = 0.01
#: Share of the radius by which sum |w| may miss it to be taken to it.
NEAR = 0.1
#: Share of the mean curvature that columns without any are given in a model.
FLAT = 1e-8
#: Share of the face that may change in a descent for conjugate gradients to be worth their cost.
CALM_SHARE = 0.05


class Pace(NamedTuple):
    """How far a model is minimised: epochs where the set binds, the share of the violation that
    ends them, and whether conjugate gradients on the face follow."""

    epochs: int
    enough: float
    polished: bool


#: Where models are dear beside an epoch, and where a few epochs are worth as much as a model.
THOROUGH, BRIEF = Pace(10, 0.1, True), Pace(6, 0.1, False)


class Descended(NamedTuple):
    """Weights with a lower value, whether the set binds, whether few coordinates came and went,
    and the share of the violation that the last descent left: 0 if that was little enough, 1 where
    its model led nowhere."""

    w: Vector
    bound: bool
    calm: bool
    left: float


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
    pace: Pace = THOROUGH
    curvature: tuple[Vector, Vector] | None = None  #: what `diagonals` says of all columns at x


def descent(at: Working, point: Point) -> Descended:
    """A step on the chosen coordinates; `point` moves along.

    Coordinate descent finds the face, conjugate gradients the point on it. Where the face hardly
    changes, only what is new on it descends: a descent over all of it would shake what is settled.
    """
    w, t = at.x, 0.0
    for attempt in range(MODELS):
        model = _Model(at, point, at.curvature if attempt == 0 else None)
        w, bound = model.minimiser(at.calm and attempt == 0)
        dz, promised, toll = model.way(w, bound)
        t = point.step_size(dz, min(promised, 0.0), toll)
        if at.calm and attempt == 0:
            if t >= SHORT and model.solved:
                break
            continue  # the face has to change after all
        if t >= SHORT or -promised <= 1e-9 * abs(point.value):
            break
        point.bends = point.raised_bends(came_into_question(t) * dz)
    left = model.left if t >= SHORT else 1.0
    if not (t > SHORT**2 and promised < 0):
        w, dz, t = _plain_step(at, point, model)
        left = 1.0
    new = w if t == 1.0 else at.x + t * (w - at.x)
    if t > 0.0:
        point.move(dz, t)
    changed = int(np.count_nonzero((new != 0) != (at.x != 0)))
    calm = t >= SHORT and changed <= max(2, CALM_SHARE * int(np.count_nonzero(new)))
    return Descended(new, bound, calm and (model.solved or not at.calm), left)


def _plain_step(at: Working, point: Point, model: "_Model") -> tuple[Vector, Vector, float]:
    """(w, A (w - x), step size) of something simpler, where the multiplier did not settle.

    First a descent with the multiplier held, scaled into the set; then the Frank-Wolfe step, which
    always descends.
    """
    for w in (model.held(), model.vertex()):
        dz, promised, toll = model.way(w, at.bound)
        t = point.step_size(dz, promised, toll) if promised < 0 else 0.0
        if t > SHORT**2:
            break
    return w, dz, t


def diagonals(rows: Rows, chosen: NDArray[np.int64], point: Point) -> tuple[Vector, Vector]:
    """The Hessian's diagonal on these columns, an intercept taken out, and their mixed part."""
    from adafw.kernels import descent as kernels

    diagonal, mixed = np.empty(chosen.size), np.empty(chosen.size)
    numbers = chosen.view(np.uint64)
    kernels.diagonals(rows.column_arrays(), numbers, point.bends, diagonal, mixed)
    if point.free:
        rest = diagonal - mixed**2 / max(float(point.bends.sum()), 1e-300)
        return np.maximum(rest, 1e-14 * diagonal), mixed
    mixed[:] = 0.0
    return diagonal, mixed


def product(at: Working, w: Vector) -> Vector:
    """A w, for weights of the chosen coordinates."""
    from adafw.kernels import descent as kernels

    z = np.zeros(at.rows.shape[0])
    kernels.add_columns(at.rows.column_arrays(), at.chosen.view(np.uint64), w, z)
    return z


class _Model:
    """<g, w - x> + <w - x, H (w - x)> / 2 on the chosen coordinates, an intercept taken out."""

    def __init__(
        self, at: Working, point: Point, curvature: tuple[Vector, Vector] | None = None
    ) -> None:
        from adafw.kernels import descent as kernels

        self.kernels, self.at, self.point = kernels, at, point
        self.solved, self.left = False, 0.0
        self.columns, self.numbers = at.rows.column_arrays(), at.chosen.view(np.uint64)
        if curvature is None:
            self.diagonal, self.mixed = diagonals(at.rows, at.chosen, point)
        else:
            self.diagonal, self.mixed = (all_of[at.chosen] for all_of in curvature)
        self.total = self.slope = 0.0
        if point.free:
            self.total, self.slope = float(point.bends.sum()), float(point.slopes.sum())
        self.diagonal += FLAT * float(self.diagonal.mean()) + 1e-300

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
        near = self._place(w, bound)
        if at.pace.polished:
            changed = np.count_nonzero((w != 0) != (at.x != 0))
            if near and (calm or changed <= max(2, CALM_SHARE * np.count_nonzero(w))):
                self.solved = self._polish(w, np.flatnonzero(w))
        else:
            for _ in range(TRIES):
                if not bound or at.g @ (w - at.x) < 0:
                    break
                self._descend(w, self._multiplier(), True, at.pace.epochs)
                self._place(w, bound)
        norm = float(np.abs(w).sum())
        if norm > at.radius or (bound and norm > (1 - NEAR) * at.radius):
            w *= at.radius / norm
        return w, bound

    def _place(self, w: Vector, bound: bool) -> bool:
        """Takes w to the sphere in place, if that binds and is near; whether it does."""
        near = bound and abs(float(np.abs(w).sum()) - self.at.radius) <= NEAR * self.at.radius
        if near:
            _onto_sphere(w, np.flatnonzero(w), self.diagonal, self.at.radius)
        return near

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
        if not at.bound:
            self._descend(w, at.price, False, FIRST_EPOCHS)
            if float(np.abs(w).sum()) <= at.radius:
                return False
        self._descend(w, self._multiplier(), True, at.pace.epochs)
        return True

    def _multiplier(self) -> float:
        """Where it begins to follow the bound."""
        at = self.at
        own = -float(at.g @ at.x) / at.radius if at.bound else 0.0
        return max(own, at.price, 1e-3 * float(np.abs(at.g).max()))

    def _descend(
        self, w: Vector, multiplier: float, binding: bool, epochs: int,
        only: NDArray[np.int64] | None = None,
    ) -> None:  # fmt: skip
        at = self.at
        some = slice(None) if only is None else only
        part, x, g = w[some].copy(), at.x[some], at.g[some]
        image = np.zeros(self.point.z.size)
        if (part != x).any():
            self.kernels.add_columns(self.columns, self.numbers[some], part - x, image)
            image *= self.point.bends
        mixed = self.mixed[some]
        model = self.kernels.Model(
            self.columns, self.numbers[some], g, self.point.bends, self.diagonal[some], mixed,
            self.total, self.slope + float(mixed @ (part - x)),
        )  # fmt: skip
        bound = self.kernels.Bound(at.radius, at.signed, binding)
        enough = at.pace.enough * _violation(g, x, multiplier, at.signed)
        _, first, last, _ = self.kernels.descend(
            model, bound, part, image, multiplier, epochs, enough, at.seed
        )
        self.left = last / max(first, 1e-300) if last > enough else 0.0
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
