"""Which code runs the iterations: the one loop, or a fast path where one knows the problem."""

from collections.abc import Callable, Sequence

import numpy as np

from adafw import solver
from adafw.algorithm import Algorithm
from adafw.constraints.base import Constraint
from adafw.objectives.base import FiniteSum
from adafw.solver import FastPath, State

#: Kinds of data whose products are compiled in this process.
_COMPILED: set[tuple[object, ...]] = set()
NAMES = ("auto", "generic", "fused", "lazy")


class Generic:
    """The one loop, which knows every problem."""

    name = "generic"

    def fits(self, f: FiniteSum, constraint: Constraint, algorithm: Algorithm) -> bool:
        return True

    def pays(self, f: FiniteSum, constraint: Constraint, algorithm: Algorithm) -> bool:
        return True

    def prepare(self, f: FiniteSum, constraint: Constraint, algorithm: Algorithm, s: State) -> None:
        """Compiles the products and passes over long vectors that an iteration asks for."""
        s.workspace = {}  # of another path, and out of date after the first iteration
        _warm_up(f)
        algorithm.step.prepare(f, constraint, s.x, s.step)

    def run(
        self, f: FiniteSum, constraint: Constraint, algorithm: Algorithm, s: State, n: int,
        stop: Callable[[], bool] = lambda: False,
    ) -> State:  # fmt: skip
        return solver.run(f, constraint, algorithm, s, n, stop)


def find(
    f: FiniteSum, constraint: Constraint, algorithm: Algorithm, name: str = "auto"
) -> FastPath:
    """The path of that name for this problem; the fastest one if it is "auto"."""
    if name not in NAMES:
        raise ValueError(f"path must be one of {', '.join(NAMES)}, got {name!r}.")
    known = [*fast_paths(), Generic()]
    for path in known:
        wanted = path.pays if name == "auto" else lambda *_, path=path: path.name == name
        if path.fits(f, constraint, algorithm) and wanted(f, constraint, algorithm):
            return path
    if len(known) == 1:
        raise ValueError(
            f"there is no {name} path, as adafw.fused cannot be imported; leave path out, or give "
            "path='generic'."
        )
    raise ValueError(
        f"there is no {name} path for {algorithm} on {f!r} over {constraint!r}; leave path out, "
        "or give path='generic'."
    )


def fast_paths() -> Sequence[FastPath]:
    """All there are, in the order in which they are tried; none if the folder is missing."""
    try:
        from adafw.fused import PATHS
    except ImportError as missing:
        if missing.name != "adafw.fused":  # it is there, and something else is not
            raise
        return ()
    return PATHS


def _warm_up(f: FiniteSum) -> None:
    from adafw.objectives import LinearModel, WithIntercept
    from adafw.objectives.kinds import model_of

    if type(f) is not LinearModel and type(f) is not WithIntercept:
        return
    kind = (type(f), f.rows.kind, type(model_of(f).loss), f.dtype)
    if kind in _COMPILED and not f.remote:
        return
    first, zero = np.zeros(1, np.int64), np.zeros(f.rows.shape[1:], f.dtype)
    f.combine(f.slopes(zero, first), first)
    _COMPILED.add(kind)
