"""Bounds on the entries of a metric."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from adafw.metrics.base import Metric
from adafw.schedules import as_schedule
from adafw.typing import Array


@dataclass(frozen=True)
class Clipped(Metric):
    """h_t of another metric, clipped to [lower_t, upper_t] (line 3 of Template 3).

    Clipping acts on the h_t that is used, not on what the metric accumulates. `lower`
    (lambda^-_t) must be positive and nondecreasing, `upper` (lambda^+_t) nonincreasing and above
    it; the theorems ask for both.
    """

    metric: Metric
    lower: Any
    upper: Any

    def __post_init__(self) -> None:
        if not isinstance(self.metric, Metric):
            raise TypeError(f"metric must be one of adafw.metrics, got {self.metric!r}.")
        object.__setattr__(self, "lower", as_schedule(self.lower, "lower", 0, above=True))
        object.__setattr__(self, "upper", as_schedule(self.upper, "upper", 0, above=True))
        bounds = self.lower(0), self.upper(0)
        for t in (1, 2, 10, 100, 10_000):
            bounds = self._bounds(t, *bounds)

    def init(self, x: Array) -> dict[str, Any]:
        return {**self.metric.init(x), "lower": self.lower(0), "upper": self.upper(0)}

    def update(
        self, g: Array, t: int, state: dict[str, Any]
    ) -> tuple[Array, Array, dict[str, Any]]:
        lower, upper = self._bounds(t, state["lower"], state["upper"])
        m, h, state = self.metric.update(g, t, state)
        state["lower"], state["upper"] = lower, upper
        return m, np.clip(h, lower, upper), state

    def _bounds(self, t: int, last_lower: float, last_upper: float) -> tuple[float, float]:
        lower, upper = self.lower(t), self.upper(t)
        if not last_lower <= lower <= upper <= last_upper:
            raise ValueError(
                "lower must not decrease, upper must not increase, and lower must stay <= upper: "
                f"at t = {t} they are {lower:g} and {upper:g}, before {last_lower:g} and "
                f"{last_upper:g}."
            )
        return lower, upper
