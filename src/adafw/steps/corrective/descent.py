"""Steps on many atoms: coordinate descent on the model, then conjugate gradients on its face."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.rows import Rows
from adafw.steps.corrective.point import Point, Vector

#: Epochs of a descent where the set binds, and before it does.
EPOCHS, FIRST_EPOCHS = 10, 3
#: The violation that ends a descent, as a share of the one that it began with.
ENOUGH = 0.1
#: Conjugate gradient steps at most, and the residual that ends them.
CG_STEPS, CG_RESIDUAL = 60, 0.05
#: Share of the face that may change in a descent for conjugate gradients to be worth their cost.
SETTLED = 0.05


def descent(
    rows: Rows, point: Point, chosen: NDArray[np.int64], x: Vector, g: Vector, shape: Any,
    bound: bool, price: float, seed: int,
) -> Vector:  # fmt: skip
    """New weights on the chosen coordinates: a point of the set with a lower value."""
    from adafw.kernels import descent as kernels

    columns, numbers = rows.column_arrays(), chosen.view(np.uint64)
    w, dz = x.copy(), np.zeros(point.z.size)
    diagonal, mixed = np.empty(chosen.size), np.empty(chosen.size)
    kernels.diagonals(columns, numbers, point.bends, diagonal, mixed)
    total, slope = 0.0, 0.0
    if point.free:
        total, slope = float(point.bends.sum()), float(point.slopes.sum())
        diagonal = np.maximum(diagonal - mixed**2 / max(total, 1e-300), 1e-14 * diagonal)
    else:
        mixed[:] = 0.0
    diagonal += 1e-8 * float(diagonal.mean()) + 1e-300
    model = kernels.Model(columns, numbers, g, point.bends, diagonal, mixed, total, slope)
    steepest = float(np.abs(g).max())
    multiplier = max(-float(g @ x) / shape.radius, 1e-3 * steepest) if bound else price
    start = _violation(g, x, multiplier, shape.signed)
    left = 0.0
    if not bound:
        limits = kernels.Bound(shape.radius, shape.signed, False)
        kernels.descend(model, limits, w, dz, price, FIRST_EPOCHS, ENOUGH * start, seed)
        bound = float(np.abs(w).sum()) > shape.radius
        multiplier = max(price, 1e-3 * steepest)
    if bound:
        limits = kernels.Bound(shape.radius, shape.signed, True)
        multiplier, left, _ = kernels.descend(
            model, limits, w, dz, multiplier, EPOCHS, ENOUGH * start, seed + 1
        )
        face = np.flatnonzero(w)
        changed = np.count_nonzero((w != 0) != (x != 0))
        if left > ENOUGH / 2 * start and changed <= max(2, SETTLED * face.size):
            _polish(rows, point, chosen, face, g, w, x, diagonal, mixed, total)
    norm = float(np.abs(w).sum())
    if norm > shape.radius or (bound and norm > 0.5 * shape.radius):
        w *= shape.radius / norm
    d = w - x
    dz = np.zeros(point.z.size)
    kernels.add_columns(columns, numbers, d, dz)
    dz += point.shift(float(mixed @ d), total)
    toll = 0.0 if bound else price * (float(np.abs(w).sum()) - float(np.abs(x).sum()))
    promised = float(g @ d) + toll
    t = point.step_size(dz, min(promised, 0.0), toll)
    return w if t == 1.0 else x + t * d


def _violation(g: Vector, x: Vector, multiplier: float, signed: bool) -> float:
    inside = np.maximum((np.abs(g) if signed else -g) - multiplier, 0.0)
    return float(np.where(x != 0, np.abs(g + multiplier * np.sign(x)), inside).sum())


def _polish(
    rows: Rows, point: Point, chosen: NDArray[np.int64], face: NDArray[np.int64], g: Vector,
    w: Vector, x: Vector, diagonal: Vector, mixed: Vector, total: float,
) -> None:  # fmt: skip
    """Conjugate gradients on the model over the face of w, sum |w| kept; w changes in place.

    Preconditioned by the diagonal. A weight that would change its sign becomes 0.
    """
    working = rows.working(chosen[face])
    bends, signs, scale = point.bends, np.sign(w[face]), 1 / diagonal[face]
    mixed_face = mixed[face]

    def hessian(d: Vector) -> Vector:
        out = working.product(bends, d)
        return out - mixed_face * (float(mixed_face @ d) / total) if total > 0 else out

    def flat(r: Vector) -> Vector:
        """The preconditioned residual, less what would change sum |w|."""
        y = scale * r
        return y - scale * signs * (float(signs @ y) / across)

    across = float(signs @ (scale * signs))
    gone = np.flatnonzero((w == 0) & (x != 0))
    slopes = g[face] + hessian((w - x)[face])
    if gone.size:  # what has left the face still counts in the model
        moved = np.zeros(point.z.size)
        from adafw.kernels.descent import add_columns

        add_columns(rows.column_arrays(), chosen[gone].view(np.uint64), -x[gone], moved)
        slopes += working.combine(bends * moved)
        if total > 0:
            slopes -= mixed_face * (float(bends @ moved) / total)
    if total > 0:
        slopes -= mixed_face * (float(point.slopes.sum()) / total)
    r = -slopes
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
        d += a * p
        r -= a * image
        y = flat(r)
        before, rest = rest, float(r @ y)
        if not rest > enough:
            break
        p = y + (rest / before) * p
    new = w[face] + d
    w[face] = np.where(np.sign(new) == signs, new, 0.0)
