"""Compiled updates for all tensors of an optimizer in one call, as torch's foreach does it.

A call takes a table with a row of addresses and a row of numbers for each tensor: to hand them over
one by one would take 10 microseconds each, several times what a small tensor itself takes.
"""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import Parameter

from adafw.torch.typing import Group, Numbers, State
from adafw.typing import Array

#: Updates that there is a list version of, and the state tensors that each reads and writes.
BUFFERS = {
    "sfw": ("momentum",),
    "decayed": ("momentum",),
    "adasfw": ("sum_squares",),
    "adamsfw": ("momentum", "mean_squares", "max_squares"),
}
#: A tensor to be moved, its gradient, its state, the numbers of its update, the group's options.
Entry = tuple[Tensor, Tensor, State, Numbers, Group]
_PLAIN = (Parameter, Tensor)
_DTYPES: dict[torch.dtype, np.dtype[Any]] = {
    torch.float32: np.dtype(np.float32),
    torch.float64: np.dtype(np.float64),
}


def move(kernel: str, entries: list[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Moves all that compiled code can take; returns what was moved, and the rest."""
    names = BUFFERS[kernel]
    rows: dict[torch.dtype, list[list[int]]] = {torch.float32: [], torch.float64: []}
    numbers: dict[torch.dtype, list[Numbers]] = {torch.float32: [], torch.float64: []}
    moved, rest = [], []
    for entry in entries:
        x, g, state, row, _ = entry
        tensors = [x, g]
        for name in names:
            tensors.append(state.get(name, g))
        if alike(tensors):
            rows[x.dtype].append([x.numel(), *[t.data_ptr() for t in tensors]])
            numbers[x.dtype].append(row)
            moved.append(entry)
        else:
            rest.append(entry)
    for dtype, table in rows.items():
        if table:
            _run(kernel, np.array(table), np.array(numbers[dtype]), _DTYPES[dtype])
    for entry in moved:
        torch.autograd.graph.increment_version(entry[0])
    return moved, rest


def move_one(kernel: str, x: Tensor, g: Tensor, state: State, row: Numbers) -> bool:
    """Moves one tensor by the same code, if that can take it; whether it did."""
    return bool(move(kernel, [(x, g, state, row, {})])[0])


def alike(tensors: list[Tensor]) -> bool:
    """Whether compiled code can take x, g and state: plain, of one size and one known dtype.

    Code that works at addresses must be handed nothing else, and much may have become of a tensor
    since its state was made; so all are looked at each time.
    """
    dtype, size = tensors[0].dtype, tensors[0].numel()
    if dtype not in _DTYPES:
        return False
    for t in tensors:  # what `is_plain` says, written out: this is asked for every tensor
        if (
            t.dtype is not dtype
            or t.numel() != size
            or not t.is_cpu
            or not t.is_contiguous()
            or type(t) not in _PLAIN
        ):
            return False
    return not tensors[1].is_neg()  # a gradient that is only marked as the negative of its memory


def is_plain(x: Tensor) -> bool:
    """Whether x is a whole array in the memory of the processor, and nothing else."""
    return type(x) in _PLAIN and x.is_cpu and x.is_contiguous()


def _run(kernel: str, table: Array, numbers: Array, dtype: np.dtype[Any]) -> None:
    of = modules()
    if kernel in ("adasfw", "adamsfw"):
        room = of["kernels"].workspace(int(table[:, 0].max()), dtype)
        getattr(of["kernels"], kernel)(table, numbers, room)
    else:
        getattr(of["sign_kernels"], kernel)(table, numbers, np.empty(0, dtype))


def surely_finite(gradients: list[Tensor]) -> bool:
    """Whether all are plain tensors of one dtype without NaN and infinity: seen in one call."""
    dtype = gradients[0].dtype
    if dtype not in _DTYPES or not all(g.dtype is dtype and is_plain(g) for g in gradients):
        return False
    if not modules():
        return False
    table = np.array([(g.numel(), g.data_ptr()) for g in gradients])
    like = np.empty(0, _DTYPES[dtype])
    return bool(modules()["sign_kernels"].first_not_finite(table, like) < 0)


@cache
def modules() -> dict[str, ModuleType]:
    """The modules of compiled updates, none without numba; imported when first needed."""
    if not find_spec("numba"):
        return {}
    names = ("kernels", "sign_kernels", "set_kernels")
    return {name: import_module(f"adafw.torch.{name}") for name in names}
