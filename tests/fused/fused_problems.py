"""Random problems with everything that is awkward for a fast path."""

import numpy as np
from scipy import sparse

from adafw import LinearModel, State, losses, solver
from adafw.random import as_source

LOSSES = {
    "squared": losses.Squared(),
    "logistic": losses.Logistic(),
    "hinge": losses.SquaredHinge(),
}


def linear_model(
    m, n, seed=0, loss="logistic", kind="csr", dtype=np.float64, weighted=False, density=0.3
):
    """Continuous data, with empty rows and all-zero columns where there is room for them."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, n)) * (rng.random((m, n)) < density)
    if m > 2:
        A[rng.integers(0, m, 1 + m // 10)] = 0
    if n > 2:
        A[:, rng.integers(0, n, 1 + n // 10)] = 0
    target = A @ rng.standard_normal(n) + 0.5 * rng.standard_normal(m)
    y = target if loss == "squared" else np.where(target > 0, 1.0, -1.0)
    weight = rng.random(m) + 0.1 if weighted else None
    data = A.astype(dtype)
    return LinearModel(sparse.csr_array(data) if kind == "csr" else data, y, LOSSES[loss], weight)


def fresh(f, constraint, algorithm, seed=0) -> State:
    """A state at the set's own start."""
    x = constraint.start(f.shape, f.dtype)
    return solver.start(f, constraint, algorithm, x, as_source(seed))


def after(run, f, constraint, algorithm, stretches, seed=0) -> State:
    """The state after runs of these lengths, one after the other."""
    s = fresh(f, constraint, algorithm, seed)
    for n in stretches:
        run(f, constraint, algorithm, s, n)
    return s


def same_bits(a: State, b: State) -> bool:
    """Whether two states agree in every bit, clocks and traces aside."""
    one, two = a.to_arrays(), b.to_arrays()
    skip = {"records", "cpu_seconds", "wall_seconds"}
    return one.keys() == two.keys() and all(
        one[k].tobytes() == two[k].tobytes() for k in one.keys() - skip
    )


def same_counts(a: State, b: State) -> bool:
    """Whether textbook counts and the index stream agree."""
    names = ("t", "gradient_evaluations", "lmo_calls", "projections")
    return all(getattr(a, k) == getattr(b, k) for k in names) and np.array_equal(a.rng, b.rng)
