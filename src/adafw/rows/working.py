"""The rows restricted to a working set of columns: what second-order steps multiply with."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adafw.kernels import threads
from adafw.kernels.parts import OUTSIDE, Change, Csr, Part

Vector = NDArray[np.float64]
Columns = NDArray[np.int64]

#: Columns up to which a Gram matrix always pays, and above which it never does.
_FEW, _MANY, _MANY_DENSE = 64, 3000, 1500
#: Products with the part up to whose cost a Gram matrix and its factors pay, in between: about
#: what conjugate gradients need in their place.
_WORTH = 200
#: A copy of the lower triangle to the upper costs an entry so much less than one written alone.
_SCATTERED = 8
#: Columns with more than one in so many entries are picked in a pass over all of them.
_MOST = 6
#: Entries of a dense matrix scaled at a time, so that no second matrix of that size exists.
_SLICE = 1 << 20


class WorkingRows(ABC):
    """A_S, the columns S of the matrix, in the order in which they joined. Products are float64."""

    #: m, the number of rows.
    size: int
    #: S.
    chosen: Columns
    #: Whether a Gram matrix is worth its cost, and how many products that is.
    gram_pays: bool
    gram_work: float
    #: Whether rows are on other machines, so that a product may fail.
    remote: bool = False

    @abstractmethod
    def dot(self, w: Vector) -> Vector:
        """A_S w."""

    @abstractmethod
    def combine(self, p: Vector) -> Vector:
        """A_S^T p."""

    @abstractmethod
    def squares(self, p: Vector) -> Vector:
        """sum_i p_i a_ij^2 for each column j."""

    @abstractmethod
    def product(self, bends: Vector, d: Vector) -> Vector:
        """A_S^T (bends * A_S d)."""

    @abstractmethod
    def add_gram(self, weights: Vector, gram: Vector, first: int = 0) -> None:
        """gram += A_S^T diag(weights) A_S in its lower triangle, from row `first` on."""

    def renew_gram(self, weights: Vector, count: int, gram: Vector) -> None:
        """gram += A_S^T diag(weights) A_S, of which `count` are not 0; both of its triangles."""
        from adafw.kernels.working_set import mirror

        self.add_gram(weights, gram)
        mirror(gram)

    def trim(self) -> None:
        """Gives back memory that was reserved and is not used."""


def moved(before: Columns, chosen: Columns, n: int) -> tuple[NDArray[np.uint32], int]:
    """(new positions of the columns `before`, how many of `chosen` they are), if kept in order.

    `chosen` must begin with columns of `before` in their order; the others are fresh. A column
    that has gone, or is out of order, has the position OUTSIDE.
    """
    old = np.full(n, -1, np.int64)
    old[before] = np.arange(before.size)
    at = old[chosen]
    in_order = (at >= 0) & (np.diff(at, prepend=-1) > 0)
    kept = chosen.size if in_order.all() else int(in_order.argmin())
    new = np.full(before.size, OUTSIDE, np.uint32)
    new[at[:kept]] = np.arange(kept, dtype=np.uint32)
    return new, kept


class ListedWorking(WorkingRows):
    """Of a sparse matrix."""

    #: The entries, row by row.
    part: Part

    def add_gram(self, weights: Vector, gram: Vector, first: int = 0) -> None:
        from adafw.kernels.working_set import add_gram

        add_gram(self.part, weights, first, gram)

    def renew_gram(self, weights: Vector, count: int, gram: Vector) -> None:
        from adafw.kernels.working_set import add_few

        entries = self.gram_work * self.part.values.size * count / max(1, self.size)
        if _SCATTERED * entries < gram.size:
            add_few(self.part, weights, gram)
        else:
            super().renew_gram(weights, count, gram)

    def _weigh(self) -> None:
        """Says whether a Gram matrix pays."""
        size, count = self.chosen.size, self.part.values.size
        each = np.diff(self.part.starts.view(np.int64)).astype(np.float64)
        self.gram_work = float(each @ each) / max(1.0, 2.0 * count)
        # In products with the part: its multiplications miss the cache, and Cholesky's are fast.
        cost = 1.5 * self.gram_work + 0.01 * size**3 / max(1, count)
        self.gram_pays = size <= _FEW or (size <= _MANY and cost <= _WORTH)


class SparseWorking(ListedWorking):
    """Of a CSR matrix, from one pass over its columns' numbers (kernels/working_set.py).

    `n` is the number of its columns. Those that `last` holds, too, are copied from there.
    """

    def __init__(
        self, arrays: Csr, n: int, chosen: Columns,
        last: "SparseWorking | None" = None,
    ) -> None:  # fmt: skip
        from adafw.kernels import working_set

        self.kernels, self.chosen = working_set, chosen
        starts = arrays[2]
        self.size = starts.size - 1
        new, kept = np.empty(0, np.uint32), 0
        old = Part(np.empty(0), np.empty(0, np.uint32), np.zeros(starts.size, np.uint64))
        if last is not None:
            old, (new, kept) = last.part, moved(last.chosen, chosen, n)
        fresh, position = np.zeros(n, np.uint8), np.empty(n, np.uint32)
        fresh[chosen[kept:]] = 1
        position[chosen[kept:]] = np.arange(kept, chosen.size, dtype=np.uint32)
        block = int(working_set.BLOCK)
        cuts = np.append(starts[:-1:block], starts[-1]).view(np.int64)
        found = np.empty(int(np.diff(cuts).max(initial=0)) + 1, np.uint64)
        ends = np.empty(block, np.uint64)
        self.part = _extended(arrays, old, Change(new, fresh, position, found, ends))
        self._weigh()

    def dot(self, w: Vector) -> Vector:
        out = np.empty(self.size)
        self.kernels.dot(self.part, w, out)
        return out

    def combine(self, p: Vector) -> Vector:
        out = np.empty(self.chosen.size)
        self.kernels.combine(self.part, p, out)
        return out

    def squares(self, p: Vector) -> Vector:
        out = np.empty(self.chosen.size)
        self.kernels.squares(self.part, p, out)
        return out

    def product(self, bends: Vector, d: Vector) -> Vector:
        out = np.empty(self.chosen.size)
        self.kernels.product(self.part, bends, d, out)
        return out

    def trim(self) -> None:
        values, positions, starts = self.part
        self.part = Part(values.copy(), positions.copy(), starts)


class ColumnWorking(ListedWorking):
    """Of a sparse matrix that is there by columns, too: products run over them, without a copy.

    `rows` and `columns` are (values, columns or rows, starts). Gram matrices need the part row by
    row: the matrix itself where all columns are chosen in their order.
    """

    def __init__(self, rows: Csr, columns: Csr, chosen: Columns) -> None:
        from adafw.kernels import columns as picking
        from adafw.kernels import working_set

        self.kernels, self.picking, self.chosen, self.columns = (
            working_set,
            picking,
            chosen,
            columns,
        )
        self.size = rows[2].size - 1
        self._numbers = chosen.view(np.uint64)
        n = columns[2].size - 1
        if chosen.size == n and np.array_equal(chosen, np.arange(n)):
            self.part = Part(*rows)
        else:
            self.part = self._restricted(rows)
        self._weigh()

    def _restricted(self, rows: Csr) -> Part:
        values, _, begins = self.columns
        count = int((begins[self._numbers + np.uint64(1)] - begins[self._numbers]).sum())
        part = Part(
            np.empty(count + 1, values.dtype), np.empty(count + 1, np.uint32),
            np.zeros(self.size + 2, np.uint64),
        )  # fmt: skip
        if _MOST * count > values.size and (np.diff(self.chosen) > 0).all():
            # In the order of the rows, past what is not chosen.
            place = np.full(begins.size - 1, OUTSIDE, np.uint32)
            place[self.chosen] = np.arange(self.chosen.size, dtype=np.uint32)
            self.picking.pick(rows, place, 0, *part)
        else:
            self.kernels.rows_of(self.columns, self._numbers, part)
        for array in part:
            array.flags.writeable = False  # as the matrix's own are: they share compiled code
        return Part(part.values[:-1], part.positions[:-1], part.starts[:-1])

    def dot(self, w: Vector) -> Vector:
        out = np.empty(self.size)
        self.kernels.column_dot(self.columns, self._numbers, w, out)
        return out

    def combine(self, p: Vector) -> Vector:
        out = np.empty(self.chosen.size)
        self.kernels.column_combine(self.columns, self._numbers, p, out)
        return out

    def squares(self, p: Vector) -> Vector:
        out = np.empty(self.chosen.size)
        self.kernels.column_squares(self.columns, self._numbers, p, out)
        return out

    def product(self, bends: Vector, d: Vector) -> Vector:
        return self.combine(bends * self.dot(d))


def _extended(arrays: Csr, old: Part, change: Change) -> Part:
    """The part after this change.

    How many entries the fresh columns have is not known: counting them would cost a pass of its
    own, so room is made for an eighth of the matrix or more, and doubled where that is not enough.
    Memory that is not written to is not taken from the system, unless it was used before: `trim`.
    """
    from adafw.kernels.working_set import extend

    starts = arrays[2]
    share = min(1.0, 1 / 8 + 2 * np.count_nonzero(change.fresh) / change.fresh.size)
    room = old.values.size + int(share * arrays[0].size) + change.found.size + 1
    part = Part(np.empty(room), np.empty(room, np.uint32), np.zeros(starts.size, np.uint64))
    row, rows = 0, starts.size - 1
    while (row := int(extend(arrays, old, change, np.uint64(row), part))) < rows:
        room = 2 * part.values.size + change.found.size
        values, positions = np.empty(room), np.empty(room, np.uint32)
        count = int(part.starts[row])
        values[:count], positions[:count] = part.values[:count], part.positions[:count]
        part = Part(values, positions, part.starts)
    count = int(part.starts[-1])
    return Part(part.values[:count], part.positions[:count], part.starts)


class DenseWorking(WorkingRows):
    """Of a dense array: BLAS does the work."""

    def __init__(self, array: NDArray[Any], chosen: Columns) -> None:
        self.array, self.chosen = np.ascontiguousarray(array, np.float64), chosen
        self.size, size = self.array.shape
        self.gram_work = 0.1 * size
        self.gram_pays = size <= _MANY_DENSE  # BLAS makes it, and nothing else is as fast

    def dot(self, w: Vector) -> Vector:
        return self.array @ w

    def combine(self, p: Vector) -> Vector:
        return p @ self.array

    def squares(self, p: Vector) -> Vector:
        return np.einsum("i,ij,ij->j", p, self.array, self.array)

    def product(self, bends: Vector, d: Vector) -> Vector:
        return (bends * (self.array @ d)) @ self.array

    def add_gram(self, weights: Vector, gram: Vector, first: int = 0) -> None:
        for part in self._slices(weights):
            rows = self.array[part]
            gram[first:] += (rows[:, first:] * weights[part, None]).T @ rows

    def _slices(self, weights: Vector) -> list[slice | Columns]:
        """Rows with a weight, cut into slices; all of them if most have one."""
        chosen = np.flatnonzero(weights)
        step = max(1, _SLICE // max(1, self.array.shape[1]))
        if chosen.size > 0.7 * weights.size:
            return [slice(k, k + step) for k in range(0, weights.size, step)]
        return [chosen[k : k + step] for k in range(0, chosen.size, step)]


#: Restricts a piece of rows: from the columns chosen, and what it was restricted to before.
Restrict: TypeAlias = Callable[[Columns, WorkingRows | None], WorkingRows]


class PiecedWorking(WorkingRows):
    """Of rows that come in pieces from a disk: each piece restricted, and kept if memory allows.

    If not, every product is a pass over the disk. Sums are made in two halves, of every other
    piece each, on two cores: how does not depend on the machine, and neither do their bits.

    Parameters
    ----------
    pieces : makes a new iterator over (which rows, a function of (chosen, last) that restricts).
    keep : whether there is memory for the restricted pieces.
    last : what was kept before; its pieces are taken over one by one.
    """

    gram_pays = True  # nothing else can do without columns in memory
    #: Where products are passes over a disk, an old Gram matrix is better than a new one.
    gram_work = np.inf

    def __init__(
        self, pieces: Callable[[], Iterator[tuple[slice, Restrict]]], size: int, chosen: Columns,
        keep: bool, last: "PiecedWorking | None" = None,
    ) -> None:  # fmt: skip
        self.pieces, self.size, self.chosen = pieces, size, chosen
        self.kept: list[tuple[slice, WorkingRows]] = []
        before = [] if last is None else last.kept[::-1]
        if last is not None:
            last.kept = []  # its memory is given back piece by piece
        if keep:
            for part, restrict in pieces():
                old = before.pop()[1] if before else None
                rows = restrict(chosen, old)
                rows.trim()  # many pieces with room to spare would be half as much again
                self.kept.append((part, rows))
            self.gram_work = float(np.mean([w.gram_work for _, w in self.kept]))

    def dot(self, w: Vector) -> Vector:
        out = np.empty(self.size)

        def put(part: slice, rows: WorkingRows, _: Vector) -> None:
            out[part] = rows.dot(w)

        self._sum(put, (0,))
        return out

    def combine(self, p: Vector) -> Vector:
        def add(part: slice, rows: WorkingRows, total: Vector) -> None:
            total += rows.combine(p[part])

        return self._sum(add, (self.chosen.size,))

    def squares(self, p: Vector) -> Vector:
        def add(part: slice, rows: WorkingRows, total: Vector) -> None:
            total += rows.squares(p[part])

        return self._sum(add, (self.chosen.size,))

    def product(self, bends: Vector, d: Vector) -> Vector:
        def add(part: slice, rows: WorkingRows, total: Vector) -> None:
            total += rows.product(bends[part], d)

        return self._sum(add, (self.chosen.size,))

    def add_gram(self, weights: Vector, gram: Vector, first: int = 0) -> None:
        def add(part: slice, rows: WorkingRows, total: Vector) -> None:
            rows.add_gram(weights[part], total, first)

        gram += self._sum(add, gram.shape)

    def _sum(
        self, add: Callable[[slice, WorkingRows, Vector], None], shape: tuple[int, ...]
    ) -> Vector:
        totals = np.zeros((2, *shape))

        def half(k: int) -> None:
            for part, rows in self.kept[k::2]:
                add(part, rows, totals[k])

        if self.kept:
            threads.share(half, 2)
        else:
            for k, (part, restrict) in enumerate(self.pieces()):
                add(part, restrict(self.chosen, None), totals[k % 2])
        return np.asarray(totals.sum(axis=0))
