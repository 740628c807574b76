"""What the values of an experiment's file stand for: sets, losses, algorithms, schedules."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np

from adafw import gradients, metrics, schedules, steps
from adafw.constraints import group_ball
from adafw.names import ALGORITHMS, LOSSES, SETS, Registry
from adafw.typing import Json

#: A learning rate that is left to the paper's search, run before the experiment itself.
SEARCHED = "search"

#: Things that have names for every front end, by the key they are given under.
REGISTRIES: Mapping[str, Registry[Any]] = {
    "algorithm": ALGORITHMS,
    "loss": LOSSES,
    "set": SETS.called("set"),
}

# Parts of them, which have names in files alone: where they are looked up, what they must be.
_PLACES: dict[str, tuple[ModuleType, Any]] = {
    "groups": (group_ball, np.ndarray),
    "gradient": (gradients, gradients.GradientEstimator),
    "metric": (metrics, metrics.Metric),
    "step": (steps, steps.Step),
    **dict.fromkeys(
        ("step_size", "max_step", "inner_gap", "batch_size", "learning_rate"),
        (schedules, Callable),
    ),
}


def build(key: str, value: Json) -> Any:
    """The object a TOML value stands for: a name, a table with a name and options, or a number.

    A learning rate may be written as the paper does, "10^-3/2". One that is still to be searched
    for counts as 1.
    """
    if (key, value) == ("learning_rate", SEARCHED):
        return 1.0
    if (key, value) == ("learning_rate", "auto"):  # `minimize` moves it while it runs
        return value
    if key not in (*REGISTRIES, *_PLACES) or not isinstance(value, str | dict):
        return value
    if isinstance(value, str) and value.startswith("10^"):
        try:
            return 10.0 ** float(Fraction(value[3:]))
        except (ValueError, ZeroDivisionError):
            raise ValueError(f'{key} must be a number or "10^<fraction>", got {value!r}.') from None
    table = {"name": value} if isinstance(value, str) else dict(value)
    name = table.pop("name", None)
    options = {k: build(k, v) for k, v in table.items()}
    if key in REGISTRIES:
        return REGISTRIES[key].make(name, **options)
    return _part(key, name, options)


def _part(key: str, name: object, options: dict[str, Any]) -> Any:
    place, kind = _PLACES[key]
    make = getattr(place, name, None) if isinstance(name, str) else None
    if callable(make):
        try:
            made = make(**options)
        except TypeError as error:
            raise ValueError(f"{key} {name} cannot be made: {error}") from None
        if isinstance(made, kind):
            return made
    raise ValueError(f"{key} must be a name in {place.__name__}, got {name!r}.")


def in_words(value: Json) -> str:
    """A value of a file as text: a name with its options in brackets, or the number."""
    if isinstance(value, dict):
        inside = ", ".join(f"{k}={in_words(v)}" for k, v in value.items() if k != "name")
        return f"{value.get('name', '')}({inside})" if inside else str(value.get("name"))
    return str(value)
