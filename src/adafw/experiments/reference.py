"""A run by the best exact method at hand, which is not compared: it proves how low f can get."""

from typing import Any

import numpy as np

from adafw.algorithms import FW, Algorithm
from adafw.constraints.base import Constraint
from adafw.experiments.spec import AlgorithmSpec
from adafw.fitting.choice import NEWTON_FEATURES, NEWTON_WORK
from adafw.fitting.problem import Problem as Fitted
from adafw.gradients import Full
from adafw.objectives import LinearModel
from adafw.steps import LineSearch, NewtonStep, SpectralStep

#: Stands for the run where lines of the experiment's file stand for theirs.
REFERENCE = AlgorithmSpec("reference", {"name": "FW"}, "not compared: the lower bound")
_SECONDS, _GAP = 10.0, 1e-12


def budget_of(runs: dict[str, Any]) -> dict[str, Any]:
    """As much CPU time as a compared run, or less if the minimum is known to rounding."""
    return {"max_cpu_seconds": runs.get("max_cpu_seconds", _SECONDS), "gap_tolerance": _GAP}


def best_algorithm(f: LinearModel, constraint: Constraint) -> Algorithm:
    """Newton steps for few features, else spectral ones, else Frank-Wolfe with line search."""
    vectors = len(f.rows.shape) == 2
    n = f.rows.shape[1]
    if vectors and n <= NEWTON_FEATURES and f.rows.stored * n <= NEWTON_WORK:
        return Algorithm(Full(), NewtonStep(), "Newton")
    if constraint.projection is None:
        return FW(LineSearch())
    scale = None
    if vectors and constraint.projection == "metric":
        scale = Fitted(f, lambda x: 0.0, f.rows, np.ones(f.rows.shape[0])).scale()
    return Algorithm(Full(), SpectralStep(scale), "Spectral")
