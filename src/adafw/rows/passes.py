"""Products with all rows of a large dense array: one pass over memory each, on all cores.

Sums over the rows are cut by the data alone, and where the blocks of `curves` end: their bits are
neither the machine's nor those of the product that was asked for.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from adafw.rows.base import AtOnce, Vector
from adafw.typing import Array

_PARTS = 4


def dots(array: Array, x: Vector) -> Vector:
    """A x."""
    from adafw.kernels import dense, threads

    out = np.empty(len(array), np.result_type(array.dtype, x.dtype))
    ranges = _ranges(len(array))
    threads.share(lambda k: dense.dots(array, *ranges[k], x, out), len(ranges))
    return out


def adds(array: Array, weights: Vector) -> Vector:
    """A^T weights."""
    from adafw.kernels import dense

    def work(first: int, last: int, out: Vector) -> None:
        dense.adds(array, first, last, weights, out)

    return _summed(array, np.result_type(array.dtype, weights.dtype), work)


def curve(array: Array, weights: Vector, d: Vector, dtype: DTypeLike) -> tuple[Vector, Vector]:
    """(A^T W A d, A d)."""
    from adafw.kernels import dense

    move, bent = np.empty(len(array), dtype), np.empty(len(array), dtype)

    def work(first: int, last: int, out: Vector) -> None:
        dense.curve(array, first, last, weights, d, move, bent, out)

    return _summed(array, dtype, work), move


def narrow_curve(
    array: Array, weights: Vector, d: Vector, single: NDArray[np.float32]
) -> tuple[Vector, Vector]:
    """The same of A in single precision, which is written on the way."""
    from adafw.kernels import dense

    move, bent = np.empty(len(array), np.float32), np.empty(len(array), np.float32)

    def work(first: int, last: int, out: Vector) -> None:
        dense.narrow_curve(array, first, last, weights, d, single, move, bent, out)

    return _summed(array, np.float32, work), move


def at_once(loss_code: int, array: Array, x: Vector, y: Vector, weights: Vector) -> AtOnce:
    """`Rows.at_once`."""
    from adafw.kernels import dense
    from adafw.kernels.curves import BLOCK

    m = len(array)
    z, slopes, bends = np.empty(m), np.empty(m), np.empty(m)
    values = np.zeros(-(-m // BLOCK))

    def work(first: int, last: int, out: Vector) -> None:
        dense.risk(loss_code, array, first, last, x, y, weights, z, slopes, bends, values, out)

    gradient = _summed(array, np.float64, work)
    return z, (float(np.cumsum(values)[-1]) / m, slopes, bends), gradient


def squares(array: Array) -> Vector:
    """The sums of the squares of the columns."""
    from adafw.kernels import dense

    return _summed(array, np.float64, lambda *part: dense.squares(array, *part))


def survey(array: Array, weights: Vector) -> tuple[Vector, Vector]:
    """(`squares`, `adds`), in one pass."""
    from adafw.kernels import dense

    n = array.shape[1]

    def work(first: int, last: int, out: Vector) -> None:
        dense.survey(array, first, last, weights, out[:n], out[n:])

    both = _summed(array, np.float64, work, 2 * n)
    return both[:n], both[n:]


def counts(array: Array) -> NDArray[np.int64]:
    """How many entries of each row are not 0."""
    from adafw.kernels import dense, threads

    out, ranges = np.empty(len(array), np.int64), _ranges(len(array))
    threads.share(lambda k: dense.count(array, *ranges[k], out), len(ranges))
    return out


def entries(array: Array, starts: NDArray[np.int64]) -> tuple[Vector, NDArray[Any]]:
    """What is not 0, row by row, and in which column; starts: where each row begins, and ends."""
    from adafw.kernels import dense, threads

    wide = array.shape[1] > np.iinfo(np.int32).max
    values: Vector = np.empty(int(starts[-1]), array.dtype)
    columns: NDArray[Any] = np.empty(values.size, np.int64 if wide else np.int32)
    ranges = _ranges(len(array))
    threads.share(
        lambda k: dense.list_entries(array, *ranges[k], starts, values, columns), len(ranges)
    )
    return values, columns


def _summed(
    array: Array, dtype: DTypeLike, work: Callable[[int, int, Vector], None], size: int = 0
) -> Vector:
    """What work(first, last, out) adds to out, as long as a row or of `size`, over all rows."""
    from adafw.kernels import threads

    ranges = _ranges(len(array))
    sums = np.zeros((len(ranges), size or array.shape[1]), dtype)
    threads.share(lambda k: work(*ranges[k], sums[k]), len(ranges))
    return np.asarray(sums.sum(axis=0)) if len(sums) > 1 else sums[0]


def _ranges(m: int) -> list[tuple[int, int]]:
    from adafw.kernels import threads
    from adafw.kernels.curves import BLOCK

    blocks = -(-m // BLOCK)
    cuts = threads.bounds(blocks, max(1, min(_PARTS, blocks)))
    return [(BLOCK * first, min(BLOCK * last, m)) for first, last in cuts]
