"""Rows that stay on a disk: passes in order, read ahead; batches gathered; columns picked."""

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from adafw.kernels.parts import Csr, Stored
from adafw.memory import machine_bytes, spare_bytes
from adafw.rows.base import Rows, Vector, as_batch, mean_weights, read_only
from adafw.rows.centred import CentredRows
from adafw.rows.csr import CSRRows
from adafw.rows.disk import ahead
from adafw.rows.files import InMemory, Rooms, files_of
from adafw.rows.spectral import EXACT, spectral_norm
from adafw.rows.working import PiecedWorking, WorkingRows
from adafw.typing import Batch, Plain

#: Bytes read at a time. Two pieces are in memory: the one in use and the one that comes.
PIECE = 1 << 25
#: Bytes of a batch up to which it stays in memory until the next, for a second product with it.
KEPT = 1 << 28
#: Share of memory up to which the restriction to a working set is kept between products.
WORKING = 0.4
#: Vectors of one number a row that a step on them may make beside.
VECTORS = 10


class StreamedRows(Rows):
    """Rows of a mapped matrix that exceeds memory, CSR or dense. They are read, never touched.

    A product with all rows is one pass over the files in their order, `PIECE` bytes at a time, by
    a second thread; its cost is that of the disk, or of the product where that is slower. A batch
    costs one read for each run of neighbouring rows: take `adafw.Blocks`. Columns of a working set
    are picked in one pass and kept, if they fit, so that steps on it run in memory.
    """

    by_coordinates = True
    streamed = True

    def __init__(self, rows: InMemory) -> None:
        self.rows = rows
        self.shape, self.dtype = rows.shape, rows.dtype
        self._files = files_of(rows)
        self._batch: tuple[NDArray[np.int64], InMemory] | None = None
        self._starts: NDArray[np.uint64] | None = None
        self._picked: tuple[NDArray[np.int64], InMemory] | None = None

    def pieces(self) -> Iterator[tuple[slice, InMemory]]:
        """All rows in their order; a piece is good until the next is asked for."""
        rooms = (Rooms(), Rooms())
        cuts = self._cuts

        def read(k: int, slot: int) -> tuple[slice, InMemory]:
            return slice(cuts[k], cuts[k + 1]), self._files.piece(cuts[k], cuts[k + 1], rooms[slot])

        return ahead(read, len(cuts) - 1)

    @cached_property
    def _cuts(self) -> list[int]:
        """Where pieces begin and end: they depend on the data alone, and so do the bits of sums."""
        return self._files.cuts(PIECE)

    @property
    def kind(self) -> tuple[object, ...]:
        return type(self), *self.rows.kind

    def dot(self, x: Vector, batch: Batch = None) -> Vector:
        if batch is None:
            out = np.empty(self.shape[0], np.result_type(self.dtype, x.dtype))
            for part, piece in self.pieces():
                out[part] = piece.dot(x)
            return out
        gathered = [piece.dot(x) for _, piece in self._gathered(batch)]
        return np.concatenate(gathered) if gathered else np.empty(0, self.dtype)

    def combine(self, weights: Vector, batch: Batch = None) -> Vector:
        total = np.zeros(self.shape[1], np.result_type(self.dtype, weights.dtype))
        for part, piece in self.pieces() if batch is None else self._gathered(batch):
            piece.add_combined(weights[part], total)
        return total

    def dot_matrix(self, x: Vector, batch: Batch = None) -> Vector:
        count = self.shape[0] if batch is None else len(batch)
        out = np.empty((count, x.shape[1]), np.result_type(self.dtype, x.dtype))
        for part, piece in self.pieces() if batch is None else self._gathered(batch):
            out[part] = piece.dot_matrix(x)
        return out

    def combine_matrix(self, weights: Vector, batch: Batch = None) -> Vector:
        dtype = np.result_type(self.dtype, weights.dtype)
        total = np.zeros((self.shape[1], weights.shape[1]), dtype)
        for part, piece in self.pieces() if batch is None else self._gathered(batch):
            piece.add_combined_matrix(weights[part], total)
        return total

    def curve(self, weights: Vector, d: Vector) -> tuple[Vector, Vector]:
        dtype = np.result_type(self.dtype, weights.dtype, d.dtype)
        move, total = np.empty(self.shape[0], dtype), np.zeros(self.shape[1], dtype)
        for part, piece in self.pieces():
            move[part] = piece.dot(d)
            piece.add_combined(weights[part] * move[part], total)
        return total, move

    @property
    def stored(self) -> int:
        return self.rows.stored

    @cached_property
    def survey(self) -> tuple[float, NDArray[np.int64]]:
        """(max |a_ij|, NaN if there is one; stored entries of every column), in one pass."""
        largest, counts = 0.0, np.zeros(self.shape[1], np.int64)
        for _, piece in self.pieces():
            # A NaN stays: every comparison with it is false.
            if piece.stored and not piece.largest <= largest:
                largest = piece.largest
            piece.count_columns(counts)
        return largest, counts

    @property
    def largest(self) -> float:
        return self.survey[0]

    def norms(self, p: float, axis: int = 1) -> Vector:
        parts = [piece.norms(p, axis) for _, piece in self.pieces()]
        # Of norms of the pieces of a column: the norm of the column.
        return np.concatenate(parts) if axis == 1 else np.linalg.norm(parts, p, axis=0)

    def spectral_norm(self, weights: Vector | None = None) -> tuple[float, bool]:
        """Exact up to 1024 columns; else 200 passes."""
        if min(self.shape) > EXACT:
            return spectral_norm(_Operator(self), weights)
        if self.shape[1] > EXACT:  # few rows: the map will do
            return self.rows.spectral_norm(weights)
        from scipy.linalg import eigvalsh

        gram = self.doubled().gram(np.ones(self.shape[0]) if weights is None else weights)
        last = [self.shape[1] - 1] * 2
        return float(np.sqrt(max(0.0, eigvalsh(gram, subset_by_index=last)[0]))), True

    def gram(self, weights: Vector) -> Vector:
        total = np.zeros((self.shape[1],) * 2, np.result_type(self.dtype, weights.dtype))
        for part, piece in self.pieces():
            total += piece.gram(weights[part])
        return total

    def variances(self, weights: Vector) -> Vector:
        """Those of the pieces put together, with the spread of their means (Chan et al. 1983)."""
        w = mean_weights(weights, self.shape[0])
        weight, mean, total = 0.0, np.zeros(self.shape[1]), np.zeros(self.shape[1])
        for part, piece in self.pieces():
            more = float(w[part].sum())
            if not more > 0:
                continue
            apart = piece.combine(w[part] / more) - mean
            total += more * piece.variances(w[part]) + weight * more / (weight + more) * apart**2
            weight += more
            mean += more / weight * apart
        return total

    def take(self, indices: NDArray[np.integer[Any]]) -> Rows:
        """In memory."""
        rows = self._files.gather(np.asarray(indices, np.int64))
        rows.passing = False
        return rows

    def doubled(self) -> Rows:
        if self.dtype == np.float64:
            return self
        rows = cast(InMemory, self.rows.doubled())
        double = StreamedRows(rows)
        if "survey" in self.__dict__:  # of the same data
            double.survey = self.survey
        return double

    def columns(self, indices: NDArray[np.integer[Any]]) -> Rows:
        """In memory, from what was picked last if they are among it, else in one pass."""
        wanted = np.asarray(indices, np.int64)
        chosen, picked = self._pick(np.unique(wanted))
        return picked.columns(np.searchsorted(chosen, wanted))

    def working(self, chosen: NDArray[np.int64], last: WorkingRows | None = None) -> WorkingRows:
        """One pass; kept in memory if there is enough, else products are passes, too."""
        before = last if isinstance(last, PiecedWorking) else None
        freed = 0 if before is None or not before.kept else self._working_bytes(before.chosen)
        left = spare_bytes() + freed - VECTORS * 8 * self.shape[0] - 4 * PIECE
        keep = self._working_bytes(chosen) <= min(WORKING * machine_bytes(), left)
        return PiecedWorking(
            lambda: ((part, piece.working) for part, piece in self.pieces()),
            self.shape[0], chosen, keep, before,
        )  # fmt: skip

    def _working_bytes(self, chosen: NDArray[np.int64]) -> int:
        """What the rows restricted to these columns take: values, positions, where rows start."""
        return 12 * int(self.survey[1][chosen].sum()) + 8 * self.shape[0]

    def holding(self, chosen: NDArray[np.int64]) -> tuple[Rows, NDArray[np.int64]]:
        known, picked = self._pick(np.sort(chosen))
        return picked, np.searchsorted(known, chosen)

    def centred(self, weights: Vector | None = None) -> tuple[Rows, Vector]:
        mean = self.combine(mean_weights(weights, self.shape[0]).astype(self.dtype))
        return CentredRows(self, mean), mean

    def block(self, part: slice) -> NDArray[Any]:
        return self._files.gather(np.arange(self.shape[0])[part]).block(slice(None))

    def parts(self) -> dict[str, NDArray[Any]]:
        return self.rows.parts()

    def describe(self) -> dict[str, Plain]:
        return self.description or self.rows.describe()

    def __str__(self) -> str:
        return f"{self.rows} on disk"

    @property
    def arrays(self) -> Stored:
        """Those of the map: for where rows start, which is in memory; others would be faults."""
        return self.rows.arrays

    def arrays_of(self, batch: NDArray[np.integer[Any]]) -> Csr:
        """(values, columns, starts) as kernels take them, right for the rows of a batch alone.

        Entries are those of the batch, in memory; starts has a place for every row there is, of
        which only those of the batch, and those after them, are set. CSR only.
        """
        rows = np.unique(np.asarray(batch).view(np.int64))
        values, columns, starts = self._files.gather(rows).arrays
        if self._starts is None:
            self._starts = np.zeros(self.shape[0] + 1, np.uint64)
        # The end of a row is the start of the next, where that is in the batch, too.
        self._starts[rows] = starts[:-1]
        self._starts[rows + 1] = starts[1:]
        return values, columns, read_only(self._starts)

    @property
    def sparse(self) -> bool:
        """Whether they are those of a CSR matrix."""
        return isinstance(self.rows, CSRRows)

    def _pick(self, chosen: NDArray[np.int64]) -> tuple[NDArray[np.int64], InMemory]:
        """(columns in memory, increasing, the rows of them), the chosen ones among them."""
        known = self._picked
        if known is None or not np.isin(chosen, known[0], assume_unique=True).all():
            self._picked = None  # its memory is needed
            self._picked = known = chosen, self._files.pick(self.pieces(), chosen, self.survey[1])
        return known

    def _gathered(self, batch: Batch) -> Iterator[tuple[slice, InMemory]]:
        """The rows of a batch, in its order, in as few pieces as memory allows."""
        rows = as_batch(batch, self.shape[0]).view(np.int64)
        if self._batch is not None and np.array_equal(self._batch[0], rows):
            yield slice(None), self._batch[1]
            return
        self._batch = None
        cuts = self._files.cuts_of(rows, KEPT)
        for first, last in pairwise(cuts):
            gathered = self._files.gather(rows[first:last])
            if last - first == rows.size:
                self._batch = rows.copy(), gathered
            yield slice(first, last), gathered


class _Operator:
    """The rows as a matrix that can be multiplied with, as Lanczos' method asks for."""

    def __init__(self, rows: StreamedRows, turned: bool = False) -> None:
        self.rows, self.turned = rows, turned
        self.shape = rows.shape[::-1] if turned else rows.shape
        self.dtype = rows.dtype

    @property
    def T(self) -> "_Operator":
        return _Operator(self.rows, not self.turned)

    def __matmul__(self, u: Vector) -> Vector:
        return self.rows.combine(u) if self.turned else self.rows.dot(u)
