"""A run by the best exact method at hand, which is not compared: it proves how low f can get."""

from collections.abc import Mapping

from adafw.algorithm import Algorithm
from adafw.constraints.base import Constraint
from adafw.experiments.convex.case import LinearMethod
from adafw.fitting import Design
from adafw.fitting.choice import exact
from adafw.objectives import LinearModel
from adafw.typing import Json, JsonTable

#: Stands for the run where entries of the experiment's file stand for theirs.
REFERENCE_METHOD = LinearMethod("reference", {"name": "FW"}, "not compared: the lower bound")
_SECONDS, _GAP = 10.0, 1e-12


def budget_of(runs: Mapping[str, Json]) -> JsonTable:
    """As much CPU time as a compared run, or less if the minimum is known to rounding."""
    return {"max_cpu_seconds": runs.get("max_cpu_seconds", _SECONDS), "gap_tolerance": _GAP}


def best_algorithm(f: LinearModel, constraint: Constraint) -> Algorithm:
    """What a fit with exact gradients would use."""
    return exact(Design(f.rows, f.sample_weight), constraint, f.has_hessian)
