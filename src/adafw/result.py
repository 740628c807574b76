"""What a run found, and why it stopped."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial

from adafw.algorithm import Algorithm
from adafw.constraints.base import Constraint
from adafw.objectives.base import FiniteSum
from adafw.recorder import Record, Trace
from adafw.solver import State
from adafw.stopping import Limits
from adafw.typing import Array, MatrixLike


@dataclass(frozen=True, eq=False)
class Result:
    """What a run found. `x`, `value` and `gap` belong to the last iterate.

    `best` is the record of smallest gap, `lower_bound` the best value - gap seen (nan unless f is
    convex), `status` and `message` why the run stopped, `trace` all records, `state` what
    `minimize(state=...)` goes on from, `path` the name of the code that ran the iterations,
    `active_set` None or the (weights, atoms) that x is made of, `learning_rate` the last one used
    (None if the step has none).
    """

    x: Array
    value: float
    gap: float
    lower_bound: float
    best: Record
    status: str
    message: str
    trace: Trace
    state: State = field(repr=False)
    title: str = ""
    path: str = "generic"
    learning_rate: float | None = None
    find_active_set: Callable[[], tuple[Array, MatrixLike] | None] | None = field(
        default=None, repr=False
    )

    @cached_property
    def active_set(self) -> tuple[Array, MatrixLike] | None:
        """Weights above 0 of sum 1, and atoms, one a row, whose weighted sum is x; made when asked
        for, as few runs are."""
        return None if self.find_active_set is None else self.find_active_set()

    def __getstate__(self) -> dict[str, object]:
        # What finds it holds the user's set and algorithm, which need not be pickled.
        return {**vars(self), "active_set": self.active_set, "find_active_set": None}

    @property
    def _rows(self) -> list[tuple[str, str]]:
        last = self.trace[-1]
        return [
            ("status", self.message),
            ("value", f"{self.value:.10g}"),
            ("gap", f"{self.gap:.4e}"),
            ("lower bound", f"{self.lower_bound:.10g}"),
            ("best gap", f"{self.best.gap:.4e} at iteration {self.best.iteration}"),
            ("iterations", f"{last.iteration}"),
            ("epochs", f"{last.epoch:.4g} ({last.gradient_evaluations} gradient evaluations)"),
            ("LMO calls", f"{last.lmo_calls}"),
            ("projections", f"{last.projections}"),
            ("seconds", f"{last.cpu_seconds:.3g} CPU, {last.wall_seconds:.3g} wall"),
            ("non-zeros", f"{last.nonzeros} of {self.x.size}"),
            ("violation", f"{last.violation:.1e}"),
        ]

    def __str__(self) -> str:
        return "\n".join([self.title, *(f"  {name:<12} {text}" for name, text in self._rows)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """What notebooks show: the same lines beside a small picture of the gap."""
        from html import escape

        from adafw.charts import Polyline, line_chart

        epochs = self.trace["epoch"]
        chart = line_chart([Polyline(epochs, self.trace["gap"])], "epochs", "gap", log=True)
        lines = "".join(
            f'<tr><th style="text-align:left">{escape(name)}</th>'
            f'<td style="text-align:left">{escape(text)}</td></tr>'
            for name, text in self._rows
        )
        return (
            f"<div><strong>{escape(self.title)}</strong>"
            '<div style="display:flex;flex-wrap:wrap;gap:16px;align-items:center">'
            f'<table>{lines}</table><div style="flex:1 1 280px">{chart}</div></div></div>'
        )


def conclude(
    s: State, f: FiniteSum, constraint: Constraint, algorithm: Algorithm, status: str,
    limits: Limits, tolerance: float, title: str, path: str, learning_rate: float | None,
) -> Result:  # fmt: skip
    """The result of a run that ended with this status."""
    trace = Trace(s.records)
    last = trace[-1]
    best = min(trace, key=lambda r: (math.isnan(r.gap), r.gap))
    message = status.replace("_", " ")
    if status in vars(limits):
        used, allowed = limits.used(s, f.n_terms)[status]
        message = f"{status}: {used:.6g} of {allowed:g} used"
    elif status == "converged":
        message = f"converged: gap {last.gap:.3e} <= {tolerance:g}"
    elif status == "diverged" and not math.isfinite(last.value):
        message = (
            "diverged: the value at the start is infinite or NaN; give an x0 where it is finite, "
            "or a smaller set"
        )
    elif status == "diverged":
        message = (
            "diverged: a value or gradient became infinite or NaN; x is the last iterate known to "
            "be finite"
        )
    elif status == "callback":
        message = "callback: a callback asked to stop"
    elif status == "interrupted":
        message = "interrupted: from the keyboard"
    return Result(
        s.x.copy(), last.value, last.gap, last.lower_bound, best, status, message, trace, s, title,
        path, learning_rate, partial(algorithm.step.active_set, constraint, s.x, s.step),
    )  # fmt: skip
