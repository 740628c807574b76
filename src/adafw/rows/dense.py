"""Rows of a dense array."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from adafw.describe import digest
from adafw.rows import passes
from adafw.rows.base import AtOnce, Rows, Vector, as_batch, as_point, mean_weights, read_only
from adafw.rows.centred import CentredRows
from adafw.rows.csr import CSRRows, as_csr
from adafw.rows.moments import moments
from adafw.rows.sketch import RANK, SHARE, Sketch, noise, sketch
from adafw.rows.spectral import spectral_norm
from adafw.rows.working import DenseWorking, WorkingRows
from adafw.typing import Array, Batch, Plain

#: Entries converted at a time: what a core's cache holds is multiplied while it is there.
_PIECE = 1 << 16
#: Entries from which passes of our own pay: fewer stay in cache, and NumPy's products are at hand.
_LARGE = 1 << 20
#: Entries up to which there is room for a copy in single precision (0.5 GB).
_LARGEST = 1 << 27
#: Entries from which, and the share of them up to which, those that are not 0 are listed; and how
#: many rows say whether it is worth counting.
_LISTED, _LOOK = (1 << 13, 0.3), 64
#: Share of noise from which columns are taken for unrelated.
_NOISE = 0.5
#: Single-precision numbers in a line of the cache.
_LINE = 16
#: Rows that say how far columns are from 0; and mean squares over variances from which single
#: precision has too few digits for what is left of them less their means.
_FEW_ROWS, _FAR = 256, 400.0
#: Rows that say whether some weigh far more than others; as a share of them, how many weigh nearly
#: all if not.
_SOME_ROWS, _EVEN = 1024, 0.5
#: Entries scaled at a time for second moments, so that no second matrix of that size exists.
_SLICE = 1 << 18


#: What is made from the array, and made again.
_COPIES = ("arrays", "by_columns", "_column_arrays")


class DenseRows(Rows):
    """A C-contiguous array of float32 or float64; `dtype` of points and products, None as A's."""

    by_coordinates = True

    def __getstate__(self) -> dict[str, object]:
        """Without the copies that products made for themselves: a pickle holds the array once."""
        kept = {k: v for k, v in vars(self).items() if k not in _COPIES}
        return kept | {"_single": None, "_every": None, "_sketched": None}

    def __init__(self, A: NDArray[np.floating[Any]], dtype: DTypeLike | None = None) -> None:
        self.array = np.ascontiguousarray(A)
        self.shape = (A.shape[0], A.shape[1])
        self.dtype = A.dtype if dtype is None else np.dtype(dtype)
        self._sketched: tuple[Vector, Sketch] | None = None
        self._single: NDArray[np.float32] | None = None
        self._every: tuple[int, Rows] | None = None
        self._unrelated: dict[bool, bool] = {}

    @cached_property
    def arrays(self) -> Array:
        """The array as the kernels take it."""
        return read_only(self.array)

    @property
    def kind(self) -> tuple[object, ...]:
        return type(self), self.dtype, self.array.dtype, self.large, self.rough

    @cached_property
    def large(self) -> bool:
        """Whether products with all rows wait for memory."""
        return self.array.size >= _LARGE

    def dot(self, x: Vector, batch: Batch = None) -> Vector:
        if batch is None and self.large:
            return passes.dots(self.arrays, as_point(x, self.shape[1], "x"))
        if batch is None or self.dtype != self.array.dtype:
            array = self.array if batch is None else self.array[batch]
            return np.concatenate([part @ x for part in self._parts(array, x)])
        from adafw.kernels import rows

        rows_of = as_batch(batch, self.shape[0])
        x = as_point(x.astype(self.dtype, copy=False), self.shape[1], "x")
        out = np.empty(rows_of.size, self.dtype)
        rows.dot(self.arrays, rows_of, 0, out.size, x, out)
        return out

    def combine(self, weights: Vector, batch: Batch = None) -> Vector:
        if batch is None and self.large:
            return passes.adds(self.arrays, as_point(weights, self.shape[0], "weights"))
        if batch is None:
            first, *others = self._parts(self.array, weights)
            total, done = np.asarray(weights[: len(first)] @ first), len(first)
            for part in others:
                total += weights[done : done + len(part)] @ part
                done += len(part)
            return total
        from adafw.kernels import rows

        rows_of = as_batch(batch, self.shape[0])
        weights = as_point(weights, rows_of.size, "weights")
        out = np.zeros(self.shape[1], np.result_type(self.dtype, weights.dtype))
        rows.combine(self.arrays, rows_of, 0, weights.size, weights, out)
        return out

    def add_combined(self, weights: Vector, total: Vector) -> None:
        """total += combine(weights)."""
        total += self.combine(weights)

    def add_combined_matrix(self, weights: Vector, total: Vector) -> None:
        """total += combine_matrix(weights)."""
        total += self.combine_matrix(weights)

    def count_columns(self, counts: NDArray[np.int64]) -> None:
        """counts_j += entries of column j."""
        counts += self.shape[0]

    def dot_matrix(self, x: Vector, batch: Batch = None) -> Vector:
        array = self.array if batch is None else self.array[batch]
        return np.concatenate([part @ x for part in self._parts(array, x)])

    def combine_matrix(self, weights: Vector, batch: Batch = None) -> Vector:
        array = self.array if batch is None else self.array[batch]
        total, done = np.zeros((self.shape[1], weights.shape[1]), weights.dtype), 0
        for part in self._parts(array, weights):
            total += part.T @ weights[done : done + len(part)]
            done += len(part)
        return total

    def at_once(self, loss_code: int, x: Vector, y: Vector, weights: Vector) -> AtOnce | None:
        if not (self.large and self.dtype == self.array.dtype == np.float64):
            return None
        return passes.at_once(loss_code, self.arrays, as_point(x, self.shape[1], "x"), y, weights)

    def curve(self, weights: Vector, d: Vector) -> tuple[Vector, Vector]:
        if not self.large:
            return super().curve(weights, d)
        m, n = self.shape
        weights, d = as_point(weights, m, "weights"), as_point(d, n, "d")
        return passes.curve(self.arrays, weights, d, np.result_type(self.dtype, d.dtype))

    @cached_property
    def rough(self) -> bool:  # type: ignore[override]
        return self.array.dtype == np.float64 and _LARGE <= self.array.size <= _LARGEST

    def rough_curve(self, weights: Vector, d: Vector) -> tuple[Vector, Vector]:
        """In single precision, which is half the memory to read: such products wait for memory."""
        if not self.rough:
            return self.curve(weights, d)
        # Units of their own, so that nothing overflows and nothing is flushed to 0.
        heavy, long = float(weights.max()) or 1.0, float(np.abs(d).max()) or 1.0
        single = (weights / heavy).astype(np.float32), (d / long).astype(np.float32)
        image, move = self._single_curve(*single)
        image, move = image.astype(self.dtype), move.astype(self.dtype)
        return image * (heavy * long), move * long

    def _single_curve(self, weights: Vector, d: Vector) -> tuple[Vector, Vector]:
        """Of a copy in single precision, which the first of them makes on its way."""
        if self._single is None:
            single = _aligned(*self.shape)
            found = passes.narrow_curve(self.arrays, weights, d, single)
            if np.isfinite(found[1]).all():
                self._single = read_only(single)
                return found
            # Entries beyond its range are as large or as small as it can say.
            limit = float(np.finfo(np.float32).max)
            self._single = read_only(np.clip(self.array, -limit, limit).astype(np.float32))
        return passes.curve(self._single, weights, d, np.float32)

    @cached_property
    def far(self) -> bool:  # type: ignore[override]
        some = self.array[:: max(1, self.shape[0] // _FEW_ROWS)].astype(np.float64)
        means, variances = some.mean(axis=0), some.var(axis=0)
        return bool((means**2 > _FAR * variances)[variances > 1e-12 * means**2].any())

    @cached_property
    def heavy(self) -> Vector | None:  # type: ignore[override]
        some = self.array[:: max(1, self.shape[0] // _SOME_ROWS)].astype(np.float64)
        squares = np.einsum("ij,ij->j", some, some)
        give = 1 / np.where((squares > 0) & np.isfinite(squares), squares, np.inf)
        lengths = np.square(some) @ give
        # NaN, of squares that overflow, says nothing.
        if not float(lengths.sum()) ** 2 < _EVEN * len(some) * float(lengths @ lengths):
            return None
        found = [np.square(self.array[k], dtype=np.float64) @ give for k in self._slices()]
        return read_only(np.concatenate(found))

    @cached_property
    def _column_squares(self) -> Vector:
        """The sums of the squares of the columns."""
        return passes.squares(self.arrays)

    @property
    def finite(self) -> bool:
        """Whether no entry is NaN or infinite: of large arrays their squares say so, by the way."""
        return self.large and bool(np.isfinite(self._column_squares).all())

    @property
    def unseen(self) -> bool:  # type: ignore[override]
        return self.large and self.dtype == self.array.dtype == np.float64

    def first_look(self, weights: Vector) -> Vector:
        weights = as_point(weights, self.shape[0], "weights")
        self._column_squares, sums = passes.survey(self.arrays, weights)
        return sums

    def sketch(self, weights: Vector) -> Sketch | None:
        """Made once for the same weights: that of the last is kept."""
        if self.array.size < _LARGE or self.shape[0] < SHARE * RANK:
            return None
        known = self._sketched  # read once: fits in threads share the rows
        if known is None or not np.array_equal(known[0], weights):
            known = self._sketched = weights.copy(), sketch(self.array, weights)
        return known[1]

    def _parts(self, array: NDArray[Any], vector: Vector) -> list[NDArray[Any]]:
        """The array whole, or in pieces if numpy has to convert it to the vector's dtype."""
        if vector.dtype == array.dtype:
            return [array]
        step = max(1, _PIECE // self.shape[1])
        return [array[k : k + step] for k in range(0, max(1, len(array)), step)]

    @cached_property
    def by_columns(self) -> "DenseRows":
        """A^T, a column of A a row of it: made once, as large as A itself."""
        return DenseRows(self.array.T, self.dtype)

    @property
    def stored(self) -> int:
        return int(self.array.size)

    @property
    def largest(self) -> float:
        return max(float(self.array.max()), -float(self.array.min()))

    def norms(self, p: float, axis: int = 1) -> Vector:
        return np.linalg.norm(self.array.astype(np.float64, copy=False), p, axis=axis)

    def spectral_norm(self, weights: Vector | None = None) -> tuple[float, bool]:
        return spectral_norm(self.array, weights)

    def gram(self, weights: Vector) -> Vector:
        n = self.shape[1]
        total = np.zeros((n, n), np.result_type(self.dtype, weights.dtype))
        # A product with its own transpose is half the work, and NumPy knows it.
        roots = np.sqrt(weights) if weights.min(initial=0) >= 0 else None
        for part in self._slices():
            array = self.array[part]
            if roots is None:
                total += (array * weights[part, None]).T @ array
            else:
                array = array * roots[part, None]
                total += array.T @ array
        return total

    def variances(self, weights: Vector) -> Vector:
        w = mean_weights(weights, self.shape[0])
        return self._squares(w, self.combine(w))

    def mean_squares(self, weights: Vector) -> Vector:
        if self.large and (weights == weights[0]).all():
            return self._column_squares / self.shape[0]
        return self._squares(mean_weights(weights, self.shape[0]), 0.0)

    def _squares(self, w: Vector, centre: Vector | float) -> Vector:
        """sum_i w_i (a_ij - c_j)^2, by pieces that stay in cache."""
        total = np.zeros(self.shape[1])
        step = max(1, _PIECE // self.shape[1])
        for k in range(0, self.shape[0], step):
            apart = self.array[k : k + step] - centre
            total += w[k : k + step] @ np.square(apart, out=apart)
        return total

    def every(self, step: int) -> Rows:
        if self._every is None or self._every[0] != step:
            self._every = step, DenseRows(self.array[::step], self.dtype)
        return self._every[1]

    def some_moments(
        self, step: int, weights: NDArray[np.float64], lengths: NDArray[np.float64], centred: bool
    ) -> NDArray[np.float64]:
        return moments(self.arrays, step, weights, lengths, centred)

    def unrelated(self, centred: bool = False) -> bool:
        """By two rows a column: a matrix of all costs more than it tells."""
        if centred not in self._unrelated:
            some = self.array[:: max(1, self.shape[0] // (2 * self.shape[1]))].astype(np.float64)
            some = some - some.mean(axis=0) if centred else some
            lengths = np.sqrt(np.einsum("ij,ij->j", some, some))
            single = (some / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
            found = (single.T @ single).astype(np.float64)
            self._unrelated[centred] = noise(found, 1 / len(some)) > _NOISE
        return self._unrelated[centred]

    def take(self, indices: NDArray[np.integer[Any]]) -> Rows:
        return DenseRows(self.array[indices], self.dtype)

    def few(self, indices: NDArray[np.integer[Any]]) -> Rows:
        rows = DenseRows(self.array[indices], self.dtype)
        rows.large, rows.rough = self.large, self.rough
        return rows

    def doubled(self) -> Rows:
        return self if self.dtype == np.float64 else DenseRows(self.array, np.float64)

    def columns(self, indices: NDArray[np.integer[Any]]) -> Rows:
        return DenseRows(self.array[:, indices], self.dtype)

    def working(self, chosen: NDArray[np.int64], last: WorkingRows | None = None) -> WorkingRows:
        return DenseWorking(self.array[:, chosen], chosen)

    @cached_property
    def _column_arrays(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        m, n = self.shape
        rows = np.broadcast_to(np.arange(m, dtype=np.uint32), (n, m)).ravel()
        starts = np.arange(0, m * n + 1, m, dtype=np.uint64)
        return read_only(np.ascontiguousarray(self.array.T).ravel()), read_only(rows), starts

    def column_arrays(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """A copy of 1.5 times the size of the array, made once."""
        return self._column_arrays

    def centred(self, weights: Vector | None = None) -> tuple[Rows, Vector]:
        """In a copy, which loses fewer digits; float32 in double precision has digits to lose."""
        w = mean_weights(weights, self.shape[0]).astype(self.dtype)
        mean = self.combine(w)
        if self.dtype != self.array.dtype:
            return CentredRows(self, mean), mean
        # A second pass removes what rounding left of the mean in the first.
        array = self.array - mean
        rest = w @ array
        return DenseRows(array - rest), mean + rest

    def without_zeros(self) -> Rows:
        m, n = self.array.shape
        if self.array.size < _LISTED[0]:
            return self
        some = self.array[:: max(1, m // _LOOK)]
        if np.count_nonzero(some) > _LISTED[1] * some.size:
            return self
        starts = np.zeros(m + 1, np.int64)
        np.cumsum(passes.counts(self.arrays), out=starts[1:])
        if starts[-1] > _LISTED[1] * self.array.size:
            return self
        return CSRRows(as_csr(*passes.entries(self.arrays, starts), starts, (m, n)), self.dtype)

    def block(self, part: slice) -> NDArray[Any]:
        return self.array[part]

    def parts(self) -> dict[str, NDArray[Any]]:
        return {"data": self.array}

    def _slices(self) -> list[slice]:
        step = max(1, _SLICE // self.shape[1])
        return [slice(k, k + step) for k in range(0, self.shape[0], step)]

    def describe(self) -> dict[str, Plain]:
        return self.description or {"name": "dense", **digest(self.array)}

    def __str__(self) -> str:
        return f"{self.shape[0]} x {self.shape[1]} dense"


def _aligned(m: int, n: int) -> NDArray[np.float32]:
    """Room for a matrix that begins where a line of the cache does: a tenth of a product's time."""
    room = np.empty(m * n + _LINE, np.float32)
    first = -(room.ctypes.data // room.itemsize) % _LINE
    return room[first : first + m * n].reshape(m, n)
