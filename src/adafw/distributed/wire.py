"""What travels between the coordinator and the workers: plain arrays, in their shortest form."""

import pickle
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.distributed.typing import Common, Own, Summed, Told

Vector = NDArray[Any]

#: Bytes of a position beside those of its value.
_POSITION = 4


@dataclass(frozen=True)
class Packed:
    """A vector: all entries, or those at `index`, which replace 0 or entries of a known vector."""

    size: int
    values: Vector
    index: NDArray[np.uint32] | None = None
    #: The number of the known vector; None for 0.
    base: int | None = None

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + (0 if self.index is None else self.index.nbytes)

    def unpack(self, base: Vector | None = None) -> Vector:
        """The vector, `base` being the known one."""
        if self.index is None:
            return self.values
        full = np.zeros(self.size, self.values.dtype) if base is None else base.copy()
        full[self.index] = self.values
        return full


def pack(v: Vector, known: tuple[int, Vector] | None = None) -> Packed:
    """The shortest form of v, given a (number, vector) that the other side knows."""
    v = np.ascontiguousarray(v).reshape(-1)
    least, index, base = v.nbytes, None, None
    share = v.itemsize / (v.itemsize + _POSITION)
    if v.size < 2**32:
        choices: list[tuple[int | None, NDArray[np.bool_]]] = [(None, v != 0)]
        if known is not None and known[1].dtype == v.dtype and known[1].size == v.size:
            choices.append((known[0], known[1] != v))
        for number, differs in choices:
            count = int(np.count_nonzero(differs))
            if count < share * v.size and count * (v.itemsize + _POSITION) < least:
                least, base = count * (v.itemsize + _POSITION), number
                index = np.flatnonzero(differs).astype(np.uint32)
    return Packed(v.size, v if index is None else v[index], index, base)


@dataclass(frozen=True)
class Message:
    """One operation on some parts of one worker."""

    data: str  #: whose parts
    parts: list[int]
    operation: str
    common: Common
    own: list[Own]  #: for each part
    x: Packed | None = None
    version: int = 0  #: of x

    @property
    def nbytes(self) -> int:
        return size_of(self.common) + size_of(self.own) + (0 if self.x is None else self.x.nbytes)


@dataclass(frozen=True)
class Reply:
    """Sums over the parts, and one thing a part."""

    summed: Summed = ()
    own: list[Told] = field(default_factory=list)
    seconds: float = 0.0  #: of CPU that the operation took

    @property
    def nbytes(self) -> int:
        return size_of(self.summed) + size_of(self.own)


@dataclass(frozen=True)
class Missing:
    """What a worker was asked about and does not have: parts, or the vector that x builds on."""

    parts: list[int]
    x: bool = False


@dataclass(frozen=True)
class Failed:
    """What an operation raised: no matter of the cluster."""

    error: Exception

    @classmethod
    def by(cls, error: Exception, where: str = "") -> "Failed":
        """As it can travel: some errors cannot be made again from what they were made of."""
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            error = RuntimeError(f"{type(error).__name__}: {error}")
        if where:
            error.add_note(where)
        return cls(error)


def size_of(thing: object) -> int:
    """Bytes of the arrays in it."""
    if isinstance(thing, np.ndarray | Packed):
        return int(thing.nbytes)
    if isinstance(thing, dict):
        return sum(size_of(part) for part in thing.values())
    if isinstance(thing, list | tuple):
        return sum(size_of(part) for part in thing)
    parts = getattr(thing, "__dict__", None)
    return 8 if parts is None else sum(size_of(part) for part in parts.values())
