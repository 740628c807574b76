"""When a fit is good enough, when it has stalled, and what is certified about it."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.arrays import dot
from adafw.constraints.base import Constraint
from adafw.fitting import rounding
from adafw.fitting.choice import Choice
from adafw.fitting.design import Intercept, Risk
from adafw.gradients import Full
from adafw.objectives import MatrixModel, WithIntercept
from adafw.objectives.kinds import model_of
from adafw.recorder import Record, as_record
from adafw.solver import State
from adafw.typing import Array

#: The smallest value that a tolerance is relative to, and the share of the first value below which
#: nothing is left to gain.
FLOOR = 1e-12
#: A run with exact gradients has stalled when so many records brought no progress; fewer where an
#: iteration does the work of many.
PATIENCE, SHORT_PATIENCE = 50, 8
#: Share of a value that is rounding.
ROUNDED = 16 * float(np.finfo(np.float64).eps)
#: Newton steps on several outputs that follow a gap within the tolerance: on few stored entries, on
#: more; and the share of the value at which a gap is rounding.
LAST_STEPS, FEW_ENTRIES, LAST_STEP, ROUNDING = 8, 1e5, 1, 1e-12


@dataclass(frozen=True)
class Certificate:
    """Coefficients and intercept as they are returned, and what is known about them."""

    coef: NDArray[Any]
    intercept: Intercept
    value: float
    gap: float


class Judge:
    """At every record: refreshes the intercept of the batches, and says when to stop and why."""

    def __init__(
        self, risk: Risk, constraint: Constraint, tol: float, every: int, choice: Choice,
        dtype: np.dtype[Any],
    ) -> None:  # fmt: skip
        self.risk, self.constraint, self.tol, self.every = risk, constraint, tol, every
        self.choice, self.dtype = choice, dtype
        self.exact = isinstance(choice.algorithm.gradient, Full)
        self.verdict = ""
        self.best_value = self.best_gap = math.inf
        self.first_value, self.idle = math.nan, 0

    def __call__(self, s: State, record: Record) -> bool:
        # Only where every run of this length would record: what follows must not depend on stops.
        scheduled = record.iteration % self.every == 0
        if scheduled and not self.exact:
            self.set_intercept(self.risk.intercept(s.x))
        if self.small(record.value, self._least(record)) and self._reached(s.x, record):
            self.verdict = "" if self._goes_on(s) else "converged"
        elif scheduled and self._stalled(record):
            self.verdict = self._end(s.x, record)
        return bool(self.verdict)

    def _end(self, x: Array, record: Record) -> str:
        """What a run without progress has come to."""
        if self._nothing_left(record.value):
            return "converged"
        # Within the tolerance but for what is lost where coefficients are rounded to be returned.
        if self.tol > 0 and self.small(record.value, self._least(record)):
            return "rounding"
        rounded = rounding.keeps_up(self.risk.f, self.constraint, x, record.gap)
        return "rounding" if rounded else "stalled"

    def _goes_on(self, s: State) -> bool:
        """Whether one iteration more is made: a Newton step on few coefficients of several outputs.

        It costs next to nothing and brings the last digits, so that k copies of a row have the
        probabilities of a weight of k. Where classes can be told apart one step does not bring all.
        """
        f = self.risk.f
        if not (isinstance(f, MatrixModel) and self.choice.algorithm.name == "Newton"):
            return False
        *before, now = map(as_record, s.records)
        if now.gap <= ROUNDING * abs(now.value):
            return False
        most = LAST_STEPS if f.rows.stored <= FEW_ENTRIES else LAST_STEP
        return sum(self.small(r.value, self._least(r)) for r in before[-most:]) < most

    def _nothing_left(self, value: float) -> bool:
        """Whether classes are told apart so well that the value is nothing beside the first one.

        There models are too flat to tell the way. Small squares of residuals may still be noise.
        """
        f = self.risk.f
        loss = f.loss if isinstance(f, MatrixModel) else model_of(f).loss
        told = loss.task == "classification" and math.isfinite(self.first_value)
        return told and _over(value, f.lower_bound) <= FLOOR * abs(self.first_value)

    def restore(self, state: State, batch_intercept: Intercept) -> None:
        """As it was when that state was recorded."""
        self.set_intercept(batch_intercept)
        for row in state.records:
            if row[0] % self.every == 0:
                self._stalled(as_record(row))

    def set_intercept(self, b: Intercept) -> None:
        """The intercept that batches use."""
        if isinstance(self.risk.f, WithIntercept):
            self.risk.f.intercept = float(b)
        elif isinstance(self.risk.f, MatrixModel):
            self.risk.f.intercept = np.array(b, self.risk.f.dtype)

    @property
    def batch_intercept(self) -> Intercept:
        """What `set_intercept` set last."""
        f = self.risk.f
        return f.intercept if isinstance(f, WithIntercept | MatrixModel) else 0.0

    def certificate(self, x: Array, record: Record) -> Certificate:
        """What is returned at the last record: rounded to the data's dtype, and measured so."""
        b = self.risk.intercept(x)
        if x.dtype == self.dtype:
            return Certificate(x, b, record.value, self._least(record))
        coef, b = x.astype(self.dtype), np.float64(self.dtype.type(b))
        x = coef.astype(x.dtype)
        best, value = self.risk.f.value(x), self.risk.value_at(x, b)
        gap = self.constraint.gap(x, self.risk.f.gradient(x)) + value - best
        return Certificate(coef, b, value, min(max(0.0, gap), self.above(value, record)))

    def above(self, value: float, record: Record) -> float:
        """How far a value can be above the minimum, by the best bound so far; rounding included."""
        return _over(value, max(record.lower_bound, self.risk.f.lower_bound))

    def small(self, value: float, gap: float) -> bool:
        """Whether a gap is within the tolerance."""
        return gap <= self.tol * max(abs(value), FLOOR)

    def radius_matters(self, x: Array, value: float) -> bool:
        """Whether x is at the boundary, or a gap over ten times the set above 1 % of the value."""
        if not self.constraint.radial or self.constraint.violation(1.01 * x) > 0:
            return True
        # The gap over 10 C bounds what a ten times larger radius could gain.
        g = self.risk.f.gradient(x)
        larger_gap = float(dot(g, x - 10 * self.constraint.lmo(g)))
        return larger_gap > 0.01 * max(abs(value), FLOOR)

    def _least(self, record: Record) -> float:
        """A bound on the suboptimality: the gap, or the value over what f is never below."""
        return min(record.gap, _over(record.value, self.risk.f.lower_bound))

    def _reached(self, x: Array, record: Record) -> bool:
        """Whether what would be returned is as good as the record, which rounding may prevent."""
        now = self.certificate(x, record)
        return self.small(now.value, now.gap)

    def _stalled(self, record: Record) -> bool:
        if math.isnan(self.first_value):
            self.first_value = record.value
        # Less than that is not worth a record's pass over the data; a hundredth of the gap is. A
        # thousandth of the gap is worth it, too, where that is less, as far as values have digits.
        last = self.best_value if math.isfinite(self.best_value) else record.value
        little = min(1e-9 * abs(last), max(1e-3 * record.gap, ROUNDED * abs(last)))
        lower = record.value < self.best_value - little
        tighter = record.gap < 0.99 * self.best_gap
        if lower or tighter or not self.exact:
            self.idle = 0
            # Since the last progress: steps too short to count one by one may do so together.
            self.best_value = min(self.best_value, record.value)
            self.best_gap = min(self.best_gap, record.gap)
        else:
            self.idle += 1
        patience = SHORT_PATIENCE if self.every == 1 else PATIENCE
        return self.idle >= patience


def _over(value: float, lower: float) -> float:
    """value - lower >= 0, rounding included; a loss that reaches its bound of 0 has no rounding."""
    noise = 4 * float(np.finfo(np.float64).eps) * abs(value)
    return max(0.0, value - lower) + (noise if lower != 0 else 0.0)
