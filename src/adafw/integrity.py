"""Whether a state is one that this problem could have left: asked before any kernel sees it.

States come from files. Compiled code indexes arrays of a state without looking twice, so every one
of them is compared here with what the problem itself would make.
"""

import math
from typing import TypeVar

import numpy as np

from adafw.algorithm import Algorithm
from adafw.objectives.base import FiniteSum
from adafw.random import freeze, thaw
from adafw.solver import State
from adafw.typing import Array, StateDict

_COUNTS = ("t", "gradient_evaluations", "lmo_calls", "projections")
_SECONDS = ("cpu_seconds", "wall_seconds")
#: Arrays of metrics that no run makes negative.
_SQUARES = ("sum_squares", "mean_squares", "max_squares", "mean_squared_steps")


class Damaged(ValueError):
    """A state holds what no run of this problem leaves."""

    def __init__(self, what: str, needed: str, got: object) -> None:
        super().__init__(
            f"state must come from a run of this problem: its {what} must be {needed}, got {got}; "
            "load an undamaged one, or start anew."
        )


def check_state(state: State, f: FiniteSum, algorithm: Algorithm, start: Array | None) -> None:
    """Raises `Damaged` at the first thing that is wrong; `start` is a point of the problem."""
    x = state.x if start is None else start
    expect(state.x, "x", x)
    for name in _COUNTS:
        value = getattr(state, name)
        if type(value) is not int or value < 0:
            raise Damaged(name, "an integer >= 0", _brief(value))
    for name in _SECONDS:
        value = getattr(state, name)
        if type(value) is not float or not 0 <= value < math.inf:
            raise Damaged(name, "a number >= 0", _brief(value))
    _check_words(state.rng)
    _check_part(state.gradient, "gradient", algorithm.gradient.layout(f, x, state.t))
    _check_part(state.step, "step", algorithm.step.layout(x, state.t))
    for key, (kind, low, high) in algorithm.step.numbers.items():
        if key in state.step:
            expect_number(state.step[key], f"step.{key}", kind, low, high)
    for key in set(state.step) & set(_SQUARES):
        if (np.asarray(state.step[key]) < 0).any():
            raise Damaged(f"step.{key}", "nowhere negative", "a negative entry")


def _check_part(part: StateDict, name: str, wanted: StateDict) -> None:
    """Every array that is wanted, of that shape and dtype; all that are there, finite numbers."""
    for key in wanted:
        if key not in part:
            raise Damaged(f"{name}.{key}", "there", "nothing")
    for key, found in part.items():
        if key in wanted and isinstance(wanted[key], np.ndarray):
            expect(found, f"{name}.{key}", wanted[key])
        elif key in wanted and isinstance(found, np.ndarray):
            raise Damaged(f"{name}.{key}", "a number", _brief(found))
        elif not _is_finite(found):
            raise Damaged(f"{name}.{key}", "finite", _brief(found))


def expect(found: object, name: str, like: Array) -> None:
    """Refuses what is no finite array of the shape and dtype of `like`."""
    if not isinstance(found, np.ndarray) or (found.shape, found.dtype) != (like.shape, like.dtype):
        raise Damaged(name, f"{like.dtype} of shape {like.shape}", _brief(found))
    if not np.isfinite(found).all():
        raise Damaged(name, "finite", "NaN or infinity")


def expect_indices(found: object, name: str, n: int) -> None:
    """Refuses what is no list of different integers from 0 to n - 1."""
    if not isinstance(found, np.ndarray) or found.dtype != np.int64 or found.ndim != 1:
        raise Damaged(name, "int64 of one dimension", _brief(found))
    inside = not found.size or (found.min() >= 0 and found.max() < n)
    if not inside or np.unique(found).size != found.size:
        raise Damaged(name, f"different numbers from 0 to {n - 1}", "others")


Number = TypeVar("Number", int, float)


def expect_number(found: object, name: str, kind: type[Number], low: Number, high: Number) -> None:
    """Refuses what is no number of this type from low to high."""
    if type(found) is not kind or not low <= found <= high:
        raise Damaged(name, f"a number from {low:g} to {high:g}", _brief(found))


def _check_words(words: object) -> None:
    """The words of a generator are those that it would be frozen to again."""
    if not isinstance(words, np.ndarray):
        return  # an object of the user's own, which is in memory and never in a file
    try:
        same = np.array_equal(np.asarray(freeze(thaw(words))), words) and words.dtype == np.uint64
    except (ValueError, TypeError, IndexError, OverflowError):
        same = False
    if not same:
        raise Damaged("rng", "the words of a numpy generator", _brief(words))


def _is_finite(value: object) -> bool:
    array = np.asarray(value)
    return array.dtype.kind in "biufU" and (
        array.dtype.kind != "f" or bool(np.isfinite(array).all())
    )


def _brief(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
