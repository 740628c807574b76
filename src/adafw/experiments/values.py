"""What the values of an experiment's file stand for: sets, losses, algorithms, schedules."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

import adafw
from adafw.constraints import group_ball

#: A learning rate that is left to the paper's search, run before the experiment itself.
SEARCHED = "search"

# What a name may stand for, by the key it is given under: where it is looked up, what it must be.
_PLACES: dict[str, tuple[Any, Any]] = {
    "algorithm": (adafw, adafw.Algorithm),
    "loss": (adafw.losses, adafw.losses.Loss),
    "set": (adafw, adafw.Constraint),
    "groups": (group_ball, np.ndarray),
    "gradient": (adafw.gradients, adafw.gradients.GradientEstimator),
    "metric": (adafw.metrics, adafw.metrics.Metric),
    "step": (adafw.steps, adafw.steps.Step),
    "step_size": (adafw.schedules, Callable),
    "max_step": (adafw.schedules, Callable),
    "inner_gap": (adafw.schedules, Callable),
    "batch_size": (adafw.schedules, Callable),
    "learning_rate": (adafw.schedules, Callable),
}


def build(key: str, value: Any) -> Any:
    """The object a TOML value stands for: a name, a table with a name and options, or a number.

    A learning rate may be written as the paper does, "10^-3/2". One that is still to be searched
    for counts as 1.
    """
    if (key, value) == ("learning_rate", SEARCHED):
        return 1.0
    if key not in _PLACES or not isinstance(value, str | dict):
        return value
    if isinstance(value, str) and value.startswith("10^"):
        try:
            return 10.0 ** float(Fraction(value[3:]))
        except (ValueError, ZeroDivisionError):
            raise ValueError(f'{key} must be a number or "10^<fraction>", got {value!r}.') from None
    table = {"name": value} if isinstance(value, str) else dict(value)
    name = table.pop("name", None)
    place, kind = _PLACES[key]
    options = {k: build(k, v) for k, v in table.items()}
    if isinstance(name, str) and name.isidentifier() and hasattr(place, name):
        try:
            made = getattr(place, name)(**options)
        except TypeError as error:
            raise ValueError(f"{key} {name} cannot be made: {error}") from None
        if isinstance(made, kind):
            return made
    raise ValueError(f"{key} must be a name in {place.__name__}, got {name!r}.")


def in_words(value: Any) -> str:
    """A value of a file as text: a name with its options in brackets, or the number."""
    if isinstance(value, dict):
        inside = ", ".join(f"{k}={in_words(v)}" for k, v in value.items() if k != "name")
        return f"{value.get('name', '')}({inside})" if inside else str(value.get("name"))
    return str(value)
