"""The outcome of an experiment: what every method did on every case, seed by seed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from adafw.experiments.spec import About, Case, Method, Spec
from adafw.experiments.spread import Column
from adafw.recorder import AnyRecords
from adafw.typing import Json, JsonTable


@dataclass(frozen=True, eq=False)
class Curve:
    """One method on one case: a trace and a status for every seed.

    `path`: which code ran the iterations, where there are several. `step_seconds`: what one step
    alone took, where that was measured. `probes`: what else was measured at the end of a run.
    """

    case: Case[Method]
    method: Method
    traces: Mapping[int, AnyRecords]
    statuses: Mapping[int, str]
    path: str = ""
    step_seconds: Mapping[int, float] = field(default_factory=dict)
    probes: Mapping[int, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The name in legends and tables."""
        return self.method.label

    def final(self, column: str) -> Column:
        """The column's last entry, one for each seed; inf where the run diverged."""
        values = [
            math.inf if self.statuses[seed] == "diverged" and column in ("gap", "value") else
            float(trace[-1]._asdict()[column])
            for seed, trace in self.traces.items()
        ]  # fmt: skip
        return np.array(values)


@dataclass(frozen=True, eq=False)
class Outcome:
    """All curves of an experiment and what is needed to judge and to repeat it.

    `extras`: what the runs that are not compared have left, by their role and case. `searches`:
    what every search for a learning rate tried.
    """

    spec: Spec
    data: Mapping[str, About]
    curves: tuple[Curve, ...]
    extras: Mapping[str, Mapping[str, JsonTable]] = field(default_factory=dict)
    environment: Mapping[str, Json] = field(default_factory=dict)
    searches: Sequence[JsonTable] = ()

    def of(self, case: Case[Method]) -> list[Curve]:
        """The curves of one case."""
        return [curve for curve in self.curves if curve.case is case]
