"""Which combinations have a fast path."""

from collections.abc import Callable
from typing import Any, TypeAlias

from adafw.algorithms import Algorithm
from adafw.constraints.base import Constraint
from adafw.fused import linear, problem
from adafw.objectives.base import FiniteSum
from adafw.solver import State

#: The signature of solver.run.
Run: TypeAlias = Callable[[FiniteSum, Constraint, Algorithm, State, int], State]

PATHS = ("auto", "generic", "fused", "lazy")


def find(f: Any, constraint: Any, algorithm: Algorithm, path: str = "auto") -> Run | None:
    """The fast run for this problem, or None if there is none and solver.run has to do it."""
    if path not in PATHS:
        raise ValueError(f"path must be one of {', '.join(PATHS)}, got {path!r}.")
    if path != "generic" and problem.is_linear(f) and problem.is_known(constraint, algorithm):
        return linear.run
    if path in ("fused", "lazy"):
        raise ValueError(
            f"there is no {path} path for {algorithm} on {f!r} over {constraint!r}; "
            "leave path out, or use path='generic'."
        )
    return None
