"""Bounds on the entries of a metric."""

from dataclasses import dataclass

import numpy as np

from adafw.metrics.base import Metric
from adafw.schedules import Schedule, as_schedule, at
from adafw.typing import Array, ScheduleLike, StateDict


@dataclass(frozen=True)
class Clipped(Metric):
    """h_t of another metric, clipped to [lower_t, upper_t] (line 3 of Template 3).

    Clipping acts on the h_t that is used, not on what the metric accumulates. `lower`
    (lambda^-_t) must be positive and nondecreasing, `upper` (lambda^+_t) nonincreasing and above
    it; the theorems ask for both.
    """

    metric: Metric
    lower: ScheduleLike
    upper: ScheduleLike

    def __post_init__(self) -> None:
        if not isinstance(self.metric, Metric):
            raise TypeError(f"metric must be one of adafw.metrics, got {self.metric!r}.")
        lower, upper = closing_bounds(self.lower, self.upper)
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    @property
    def momentum(self) -> bool:  # type: ignore[override]
        """That of the metric."""
        return self.metric.momentum

    def init(self, x: Array) -> StateDict:
        return self.metric.init(x)

    def prepare(self, x: Array) -> None:
        self.metric.prepare(x)

    def update(self, g: Array, t: int, state: StateDict) -> tuple[Array, Array, StateDict]:
        lower, upper = bounds_at(t, self.lower, self.upper)
        m, h, state = self.metric.update(g, t, state)
        return m, np.clip(h, lower, upper), state


def closing_bounds(lower: ScheduleLike, upper: ScheduleLike) -> tuple[Schedule, Schedule]:
    """Both as schedules > 0, lower <= upper at t = 0; what comes after is checked as it comes."""
    low = as_schedule(lower, "lower", 0, above=True)
    high = as_schedule(upper, "upper", 0, above=True, infinite=True)
    bounds_at(0, low, high)
    return low, high


def bounds_at(t: int, lower: ScheduleLike, upper: ScheduleLike) -> tuple[float, float]:
    """(lower_t, upper_t), refused unless they lie within those of t - 1."""
    last = max(0, t - 1)
    low, high, lowest, highest = (at(b, s) for s in (t, last) for b in (lower, upper))
    if not lowest <= low <= high <= highest:
        raise ValueError(
            "lower must not decrease, upper must not increase, and lower must stay <= upper: "
            f"at t = {t} they are {low:g} and {high:g}, at t = {last} {lowest:g} and "
            f"{highest:g}."
        )
    return low, high
