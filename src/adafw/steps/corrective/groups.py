"""Group balls and K-sparse hulls: a working set, and Newton steps whose models are solved on it."""

import math
from typing import cast

import numpy as np
from numpy.typing import NDArray

from adafw.constraints.base import Constraint
from adafw.constraints.group_ball import GroupBall
from adafw.constraints.k_sparse import KSparse
from adafw.objectives import LinearModel, MatrixModel, WithIntercept
from adafw.objectives.base import FiniteSum
from adafw.objectives.kinds import Linear, Predicting, model_of
from adafw.steps.corrective.base import Corrector, Memory
from adafw.steps.corrective.curvature import Hessian, JointPredictions, Vector, View, view
from adafw.steps.corrective.damped import Position, at, descend, forcing
from adafw.steps.corrective.implicit import Curved, Norms, minimise
from adafw.steps.corrective.nearly import DEAR
from adafw.typing import Array

_LARGEST, _DEAREST = 2048, 30.0  # columns of a matrix H at most; products that it may cost
_ROUNDING = 8.0  # units of the last digit by which values differ that are the same
_FIRST = 64  # coordinates that join a working set at least
_STEPS = 4  # Newton steps of one working set
_EDGE = 1e-12  # share of a radius that counts as being on its bound


class GroupCorrector(Corrector[Predicting]):
    """GroupBall and KSparse: f on the coordinates of x and on those that beat what x pays.

    These are the restricted problem, whose Newton models are minimised over the set by implicit
    steps (`implicit`), which find the face and what is least on it at once.
    """

    sets: tuple[type, ...] = (GroupBall, KSparse)
    rehearsed = True
    few = True
    doubles = True

    def fits(self, f: FiniteSum, constraint: Constraint) -> bool:
        if isinstance(f, MatrixModel):
            whole = constraint.bare
            return isinstance(whole, GroupBall) and holds_rows(whole)
        known = isinstance(f, Linear) and f.has_hessian
        flat = f.shape is not None and len(f.shape) == 1
        return known and flat and isinstance(constraint.bare, self.sets)

    def prepare(self, f: Predicting, x: Array, state: Memory) -> None:
        """Nothing is kept beside the state."""

    def init(self, x: Array) -> Memory:
        return {"gap": 0.0}

    def improve(
        self, f: Predicting, constraint: Constraint, x: Array, g: Array, t: int, state: Memory
    ) -> tuple[Array, Memory]:
        gap = float(np.vdot(g, x - constraint.lmo(g)))
        if not gap > 0:
            return x, state
        whole = cast(GroupBall | KSparse, constraint.bare)
        flat, slopes = x.reshape(-1), g.reshape(-1)
        chosen = _working_set(whole, flat, slopes)
        small = f
        if chosen.size < x.size:
            small = _restricted(f, chosen)
        part = whole
        if isinstance(whole, GroupBall):
            part = GroupBall(whole.radius, _labels(whole)[chosen])
        y = _newton(small, part, flat[chosen], slopes[chosen], gap, state)
        moved = np.zeros_like(flat)
        moved[chosen] = y
        return moved.reshape(x.shape), state


def _working_set(kind: GroupBall | KSparse, x: Array, g: Array) -> NDArray[np.int64]:
    """The support, and what the set gains most by; groups as a whole, at most as many again."""
    room = max(_FIRST, int(np.count_nonzero(x)))
    if isinstance(kind, KSparse):
        steep, labels = np.abs(g), np.arange(x.size)
        inside = (x != 0) & (np.abs(x) < kind.radius * (1 - _EDGE))
        tight = float(np.abs(x).sum()) >= kind.k * kind.radius * (1 - _EDGE)
        price = float(steep[inside].min()) if tight and inside.any() else 0.0
        room = max(room, 2 * kind.k)
    else:
        labels = _labels(kind)
        steep = np.sqrt(np.bincount(labels, g**2))
        price = max(0.0, -float(np.vdot(g, x)) / kind.radius)
    kept = np.bincount(labels, x != 0, minlength=steep.size) > 0
    sizes = np.bincount(labels, minlength=steep.size)
    order = np.argsort(-np.where(kept, -1.0, steep), kind="stable")
    order = order[(steep[order] > price) & ~kept[order]]
    kept[order[: max(1, int(np.searchsorted(np.cumsum(sizes[order]), room)))]] = True
    return np.flatnonzero(kept[labels])


