"""Checks of numbers given by users: one sentence that says what, needed, got."""

import math
import numbers
from typing import Any


def real(
    value: Any,
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
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}.")
    number = float(value)
    inside = (low < number if above else low <= number) and (
        number < high if below else number <= high
    )
    if not inside or (math.isinf(number) and not infinite):
        raise ValueError(f"{name} must be a number {_range(low, high, above, below)}, got {value}.")
    return number


def integer(value: Any, name: str, low: int) -> int:
    """`value` as an int >= low, or an error that names it."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < low:
        raise ValueError(f"{name} must be an integer >= {low}, got {value!r}.")
    return int(value)


def _range(low: float, high: float, above: bool, below: bool) -> str:
    lower = f"> {low:g}" if above else f">= {low:g}"
    if math.isinf(high):
        return f"that is finite and {lower}" if low > -math.inf else "that is finite"
    return f"{lower} and {'<' if below else '<='} {high:g}"
