"""Predictions that a step has led along, kept for the next gradient and in the state."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.objectives.base import FiniteSum
from adafw.objectives.kinds import Linear, Predicting
from adafw.objectives.linear_model import Curves
from adafw.steps.corrective.base import Memory
from adafw.typing import Array

Vector = NDArray[np.floating[Any]]
#: Predictions that were so many times as large as they are now are computed anew.
SHRUNK = 2.0
#: Share of their size by which predictions that were led along may differ from a product.
SAME = 1e-9
#: Of the size that they are rounded at, where they nearly cancel.
CANCELLED = 1e-13
#: What a matrix, its members and its bends are made of: compiled code takes nothing else.
_KINDS = {"chosen": np.int64, "gram": np.float64, "bends": np.float64}


def recall(f: FiniteSum, x: Array, state: Memory) -> None:
    """Tells f of the predictions in a state: bit for bit what the run went on with.

    What no run leaves is forgotten: states come from files.
    """
    state.pop("sample", None)  # it is of iterations on a sample, which no state is left by
    if not (_is_of(state, "chosen") and _is_of(state, "gram") and _is_of(state, "bends")):
        _forget(state)
    if not (_is_like(state, "before", x) and _is_like(state, "slopes", x)):
        state.pop("before", None)
        state.pop("slopes", None)
    chosen = state.get("chosen")
    if chosen is not None and not _are_columns(chosen, x.size):
        _forget(state)
    recall_predictions(f, x, state)


def recall_predictions(f: FiniteSum, x: Array, state: Memory) -> None:
    """Those of a state, if they are A x to rounding: others would certify what is not there."""
    z = state.get("predictions")
    if not (isinstance(z, np.ndarray) and isinstance(f, Predicting)):
        return
    exact = f.predictions(x)[0]
    if z.shape != exact.shape or z.dtype != exact.dtype:
        return
    scale = max(float(np.abs(exact).max(initial=0.0)), float(state.get("reach", 0.0)))
    other = float(np.abs(z - exact).max(initial=0.0))
    if other <= SAME * scale or other <= CANCELLED * _size(f, x):
        f.remember(x, z)


def _size(f: Predicting, x: Array) -> float:
    """What entries of |A| |x| are at most: A x may be far smaller, and is rounded at this size."""
    if x.ndim != 1 or len(f.rows.shape) != 2:
        return 0.0
    m = f.rows.shape[0]
    return float(np.sqrt(m * f.rows.mean_squares(np.ones(m, f.dtype))) @ np.abs(x))


def _is_of(state: Memory, name: str) -> bool:
    """Whether it is not there, or an array of its kind that can be written in place."""
    found = state.get(name)
    if found is None:
        return True
    array = isinstance(found, np.ndarray) and found.dtype == _KINDS[name]
    return array and bool(found.flags.c_contiguous and found.flags.writeable)  # type: ignore[attr-defined]


def _is_like(state: Memory, name: str, x: Array) -> bool:
    found = state.get(name)
    array = isinstance(found, np.ndarray) and found.dtype.kind == "f" and found.shape == x.shape
    return found is None or array


def _are_columns(chosen: NDArray[np.int64], n: int) -> bool:
    if chosen.ndim != 1 or not chosen.size:
        return False
    inside = chosen.min() >= 0 and chosen.max() < n
    return bool(inside and np.unique(chosen).size == chosen.size)


def _forget(state: Memory) -> None:
    for name in _KINDS:
        state.pop(name, None)  # type: ignore[misc]


def keep(f: Linear, x: Array, z: Vector, state: Memory, curves: Curves | None = None) -> None:
    """Takes z for A x, in f and in the state; `curves` are those at z, if they are known."""
    f.remember(x, z, curves)
    state["predictions"] = f.predictions(x)[0]


def renew(f: FiniteSum, x: Array, state: Memory) -> None:
    """Predictions that steps have led along are a product again, without the rounding of all."""
    if "predictions" in state and isinstance(f, Linear):
        z = f.rows.dot(x)
        keep(f, x, z, state)
        state["reach"] = float(np.abs(z).max())


def reach(f: Linear, x: Array, z: Vector, state: Memory) -> tuple[float, bool]:
    """(the largest |z| since A x was last computed as a product, whether z is as precise as one).

    x is where the step began. Each step rounds at the size that z has there: of predictions that
    have come down from far larger ones, too few digits are left to certify anything.
    """
    before = state.get("reach")
    if before is None:
        before = float(np.abs(f.predictions(x)[0]).max())
    now = float(np.abs(z).max())
    return (max(before, now), True) if before <= SHRUNK * now else (now, False)


def led(f: FiniteSum, x: Array, new: Array, z: Vector, state: Memory, rough: bool = False) -> None:
    """Keeps the predictions z that steps from x have led to at `new`, if they are precise.

    Those of `rough` products are not: a gap found with them would certify what is not there.
    """
    state.pop("predictions", None)
    if not isinstance(f, Linear) or new.dtype != np.float64:
        return
    state["reach"], precise = reach(f, x, z, state)
    if rough:
        state["reach"] = float(np.abs(z).max())  # A x is about to be computed as a product
    elif precise:
        keep(f, new, z, state)
