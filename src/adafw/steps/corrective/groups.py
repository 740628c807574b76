"""Group balls and K-sparse hulls: a working set, and Newton steps on the face found in it."""

import math
from dataclasses import dataclass
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
from adafw.steps.corrective.conjugate import solve
from adafw.steps.corrective.curvature import Hessian, JointPredictions, Vector, view
from adafw.steps.corrective.damped import at, descend, forcing
from adafw.typing import Array

Mask = NDArray[np.bool_]

_ROUNDS = 12  # faces a model is minimised on, at most
_LIMIT = 60  # steps of conjugate gradients a face
_FIRST = 64  # coordinates that join a working set at least
_STEPS = 4  # Newton steps of one working set
_EDGE = 1e-12  # share of a radius that counts as being on its bound


class GroupCorrector(Corrector[Predicting]):
    """GroupBall and KSparse: f on the coordinates of x and on those that beat what x pays.

    These are the restricted problem, whose Newton models are minimised over the set: a projected
    step in the metric diag(H), with the exact step length, finds the face; conjugate gradients on
    its tangent plane, with the curvature of the norms, finish on it.
    """

    sets: tuple[type, ...] = (GroupBall, KSparse)
    rehearsed = True
    few = True

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
        part = _part(whole, chosen)
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


def _part(kind: GroupBall | KSparse, chosen: NDArray[np.int64]) -> "_GroupFace | _SparseFace":
    if isinstance(kind, KSparse):
        return _SparseFace(kind)
    return _GroupFace(GroupBall(kind.radius, _labels(kind)[chosen]))


def _newton(
    f: Predicting, part: "_GroupFace | _SparseFace", x: Array, g: Array, gap: float, state: Memory
) -> Array:
    """A few Newton steps on the restricted problem."""
    seen = JointPredictions(f, flat=True) if isinstance(f, MatrixModel) else view(f)
    weights, here = seen.weights(x), at(seen, x)
    for _ in range(_STEPS):
        model = _Model(here.x, g, part, gap, forcing(gap, state))
        there = descend(seen, part.kind, here, g, weights, model.minimise)
        if there is here:
            break
        here = there
        g = seen.gradient(here.z)
        now = float(np.vdot(g, here.x - part.kind.lmo(g)))
        if not now > 0.1 * gap:
            break
        gap = now
    return here.x


class _Model:
    """<g, d> + <d, H d> / 2 with x + d in the set."""

    def __init__(
        self, x: Array, g: Array, part: "_GroupFace | _SparseFace", gap: float, share: float
    ) -> None:
        self.x, self.g, self.part = x, g, part
        self.share, self.wanted = share, share * gap

    def minimise(self, h: Hessian) -> tuple[Array, Vector | None]:
        y, slopes, move = self.x, self.g, None
        for k in range(2 * _ROUNDS):
            if float(np.vdot(slopes, y - self.part.kind.lmo(slopes))) <= self.wanted:
                break
            step = self._face(h, y, slopes) if k % 2 else self._projected(h, y, slopes)
            if step is None:
                if k % 2:
                    continue
                break
            s, image, dz = step
            y, slopes = y + s, slopes + image
            move = dz if move is None else move + dz
        return y, move if move is not None and move.size else None

    def _projected(
        self, h: Hessian, y: Array, slopes: Vector
    ) -> tuple[Vector, Vector, Vector] | None:
        """Towards the projection in the metric of diag(H), as far as the model falls."""
        s = self.part.kind.project(y - self._near(slopes / h.scale), h.scale) - y
        slope = float(np.vdot(slopes, s))
        if not slope < 0:
            return None
        image, move = h.product(s)
        bend = float(np.vdot(s, image))
        gamma = 1.0 if not bend > -slope else -slope / bend
        return gamma * s, gamma * image, gamma * move

    def _near(self, d: Vector) -> Vector:
        """d, cut to a few lengths of the set: of a step far outside, projections keep no digits."""
        most, length = 100 * float(self.part.kind.diameter(d.shape)), float(np.linalg.norm(d))
        if not math.isfinite(length):  # no curvature at all
            return np.zeros_like(d)
        return d * min(1.0, most / max(length, 1e-300))

    def _face(self, h: Hessian, y: Array, slopes: Vector) -> tuple[Vector, Vector, Vector] | None:
        """Newton's step on the face of y, back into the set, if the model falls."""
        face = self.part.face(y, slopes)
        if not face.free.any():
            return None
        inverse = np.where(face.free, 1 / (h.scale + face.bend), 0.0)
        across = inverse * face.normal
        length = float(np.vdot(face.normal, across))

        def tangent(r: Vector) -> Vector:
            d = inverse * r
            return d - across * (float(np.vdot(face.normal, d)) / length) if length > 0 else d

        def product(p: Vector) -> tuple[Vector, Vector]:
            image, move = h.product(p)
            return image + face.curve(p), move

        d = self._near(solve(product, -slopes, tangent, self.share, _LIMIT).d)
        promise, gamma = float(np.vdot(slopes, d)), 1.0
        for _ in range(12):
            s = self.part.kind.project(y + gamma * d, h.scale) - y
            image, move = h.product(s)
            if float(np.vdot(slopes, s) + np.vdot(s, image) / 2) < min(1e-4 * gamma * promise, 0.0):
                return s, image, move
            gamma /= 4
        return None


