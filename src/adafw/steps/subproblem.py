"""The subproblem of Template 3 solved: corrective steps on Q over what LMO answers span.

Q(y) = <m, y - x> + ||y - x||^2_H / (2 eta) is separable, and its minimiser over C is the point of C
nearest to x - eta m / h in the norm of H. On sets that are hulls of coordinates or of groups of
them, Q is minimised over the face of the coordinates at hand, those of x and those that beat the
face's own multiplier, as the LMO's answer does: adding coordinates raises the multiplier, so two
calls are all, one that names them and one that certifies. So is an lp ball, whose face of use is
the whole; a product of intervals needs one answer. What is made of sets side by side is solved set
by set. Elsewhere Q is minimised over the hull of x and the answers kept (`hull_of_answers`).
"""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adafw.constraints import (
    Box,
    Columns,
    GroupBall,
    KSparse,
    L1Ball,
    L2Ball,
    LInfBall,
    LpBall,
    Product,
    RMSBall,
    Simplex,
    UnitSimplex,
    projections,
)
from adafw.constraints.base import Constraint
from adafw.constraints.counted import CountedSet
from adafw.constraints.line_balls import LineBall
from adafw.constraints.matrices import as_matrix
from adafw.steps import hull_of_answers
from adafw.typing import Array

Vector = NDArray[np.floating[Any]]


def solve(
    constraint: Constraint, x: Array, m: Array, h: Array, eta: float, calls: int | None,
    enough: float | None = None,
) -> Array:  # fmt: skip
    """argmin over C of Q, to rounding; or what is reached after so many `calls` of the LMO.

    `enough` ends it too, where the Frank-Wolfe gap of Q is at most that.
    """
    if math.isinf(eta):  # Q is linear
        return constraint.lmo(m)
    kind = _by_formula(constraint.bare, x)
    blocks = _blocks(kind, x)
    if blocks is not None:
        return _block_by_block(constraint, blocks, x, m, h, eta, calls, enough)
    if isinstance(kind, LInfBall | Box):
        return _intervals(constraint, x, m, h, eta)
    if isinstance(kind, _Faces):
        return _face(constraint, kind, x, m, h, eta, calls, enough)
    return hull_of_answers.solve(constraint, x, m, h / eta, calls, enough)


#: Balls of an lp norm with formulas of their own, by p.
_CLASSICAL: dict[float, Callable[[float], Constraint]] = {1: L1Ball, 2: L2Ball, math.inf: LInfBall}


def _by_formula(kind: Constraint, x: Array) -> Constraint:
    """The set by the name under which most is known of it."""
    if isinstance(kind, LpBall) and kind.p in _CLASSICAL:
        return _CLASSICAL[kind.p](kind.radius)
    return L2Ball(kind.radius * math.sqrt(x.size)) if isinstance(kind, RMSBall) else kind


# Sets side by side ------------------------------------------------------------------------------

#: Sets, each with the indices of its entries in a flat x, in the shape of its points.
_Blocks: TypeAlias = list[tuple[Constraint, NDArray[np.intp]]]


def _blocks(kind: Constraint, x: Array) -> _Blocks | None:
    """What the set is made of, if it is made of others."""
    at = np.arange(x.size)
    if isinstance(kind, Product):
        return [(block, places) for block, (places,) in kind.parts(at)]
    if isinstance(kind, Columns):
        return [(kind.column, places) for places in at.reshape(x.shape).T]
    if isinstance(kind, LineBall):
        matrix, ball = as_matrix(at.reshape(x.shape), kind.matrix, ""), L2Ball(kind.radius)
        return [(ball, places) for places in (matrix if kind.axis == 0 else matrix.T)]
    return None


def _block_by_block(
    constraint: Constraint, blocks: _Blocks, x: Array, m: Array, h: Array, eta: float,
    calls: int | None, enough: float | None,
) -> Array:  # fmt: skip
    """Set by set; a call of the whole set's LMO is one of each, its gap the sum of theirs."""
    y, most = np.empty(x.size, x.dtype), 0
    share = None if enough is None else enough / len(blocks)
    flat_x, flat_m, flat_h = x.reshape(-1), m.reshape(-1), h.reshape(-1)
    for block, at in blocks:
        counted = CountedSet(block)
        y[at] = solve(counted, flat_x[at], flat_m[at], flat_h[at], eta, calls, share)
        most = max(most, counted.lmo_calls)
    if isinstance(constraint, CountedSet):
        constraint.lmo_calls += most
    return y.reshape(x.shape)


def _intervals(constraint: Constraint, x: Array, m: Array, h: Array, eta: float) -> Array:
    """Each coordinate to its own minimiser on the way to the end that the LMO names."""
    v = constraint.lmo(m)
    return np.clip(x - eta * m / h, np.minimum(x, v), np.maximum(x, v))


# Faces of coordinates ---------------------------------------------------------------------------

_Faces: TypeAlias = L1Ball | Simplex | UnitSimplex | L2Ball | LpBall | GroupBall | KSparse


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
    if isinstance(kind, L2Ball | LpBall):  # round: their only face of use is the whole
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
