"""The subproblem of Template 3 solved: corrective steps on Q over what LMO answers span.

Q(y) = <m, y - x> + ||y - x||^2_H / (2 eta) is separable, and its minimiser over C is the point of C
nearest to x - eta m / h in the norm of H. On sets that are hulls of coordinates or of groups of
them, Q is minimised over the face of the coordinates at hand, those of x and those that beat the
face's own multiplier, as the LMO's answer does: adding coordinates raises the multiplier, so two
calls are all, one that names them and one that certifies. A product of intervals needs one
answer. Elsewhere Q is minimised over the hull of x and the answers kept (Wolfe 1976).
"""

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adafw.constraints import (
    Box,
    GroupBall,
    KSparse,
    L1Ball,
    L2Ball,
    LInfBall,
    Product,
    Simplex,
    UnitSimplex,
    projections,
)
from adafw.constraints.base import Constraint
from adafw.constraints.counted import CountedSet
from adafw.typing import Array

Vector = NDArray[np.floating[Any]]

#: LMO calls after which Q counts as solved where answers are kept one by one.
MOST = 1000


def solve(
    constraint: Constraint, x: Array, m: Array, h: Array, eta: float, calls: int | None,
    enough: float | None = None,
) -> Array:  # fmt: skip
    """argmin over C of Q, to rounding; or what is reached after so many `calls` of the LMO.

    `enough` ends it too, where the Frank-Wolfe gap of Q is at most that.
    """
    if math.isinf(eta):  # Q is linear
        return constraint.lmo(m)
    kind = constraint.bare
    if isinstance(kind, Product):
        return _blocks(constraint, kind, x, m, h, eta, calls, enough)
    if isinstance(kind, LInfBall | Box):
        return _intervals(constraint, x, m, h, eta)
    if isinstance(kind, _Faces):
        return _face(constraint, kind, x, m, h, eta, calls, enough)
    return _hull(constraint, x, m, h / eta, MOST if calls is None else calls, enough)


def _blocks(
    constraint: Constraint, product: Product, x: Array, m: Array, h: Array, eta: float,
    calls: int | None, enough: float | None,
) -> Array:  # fmt: skip
    """Set by set; a call of the product's LMO is one of each."""
    done, most = [], 0
    for block, (point, linear, metric) in product.parts(x, m, h):
        counted = CountedSet(block)
        done.append(solve(counted, point, linear, metric, eta, calls, enough).reshape(-1))
        most = max(most, counted.lmo_calls)
    if isinstance(constraint, CountedSet):
        constraint.lmo_calls += most
    return np.concatenate(done)


def _intervals(constraint: Constraint, x: Array, m: Array, h: Array, eta: float) -> Array:
    """Each coordinate to its own minimiser on the way to the end that the LMO names."""
    v = constraint.lmo(m)
    return np.clip(x - eta * m / h, np.minimum(x, v), np.maximum(x, v))


# Faces of coordinates ---------------------------------------------------------------------------

_Faces: TypeAlias = L1Ball | Simplex | UnitSimplex | L2Ball | GroupBall | KSparse


def _face(
    constraint: Constraint, kind: _Faces, x: Array, m: Array, h: Array, eta: float,
    calls: int | None, enough: float | None,
) -> Array:  # fmt: skip
    shape = x.shape
    x, m, h = x.reshape(-1), m.reshape(-1), h.reshape(-1)
    chosen = _whole_groups(kind, x != 0)
    y = _on_face(kind, chosen, x, m, h, eta)
    for _ in range(2 if calls is None else min(calls, 2)):
        slopes = m + h * (y - x) / eta
        v = constraint.lmo(slopes.reshape(shape)).reshape(-1)
        gap = float(np.vdot(slopes, y - v))
        if enough is not None and gap <= enough:
            break
        better = ~chosen & _beats(kind, slopes, y, chosen)
        if not better.any():
            continue
        chosen = _whole_groups(kind, chosen | better)
        y = _on_face(kind, chosen, x, m, h, eta)
    return y.reshape(shape)


