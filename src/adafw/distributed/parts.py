"""Some of the rows on a worker, and what they are asked for."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from adafw.distributed.recipes import Block
from adafw.distributed.typing import Common, Own, Summed, Told
from adafw.distributed.wire import pack
from adafw.losses import Loss
from adafw.objectives import LinearModel
from adafw.rows import Rows, as_rows
from adafw.rows.csr import as_csr
from adafw.rows.files import InMemory
from adafw.rows.working import WorkingRows
from adafw.typing import Array

#: Entries whose fingerprint is taken at a time.
_SLICE = 1 << 20
_ODD = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)


@dataclass(frozen=True)
class Header:
    """What the coordinator keeps of a part."""

    rows: int
    features: int
    dtype: str
    stored: int
    nbytes: int
    kind: str
    largest: float
    y: NDArray[Any]
    weight: NDArray[Any] | None
    zero_based: bool | None
    names: tuple[str, ...] | None

    def is_of(self, other: "Header") -> bool:
        """Whether both are of the same rows, as far as headers can tell."""
        told = ("rows", "features", "dtype", "stored", "kind", "largest", "y", "weight", "names")
        return all(np.array_equal(vars(self)[name], vars(other)[name]) for name in told)

    @classmethod
    def of_nothing(cls, block: Block) -> "Header":
        """Of a part without rows."""
        return cls(0, block.X.shape[1], "", 0, 0, "", 0.0, block.y, block.weight, None, None)


@dataclass
class HeldPart:
    """A block as rows, and what was made of it for the operations that are asked for again."""

    rows: Rows
    block: Block
    _doubled: Rows | None = None
    _working: tuple[NDArray[np.int64], WorkingRows] | None = None
    _narrow: tuple[str, NDArray[np.int64], Rows] | None = None
    _model: tuple[str, Rows, LinearModel] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.rows.passing = True  # a worker's memory is for other parts

    @classmethod
    def of(cls, block: Block, name: str) -> "HeldPart":
        try:
            return cls(as_rows(block.X), replace(block, X=None))
        except (ValueError, TypeError) as error:
            raise type(error)(f"{name}: {error}") from None

    def header(self) -> Header:
        arrays = self.rows.parts()
        return Header(
            self.rows.shape[0], self.rows.shape[1], self.rows.dtype.name, self.rows.stored,
            sum(part.nbytes for part in arrays.values()), "csr" if "indptr" in arrays else "dense",
            self.rows.largest, self.block.y, self.block.weight, self.block.zero_based,
            self.block.names,
        )  # fmt: skip

    def widen(self, n: int) -> None:
        """Columns up to n, which other parts have: nothing is copied."""
        if self.rows.shape[1] < n:
            a = self.rows.parts()
            shape = (self.rows.shape[0], n)
            self.rows = as_rows(as_csr(a["data"], a["indices"], a["indptr"], shape), finite=True)
            self.rows.passing = True

    def seen_as(self, dtype: str, columns: NDArray[np.int64] | None) -> Rows:
        """The rows with products of a dtype, and of some columns alone."""
        rows = self.rows
        if dtype != rows.dtype.name:
            if self._doubled is None:
                self._doubled = rows.doubled()
            rows = self._doubled
        if columns is None:
            return rows
        known = self._narrow
        if known is None or known[0] != dtype or not np.array_equal(known[1], columns):
            known = self._narrow = (dtype, columns, rows.columns(columns))
        return known[2]

    def working(self, chosen: NDArray[np.int64]) -> WorkingRows:
        if self._working is None or not np.array_equal(self._working[0], chosen):
            last = None if self._working is None else self._working[1]
            self._working = (chosen, self.rows.working(chosen, last))
        return self._working[1]

    def model(self, loss: Loss, rows: Rows) -> LinearModel | None:
        """The mean loss of this part alone, in its own weights; None if they are all 0."""
        weight = self.block.weight
        if weight is not None and not weight.any():
            return None
        if self._model is None or self._model[:2] != (repr(loss), rows):
            self._model = (repr(loss), rows, LinearModel(rows, self.block.y, loss, weight))
        return self._model[2]


Result: TypeAlias = tuple[Summed, Told]
#: (part, x, common, own) -> (what is summed over the parts, what is of this part alone).
Operation = Callable[[HeldPart, Array, Common, Own], Result]


def _rows(part: HeldPart, common: Common) -> Rows:
    return part.seen_as(common["dtype"], common.get("columns"))


def _dot(part: HeldPart, x: Array, common: Common, own: Own) -> Result:
    return (), _rows(part, common).dot(x, own.get("batch"))


def _combine(part: HeldPart, x: Array, common: Common, own: Own) -> Result:
    return (_rows(part, common).combine(own["p"], own.get("batch")),), None


def _dot_matrix(part: HeldPart, x: Array, common: Common, own: Own) -> Result:
    return (), _rows(part, common).dot_matrix(x.reshape(-1, common["outputs"]), own.get("batch"))


def _combine_matrix(part: HeldPart, x: Array, common: Common, own: Own) -> Result:
    """Without the copy of the rows by columns that one machine would make: memory is short here."""
    rows = cast(InMemory, _rows(part, common))
    p = own["p"]
    if "batch" in own:
        return (rows.combine_matrix(p, own["batch"]).reshape(-1),), None
    total = np.zeros((rows.shape[1], p.shape[1]), np.result_type(rows.dtype, p.dtype))
    rows.add_combined_matrix(p, total)
    return (total.reshape(-1),), None


def _pull(part: HeldPart, x: Array, common: Common, own: Own) -> Result:
    slopes, total = _rows(part, common).pull(x, own["how"], own["batch"])
    return (total,), slopes


def _curve(part: HeldPart, x: Array, common: Common, own: Own) -> Result:
    image, move = _rows(part, common).curve(own["p"], x)
    return (image,), move


def _risk(part: HeldPart, x: Array, common: Common, own: Own) -> Result:
    """This part's share of the mean loss, and its gradient; predictions are never sent."""
    rows = _rows(part, common)
    f = part.model(common["loss"], rows)
    if f is None:
        return (0.0, np.zeros(rows.shape[1], x.dtype)), None
    weight = part.block.weight
    count = rows.shape[0] if weight is None else float(weight.sum(dtype=np.float64))
    code = f.loss_code if f.in_one_pass else None
    once = None if code is None else rows.loss_and_gradient(code, x, f.y, f.term_weights)
    value, gradient = once or f.value_and_gradient(x)
    return (value * count / common["total"], gradient * (count / common["total"])), None


