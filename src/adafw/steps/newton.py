"""Newton's method on a set: the quadratic model is minimised over the set itself."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw import checks
from adafw.arrays import dot
from adafw.constraints.base import Constraint
from adafw.constraints.flat import FlatSet
from adafw.gradients import Full, GradientEstimator
from adafw.gradients.base import Nothing
from adafw.objectives import MatrixModel
from adafw.objectives.base import FiniteSum
from adafw.objectives.quadratic import Quadratic
from adafw.steps.base import Step
from adafw.steps.corrective.curvature import JointPredictions
from adafw.steps.spectral import SpectralStep, backtrack
from adafw.typing import Array

_CORRECTIVE = 100  # corrective inner steps before projected ones take over, if there are any
_SHORT = 0.1  # a step that has to be cut below this had a model without the curvature it met
_MODELS = 8  # models of one iteration, each with the curvature that the steps before met
_LOOK = 10  # projected inner steps between two looks at the gap of the model


@dataclass(frozen=True)
class NewtonStep(Step[Nothing]):
    """y ~ argmin over C of <g, y - x> + <y - x, H (y - x)> / 2 with H = f's Hessian at x.

    Then x <- x + gamma (y - x), gamma = 1 or less until f descends (Armijo). Where gamma < 0.1, H
    did not know of the curvature on the way (a loss is flat far out): H takes it in, and the model
    is minimised again, up to 8 times. The model's minimiser over the whole space is taken if it
    lies in C, and over an l2 ball it is known. Else the model is minimised until its own gap is a
    tenth of that of f at x, by up to `inner_steps` (K) corrective Frank-Wolfe steps; after 100 of
    them, spectral steps in the metric diag(H) take over if the set has a projection. It is
    Template 3 with a full matrix for the metric and eta = 1. Needs `f.hessian`. O(m n^2) an
    iteration: for up to a few hundred features.
    """

    inner_steps: int = 300

    def __post_init__(self) -> None:
        object.__setattr__(self, "inner_steps", checks.integer(self.inner_steps, "inner_steps", 1))

    def check(self, f: FiniteSum, constraint: Constraint, gradient: GradientEstimator) -> None:
        if not isinstance(gradient, Full):
            raise TypeError(
                f"NewtonStep needs exact gradients, got those of {type(gradient).__name__}."
            )
        joint = isinstance(f, MatrixModel)
        if not f.has_hessian or (len(f.shape or (1,)) != 1 and not joint):
            raise TypeError(
                f"NewtonStep needs an objective with a Hessian, of vectors x, got {f!r}; use a "
                "step of first order, such as SpectralStep()."
            )

    def init(self, x: Array) -> Nothing:
        return {}

    def update(
        self, f: FiniteSum, constraint: Constraint, x: Array, g: Array, t: int, state: Nothing
    ) -> tuple[Array, Nothing]:
        # The next model is worth more than further digits of this one.
        wanted = 0.1 * float(dot(g, x - constraint.lmo(g)))
        flat = constraint if x.ndim == 1 else FlatSet(constraint, x.shape)
        tried: list[Array] = []
        while True:
            model = Quadratic(x.reshape(-1), g.reshape(-1), _hessian(f, x, tried))
            move = self._minimiser(model, flat, wanted) - model.centre
            d = move.reshape(x.shape)
            # A model that descends has <g, d> <= -<d, H d> / 2, whatever rounding leaves of it.
            descent = min(float(dot(g, d)), -float(dot(move, model.matrix @ move)) / 2)
            if not descent < 0:  # x minimises the model, up to rounding
                return x, state
            line = f.along(x, d)
            value = line.value(0.0)
            gamma = backtrack(line, value, value, descent, x.dtype)
            if gamma >= _SHORT or len(tried) == _MODELS - 1:
                return x + gamma * d, state
            tried.append(d)

    def _minimiser(self, model: Quadratic, constraint: Constraint, wanted: float) -> Array:
        """A point whose gap on the model is at most `wanted`, or the last one tried."""
        y = _unconstrained(model)
        if constraint.violation(y) == 0 and _gap(model, constraint, y) <= wanted:
            return y
        known = constraint.minimise_quadratic(model.centre, model.linear, model.matrix)
        if known is not None and _gap(model, constraint, known) <= wanted:
            return known
        cycles = self.inner_steps if constraint.projection is None else _CORRECTIVE
        y, done = _corrective(model, constraint, model.centre, wanted, cycles)
        if not done and constraint.projection is not None:
            y = _projected(model, constraint, y, wanted, self.inner_steps)
        return y

    @property
    def most_lmo_calls(self) -> int:
        return 1 + _MODELS * (2 + _CORRECTIVE + self.inner_steps)


def _hessian(f: FiniteSum, x: Array, tried: list[Array]) -> NDArray[Any]:
    """That of f at x; of several outputs, column by column from its products."""
    if not isinstance(f, MatrixModel):
        return np.asarray(f.hessian(x, tried))
    seen = JointPredictions(f, flat=True)
    moves = [seen.predict(d) for d in tried]
    h = seen.hessian(seen.predictions(x), np.ones(x.size, x.dtype), moves)
    matrix = np.column_stack([h.product(unit)[0] for unit in np.eye(x.size, dtype=x.dtype)])
    return (matrix + matrix.T) / 2


def _gap(model: Quadratic, constraint: Constraint, y: Array) -> float:
    slope = model.gradient(y)
    return float(dot(slope, y - constraint.lmo(slope)))


def _unconstrained(model: Quadratic) -> Array:
    """The minimiser over the whole space; of several, the shortest step in units of diag(H).

    Directions of hardly any curvature are left out: what they are is a matter of rounding.
    """
    bend = np.diagonal(model.matrix)
    unit = 1 / np.sqrt(np.where(bend > 0, bend, 1.0))
    try:
        sizes, basis = np.linalg.eigh(unit[:, None] * model.matrix * unit)
    except np.linalg.LinAlgError:
        return np.full_like(model.centre, np.nan)
    kept = sizes > 1e-9 * max(float(sizes[-1]), 1e-300)
    basis = basis[:, kept]
    return model.centre - unit * (basis @ ((basis.T @ (unit * model.linear)) / sizes[kept]))


def _projected(
    model: Quadratic, constraint: Constraint, y: Array, wanted: float, steps: int
) -> Array:
    """Spectral steps on the model from y, until its gap is as wanted."""
    scale = None
    bend = np.diagonal(model.matrix)
    if constraint.projection == "metric" and bend.max() > 0:
        # A column without curvature has no slope either, but for rounding: keep that small.
        scale = np.where(bend > 1e-10 * bend.max(), bend, bend.max())
    step = SpectralStep(scale)
    state = step.init(y)
    for k in range(steps):
        if k % _LOOK == 0 and _gap(model, constraint, y) <= wanted:
            break
        slope = model.gradient(y)
        before = y
        y, state = step.update(model, constraint, y, slope, k, state)
        if y is before:
            break
    return y


def _corrective(
    model: Quadratic, constraint: Constraint, y: Array, wanted: float, cycles: int
) -> tuple[Array, bool]:
    """Fully corrective Frank-Wolfe: the model minimised over the hull of y and all LMO points.

    Wolfe (1976): solve for the weights with sum 1, and where one would turn negative, go as far
    as all stay positive and drop that point. Returns y and whether its gap is as wanted.
    """
    points, weights = y[:, None], np.ones(1, y.dtype)
    images = (model.matrix @ y)[:, None]
    linear = model.linear - model.matrix @ model.centre
    for _ in range(cycles):
        slope = images @ weights + linear
        v = constraint.lmo(slope)
        if not float(dot(slope, y - v)) > wanted:
            return y, True
        if (points == v[:, None]).all(axis=0).any():  # it is in the hull: rounding is all there is
            return y, True
        points = np.column_stack([points, v])
        images = np.column_stack([images, model.matrix @ v])
        weights, kept = _best_weights(points, images, linear, np.append(weights, 0))
        points, images = points[:, kept], images[:, kept]
        y = points @ weights
    return y, False


def _best_weights(
    points: NDArray[Any], images: NDArray[Any], linear: Array, weights: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Weights >= 0 of sum 1 that minimise the model over the hull, and which points they keep."""
    gram, kept = points.T @ images, np.arange(len(weights))
    while True:
        slopes = points[:, kept].T @ (images[:, kept] @ weights + linear)
        move = _affine(gram[np.ix_(kept, kept)], slopes)
        if not np.isfinite(move).all():  # the model cannot tell the points apart at all
            return weights, kept
        best = weights + move
        if best.min() > 0 or len(kept) == 1:
            return best / best.sum(), kept
        falling = best <= 0
        # A weight that is 0 and stays 0 is the first to go: 0 / 0 must not be formed.
        reach = weights[falling] / np.maximum(-move[falling], 1e-300)
        weights = weights + min(1.0, float(reach.min())) * move
        # Smaller ones are what rounding leaves of weights that have reached 0.
        keep = weights > 1e-14
        keep[falling.nonzero()[0][reach.argmin()]] = False
        weights, kept = weights[keep] / weights[keep].sum(), kept[keep]


def _affine(gram: NDArray[Any], slopes: NDArray[Any]) -> NDArray[Any]:
    """The minimiser of <w, G w> / 2 + <slopes, w> over all w of sum 0.

    Solved in units of its own, as G may be 1e-300 of the slopes: then w is a direction, long
    enough to leave the hull.
    """
    k, tilt = len(slopes), slopes - slopes.mean()
    size, steep = float(np.trace(gram)) / k, float(np.abs(tilt).max())
    if not steep > 0:
        return np.zeros_like(tilt)
    system = np.ones((k + 1, k + 1), gram.dtype)
    system[k, k] = 0
    # The ridge keeps points that the model cannot tell apart from spoiling the solution.
    system[:k, :k] = (gram / size if size > 0 else 0 * gram) + 1e-12 * np.eye(k)
    try:
        solution = np.linalg.solve(system, np.append(-tilt / steep, 0))[:k]
    except np.linalg.LinAlgError:
        return np.full(k, np.nan, gram.dtype)
    # Beyond any hull, and still finite when it is multiplied by entries of points.
    length = min(steep / size, 1e200) if size > 0 else 1e200
    return np.asarray((solution - solution.mean()) * length)
