"""Corrective steps on the l1 ball and the simplices: atoms are signed coordinates."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.constraints import L1Ball, Simplex, UnitSimplex
from adafw.constraints.base import Constraint
from adafw.objectives import LinearModel, WithIntercept
from adafw.objectives.base import FiniteSum
from adafw.steps.corrective.descent import SETTLED, Working, descent
from adafw.steps.corrective.newton import Gram, Weights, newton_steps
from adafw.steps.corrective.point import Point, Vector, largest_entries
from adafw.typing import Array

#: Atoms up to which the Hessian is a matrix, and its multiplications.
MOST_ATOMS, MOST_WORK = 500, 1e9
#: Atoms that join at least, and how many times those that are there at most.
FIRST, GROWTH = 32, 1.0
#: The price on weight, as a share of the largest slope left out, and how far it falls at a time.
PRICE, FALL = 0.3, 0.25


@dataclass(frozen=True)
class _Shape:
    """sum |x| <= radius, all x >= 0 unless `signed`, = radius unless `open`."""

    radius: float
    signed: bool
    open: bool


class AtomCorrector:
    """min f over the hull of radius * (+- e_j) for j in a working set, which grows.

    The atoms that the gradient names are those with the steepest slopes: the linear minimiser is
    the first of them. On up to 500 atoms f is minimised by Newton steps whose models are solved by
    pairwise steps (`newton`), on more by coordinate descent on its model (`descent`).
    """

    def fits(self, f: FiniteSum, constraint: Constraint) -> bool:
        return isinstance(f, LinearModel | WithIntercept) and _shape(constraint) is not None

    def init(self, x: Array) -> dict[str, Any]:
        return {}

    def improve(
        self, f: Any, constraint: Constraint, x: Array, g: Array, t: int, state: dict[str, Any]
    ) -> tuple[Array, dict[str, Any]]:
        shape = _shape(constraint)
        assert shape is not None
        g = g.astype(np.float64, copy=False)
        gap = float(g @ (x - constraint.lmo(g)))
        if not gap > 0:
            return x, state
        support = np.flatnonzero(x)
        norm = float(np.abs(x[support]).sum())
        slack = max(0.0, shape.radius - norm) if shape.open else 0.0
        if slack <= 1e-9 * shape.radius:
            slack = 0.0
        # A step that was cut short leaves some slack, though the set binds.
        bound = slack == 0.0 or (bool(state.get("bound")) and slack < 0.1 * shape.radius)
        level = float(state.get("level", -1.0))
        if state.get("norm", -1.0) > 0.99 * norm:
            level = 0.0  # weight no longer grows: the set does not bind, and nothing must cost
        fresh, price = _steepest(shape, x, g, support, bound, level)
        note = {"level": price, "norm": norm, "bound": int(bound)}
        chosen = np.sort(np.concatenate([support, fresh]))
        if not fresh.size and np.isin(support, state.get("chosen", support)).all():
            chosen = state.get("chosen", chosen)  # its Gram matrix is at hand
        point = Point(f, x)
        w = x[chosen].astype(np.float64)
        if chosen.size <= MOST_ATOMS:
            working = f.rows.working(chosen)
            if working.work <= MOST_WORK:
                signs = np.where(w != 0, np.sign(w), -np.sign(g[chosen])) if shape.signed else 1.0
                signs = np.where(signs == 0, 1.0, signs) * np.ones(chosen.size)
                atoms = Weights(signs, np.abs(w), slack, shape.open, price)
                gram = Gram(working, chosen, state)
                few = fresh.size > 0
                newton_steps(point, gram, atoms, gap, 2 if few else 6, 3e-2 if few else 3e-3)
                return _placed(x, chosen, atoms.signs * atoms.u, shape), {**note, **gram.save()}
        calm = bool(state.get("calm")) and fresh.size <= SETTLED * support.size
        at = Working(
            f.rows, chosen, w, g[chosen], shape.radius, shape.signed, bound, price, calm, t
        )
        w, bound, calm = descent(at, point)
        return _placed(x, chosen, w, shape), {**note, "bound": int(bound), "calm": int(calm)}


def _shape(constraint: Constraint) -> _Shape | None:
    ball = constraint.bare
    if type(ball) is L1Ball:
        return _Shape(ball.radius, signed=True, open=True)
    if type(ball) is UnitSimplex:
        return _Shape(ball.radius, signed=False, open=True)
    if type(ball) is Simplex:
        return _Shape(ball.radius, signed=False, open=False)
    return None


def _steepest(
    shape: _Shape, x: Array, g: Vector, support: NDArray[np.int64], bound: bool, level: float
) -> tuple[NDArray[np.int64], float]:
    """(atoms that join, price on weight): the steepest beyond what those in use have on average.

    While the set does not bind, weight has a price, which falls to a quarter an iteration at most
    and stays near the steepest slope left out: without it, f would be minimised over few atoms with
    weights far too large.
    """
    steep = np.abs(g) if shape.signed else -g
    if bound:
        level = 0.0
    else:
        level = FALL * (float(steep.max()) if level < 0 else min(level, float(steep.max())))
    multiplier = -float(g[support] @ x[support]) / shape.radius
    if shape.open:
        multiplier = max(multiplier, level)
    steep[support] = -np.inf
    wanted = np.flatnonzero(steep > multiplier)
    most = max(FIRST, int(GROWTH * support.size))
    if support.size > MOST_ATOMS / 2:
        most *= 4
    if wanted.size <= most:
        return wanted, level
    kept = largest_entries(steep[wanted], most)
    others = float(np.delete(steep[wanted], kept).max())
    return wanted[kept], 0.0 if bound else max(level, PRICE * others)


def _placed(x: Array, chosen: NDArray[np.int64], w: Vector, shape: _Shape) -> Array:
    """x with these entries, inside the set to the last digit."""
    norm = float(np.abs(w).sum())
    if norm > shape.radius or (not shape.open and norm > 0):
        w = w * (shape.radius / norm)
    new = np.zeros_like(x)
    new[chosen] = w
    return new
