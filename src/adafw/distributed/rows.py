"""Rows on the workers of a cluster, asked as any rows are."""

import math
import time
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from adafw.distributed.crew import Traffic
from adafw.distributed.engine import Answer, Engine
from adafw.distributed.typing import Common, Each, Own
from adafw.distributed.working import DistributedWorking
from adafw.losses import Loss
from adafw.rows import Rows, as_rows
from adafw.rows.base import Pull, Vector, mean_weights
from adafw.rows.centred import CentredRows
from adafw.rows.csr import as_csr
from adafw.rows.spectral import spectral_norm
from adafw.rows.working import WorkingRows
from adafw.typing import Array, Batch, Plain

#: Up to so many rows or columns the spectral norm is computed exactly.
_EXACT = 1024


class DistributedRows(Rows):
    """The rows of all parts of an engine, one part after the other.

    `dot`, `combine` and all that is made of them are one round trip each. A batch goes to the
    parts that hold it by row numbers; the rows themselves stay where they are, except for those
    that `take` or `columns` asks for.

    Parameters
    ----------
    engine : of the parts.
    dtype : of points and products; None means that of the data.
    chosen : columns that these rows are restricted to.
    """

    by_coordinates = True
    remote = True

    @property
    def kind(self) -> tuple[object, ...]:
        return type(self), self.dtype, self.first.kind, self.first.dtype

    def __init__(
        self,
        engine: Engine,
        dtype: DTypeLike | None = None,
        chosen: NDArray[np.int64] | None = None,
    ) -> None:
        self.engine, self.chosen = engine, chosen
        headers = engine.known_headers
        self.first = next(h for h in headers if h.rows)
        self.starts = np.concatenate([[0], np.cumsum([h.rows for h in headers])]).astype(np.int64)
        n = engine.crew.features if chosen is None else chosen.size
        assert n is not None
        self.shape = (int(self.starts[-1]), int(n))
        self.dtype = np.dtype(self.first.dtype if dtype is None else dtype)
        self._clock = (time.monotonic(), engine.traffic.copy())
        self._held: dict[int, tuple[NDArray[Any], NDArray[Any]]] = {}

    @property
    def traffic(self) -> Traffic:
        """What was asked of the workers so far."""
        return self.engine.traffic

    # -- products ----------------------------------------------------------------------------

    def dot(self, x: Vector, batch: Batch = None) -> Vector:
        x = _checked(x, self.shape[1], "x")
        if batch is None:
            return self._ask("dot", x=x).by_rows()
        parts, positions, local = self._split(batch)
        answer = self._ask("dot", parts, x=x, own=lambda k: {"batch": local[k]})
        return answer.by_rows(positions, len(batch), (), self.dtype)

    def combine(self, weights: Vector, batch: Batch = None) -> Vector:
        if batch is None:
            weights = _checked(weights, self.shape[0], "weights")
            return self._ask("combine", own=self._slices(weights)).total
        weights = _checked(weights, len(batch), "weights")
        parts, positions, local = self._split(batch)
        if not parts:
            return np.zeros(self.shape[1], self.dtype)
        own: dict[int, Own] = {k: {"p": weights[positions[k]], "batch": local[k]} for k in parts}
        return self._ask("combine", parts, own=own.__getitem__).total

    def dot_matrix(self, x: Vector, batch: Batch = None) -> Vector:
        """One round trip, whatever the number of columns."""
        if not x.shape[1]:
            return super().dot_matrix(x, batch)
        x = _checked(x, self.shape[1], "x")
        common: Common = {"outputs": x.shape[1]}
        if batch is None:
            return self._ask("dot_matrix", x=x, common=common).by_rows()
        parts, positions, local = self._split(batch)
        answer = self._ask(
            "dot_matrix", parts, x=x, common=common, own=lambda k: {"batch": local[k]}
        )
        return answer.by_rows(positions, len(batch), (x.shape[1],), self.dtype)

    def combine_matrix(self, weights: Vector, batch: Batch = None) -> Vector:
        if not weights.shape[1]:
            return super().combine_matrix(weights, batch)
        shape = (self.shape[1], weights.shape[1])
        if batch is None:
            own = self._slices(_checked(weights, self.shape[0], "weights"))
            return self._ask("combine_matrix", own=own).total.reshape(shape)
        weights = _checked(weights, len(batch), "weights")
        parts, positions, local = self._split(batch)
        if not parts:
            return np.zeros(shape, self.dtype)
        each: dict[int, Own] = {k: {"p": weights[positions[k]], "batch": local[k]} for k in parts}
        return self._ask("combine_matrix", parts, own=each.__getitem__).total.reshape(shape)

    def pull(self, x: Vector, how: Pull, batch: NDArray[np.integer[Any]]) -> tuple[Vector, Vector]:
        """One round trip: row numbers and targets go out, slopes and the sum come back."""
        x = _checked(x, self.shape[1], "x")
        parts, positions, local = self._split(batch)
        if not parts:
            return np.empty(0, self.dtype), np.zeros(self.shape[1], self.dtype)
        own: dict[int, Own] = {k: {"how": how.part(positions[k]), "batch": local[k]} for k in parts}
        answer = self._ask("pull", parts, x=x, own=own.__getitem__)
        return answer.by_rows(positions, len(batch), (), self.dtype), answer.total

    def curve(self, weights: Vector, d: Vector) -> tuple[Vector, Vector]:
        d = _checked(d, self.shape[1], "d")
        answer = self._ask(
            "curve", x=d, own=self._slices(_checked(weights, self.shape[0], "weights"))
        )
        return answer.total, answer.by_rows()

    def risk(self, x: Vector, loss: Loss, total: float) -> tuple[float, Vector]:
        """(mean loss, its gradient), from the targets and weights that the parts came with.

        Neither predictions nor slopes travel: x goes out, one vector a worker comes back. `total`
        is the sum of all weights.
        """
        common: Common = {"loss": loss, "total": total}
        value, gradient = self._ask("risk", x=_checked(x, self.shape[1], "x"), common=common).summed
        return float(value), gradient

    def mean_of_points(self, x: Vector, how: Common, own: Each) -> Vector:
        """What local iterations from x lead to, on average (`local_steps`)."""
        return self._ask("local", x=x, common=how, own=own).total

    def gram(self, weights: Vector) -> Vector:
        own = self._slices(_checked(weights, self.shape[0], "weights"))
        return self._ask("gram", own=own).total

    # -- facts -------------------------------------------------------------------------------

    @property
    def stored(self) -> int:
        return sum(h.stored for h in self.engine.known_headers)

    @property
    def largest(self) -> float:
        return max(h.largest for h in self.engine.known_headers)

    def norms(self, p: float, axis: int = 1) -> Vector:
        answer = self._ask("norms", common={"p": p, "axis": axis})
        if axis == 1:
            return answer.by_rows()
        each = np.array(answer.each())
        return np.asarray(np.linalg.norm(each, p, axis=0))  # of norms: of the whole column

    def spectral_norm(self, weights: Vector | None = None) -> tuple[float, bool]:
        if self.shape[1] <= _EXACT:
            from scipy.linalg import eigvalsh

            ones = np.ones(self.shape[0]) if weights is None else weights.astype(np.float64)
            last = [self.shape[1] - 1] * 2
            largest = eigvalsh(self.doubled().gram(ones), subset_by_index=last)[0]
            return math.sqrt(max(0.0, float(largest))), True
        if self.shape[0] <= _EXACT:
            return self.take(np.arange(self.shape[0])).spectral_norm(weights)
        return spectral_norm(_Matrix(self), weights)

    def variances(self, weights: Vector) -> Vector:
        """Joined from those of the parts (Chan, Golub, LeVeque 1983)."""
        answer = self._ask("moments", own=self._slices(mean_weights(weights, self.shape[0])))
        each = answer.each()
        total = math.fsum(w for w, _, _ in each)
        mean = sum((w / total) * c for w, c, _ in each)
        return np.asarray(sum((w / total) * (v + (c - mean) ** 2) for w, c, v in each))

    def describe(self) -> dict[str, Plain]:
        """Does not depend on how the rows are cut into parts, nor on who holds them."""
        if self.description is None:
            answer = self._ask("mark", own=lambda k: {"start": int(self.starts[k])})
            mark = sum(answer.own.values()) % 2**64
            first = self.first
            self.description = {
                "name": f"distributed {first.kind}", "shape": list(self.shape),
                "dtype": first.dtype, "stored": self.stored, "digest": f"{mark:016x}",
            }  # fmt: skip
        return self.description

    def status(self) -> str:
        """Workers, rows and bytes a second since the last call."""
        now, traffic = time.monotonic(), self.traffic.copy()
        then, before = self._clock
        self._clock = (now, traffic)
        # Two calls within the clock's resolution must not divide by 0.
        passed = max(now - then, 1e-9)
        moved = traffic.sent + traffic.received - before.sent - before.received
        workers = len(self.engine.placement.workers)
        return (
            f"{workers} worker{'s' if workers != 1 else ''}, "
            f"{(traffic.rows - before.rows) / passed:.3g} rows/s, {moved / passed / 1e6:.3g} MB/s"
        )

    def __str__(self) -> str:
        return (
            f"{self.shape[0]} x {self.shape[1]} {self.first.kind} in {len(self.starts) - 1} parts"
        )

    # -- other rows --------------------------------------------------------------------------

    def take(self, indices: NDArray[np.integer[Any]]) -> Rows:
        """These rows, here: for samples."""
        parts, positions, local = self._split(np.asarray(indices))
        answer = self._ask("take", parts, own=lambda k: {"batch": local[k]})
        stacked = _stacked([answer.own[k] for k in parts])
        order = np.argsort(np.concatenate([positions[k] for k in parts]), kind="stable")
        rows = stacked.take(order)
        return rows.doubled() if self.dtype != rows.dtype else rows

    def doubled(self) -> Rows:
        if self.dtype == np.float64:
            return self
        rows = copy(self)
        rows.dtype, rows.description = np.dtype(np.float64), None
        return rows

    def columns(self, indices: NDArray[np.integer[Any]]) -> Rows:
        """Rows on the workers still: each restricts what it has."""
        return DistributedRows(self.engine, self.dtype, self._stored(indices))

    def centred(self, weights: Vector | None = None) -> tuple[Rows, Vector]:
        mean = self.combine(mean_weights(weights, self.shape[0]).astype(self.dtype))
        return CentredRows(self, mean), mean

    def working(self, chosen: NDArray[np.int64], last: WorkingRows | None = None) -> WorkingRows:
        return DistributedWorking(self._stored(chosen), self.shape[0], self._ask, self._slices)

    def holding(self, chosen: NDArray[np.int64]) -> tuple[Rows, NDArray[np.int64]]:
        """The chosen columns, brought here once each.

        Where they are too many for a Gram matrix, steps go through them one by one, which no
        network could follow.
        """
        from scipy import sparse

        numbers = self._stored(chosen).tolist()
        fresh = np.array([j for j in numbers if j not in self._held], np.int64)
        if fresh.size:
            answer = self._ask("columns", common={"chosen": fresh})
            whole = _stacked(answer.each())
            values, rows, starts = whole.column_arrays()
            for i, j in enumerate(fresh.tolist()):
                part = slice(int(starts[i]), int(starts[i + 1]))
                self._held[j] = (values[part], rows[part].astype(np.int64))
        values = np.concatenate([self._held[j][0] for j in numbers])
        rows = np.concatenate([self._held[j][1] for j in numbers])
        starts = np.cumsum([0, *(self._held[j][0].size for j in numbers)])
        matrix = sparse.csc_array((values, rows, starts), shape=(self.shape[0], len(numbers)))
        return as_rows(matrix, finite=True), np.arange(len(numbers))

    # -- how parts are asked -----------------------------------------------------------------

    def _stored(self, columns: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """The numbers that these columns have in the parts."""
        found = np.asarray(columns, np.int64)
        return found if self.chosen is None else self.chosen[found]

    def _ask(
        self, operation: str, parts: list[int] | None = None, *, x: Array | None = None,
        common: Common | None = None,
        own: Each = lambda k: {},
    ) -> Answer:  # fmt: skip
        common = {"dtype": self.dtype.name, "columns": self.chosen, **(common or {})}
        return self.engine.ask(operation, parts, x=x, common=common, own=own)

    def _slices(self, weights: Vector) -> Each:
        return lambda k: {"p": weights[self.starts[k] : self.starts[k + 1]]}

    def _split(
        self, batch: NDArray[np.integer[Any]]
    ) -> tuple[list[int], dict[int, NDArray[np.int64]], dict[int, NDArray[np.uint32]]]:
        """(parts that hold some of the batch, positions in it, row numbers within the part)."""
        rows = np.asarray(batch, np.int64)
        if rows.size and (rows.min() < 0 or rows.max() >= self.shape[0]):
            raise IndexError(
                f"a batch must hold row numbers from 0 to {self.shape[0] - 1}, got {batch}."
            )
        part = np.searchsorted(self.starts, rows, side="right") - 1
        order = np.argsort(part, kind="stable")
        found, first = np.unique(part[order], return_index=True)
        pieces = np.split(order, first[1:]) if found.size else []
        numbers = found.tolist()
        positions = dict(zip(numbers, pieces, strict=True))
        local = {k: (rows[positions[k]] - self.starts[k]).astype(np.uint32) for k in numbers}
        return numbers, positions, local


class _Matrix:
    """Products as `spectral_norm` asks for them."""

    def __init__(self, rows: DistributedRows, turned: bool = False) -> None:
        self.rows, self.turned = rows, turned
        self.shape = rows.shape[::-1] if turned else rows.shape
        self.dtype = rows.dtype

    @property
    def T(self) -> "_Matrix":
        return _Matrix(self.rows, not self.turned)

    def __matmul__(self, u: Vector) -> Vector:
        return self.rows.combine(u) if self.turned else self.rows.dot(u)


def _stacked(pieces: list[tuple[dict[str, NDArray[Any]], tuple[int, int]]]) -> Rows:
    """Rows that came in pieces, one below the other."""
    arrays = [piece for piece, _ in pieces]
    data = np.concatenate([a["data"] for a in arrays])
    if "indptr" not in arrays[0]:
        return as_rows(data, finite=True)
    ends = np.cumsum([0, *(a["indptr"][-1] for a in arrays)])
    indptr = np.concatenate(
        [[0], *(a["indptr"][1:] + end for a, end in zip(arrays, ends[:-1], strict=True))]
    ).astype(np.int64)
    shape = (sum(s[0] for _, s in pieces), pieces[0][1][1])
    indices = np.concatenate([a["indices"] for a in arrays])
    return as_rows(as_csr(data, indices, indptr, shape), finite=True)


def _checked(v: Vector, size: int, name: str) -> Vector:
    if v.shape[:1] != (size,):
        raise ValueError(f"{name} must have shape ({size},), got {v.shape}.")
    return np.ascontiguousarray(v)