def _gram(part: HeldPart, x: Array, common: Common, own: Own) -> Result:
    return (_rows(part, common).gram(own["p"]),), None


def _moments(part: HeldPart, x: Array, common: Common, own: Own) -> Result:
    """(total weight, mean, variance) of the columns: the coordinator joins them."""
    rows, w = _rows(part, common), own["p"]
    total = float(w.sum(dtype=np.float64))
    if not total > 0:
        return (), (0.0, np.zeros(rows.shape[1]), np.zeros(rows.shape[1]))
    mean = np.asarray(rows.combine((w / total).astype(w.dtype)), np.float64)
    return (), (total, mean, rows.variances(w))


def _norms(part: HeldPart, x: Array, common: Common, own: Own) -> Result:
    return (), _rows(part, common).norms(common["p"], common["axis"])


def _take(part: HeldPart, x: Array, common: Common, own: Own) -> Result:
    taken = _rows(part, common).take(own["batch"])
    return (), (taken.parts(), taken.shape)


def _columns(part: HeldPart, x: Array, common: Common, own: Own) -> Result:
    narrow = part.rows.columns(common["chosen"])
    return (), (narrow.parts(), narrow.shape)


def _working_dot(part: HeldPart, x: Array, common: Common, own: Own) -> Result:
    return (), part.working(common["chosen"]).dot(common["w"])


def _working_combine(part: HeldPart, x: Array, common: Common, own: Own) -> Result:
    return (part.working(common["chosen"]).combine(own["p"]),), None


def _working_squares(part: HeldPart, x: Array, common: Common, own: Own) -> Result:
    return (part.working(common["chosen"]).squares(own["p"]),), None


def _working_product(part: HeldPart, x: Array, common: Common, own: Own) -> Result:
    return (part.working(common["chosen"]).product(own["p"], common["w"]),), None


def _working_gram(part: HeldPart, x: Array, common: Common, own: Own) -> Result:
    """The lower triangle, row by row, from row `first` on."""
    size, first = common["chosen"].size, common["first"]
    gram = np.zeros((size, size))
    part.working(common["chosen"]).add_gram(own["p"], gram, first)
    return (gram[np.tril_indices(size)][first * (first + 1) // 2 :],), None


def _mark(part: HeldPart, x: Array, common: Common, own: Own) -> Result:
    """A sum over the entries that does not depend on how the rows are cut into parts."""
    arrays, n = part.rows.parts(), part.rows.shape[1]
    values = arrays["data"].reshape(-1)
    total = np.uint64(0)
    with np.errstate(over="ignore"):
        for start in range(0, values.size, _SLICE):
            piece = values[start : start + _SLICE]
            at = np.arange(start, start + piece.size)
            if "indptr" in arrays:
                rows = np.searchsorted(arrays["indptr"], at, side="right") - 1
                columns = arrays["indices"][start : start + piece.size]
            else:
                rows, columns = at // n, at % n
            place = (rows + own["start"]).astype(np.uint64) * _ODD[0]
            place ^= columns.astype(np.uint64) * _ODD[1]
            mark = (place ^ (place >> np.uint64(29))) * _ODD[2]
            mark ^= piece.astype(np.float64).view(np.uint64)
            total += np.sum((mark ^ (mark >> np.uint64(32))) * _ODD[0], dtype=np.uint64)
    return (), int(total)


def _local(part: HeldPart, x: Array, common: Common, own: Own) -> Result:
    """Iterations on these rows alone; the point reached, with the weight of the part."""
    from adafw.distributed.local_run import run_locally

    f = part.model(common["loss"], part.rows)
    point = x if f is None else run_locally(f, x, common, own["number"])
    return (own["weight"] * point,), None


OPERATIONS: dict[str, Operation] = {
    "dot": _dot, "combine": _combine, "dot_matrix": _dot_matrix,
    "combine_matrix": _combine_matrix, "pull": _pull, "curve": _curve, "risk": _risk,
    "gram": _gram, "moments": _moments, "norms": _norms, "take": _take, "columns": _columns,
    "working_dot": _working_dot, "working_combine": _working_combine,
    "working_squares": _working_squares, "working_product": _working_product,
    "working_gram": _working_gram, "mark": _mark, "local": _local,
}  # fmt: skip


def summed(results: list[Summed]) -> Summed:
    """The sums over the parts, in their order; vectors in their shortest form."""
    totals = [
        math.fsum(v) if isinstance(v[0], float) else _add(v) for v in zip(*results, strict=True)
    ]
    return tuple(
        pack(total) if isinstance(total, np.ndarray) and total.ndim == 1 else total
        for total in totals
    )


def _add(values: Summed) -> Any:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total
