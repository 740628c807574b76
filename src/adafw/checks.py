"""Checks of numbers given by users: one sentence that says what, needed, got."""

import math
import numbers
from typing import TypeGuard

import numpy as np


def is_real(value: object) -> TypeGuard[float]:
    """Whether `value` is a real number, which True and False are not meant to be."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def real(
    value: object,
    name: str,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    above: bool = False,
    below: bool = False,
    infinite: bool = False,
) -> float:
    """`value` as a float in [low, high], or an error that names it.

    `above` leaves `low` itself out, `below` leaves `high` out.
    """
    if not is_real(value):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}.")
    try:
        number = float(value)
    except OverflowError:  # an integer or a fraction beyond the range of floats
        number = math.inf if value >= 0 else -math.inf
    inside = (low < number if above else low <= number) and (
        number < high if below else number <= high
    )
    if not inside or (math.isinf(number) and not infinite):
        needed = _range(low, high, above, below)
        raise ValueError(f"{name} must be a number {needed}, got {_shown(value)}.")
    return number


#: What an integer of the machine holds.
LARGEST = 2**63 - 1

#: Largest length whose squares, summed over any number of coordinates, stay finite.
LONGEST = 1e151


def radius(value: object) -> float:
    """`value` as the size of a set, or an error that names it."""
    number = real(value, "radius", 0, above=True)
    if number > LONGEST:  # its square would be infinite, and a step inf / inf
        raise ValueError(
            f"radius must be at most {LONGEST:g}, got {number:g}; rescale the problem."
        )
    return number


def integer(value: object, name: str, low: int) -> int:
    """`value` as an int >= low, or an error that names it."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < low:
        raise ValueError(f"{name} must be an integer >= {low}, got {value!r}.")
    if int(value) > LARGEST:
        raise ValueError(f"{name} must be an integer <= 2^63 - 1, got {_shown(value)}.")
    return int(value)


def flag(value: object, name: str) -> bool:
    """`value` as True or False, or an error that names it."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise TypeError(f"{name} must be True or False, got {value!r}.")


def _shown(value: object) -> str:
    try:
        text = str(value)
    except ValueError:  # Python writes no integer of more than some thousand digits
        return "one with thousands of digits"
    return text if len(text) <= 40 else f"{text[:20]}... ({len(text)} digits)"


def _range(low: float, high: float, above: bool, below: bool) -> str:
    lower = f"> {low:g}" if above else f">= {low:g}"
    if math.isinf(high):
        return f"that is finite and {lower}" if low > -math.inf else "that is finite"
    return f"{lower} and {'<' if below else '<='} {high:g}"
