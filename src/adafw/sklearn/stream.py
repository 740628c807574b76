"""Learning from a stream: every row is met once, nothing of it is kept."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.algorithm import Algorithm
from adafw.algorithms import AdaGrad, AdaSFW
from adafw.fitting import Design, Plan
from adafw.fitting.choice import search
from adafw.objectives import LinearModel, MatrixModel, WithIntercept
from adafw.typing import Array, StateDict

#: Rows of a minibatch at most.
_BATCH = 64


@dataclass(frozen=True)
class Stream:
    """Coefficients and intercept, and AdaGrad's memory of the gradients so far.

    Minibatches of at most 64 rows in random order: a projected or projection-free adaptive step
    for the coefficients, an AdaGrad step of the same learning rate for the intercept. Of a model
    fitted jointly, coefficients are a matrix and intercepts a vector.
    """

    coef: NDArray[Any]
    intercept: float | Array
    algorithm: Algorithm
    learning_rate: float
    step: StateDict
    squares: float | Array = 0.0  # of the derivatives in the intercept
    t: int = 0

    @classmethod
    def begin(
        cls,
        design: Design,
        y: NDArray[Any],
        plan: Plan,
        coef: NDArray[Any] | None,
        intercept: float | Array,
    ) -> "Stream":
        """At given coefficients or the set's start; the learning rate is searched on these rows."""
        constraint, rows = plan.constraint, design.rows
        if coef is None:
            shape = (*rows.shape[1:], plan.outputs) if plan.outputs else rows.shape[1:]
            coef = constraint.start(shape, rows.dtype)

        def make(learning_rate: float) -> Algorithm:
            if constraint.projection == "metric":
                return AdaGrad(learning_rate, batch_size=_BATCH)
            return AdaSFW(learning_rate, batch_size=_BATCH)

        rate = plan.settings.learning_rate
        if rate == "auto":
            seconds = plan.settings.max_seconds
            limit = math.inf if seconds is None else seconds
            f = design.risk(y, plan.loss, False, plan.outputs or None).f
            rate = search(f, constraint, make, limit)
        algorithm = make(float(rate))
        return cls(coef, intercept, algorithm, float(rate), algorithm.step.init(coef))

    def advance(self, design: Design, y: NDArray[Any], plan: Plan) -> "Stream":
        """One pass over the rows."""
        s, weight = self, design.weights
        order = np.random.default_rng([plan.settings.seed, s.t]).permutation(len(y))
        mean_weight = 1.0 if weight is None else float(weight.mean())
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            w = None if weight is None else weight[batch]
            if w is not None and not w.any():
                continue
            # A batch of heavier rows counts for more than one of lighter rows.
            share = 1.0 if w is None else float(w.mean()) / mean_weight
            part = Design._of(design.rows.take(batch), design)
            part.weights = w
            model = part.risk(y[batch], plan.loss, False, plan.outputs or None).f
            s = s._step(model, share, plan)
        return s

    def _step(
        self, model: LinearModel | WithIntercept | MatrixModel, share: float, plan: Plan
    ) -> "Stream":
        joint, rows = isinstance(model, MatrixModel), model.rows
        z = (rows.dot_matrix if joint else rows.dot)(self.coef) + self.intercept
        slopes = model.slopes_at(z)
        g = (rows.combine_matrix if joint else rows.combine)(slopes * (share / model.n_terms))
        coef, step = self.algorithm.step.update(
            model, plan.constraint, self.coef, g, self.t, dict(self.step)
        )
        intercept, squares = self.intercept, self.squares
        if plan.settings.fit_intercept:
            derivative = share * slopes.mean(axis=0, dtype=np.float64)
            squares = squares + derivative**2
            intercept = intercept - self.learning_rate * derivative / (1e-8 + np.sqrt(squares))
        return replace(
            self, coef=coef, step=step, intercept=intercept, squares=squares, t=self.t + 1
        )
