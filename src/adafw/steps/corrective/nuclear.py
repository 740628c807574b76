"""The nuclear ball: second-order steps on the factors of x, which grow by singular vectors."""

import math
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from adafw.constraints.base import Constraint
from adafw.constraints.counted import CountedSet
from adafw.constraints.nuclear_ball import NuclearBall
from adafw.objectives import MatrixModel
from adafw.objectives.base import FiniteSum
from adafw.objectives.kinds import Predicting
from adafw.steps.corrective.base import Corrector, Memory
from adafw.steps.corrective.conjugate import Solution, solve
from adafw.steps.corrective.factors import (
    Factored,
    FactoredView,
    JointFactored,
    as_factors,
    balanced,
    leading,
)
from adafw.typing import Array, MatrixLike

Matrix = NDArray[Any]
#: Factors, predictions, and the values before and after.
Moved: TypeAlias = tuple[Matrix, Matrix, Matrix, tuple[float, float]]

PAIRS = 4  # singular pairs that join an iteration, at most
_STEPS = 5  # Newton steps of one iteration
_ENOUGH = 1e-3  # share of what an iteration gained: steps that gain less leave it to new pairs
_BETTER = 3.0  # times as far as it has to lead down to be taken for one that goes on
_LIMIT = 60  # steps of conjugate gradients a Newton step
LARGE = 1e7  # entries of x from where on singular pairs may lie on a few of them


class NuclearCorrector(Corrector[Predicting]):
    """NuclearBall: x = L R^T, and (||L||^2 + ||R||^2) / 2 <= radius says that x is in the ball.

    The gradient's leading singular pairs join the factors by a Frank-Wolfe step; then f(L R^T) is
    minimised over both factors by Newton steps on the l2 ball that they lie in, so that the
    singular vectors move as well as the values. No local minimum is worse than the global one once
    the gap, which is of the convex problem, is 0 (Burer and Monteiro 2003; Recht, Fazel, Parrilo
    2010). O(entries * rank) a product for `MatrixCompletion`. State: the factors.
    """

    sets: tuple[type, ...] = (NuclearBall,)
    rehearsed = True

    def fits(self, f: FiniteSum, constraint: Constraint) -> bool:
        known = isinstance(f, Predicting) and f.has_hessian
        return known and isinstance(constraint.bare, self.sets)

    def prepare(self, f: Predicting, x: Array, state: Memory) -> None:
        """Nothing is kept beside the state."""

    def init(self, x: Array) -> Memory:
        return {}

    def improve(
        self, f: Predicting, constraint: Constraint, x: Array, g: Array, t: int, state: Memory
    ) -> tuple[Array, Memory]:
        ball = cast(NuclearBall, constraint.bare)
        shape = x.shape if ball.matrix is None else ball.matrix
        left, right = (
            (state["left"], state["right"]) if state else as_factors(x.reshape(shape), ball.radius)
        )
        seen = JointFactored(f) if isinstance(f, MatrixModel) else Factored(f, shape)
        if isinstance(constraint, CountedSet):
            constraint.lmo_calls += 1  # the singular pairs that join
        left, right = improved(seen, left, right, ball.radius)
        return (left @ right.T).astype(x.dtype).reshape(x.shape), {"left": left, "right": right}


def improved(
    seen: FactoredView, left: Matrix, right: Matrix, radius: float,
    pairs: tuple[Matrix, Matrix, Matrix] | None = None,
) -> tuple[Matrix, Matrix]:  # fmt: skip
    """Factors of a point of lower value: one iteration, without the matrix they stand for.

    `pairs` are the leading singular pairs of the gradient, where they are known.
    """
    z = seen.predict(left, right)
    slopes = seen.matrix(seen.slopes(z))
    if pairs is None:
        pairs = leading(slopes, min(PAIRS, *slopes.shape))
    start = seen.value(z)
    left, right, z = _joined(seen, left, right, z, slopes, radius, pairs)
    for _ in range(_STEPS):
        there = _newton_step(seen, left, right, z, radius)
        if there is None:
            break
        left, right, z, (before, after) = there
        noise = 4 * float(np.finfo(z.dtype).eps) * abs(before)
        if before - after <= max(noise, _ENOUGH * (start - before)):
            break
    return balanced(left, right, radius)


