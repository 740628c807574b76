"""Local iterations on the rows of one part, as a worker runs them."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from adafw import solver
from adafw.algorithm import Algorithm
from adafw.distributed.typing import Common
from adafw.gradients.base import GradientEstimator, Table, draw
from adafw.objectives import LinearModel
from adafw.objectives.base import FiniteSum
from adafw.random import IndexSource, freeze
from adafw.solver import State
from adafw.typing import Array


@dataclass(frozen=True)
class _FromExact(GradientEstimator[Table]):
    """CSFW's estimate that started at an exact gradient, of more rows than are here."""

    share: float

    def init(self, f: FiniteSum, x: Array) -> Table:
        return {"alpha": np.zeros(f.n_terms, x.dtype), "gradient": np.zeros_like(x)}

    def update(
        self, f: Any, x: Array, t: int, state: Table, rng: IndexSource
    ) -> tuple[Array, Table]:
        batch = np.unique(draw(rng, f.n_terms, math.ceil(self.share * f.n_terms)))
        fresh, change = f.refresh(x, state["alpha"][batch], batch)
        state["gradient"] = state["gradient"] + change
        state["alpha"][batch] = fresh
        return state["gradient"], state

    def evaluations(self, t: int, n_terms: int) -> int:
        return math.ceil(self.share * n_terms)


def run_locally(f: LinearModel, x: Array, common: Common, number: int) -> Array:
    """The point that part `number` reaches: a function of its arguments, so that it can be redone.

    g_t = grad f(x_0) + sum_i (fresh_i - alpha_i) a_i over the part's rows, alpha being their slopes
    at x_0: at x_0 it is the gradient of all rows.
    """
    algorithm = Algorithm(_FromExact(common["share"]), common["step"])
    s = State(
        x=np.array(x),
        t=common["t"],
        gradient={"alpha": f.slopes(x) / f.n_terms, "gradient": common["gradient"]},
        step=common["step"].init(x),
        rng=freeze(np.random.default_rng([common["seed"], common["t"], number])),
    )
    return solver.run(f, common["constraint"], algorithm, s, common["iterations"]).x