@dataclass(frozen=True)
class _Tangent:
    """A face at a point: who is free, the normal of its bound, and how that bound bends."""

    free: Mask
    normal: Vector
    bend: Vector
    units: Vector
    labels: NDArray[np.int64] | None = None

    def curve(self, p: Vector) -> Vector:
        """The multiplier times the second derivative of the norms along p."""
        if self.labels is None:
            return np.zeros_like(p)
        along = np.bincount(self.labels, self.units * p)[self.labels]
        return self.bend * (p - along * self.units)


class _GroupFace:
    """Groups that are not 0; the sum of their norms is kept where the ball binds."""

    def __init__(self, kind: GroupBall) -> None:
        self.kind, self.labels = kind, _labels(kind)

    def face(self, y: Array, slopes: Vector) -> _Tangent:
        norms = np.sqrt(np.bincount(self.labels, y * y))
        price = -float(np.vdot(slopes, y)) / self.kind.radius
        free = (norms > _EDGE * self.kind.radius)[self.labels]
        tight = float(norms.sum()) >= self.kind.radius * (1 - _EDGE) and price > 0
        length = np.where(free, norms[self.labels], 1.0)
        units = np.where(free, y / length, 0.0)
        bend = np.where(free & tight, max(price, 0.0) / length, 0.0)
        return _Tangent(free, units if tight else np.zeros_like(y), bend, units, self.labels)


class _SparseFace:
    """Coordinates between 0 and the bound on each; their sum is kept where that binds."""

    def __init__(self, kind: KSparse) -> None:
        self.kind = kind

    def face(self, y: Array, slopes: Vector) -> _Tangent:
        size, radius = np.abs(y), self.kind.radius
        tight = float(size.sum()) >= self.kind.k * radius * (1 - _EDGE)
        free = (size > _EDGE * radius) & (size < radius * (1 - _EDGE))
        if not tight:  # one at its bound is free to come back
            free |= (size >= radius * (1 - _EDGE)) & (slopes * y > 0)
        normal = np.where(free, np.sign(y), 0.0) if tight else np.zeros_like(y)
        return _Tangent(free, normal, np.zeros_like(y), np.zeros_like(y))


def holds_rows(kind: GroupBall) -> bool:
    """Whether it is a set of matrices whose groups are made of whole rows."""
    labels = np.asarray(kind.groups.value)
    return labels.ndim == 2 and bool((labels == labels[:, :1]).all())


def _labels(kind: GroupBall) -> NDArray[np.int64]:
    return kind.groups.value.astype(np.int64).reshape(-1)
