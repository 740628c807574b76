"""Rows of a sparse matrix in compressed sparse row form."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from adafw.describe import digest
from adafw.kernels.parts import Csr, Part
from adafw.rows.base import Rows, Vector, as_batch, as_point, mean_weights, read_only
from adafw.rows.centred import CentredRows
from adafw.rows.spectral import spectral_norm
from adafw.rows.working import ColumnWorking, SparseWorking, WorkingRows
from adafw.typing import Batch, MatrixLike, Plain

#: Non-zeros from which a full product is worth sharing between the cores.
_LARGE = 200_000

#: Columns up to which a matrix of inner products of columns stays in cache while it is summed.
_NARROW = 512
#: Columns up to which it is summed in place: scattered sums of a wider one miss caches.
_SQUARE = 2048

#: Rows and columns up to which vectors of them stay in cache, where passes over columns jump about;
#: entries of a row up to which such passes are no slower than those over rows.
_TALL, _WIDE, _SHORT, _SHORT_OF_NARROW = 1 << 16, 8192, 48, 24
#: Of few columns rows are as good, and need no copy, unless their lengths differ by so much of the
#: mean: a processor cannot foresee the ends of short ones.
_DIFFER = 0.1
#: How many times as long as a short column (one in twenty is shorter) a long one may be for all to
#: be alike.
_UNITS = 1e4


class CSRRows(Rows):
    """A canonical CSR matrix (sorted indices, no repeats) of float32 or float64.

    `dtype` of points and products; None means that of A. Of rows that are `passing` no copy by
    columns is made but for those who ask for columns.
    """

    by_coordinates = listed = True

    def __init__(
        self, A: MatrixLike, dtype: DTypeLike | None = None, passing: bool = False
    ) -> None:
        self.matrix, self.passing = A, passing
        self.shape = (A.shape[0], A.shape[1])
        self.dtype = A.dtype if dtype is None else np.dtype(dtype)

    @cached_property
    def arrays(self) -> Csr:
        """(values, columns, starts) as the kernels take them: unsigned and read-only."""
        columns = self.matrix.indices
        starts = self.matrix.indptr.astype(np.int64, copy=False)
        # An unsigned index needs no test for being negative, which numba would make at every entry.
        unsigned = np.uint32 if columns.dtype == np.int32 else np.uint64
        return (
            read_only(self.matrix.data),
            read_only(columns.view(unsigned)),
            read_only(starts.view(np.uint64)),
        )

    @property
    def kind(self) -> tuple[object, ...]:
        kinds = (self.matrix.dtype, self.matrix.indices.dtype)
        return type(self), self.dtype, *kinds, self.turned

    @cached_property
    def gram_products(self) -> float:  # type: ignore[override]
        lengths = np.diff(self.matrix.indptr).astype(np.float64)
        return float(lengths @ lengths) / max(1.0, 2.0 * self.matrix.nnz)

    def dot(self, x: Vector, batch: Batch = None) -> Vector:
        from adafw.kernels import rows, threads

        rows_of = as_batch(batch, self.shape[0])
        x = as_point(x, self.shape[1], "x")
        if batch is None and self.turned:
            return self.by_columns.combine(x)
        count = self.shape[0] if batch is None else rows_of.size
        out = np.empty(count, np.result_type(self.dtype, x.dtype))
        # Below that, starting threads costs more than they save.
        if batch is not None or self.matrix.nnz < _LARGE:
            rows.dot(self.arrays, rows_of, 0, count, x, out)
            return out
        ranges = threads.bounds(count, threads.cores())
        threads.share(lambda k: rows.dot(self.arrays, rows_of, *ranges[k], x, out), len(ranges))
        return out

    def combine(self, weights: Vector, batch: Batch = None) -> Vector:
        from adafw.kernels import rows, threads

        m, n = self.shape
        rows_of = as_batch(batch, m)
        weights = as_point(weights, m if batch is None else rows_of.size, "weights")
        dtype = np.result_type(self.dtype, weights.dtype)
        if batch is None and self.turned:
            return self.by_columns.dot(weights)
        if batch is not None:
            out = np.zeros(n, dtype)
            rows.combine(self.arrays, rows_of, 0, weights.size, weights, out)
            return out
        ranges = self._ranges()
        sums = np.zeros((len(ranges), n), dtype)
        threads.share(
            lambda k: rows.combine(self.arrays, rows_of, *ranges[k], weights, sums[k]), len(ranges)
        )
        return _total(sums)

    def _ranges(self) -> list[tuple[int, int]]:
        """How a sum over all rows is cut: by the data alone, as its bits are not the machine's."""
        from adafw.kernels import threads

        parts = min(4, self.matrix.nnz // (16 * self.shape[1]))
        return threads.bounds(self.shape[0], 1 if self.matrix.nnz < _LARGE else max(1, parts))

    def loss_and_gradient(
        self, loss_code: int, x: Vector, y: Vector, weights: Vector
    ) -> tuple[float, Vector]:
        from adafw.kernels import curves, threads

        x, all_rows = as_point(x, self.shape[1], "x"), as_batch(None, 0)
        ranges = self._ranges()
        sums, values = np.zeros((len(ranges), self.shape[1])), np.zeros(len(ranges))

        def one(k: int) -> None:
            values[k] = curves.risk(
                loss_code, self.arrays, all_rows, *ranges[k], x, y, weights, sums[k]
            )

        threads.share(one, len(ranges))
        return float(values.sum()), _total(sums)

    def add_combined(self, weights: Vector, total: Vector) -> None:
        """total += combine(weights), in one pass by one thread."""
        from adafw.kernels import rows

        weights = as_point(weights, self.shape[0], "weights")
        rows.combine(self.arrays, as_batch(None, 0), 0, weights.size, weights, total)

    def add_combined_matrix(self, weights: Vector, total: Vector) -> None:
        """total += combine_matrix(weights), in one pass by one thread; nothing is kept for it."""
        from adafw.kernels import wide

        weights = read_only(np.ascontiguousarray(weights))
        wide.combine(self.arrays, as_batch(None, 0), weights, total)

    def count_columns(self, counts: NDArray[np.int64]) -> None:
        """counts_j += stored entries of column j."""
        from adafw.kernels import columns

        columns.count(self.arrays[1], counts)

    def curve(self, weights: Vector, d: Vector) -> tuple[Vector, Vector]:
        from adafw.kernels import rows, threads

        m, n = self.shape
        weights, d = as_point(weights, m, "weights"), as_point(d, n, "d")
        dtype = np.result_type(self.dtype, weights.dtype, d.dtype)
        ranges = self._ranges()
        move, sums = np.empty(m, dtype), np.zeros((len(ranges), n), dtype)
        threads.share(
            lambda k: rows.curve(self.arrays, *ranges[k], weights, d, move, sums[k]), len(ranges)
        )
        return _total(sums), move

    @cached_property
    def turned(self) -> bool:  # type: ignore[override]
        """Whether a copy by columns pays from the first product on."""
        m, n = self.shape
        wide = n > _NARROW
        most = (_SHORT if wide else _SHORT_OF_NARROW) * m
        if self.passing or n > _WIDE or m > _TALL or not 0 < self.matrix.nnz <= most:
            return False
        lengths = np.diff(self.matrix.indptr)
        return wide or float(lengths.std()) > _DIFFER * float(lengths.mean())

    @cached_property
    def alike(self) -> bool:  # type: ignore[override]
        squares = self.mean_squares(np.ones(self.shape[0]))
        some = squares[squares > 0]
        short, long = np.quantile(some, (0.05, 0.95)) if some.size else (0.0, 0.0)
        return bool(long <= _UNITS**2 * short)

    @cached_property
    def labels(self) -> bool:  # type: ignore[override]
        lengths, values = np.diff(self.matrix.indptr), self.matrix.data
        alike = bool(values.size) and int(lengths.min()) == int(lengths.max())
        return alike and bool((values == values[0]).all())

    @cached_property
    def by_columns(self) -> "CSRRows":
        """A^T, a column of A a row of it: made once, as large as A itself."""
        return CSRRows(self.matrix.T.tocsr(), self.dtype, passing=True)

    def dot_columns(self, p: Vector) -> Vector:
        # One pass jumps about in p, the other in the sum: the shorter one stays in the cache.
        return self.by_columns.dot(p) if self.shape[0] <= self.shape[1] else self.combine(p)

    def dot_matrix(self, x: Vector, batch: Batch = None) -> Vector:
        from adafw.kernels import threads, wide

        rows_of, x = as_batch(batch, self.shape[0]), read_only(np.ascontiguousarray(x))
        count = self.shape[0] if batch is None else rows_of.size
        out = np.empty((count, x.shape[1]), np.result_type(self.dtype, x.dtype))
        few = batch is not None or self.matrix.nnz * x.shape[1] < _LARGE
        ranges = threads.bounds(count, 1 if few else threads.cores())
        threads.share(lambda k: wide.dot(self.arrays, rows_of, *ranges[k], x, out), len(ranges))
        return out

    def combine_matrix(self, weights: Vector, batch: Batch = None) -> Vector:
        if batch is None:
            return self.by_columns.dot_matrix(weights)
        from adafw.kernels import wide

        weights = read_only(np.ascontiguousarray(weights))
        dtype = np.result_type(self.dtype, weights.dtype)
        out = np.zeros((self.shape[1], weights.shape[1]), dtype)
        wide.combine(self.arrays, as_batch(batch, self.shape[0]), weights, out)
        return out

    @property
    def stored(self) -> int:
        return int(self.matrix.nnz)

    @cached_property
    def largest(self) -> float:
        values = self.matrix.data
        return max(float(values.max()), -float(values.min())) if values.size else 0.0

    def norms(self, p: float, axis: int = 1) -> Vector:
        size = abs(self.matrix.astype(np.float64))
        if p == np.inf:
            return np.asarray(size.max(axis=axis).todense()).ravel()
        return np.asarray(size.power(p).sum(axis=axis)).ravel() ** (1 / p)

    def spectral_norm(self, weights: Vector | None = None) -> tuple[float, bool]:
        return spectral_norm(self.matrix, weights)

    def gram(self, weights: Vector) -> Vector:
        if self.shape[1] <= _SQUARE:
            total = np.zeros((self.shape[1],) * 2, np.result_type(self.dtype, weights.dtype))
            self.add_gram(weights, total)
            return total
        scaled = self.matrix.copy()
        scaled.data = scaled.data * np.repeat(weights, np.diff(scaled.indptr))
        return np.asarray((scaled.T @ self.matrix).toarray())

    def variances(self, weights: Vector) -> Vector:
        from adafw.kernels import rows

        n, w = self.shape[1], read_only(mean_weights(weights, self.shape[0]))
        if self.turned:
            return np.maximum(self.mean_squares(weights) - self.by_columns.dot(w) ** 2, 0.0)
        sums, squares = np.zeros(n), np.zeros(n)
        rows.moments(self.arrays, w, sums, squares)
        return np.maximum(squares - sums**2, 0.0)

    def mean_squares(self, weights: Vector) -> Vector:
        from adafw.kernels import working_set

        n, w = self.shape[1], read_only(mean_weights(weights, self.shape[0]))
        squares = np.zeros(n)
        if self.turned:
            working_set.column_squares(
                self.column_arrays(), np.arange(n).view(np.uint64), w, squares
            )
        else:
            working_set.squares(Part(*self.arrays), w, squares)
        return squares

    @property
    def gram_grows(self) -> bool:  # type: ignore[override]
        return self.shape[1] <= _NARROW

    def add_gram(self, weights: Vector, total: Vector) -> None:
        from adafw.kernels import working_set

        each = as_point(weights, self.shape[0], "weights")
        working_set.add_gram(Part(*self.arrays), each, 0, total)
        working_set.mirror(total)

    def take(self, indices: NDArray[np.integer[Any]]) -> Rows:
        return CSRRows(self.matrix[indices], self.dtype, self.passing)

    def few(self, indices: NDArray[np.integer[Any]]) -> Rows:
        A = self.matrix[indices]
        wide = self.matrix.indices.dtype  # which scipy may have made narrower
        A.indices, A.indptr = A.indices.astype(wide, copy=False), A.indptr.astype(wide, copy=False)
        rows = CSRRows(A, self.dtype, self.passing)
        rows.turned = self.turned
        return rows

    def doubled(self) -> Rows:
        same = self.dtype == np.float64
        return self if same else CSRRows(self.matrix, np.float64, self.passing)

    def columns(self, indices: NDArray[np.integer[Any]]) -> Rows:
        """From the copy by columns: O(stored entries of these columns + m)."""
        return CSRRows(self.by_columns.matrix[indices].T.tocsr(), self.dtype)

    def working(self, chosen: NDArray[np.int64], last: WorkingRows | None = None) -> WorkingRows:
        if self.turned:
            return ColumnWorking(self.arrays, self.column_arrays(), chosen)
        # One pass over the columns' numbers.
        before = last if isinstance(last, SparseWorking) else None
        return SparseWorking(self.arrays, self.shape[1], chosen, before)

    def column_arrays(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        return self.by_columns.arrays

    def centred(self, weights: Vector | None = None) -> tuple[Rows, Vector]:
        mean = self.combine(mean_weights(weights, self.shape[0]).astype(self.dtype))
        return CentredRows(self, mean), mean

    def block(self, part: slice) -> NDArray[Any]:
        return np.asarray(self.matrix[part].toarray())

    def parts(self) -> dict[str, NDArray[Any]]:
        starts = self.matrix.indptr.astype(np.int64, copy=False)
        return {"data": self.matrix.data, "indptr": starts, "indices": self.matrix.indices}

    def describe(self) -> dict[str, Plain]:
        return self.description or {
            "name": "csr",
            "shape": list(self.shape),
            "values": digest(self.matrix.data),
            "columns": digest(self.matrix.indices),
            "rows": digest(self.matrix.indptr),
        }

    def __str__(self) -> str:
        return f"{self.shape[0]} x {self.shape[1]} csr"


def _total(sums: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(sums.sum(axis=0)) if len(sums) > 1 else sums[0]


def as_csr(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, int]
) -> MatrixLike:
    """A CSR array over these canonical arrays; only indptr may be copied, to the ids' width.

    They are put in place one by one: the constructor would read all ids, and may copy them.
    """
    from scipy import sparse

    A = sparse.csr_array(shape, dtype=data.dtype)
    if max(shape) > np.iinfo(np.int32).max:  # scipy takes such sizes in the ids' width, too
        indices = indices.astype(np.int64, copy=False)
    A.data, A.indices, A.indptr = data, indices, indptr.astype(indices.dtype, copy=False)
    A.has_canonical_format = True
    return A
