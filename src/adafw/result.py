"""What a run found, and why it stopped."""

import math
from dataclasses import dataclass, field

from adafw.objectives.base import FiniteSum
from adafw.recorder import Record, Trace
from adafw.solver import State
from adafw.stopping import Limits
from adafw.typing import Array


@dataclass(frozen=True, eq=False)
class Result:
    """What a run found. `x`, `value` and `gap` belong to the last iterate.

    `best` is the record of smallest gap, `lower_bound` the best value - gap seen (nan unless f is
    convex), `status` and `message` why the run stopped, `trace` all records, `state` what
    `minimize(state=...)` goes on from, `path` the name of the code that ran the iterations.
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

    def __str__(self) -> str:
        last = self.trace[-1]
        rows = [
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
        return "\n".join([self.title, *(f"  {name:<12} {text}" for name, text in rows)])

    __repr__ = __str__


def conclude(
    s: State, f: FiniteSum, status: str, limits: Limits, tolerance: float, title: str, path: str
) -> Result:
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
        path,
    )  # fmt: skip
