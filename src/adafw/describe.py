"""Plain descriptions of configuration objects, to compare, to print and to store with a state."""

import dataclasses
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.arrays import Constant
from adafw.schedules import Schedule
from adafw.typing import Plain

#: Iterations at which a user's function of t is sampled: two that agree here count as one.
_SAMPLES = (0, 1, 2, 3, 5, 10, 100, 1000)

#: Of a large array, so many blocks of so many bytes are hashed.
_BLOCKS, _BLOCK = 256, 1 << 16
#: Bytes up to which zlib's CRC is fast enough, and needs nothing compiled.
_SMALL = 1 << 18


def describe(thing: object) -> Plain:
    """Numbers, strings, lists and dicts that tell `thing` from another of its kind.

    A dataclass becomes its name and its fields, a function of t its values at a few t, an array
    of more than 16 entries its shape, dtype and a digest.
    """
    if thing is None or isinstance(thing, str | bool | int | float):
        return thing
    if isinstance(thing, np.generic):
        return thing.item()
    # Its copies for other dtypes and devices are no part of what it is.
    if isinstance(thing, Constant):
        return describe(thing.value)
    if isinstance(thing, np.ndarray):
        return thing.tolist() if thing.size <= 16 else digest(thing)
    if isinstance(thing, list | tuple):
        return [describe(part) for part in thing]
    if isinstance(thing, Schedule):
        known = isinstance(thing.rule, float) or dataclasses.is_dataclass(thing.rule)
        return describe(thing.rule) if known else [_at(thing.rule, t) for t in _SAMPLES]
    if dataclasses.is_dataclass(thing):
        fields = {f.name: describe(getattr(thing, f.name)) for f in dataclasses.fields(thing)}
        return {"name": type(thing).__name__, **fields}
    # A function or an object of the user's: its name is all there is; values at x tell more later.
    return {"name": str(getattr(thing, "__qualname__", type(thing).__name__))}


def digest(array: NDArray[Any]) -> dict[str, Plain]:
    """Shape, dtype and a mark of the entries: all of them up to 16 MB, else 256 blocks of 64 kB.

    The blocks lie evenly over the array, the first and the last among them: data larger than
    memory must not be read through to be recognised. Marks tell mistakes, not malice, apart, but
    are an order of magnitude faster than a cryptographic hash, and every run pays for them.
    """
    flat = np.ascontiguousarray(array).reshape(-1)
    block = max(1, _BLOCK // flat.itemsize)
    if flat.nbytes <= _SMALL:
        mark = f"{zlib.crc32(flat.data if flat.size else b''):08x}"
    elif flat.nbytes <= _BLOCKS * _BLOCK:
        mark = f"{_mark(flat):016x}"
    else:
        starts = np.linspace(0, flat.size - block, _BLOCKS).astype(np.int64)
        mark = f"{_blocks(flat, starts, block):016x}"
    return {"shape": list(array.shape), "dtype": str(array.dtype), "digest": mark}


def _mark(flat: NDArray[Any], begin: int = 0) -> int:
    """64 bits that depend on all bits of the array, and on `begin`; seven times as fast as CRC."""
    from adafw.kernels.marks import mark

    data = flat.view(np.uint8)
    whole = data.size - data.size % 8
    begin += zlib.crc32(data[whole:].data)
    return int(mark(_words(data[:whole]), np.uint64(begin % 2**64)))


def _blocks(flat: NDArray[Any], starts: NDArray[np.int64], block: int) -> int:
    """The mark of these blocks; a call for all where entries are words."""
    from adafw.kernels import marks

    if flat.itemsize == 8 and type(flat) is np.ndarray:
        return int(marks.blocks(_words(flat), starts, block, np.uint64(0)))
    total = 0
    for start in starts:
        total = _mark(np.ascontiguousarray(flat[start : start + block]), total)
    return total


def _words(flat: NDArray[Any]) -> NDArray[np.uint64]:
    """Bytes, as many as words have, as compiled code takes them."""
    words = flat.view(np.uint64)
    words.flags.writeable = False  # mapped and ordinary arrays share one compiled function
    return words


def _at(rule: Any, t: int) -> float | None:
    """The value of a user's function, which need not be defined at every t."""
    try:
        return float(rule(t))
    except Exception:
        return None
