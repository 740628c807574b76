"""A polytope given by linear inequalities, equalities and bounds."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adafw import arrays
from adafw.arrays import finite
from adafw.called import Called
from adafw.constraints import interior_point
from adafw.constraints.base import (
    Constraint,
    check_order,
    check_shape,
    check_sizes,
    excess,
    metric_like,
)
from adafw.constraints.linear_system import dense_rows
from adafw.describe import digest
from adafw.typing import AnyArray, AnyDType, MatrixLike, Plain, Shape

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

    called = Called(
        "polytope",
        "A_ub x <= b_ub, A_eq x = b_eq, bounds",
        {"A_ub": None, "b_ub": None, "A_eq": None, "b_eq": None, "bounds": (0, None)},
        per_column=True,
    )
    A_ub: MatrixLike = None
    b_ub: AnyArray = None
    A_eq: MatrixLike = None
    b_eq: AnyArray = None
    bounds: AnyArray = (0, None)
    _first: AnyArray = field(default=None, init=False)
    projection = "metric"
    exact_diameter = False

    def __post_init__(self) -> None:
        n = _dimension(self.A_ub, self.A_eq, self.bounds)
        for side in ("ub", "eq"):
            A, b = _rows(getattr(self, f"A_{side}"), getattr(self, f"b_{side}"), n, side)
            object.__setattr__(self, f"A_{side}", A)
            object.__setattr__(self, f"b_{side}", b)
        object.__setattr__(self, "bounds", _bounds(self.bounds, n))
        object.__setattr__(self, "_first", self._solve(np.zeros(n)).x * self.scale + 0.0)
        if not np.isfinite(self.bounds).all():
            _check_bounded(*self._unit[::2], *self.bounds.T)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.bounds),)

    @cached_property
    def scale(self) -> float:
        """The largest distance of a bounding hyperplane from the origin."""
        distances = [np.abs(self.bounds[np.isfinite(self.bounds)])]
        for A, b in ((self.A_ub, self.b_ub), (self.A_eq, self.b_eq)):
            distances.append(np.abs(b) / _lengths(A))
        return float(max(d.max(initial=0.0) for d in distances)) or 1.0

    @cached_property
    def _unit(self) -> tuple[MatrixLike, NDArray[Any], MatrixLike, NDArray[Any]]:
        """A_ub, b_ub, A_eq, b_eq of the set of size one, their rows of length one.

        The tolerances of HiGHS are absolute: it must not see how large the set is.
        """
        from scipy import sparse

        parts: list[MatrixLike] = []
        for A, b in ((self.A_ub, self.b_ub), (self.A_eq, self.b_eq)):
            lengths = _lengths(A)
            parts += [sparse.csr_array(A.multiply(1 / lengths[:, None])), b / lengths / self.scale]
        return parts[0], parts[1], parts[2], parts[3]

    @cached_property
    def box(self) -> NDArray[Any]:
        """The smallest box around the set, a row (low, high) each; 2 n linear programs."""
        ends = np.empty((len(self.bounds), 2))
        for i, unit in enumerate(np.eye(len(ends))):
            ends[i] = self._solve(unit).x[i], self._solve(-unit).x[i]
        return ends * self.scale

    def _solve(self, cost: NDArray[Any]) -> Any:
        """The linear program over the set of size one, solved; an error that says why, if not."""
        from scipy.optimize import linprog

        rows = [part if part.shape[0] else None for part in self._unit]
        ends = self.bounds / self.scale
        result = linprog(cost, *rows, bounds=ends, method="highs-ds", options=_OPTIONS)
        if result.status == 2:
            raise ValueError("a Polytope must not be empty: no point satisfies all constraints.")
        if result.x is None:
            raise RuntimeError(f"HiGHS could not solve the linear program: {result.message}")
        return result

    def lmo(self, g: AnyArray) -> AnyArray:
        g = finite(g, "g")
        check_shape(g, self.shape, "Polytope")
        cost = arrays.host(g)
        size = np.abs(cost).max()
        v = self._solve(cost / size).x * self.scale if size > 0 else self._first
        return arrays.like(np.clip(v, *self.bounds.T), g)

    def gap(self, x: AnyArray, g: AnyArray) -> float:
        cost, point = arrays.host(g), arrays.host(x)
        size = np.abs(cost).max()
        if size == 0:
            return 0.0
        result = self._solve(cost / size)
        missed = max(0.0, result.fun - self._dual_bound(cost / size, result))
        return float(cost @ (point - result.x * self.scale)) + size * self.scale * missed

    def _dual_bound(self, cost: NDArray[Any], result: Any) -> float:
        """A lower bound of the linear program, whatever the accuracy of its solution."""
        A_ub, b_ub, A_eq, b_eq = self._unit
        y_ub, y_eq = np.minimum(result.ineqlin.marginals, 0.0), result.eqlin.marginals
        reduced = cost - A_ub.T @ y_ub - A_eq.T @ y_eq
        ends = (self.bounds if np.isfinite(self.bounds).all() else self.box) / self.scale
        rest = np.minimum(reduced * ends[:, 0], reduced * ends[:, 1]).sum()
        return float(b_ub @ y_ub + b_eq @ y_eq + rest)

    def start(self, shape: Shape, dtype: AnyDType = float) -> AnyArray:
        point = arrays.zeros(shape, dtype)
        check_shape(point, self.shape, "Polytope")
        return arrays.like(np.array(self._first), point)

    def diameter(self, shape: Shape, p: float = 2) -> float:
        """Of the smallest box around the set: exact for p = inf, else an upper bound.

        The diameter itself is the maximum of a convex function, which is NP-hard to find.
        """
        check_sizes(shape, self.shape, "Polytope")
        return float(np.linalg.norm(self.box[:, 1] - self.box[:, 0], check_order(p)))

    def violation(self, x: AnyArray) -> float:
        check_shape(x, self.shape, "Polytope")
        point = arrays.host(x) / self.scale
        if not np.isfinite(point).all():
            return float("nan")
        A_ub, b_ub, A_eq, b_eq = self._unit
        low, high = self.bounds.T / self.scale
        amounts = low - point, point - high, A_ub @ point - b_ub, np.abs(A_eq @ point - b_eq)
        return excess(max(amount.max(initial=0.0) for amount in amounts), 1.0)

    def project(self, x: AnyArray, h: AnyArray | None = None) -> AnyArray:
        x = finite(x, "x")
        h = metric_like(h, x)
        if self.violation(x) == 0:
            return arrays.copy(x)
        v = arrays.host(x) / self.scale
        weights = np.ones_like(v) if h is None else arrays.host(h)
        low, high = self.bounds.T / self.scale
        free = low < high  # an interior point needs room; what has none is put where it must be
        v[~free] = low[~free]
        A_ub, b_ub, A_eq, b_eq = self._unit
        A = np.vstack([A_eq.toarray(), A_ub.toarray()])
        b = np.concatenate([b_eq, b_ub]) - A[:, ~free] @ v[~free]
        inequality = np.arange(len(b)) >= len(b_eq)
        binds = A[:, free].any(axis=1)  # a row of zeros holds or not, whatever v is
        if free.any():
            v[free] = interior_point.project(
                v[free], weights[free], low[free], high[free],
                dense_rows(A[np.ix_(binds, free)], inequality[binds]), b[binds], "Polytope",
            )  # fmt: skip
        return arrays.like(np.clip(v * self.scale, *self.bounds.T), x)

    def describe(self) -> Plain:
        arrays_of = {"bounds": self.bounds, "b_ub": self.b_ub, "b_eq": self.b_eq}
        for side, A in (("ub", self.A_ub), ("eq", self.A_eq)):
            arrays_of |= {
                f"A_{side}.{part}": getattr(A, part) for part in ("data", "indices", "indptr")
            }
        return {"name": "Polytope"} | {k: digest(a) for k, a in arrays_of.items()}

    def __repr__(self) -> str:
        sizes = f"{len(self.b_ub)} inequalities, {len(self.b_eq)} equalities"
        return f"Polytope({sizes}, n = {len(self.bounds)})"


def _dimension(A_ub: MatrixLike, A_eq: MatrixLike, bounds: ArrayLike | None) -> int:
    """The number of coordinates, from whichever argument tells it."""
    for A in (A_ub, A_eq):
        if A is not None:
            # A list of rows has no shape of its own, and np.shape of a sparse matrix is ().
            shape = A.shape if hasattr(A, "shape") else np.shape(A)
            if len(shape) != 2 or shape[1] < 1:
                raise ValueError(f"A_ub and A_eq must have two dimensions, got shape {shape}.")
            return int(shape[1])
    if bounds is not None and np.ndim(bounds) == 2:
        return len(np.asarray(bounds))
    raise ValueError("a Polytope needs A_ub, A_eq, or a pair of bounds for every coordinate.")


def _rows(A: MatrixLike, b: ArrayLike | None, n: int, side: str) -> tuple[MatrixLike, NDArray[Any]]:
    """A as a CSR matrix with n columns, b as a vector with an entry per row."""
    from scipy import sparse

    if (A is None) != (b is None):
        raise ValueError(f"A_{side} and b_{side} must be given together.")
    if A is None or b is None or np.size(b) == 0:
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
    # Of one width whatever came in: what describes the set must not depend on it.
    width = np.int32 if max(n, matrix.nnz) <= np.iinfo(np.int32).max else np.int64
    matrix.indices, matrix.indptr = matrix.indices.astype(width), matrix.indptr.astype(width)
    return matrix, vector


def _bounds(bounds: ArrayLike | None, n: int) -> NDArray[Any]:
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


def _lengths(A: MatrixLike) -> NDArray[Any]:
    """l2 norms of the rows; 1 for a row of zeros, which has no direction."""
    lengths = np.sqrt(np.asarray(A.multiply(A).sum(axis=1)).ravel())
    return np.where(lengths > 0, lengths, 1.0)


def _check_bounded(
    A_ub: MatrixLike, A_eq: MatrixLike, low: NDArray[Any], high: NDArray[Any]
) -> None:
    """Refuses a set that contains a ray d: A_ub d <= 0, A_eq d = 0, d = 0 where both ends bind.

    Either some row or bound grows slack along d, which one linear program finds, or none does,
    and d is a line in the coordinates without bounds, which the rank of the rows tells.
    """
    from scipy import sparse
    from scipy.optimize import linprog

    ends = np.column_stack([-np.isinf(low).astype(float), np.isinf(high).astype(float)])
    slack = ends.sum(axis=1) - np.asarray(A_ub.sum(axis=0)).ravel()
    rows = [(M, np.zeros(M.shape[0])) if M.shape[0] else (None, None) for M in (A_ub, A_eq)]
    best = linprog(-slack, *rows[0], *rows[1], bounds=ends, method="highs-ds")
    loose = np.isinf(low) & np.isinf(high)
    lines = 0
    if loose.any():
        columns = sparse.vstack([A_ub, A_eq]).toarray()[:, loose]
        lines = loose.sum() - (np.linalg.matrix_rank(columns) if columns.size else 0)
    # HiGHS allows violations of 1e-7: what is smaller is no direction to infinity.
    if best.fun < -1e-7 or lines:
        raise ValueError("a Polytope must be bounded: give finite bounds, or rows that imply them.")