def _joined(
    seen: FactoredView, left: Matrix, right: Matrix, z: Matrix, slopes: MatrixLike, radius: float,
    pairs: tuple[Matrix, Matrix, Matrix],
) -> tuple[Matrix, Matrix, Matrix]:  # fmt: skip
    """x moved towards radius * sum_i p_i u_i v_i^T, pairs (u, v) of -slopes steeper than x pays."""
    u, s, v = pairs
    price = -float(np.vdot(slopes @ right, left)) / radius
    gain = np.maximum(s - max(price, 0.0), 0.0)
    gain[gain < 1e-3 * gain[0]] = 0.0
    if not gain[0] > 0:
        return left, right, z
    u, v, gain = u[:, gain > 0], v[:, gain > 0], gain[gain > 0]
    weight = gain
    if u.shape[0] * v.shape[0] > LARGE:
        # By how far each would go alone: one on a few entries bends more than one on all, and with
        # the same share it would put numbers on them that are hard to get away again.
        bends = np.einsum("ij,ij->j", u**2, seen.diagonals(seen.bends(z), u, v)[0])
        weight = gain / np.maximum(bends, 1e-8 * float(bends.max()) or 1.0)
    share = np.sqrt(radius * weight / weight.sum())
    new_left, new_right = -u * share, v * share
    move = seen.predict(new_left, new_right) - z
    gamma = _line(seen, z, move, seen.value(z), float(np.vdot(seen.slopes(z), move)))
    if gamma == 0:
        return left, right, z
    a, b = math.sqrt(1 - gamma), math.sqrt(gamma)
    return (
        np.hstack([a * left, b * new_left]),
        np.hstack([a * right, b * new_right]),
        z + gamma * move,
    )


def _line(seen: FactoredView, z: Matrix, move: Matrix, value: float, slope: float) -> float:
    """gamma in [0, 1] by parabolas until f descends."""
    if not slope < 0:
        return 0.0
    gamma = 1.0
    for _ in range(60):
        new = seen.value(z + gamma * move)
        bend = new - value - gamma * slope
        best = -slope * gamma**2 / (2 * bend) if math.isfinite(bend) and bend > 0 else gamma
        # The minimiser of the parabola, which is that of f for the squared loss.
        if new <= value + 0.3 * gamma * slope:
            return gamma
        gamma = min(max(best, 0.1 * gamma), 0.9 * gamma)
    return 0.0


def _down(
    seen: FactoredView, both: Matrix, p: int, d: Matrix, promise: float, radius: float, value: float
) -> Moved | None:
    """The factors moved along d, by half of it and so on until f descends, and back to the ball."""
    gamma, noise = 1.0, 4 * float(np.finfo(both.dtype).eps) * abs(value)
    for _ in range(40):
        end = both + gamma * d
        end *= min(1.0, math.sqrt(2 * radius) / float(np.linalg.norm(end)))
        z = seen.predict(end[:p], end[p:])
        new = seen.value(z)
        if new <= value + 1e-4 * gamma * promise + noise:
            return end[:p], end[p:], z, (value, new)
        gamma /= 2
    return None


def _newton_step(
    seen: FactoredView, left: Matrix, right: Matrix, z: Matrix, radius: float
) -> Moved | None:
    """A Newton step on the ball ||L||^2 + ||R||^2 <= 2 radius; None where there is no way down.

    Factors, predictions and the values before and after it.
    """
    k, p = left.shape[1], left.shape[0]
    if k == 0:
        return None
    both = np.vstack([left, right])
    value, slopes = seen.value(z), seen.matrix(seen.slopes(z))
    g = np.vstack([slopes @ right, slopes.T @ left])
    bent = seen.bending(bend := seen.bends(z))
    norm2, along = float(np.vdot(both, both)), -float(np.vdot(g, both))
    bound = norm2 >= 2 * radius * (1 - 1e-10) and along > 0
    s = along / norm2 if bound else 0.0
    normal = both / math.sqrt(norm2) if bound else None
    flat = g if normal is None else g - normal * float(np.vdot(normal, g))
    if not np.linalg.norm(flat) > 1e-14 * np.linalg.norm(g):
        return None
    scale = np.vstack(seen.diagonals(bend, left, right)) + s
    # Where losses are flat, all slopes weigh the same.
    scale = np.maximum(scale, 1e-8 * float(scale.max()) or 1.0)
    across = np.zeros(0) if normal is None else normal / scale

    def convex(d: Matrix) -> tuple[Matrix, Matrix]:
        dz = seen.predict(d[:p], right) + seen.predict(left, d[p:])
        second = seen.matrix(bent(dz))
        return np.vstack([second @ right, second.T @ left]) + s * d, dz

    def product(d: Matrix) -> tuple[Matrix, Matrix]:
        image, dz = convex(d)
        return image + np.vstack([slopes @ d[p:], slopes.T @ d[:p]]), dz

    def tangent(r: Matrix) -> Matrix:
        d = r / scale
        if normal is None:
            return d
        return d - across * (float(np.vdot(normal, d)) / float(np.vdot(normal, across)))

    def led(found: Solution) -> Moved | None:
        d = found.d if found.steps and np.vdot(flat, found.d) < 0 else -tangent(g)
        return _down(seen, both, p, d, float(np.vdot(flat, d)), radius, value)

    found = solve(product, -g, tangent, 0.1, _LIMIT)
    there = led(found)
    if found.steps > 1:
        return there
    # Factors are not convex: where that has the say, a step without what makes it so may be better.
    other = led(solve(convex, -g, tangent, 0.1, _LIMIT))
    if there is None or other is None:
        return other or there
    return other if value - other[3][1] > _BETTER * (value - there[3][1]) else there
