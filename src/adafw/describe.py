"""Plain descriptions of configuration objects, to compare, to print and to store with a state."""

import dataclasses
import hashlib
from typing import Any

import numpy as np

from adafw.arrays import Constant
from adafw.schedules import Schedule
from adafw.typing import Plain

#: Iterations at which a user's function of t is sampled: two that agree here count as one.
_SAMPLES = (0, 1, 2, 3, 5, 10, 100, 1000)


def describe(thing: Any) -> Plain:
    """Numbers, strings, lists and dicts that tell `thing` from another of its kind.

    A dataclass becomes its name and its fields, a function of t its values at a few t, an array
    of more than 16 entries its shape, dtype and a digest.
    """
    if thing is None or isinstance(thing, str | bool | int | float):
        return thing
    if isinstance(thing, np.generic):
        return thing.item()
    if isinstance(thing, Constant):
        value = thing.value
        return value.tolist() if value.size <= 16 else digest(value, value.size)
    if isinstance(thing, np.ndarray):
        return thing.tolist() if thing.size <= 16 else digest(thing)
    if isinstance(thing, list | tuple):
        return [describe(part) for part in thing]
    if isinstance(thing, Schedule) and not dataclasses.is_dataclass(thing.rule):
        return thing.rule if isinstance(thing.rule, float) else [thing(t) for t in _SAMPLES]
    if isinstance(thing, Schedule):
        return describe(thing.rule)
    if dataclasses.is_dataclass(thing):
        fields = {f.name: describe(getattr(thing, f.name)) for f in dataclasses.fields(thing)}
        return {"name": type(thing).__name__, **fields}
    return {"name": str(getattr(thing, "__qualname__", type(thing).__name__))}


def digest(array: Any, entries: int = 4096) -> Plain:
    """Shape, dtype and a hash of about so many entries spread evenly over the array.

    Data are sampled, since they may be large; the parameters of a set are hashed whole, as two
    sets that differ in one entry are not equal.
    """
    flat = array.reshape(-1)
    sample = np.ascontiguousarray(flat[:: max(1, flat.size // entries)])
    mark = hashlib.blake2b(sample.tobytes(), digest_size=8).hexdigest()
    return {"shape": list(array.shape), "dtype": str(array.dtype), "digest": mark}