def _whole_groups(kind: _Faces, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    if isinstance(kind, L2Ball):
        return np.ones_like(chosen)
    if not isinstance(kind, GroupBall):
        return chosen
    labels = _labels(kind)
    return (np.bincount(labels, chosen) > 0)[labels]


def _labels(kind: GroupBall) -> NDArray[np.int64]:
    return kind.groups.value.astype(np.int64).reshape(-1)


def _on_face(
    kind: _Faces, chosen: NDArray[np.bool_], x: Vector, m: Vector, h: Vector, eta: float
) -> Vector:
    """The minimiser of Q where the coordinates that are not chosen stay 0."""
    at = np.flatnonzero(chosen)
    y = np.zeros_like(x)
    if not at.size:
        return y
    aim, metric = x[at] - eta * m[at] / h[at], h[at]
    if isinstance(kind, GroupBall):
        labels = np.unique(_labels(kind)[at], return_inverse=True)[1]
        y[at] = projections.group_ball(aim, metric, kind.radius, labels, int(labels.max()) + 1)
    else:
        y[at] = kind.project(aim, metric)
    return y


def _beats(kind: _Faces, slopes: Vector, y: Vector, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Coordinates whose slope is steeper than what the face pays for its bound."""
    if isinstance(kind, KSparse):
        # y is made of sums of vertices: on a face it is there to rounding, never exactly.
        tight = float(np.abs(y).sum()) >= kind.k * kind.radius * (1 - 1e-12)
        between = chosen & (np.abs(y) < kind.radius * (1 - 1e-12))
        price = float(np.abs(slopes[between]).max()) if tight and between.any() else 0.0
        return np.abs(slopes) > price
    price = max(0.0, -float(np.vdot(slopes, y)) / kind.radius)
    if isinstance(kind, GroupBall):
        labels = _labels(kind)
        return (np.sqrt(np.bincount(labels, slopes**2)) > price)[labels]
    if isinstance(kind, Simplex):
        return slopes < float(np.vdot(slopes, y)) / kind.radius
    return (np.abs(slopes) if isinstance(kind, L1Ball) else -slopes) > price


# Hulls of answers -------------------------------------------------------------------------------


def _hull(
    constraint: Constraint, x: Array, m: Array, w: Array, calls: int, enough: float | None
) -> Array:
    """Wolfe's method from x: Q over the affine hull of the points kept, dropping what goes below 0.

    It ends with Q's gap at rounding level, and exactly on polytopes.
    """
    aim = x - m / w
    if constraint.violation(aim) == 0:
        return aim
    eps = 8 * float(np.finfo(x.dtype).eps)
    points, weights = np.zeros((1, x.size), x.dtype), np.ones(1)  # relative to x
    linear, gram = np.zeros(1), np.zeros((1, 1))
    y, best = np.zeros(x.size, x.dtype), math.inf
    flat_m, flat_w = m.reshape(-1), w.reshape(-1)
    for _ in range(calls):
        slopes = flat_m + flat_w * y
        v = (constraint.lmo(slopes.reshape(x.shape)) - x).reshape(-1)
        gap = float(np.vdot(slopes, y - v))
        noise = eps * float(np.abs(slopes) @ (np.abs(y) + np.abs(v) + np.abs(x.reshape(-1))))
        if not gap > max(noise, enough or 0.0):
            break
        if (points == v).all(axis=1).any():  # it is in the hull: rounding is all there is
            break
        image = flat_w * v
        row = points @ image
        gram = np.block([[gram, row[:, None]], [row[None, :], np.array([[v @ image]])]])
        points, linear = np.vstack([points, v]), np.append(linear, flat_m @ v)
        weights = np.append(weights, 0.0)
        weights, kept = _best_weights(gram, linear, weights)
        points, linear, gram = points[kept], linear[kept], gram[np.ix_(kept, kept)]
        y = (weights @ points).astype(x.dtype, copy=False)
        value = float(flat_m @ y + y @ (flat_w * y) / 2)
        if not value < best:
            break
        best = value
    return x + y.reshape(x.shape)


def _best_weights(
    gram: NDArray[Any], linear: NDArray[Any], weights: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The weights >= 0 of sum 1 that minimise <a, G a> / 2 + <linear, a>, and which are kept."""
    kept = np.arange(len(weights))
    for _ in range(4 * len(weights)):
        k = kept.size
        system = np.ones((k + 1, k + 1))
        part = gram[np.ix_(kept, kept)]
        unit = float(np.trace(part)) / k or 1.0
        system[:k, :k], system[k, k] = part / unit, 0.0
        right = np.append(-linear[kept] / unit, 1.0)
        best = np.linalg.lstsq(system, right, rcond=1e-15)[0][:k]
        now = weights[kept]
        if (best > 0).all():
            return best / best.sum(), kept
        down = best <= 0
        shares = np.divide(now, now - best, out=np.full(k, np.inf), where=down & (now > best))
        share = min(1.0, float(shares.min()))
        now = now + share * (best - now)
        now[shares <= share] = 0.0
        fresh = now > 0
        if fresh.all():  # rounding: nothing reached 0
            fresh[int(np.argmin(best))] = False
        weights = weights.copy()
        weights[kept] = np.where(fresh, now, 0.0)
        kept = kept[fresh]
        weights[kept] /= weights[kept].sum()
    return weights[kept], kept
