"""Which combinations have a fast path."""

from collections.abc import Callable
from typing import Any, TypeAlias

from adafw.algorithms import Algorithm
from adafw.fused import lazy, linear, problem
from adafw.gradients import CSFW
from adafw.objectives import WithIntercept
from adafw.solver import State

#: The signature of solver.run.
Run: TypeAlias = Callable[..., State]

#: Features per non-zero of a batch from which the lazy path is the faster one: measured.
_CROSSOVER = 10

PATHS = ("auto", "generic", "fused", "lazy")


def find(f: Any, constraint: Any, algorithm: Algorithm, path: str = "auto") -> Run | None:
    """The fast run for this problem, or None if solver.run has to do it."""
    if path not in PATHS:
        raise ValueError(f"path must be one of {', '.join(PATHS)}, got {path!r}.")
    known = problem.is_linear(f) and problem.is_known(constraint, algorithm)
    if known and type(f) is WithIntercept and type(algorithm.gradient) is not CSFW:
        known = False  # at a snapshot the intercept is the best one, at a batch the last one set
    loose = known and problem.is_sparse_l1(f, constraint, algorithm)
    if path == "generic" or (path == "auto" and not known):
        return None
    if path == "lazy" and loose:
        return lazy.run
    if path == "auto" and loose and _is_wide(f, algorithm):
        return lazy.run
    if path != "lazy" and known:
        return linear.run
    raise ValueError(
        f"there is no {path} path for {algorithm} on {f!r} over {constraint!r}; leave path out, "
        "or give path='generic'."
    )


def _is_wide(f: Any, algorithm: Any) -> bool:
    """Whether n is so large against the non-zeros of a batch that a pass over n is the dearer."""
    m, n = f.rows.shape
    touched = f.rows.matrix.nnz / m * algorithm.gradient.batch_size(1, m)
    return bool(n > _CROSSOVER * touched)