def _restricted(f: Predicting, chosen: NDArray[np.int64]) -> Predicting:
    """The same loss of the chosen columns alone."""
    if isinstance(f, MatrixModel):
        rows = f.rows.columns(chosen[:: f.n_outputs] // f.n_outputs)
        return MatrixModel(
            rows, f.y, f.loss, f.sample_weight, n_outputs=f.n_outputs, intercept=f.has_intercept
        )
    model = model_of(f)
    small = LinearModel(model.rows.columns(chosen), model.y, model.loss, model.sample_weight)
    return WithIntercept(small) if isinstance(f, WithIntercept) else small


def _newton(
    f: Predicting, kind: GroupBall | KSparse, x: Array, g: Array, gap: float, state: Memory
) -> Array:
    """A few Newton steps on the restricted problem."""
    seen = JointPredictions(f, flat=True) if isinstance(f, MatrixModel) else view(f)
    weights, here = seen.weights(x), at(seen, x)
    for _ in range(_STEPS):
        model = _Model(here.x, g, kind, forcing(gap, state) * gap, _price(f, x.size))
        there, slopes, now = _gap(seen, kind, descend(seen, kind, here, g, weights, model.minimise))
        noise = _ROUNDING * float(np.finfo(x.dtype).eps) * abs(here.value)
        if now > 0.5 * gap and there.value > here.value - noise:
            # Where values are rounding, gaps still tell points apart.
            y, _ = model.minimise(seen.hessian(here.z, weights))
            whole = Position(y, here.z + seen.predict(y - here.x), here.value)
            there, slopes, now = _gap(seen, kind, whole)
            if not now < gap:
                break
        done = now <= max(0.1 * gap, noise)
        here, g, gap = there, slopes, now
        if done:
            break
    return here.x


def _gap(seen: View, kind: GroupBall | KSparse, here: Position) -> tuple[Position, Array, float]:
    """(the position, its slopes, its gap)."""
    slopes = seen.gradient(here.z)
    return here, slopes, float(np.vdot(slopes, here.x - kind.lmo(slopes)))


def _price(f: Predicting, n: int) -> float | None:
    """Products that cost as much as H does as a matrix; None if there is to be none."""
    if isinstance(f, MatrixModel) or n > _LARGEST:
        return None
    rows = model_of(f).rows.plain[0]
    if rows.listed:
        return min(_DEAREST, rows.gram_products)
    return max(4.0, n / 16) if rows.shape[0] * n * n <= DEAR else None


class _Model:
    """<g, d> + <d, H d> / 2 with x + d in the set."""

    def __init__(
        self, x: Array, g: Array, kind: GroupBall | KSparse, wanted: float, price: float | None
    ) -> None:
        self.x, self.g, self.kind, self.wanted, self.price = x, g, kind, wanted, price

    def minimise(self, h: Hessian) -> tuple[Array, None]:
        """A point whose gap on the model is as wanted, or the best one found."""
        double, dtype = np.float64, self.x.dtype
        scale = h.scale.astype(double)
        forms = self.price is not None and h.whole is not None

        def whole() -> NDArray[np.float64]:
            assert h.whole is not None
            return h.whole().astype(double, copy=False)

        model = Curved(
            lambda d: h.product(d.astype(dtype, copy=False))[0].astype(double, copy=False),
            scale, whole if forms else None, self.price or 0.0,
        )  # fmt: skip
        if h.matrix is not None:
            model.matrix = h.matrix.astype(double, copy=False)
        y, _ = minimise(
            norms_of(self.kind, scale), self.x.astype(double), self.g.astype(double), model,
            self.wanted,
        )  # fmt: skip
        return y.astype(dtype, copy=False), None


def norms_of(kind: GroupBall | KSparse, scale: Vector) -> Norms:
    """The set by the norms of its groups; `scale` is what coordinates weigh."""
    if isinstance(kind, KSparse):
        return Norms(np.arange(scale.size), scale, kind.radius, kind.k * kind.radius)
    labels = _labels(kind)
    each = np.bincount(labels, scale) / np.bincount(labels)
    return Norms(labels, each, math.inf, kind.radius)


def holds_rows(kind: GroupBall) -> bool:
    """Whether it is a set of matrices whose groups are made of whole rows."""
    labels = np.asarray(kind.groups.value)
    return labels.ndim == 2 and bool((labels == labels[:, :1]).all())


def _labels(kind: GroupBall) -> NDArray[np.int64]:
    return kind.groups.value.astype(np.int64).reshape(-1)
