"""A polytope given by linear inequalities, equalities and bounds."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from adafw import arrays
from adafw.arrays import finite
from adafw.constraints import interior_point
from adafw.constraints.base import Constraint, check_order, check_shape, excess, metric_like
from adafw.constraints.linear_rows import dense_rows
from adafw.describe import digest
from adafw.typing import Array, Plain, Shape

#: The tightest tolerances HiGHS takes; costs are scaled to size one, so they are relative ones.
_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True, eq=False, repr=False)
class Polytope(Constraint):
    """{x : A_ub x <= b_ub, A_eq x = b_eq, bounds}, given as to `scipy.optimize.linprog`.

    As there, `bounds` is a pair (low, high) for all coordinates or a sequence of pairs, None
    meaning no bound, and x >= 0 if it is left out. Matrices may be sparse. A set that is empty or
    unbounded is refused.

    lmo: a vertex, by the dual simplex method (HiGHS), exact to 1e-10; `gap` adds what the dual
    solution proves to be missing.
    project: any metric, iterative (interior point), to rounding; about 20 steps of O(m^2 n) for
    m <= n rows, O(m n^2) for more.
    """

    A_ub: Any = None
    b_ub: Any = None
    A_eq: Any = None
    b_eq: Any = None
    bounds: Any = (0, None)
    _first: Any = field(default=None, init=False)
    projection = "metric"

    def __post_init__(self) -> None:
        n = _dimension(self.A_ub, self.A_eq, self.bounds)
        for side in ("ub", "eq"):
            A, b = getattr(self, f"A_{side}"), getattr(self, f"b_{side}")
            A, b = _rows(A, b, n, side)
            object.__setattr__(self, f"A_{side}", A)
            object.__setattr__(self, f"b_{side}", b)
        object.__setattr__(self, "bounds", _bounds(self.bounds, n))
        object.__setattr__(self, "_first", self._solve(np.zeros(n)).x)
        if not np.isfinite(self.bounds).all():
            _check_bounded(self.A_ub, self.A_eq, *self.bounds.T)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.bounds),)

    @cached_property
    def scale(self) -> float:
        """The largest distance of a bounding hyperplane from the origin."""
        distances = [np.abs(self.bounds[np.isfinite(self.bounds)])]
        for A, b in ((self.A_ub, self.b_ub), (self.A_eq, self.b_eq)):
            lengths = _lengths(A)
            distances.append(np.abs(b[lengths > 0]) / lengths[lengths > 0])
        return float(max(d.max(initial=0.0) for d in distances)) or 1.0

    @cached_property
    def box(self) -> NDArray[Any]:
        """The smallest box around the set, a row (low, high) each; 2 n linear programs."""
        ends = np.empty((len(self.bounds), 2))
        for i, unit in enumerate(np.eye(len(ends))):
            ends[i] = self._solve(unit).x[i], self._solve(-unit).x[i]
        return ends

    def _solve(self, cost: NDArray[Any]) -> Any:
        """The linear program, solved; an error that says why, if it cannot be."""
        from scipy.optimize import linprog

        rows = [part if part.shape[0] else None for part in self._parts()]
        result = linprog(cost, *rows, bounds=self.bounds, method="highs-ds", options=_OPTIONS)
        if result.status == 2:
            raise ValueError("a Polytope must not be empty: no point satisfies all constraints.")
        if result.x is None:
            raise RuntimeError(f"HiGHS could not solve the linear program: {result.message}")
        return result

    def _parts(self) -> tuple[Any, Any, Any, Any]:
        return self.A_ub, self.b_ub, self.A_eq, self.b_eq

    def lmo(self, g: Array) -> Array:
        g = finite(g, "g")
        check_shape(g, self.shape, "Polytope")
        cost = arrays.host(g)
        size = np.abs(cost).max()
        v = self._solve(cost / size).x if size > 0 else self._first
        return arrays.like(np.clip(v, *self.bounds.T), g)

    def gap(self, x: Array, g: Array) -> float:
        cost, point = arrays.host(g), arrays.host(x)
        size = np.abs(cost).max()
        if size == 0:
            return 0.0
        result = self._solve(cost / size)
        v = np.clip(result.x, *self.bounds.T)
        missed = max(0.0, float(cost / size @ v) - self._dual_bound(cost / size, result))
        return float(cost @ (point - v)) + size * missed

    def _dual_bound(self, cost: NDArray[Any], result: Any) -> float:
        """A lower bound of <cost, v> over the set, whatever the accuracy of the solution."""
        y_ub = np.minimum(result.ineqlin.marginals, 0.0)
        y_eq = result.eqlin.marginals
        reduced = cost - self.A_ub.T @ y_ub - self.A_eq.T @ y_eq
        ends = self.bounds if np.isfinite(self.bounds).all() else self.box
        rest = np.minimum(reduced * ends[:, 0], reduced * ends[:, 1]).sum()
        return float(self.b_ub @ y_ub + self.b_eq @ y_eq + rest)

    def start(self, shape: Shape, dtype: Any = float) -> Array:
        point = arrays.zeros(shape, dtype)
        check_shape(point, self.shape, "Polytope")
        return arrays.like(np.array(self._first), point)

    def diameter(self, shape: Shape, p: float = 2) -> float:
        """Of the smallest box around the set: exact for p = inf, else an upper bound.

        The diameter itself is the maximum of a convex function, which is NP-hard to find.
        """
        return float(np.linalg.norm(self.box[:, 1] - self.box[:, 0], check_order(p)))

    def violation(self, x: Array) -> float:
        check_shape(x, self.shape, "Polytope")
        point = arrays.host(x)
        if not np.isfinite(point).all():
            return float("nan")
        low, high = self.bounds.T
        worst = max((low - point).max(), (point - high).max())
        over = self.A_ub @ point - self.b_ub
        off = np.abs(self.A_eq @ point - self.b_eq)
        for A, amounts in ((self.A_ub, over), (self.A_eq, off)):
            lengths = _lengths(A)
            worst = max(worst, (amounts / np.where(lengths > 0, lengths, 1.0)).max(initial=0.0))
        return excess(worst, self.scale)

    def project(self, x: Array, h: Array | None = None) -> Array:
        x = finite(x, "x")
        h = metric_like(h, x)
        if self.violation(x) == 0:
            return arrays.copy(x)
        v = arrays.host(x).copy()
        weights = np.ones_like(v) if h is None else arrays.host(h)
        low, high = self.bounds.T
        free = low < high  # an interior point needs room; what has none is put where it must be
        v[~free] = low[~free]
        A = np.vstack([self.A_eq.toarray(), self.A_ub.toarray()])
        b = np.concatenate([self.b_eq, self.b_ub]) - A[:, ~free] @ v[~free]
        inequality = np.arange(len(b)) >= len(self.b_eq)
        if free.any():
            v[free] = interior_point.project(
                v[free], weights[free], low[free], high[free],
                dense_rows(A[:, free], inequality), b, "Polytope",
            )  # fmt: skip
        return arrays.like(v, x)

    def describe(self) -> Plain:
        arrays_of = {"bounds": self.bounds, "b_ub": self.b_ub, "b_eq": self.b_eq}
        for side, A in (("ub", self.A_ub), ("eq", self.A_eq)):
            arrays_of |= {
                f"A_{side}.{part}": getattr(A, part) for part in ("data", "indices", "indptr")
            }
        return {"name": "Polytope"} | {k: digest(a, max(1, a.size)) for k, a in arrays_of.items()}

    def __repr__(self) -> str:
        sizes = f"{len(self.b_ub)} inequalities, {len(self.b_eq)} equalities"
        return f"Polytope({sizes}, n = {len(self.bounds)})"


def _dimension(A_ub: Any, A_eq: Any, bounds: Any) -> int:
    """The number of coordinates, from whichever argument tells it."""
    for A in (A_ub, A_eq):
        if A is not None:
            shape = A.shape if sparse.issparse(A) else np.shape(A)
            if len(shape) != 2 or shape[1] < 1:
                raise ValueError(f"A_ub and A_eq must have two dimensions, got shape {shape}.")
            return int(shape[1])
    if bounds is not None and np.ndim(bounds) == 2:
        return len(bounds)
    raise ValueError("a Polytope needs A_ub, A_eq, or a pair of bounds for every coordinate.")


def _rows(A: Any, b: Any, n: int, side: str) -> tuple[Any, NDArray[Any]]:
    """A as a CSR matrix with n columns, b as a vector with an entry per row."""
    if (A is None) != (b is None):
        raise ValueError(f"A_{side} and b_{side} must be given together.")
    if A is None or np.size(b) == 0:
        return sparse.csr_array((0, n)), np.zeros(0)
    matrix = sparse.csr_array(A, dtype=np.float64, copy=True)
    vector = np.array(finite(b, f"b_{side}"), dtype=np.float64)
    if matrix.shape[1] != n or vector.shape != matrix.shape[:1]:
        raise ValueError(
            f"A_{side} must have {n} columns and b_{side} an entry per row, got shapes "
            f"{matrix.shape} and {vector.shape}."
        )
    if not np.isfinite(matrix.data).all():
        raise ValueError(f"A_{side} must be finite, got NaN or infinity.")
    matrix.sum_duplicates()
    matrix.sort_indices()
    return matrix, vector


def _bounds(bounds: Any, n: int) -> NDArray[Any]:
    """Bounds as rows (low, high), infinite where there is none."""
    pairs = np.array((0, None) if bounds is None else bounds, dtype=object)
    if pairs.shape not in ((2,), (n, 2)):
        raise ValueError(
            f"bounds must be a pair (low, high) or {n} of them, got shape {pairs.shape}."
        )
    pairs = np.broadcast_to(pairs, (n, 2))
    missing = np.array([[end is None for end in pair] for pair in pairs])
    ends = np.where(missing, np.array([-np.inf, np.inf]), pairs).astype(np.float64)
    low, high = ends.T
    if not ((low <= high) & (low < np.inf) & (high > -np.inf)).all():
        raise ValueError("bounds must have low <= high in every pair, and no NaN.")
    ends.flags.writeable = False
    return ends


def _lengths(A: Any) -> NDArray[Any]:
    """l2 norms of the rows."""
    return np.sqrt(np.asarray(A.multiply(A).sum(axis=1)).ravel())


def _check_bounded(A_ub: Any, A_eq: Any, low: NDArray[Any], high: NDArray[Any]) -> None:
    """Refuses a set that contains a ray d: A_ub d <= 0, A_eq d = 0, d = 0 where both ends bind.

    Either some row or bound grows slack along d, which one linear program finds, or none does,
    and d is a line in the coordinates without bounds, which the rank of the rows tells.
    """
    from scipy.optimize import linprog

    ends = np.column_stack([-np.isinf(low).astype(float), np.isinf(high).astype(float)])
    A = [M.multiply(1 / np.where(_lengths(M) > 0, _lengths(M), 1.0)[:, None]) for M in (A_ub, A_eq)]
    slack = ends.sum(axis=1) - np.asarray(A[0].sum(axis=0)).ravel()
    rows = [(M, np.zeros(M.shape[0])) if M.shape[0] else (None, None) for M in A]
    best = linprog(-slack, *rows[0], *rows[1], bounds=ends, method="highs-ds")
    loose = np.isinf(low) & np.isinf(high)
    lines = 0
    if loose.any():
        columns = sparse.vstack(A).toarray()[:, loose]
        lines = loose.sum() - (np.linalg.matrix_rank(columns) if columns.size else 0)
    if best.fun < -1e-7 or lines:
        raise ValueError("a Polytope must be bounded: give finite bounds, or rows that imply them.")
