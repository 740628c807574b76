"""Template 3: a few Frank-Wolfe steps on the subproblem of an adaptive-gradient method."""

from dataclasses import dataclass, replace
from typing import Self, cast

from adafw import checks
from adafw.arrays import dot
from adafw.constraints.base import Constraint
from adafw.metrics import AdaGrad, Metric
from adafw.objectives.base import FiniteSum
from adafw.schedules import Rate, RateLike, as_rate, as_schedule, at
from adafw.steps import hull_of_answers, subproblem
from adafw.steps.base import Step
from adafw.typing import Array, ScheduleLike, StateDict


@dataclass(frozen=True)
class AdaptiveStep(Step):
    """K Frank-Wolfe steps, from y = x_t, on Q_t(y) = <m_t, y> + ||y - x_t||^2_{H_t} / (2 eta_t).

    `learning_rate` (eta_t > 0, or "auto" in `minimize`; inf leaves the linear term alone),
    `inner_steps` (K >= 1), `max_step` (gamma_t in [0, 1], the bound on each step), `metric` (H_t
    and m_t), `inner_gap` (phi_t >= 0: the alternative of section 3.1, where the inner loop also
    ends as soon as the Frank-Wolfe gap of Q_t is at most phi_t, and K is the most it may do).

    `inner`: "frank_wolfe" is the paper's loop, K = 5 unless given. "corrective" minimises Q_t over
    the set to rounding, by linear minimisations and steps on what they returned (`subproblem`), or
    stops after K of them: x_{t+1} is then the projection of x_t - eta m / h in the metric, as
    ProjectedStep has it, on sets without a projection too. To 1e-9 of the radius on all sets of
    adafw; on a curved `UserSet` to the square root of rounding. `max_step` plays no part in it.
    """

    learning_rate: RateLike
    inner_steps: int | None = None
    max_step: ScheduleLike = 1.0
    metric: Metric = AdaGrad()
    inner_gap: ScheduleLike | None = None
    inner: str = "frank_wolfe"

    def __post_init__(self) -> None:
        if not isinstance(self.metric, Metric):
            raise TypeError(f"metric must be one of adafw.metrics, got {self.metric!r}.")
        eta = as_rate(self.learning_rate, infinite=True)
        object.__setattr__(self, "learning_rate", eta)
        if not isinstance(self.inner, str) or self.inner not in ("frank_wolfe", "corrective"):
            raise ValueError(f'inner must be "frank_wolfe" or "corrective", got {self.inner!r}.')
        steps = 5 if self.inner_steps is None and not self.corrective else self.inner_steps
        if steps is not None:
            steps = checks.integer(steps, "inner_steps", 1)
        object.__setattr__(self, "inner_steps", steps)
        most = as_schedule(self.max_step, "max_step", 0, 1)
        object.__setattr__(self, "max_step", most)
        if self.corrective and most.rule != 1.0:
            raise ValueError(
                'max_step must be left out with inner="corrective": its steps go to the minimiser.'
            )
        if self.inner_gap is not None:
            object.__setattr__(self, "inner_gap", as_schedule(self.inner_gap, "inner_gap", 0))

    @property
    def corrective(self) -> bool:
        """Whether Q_t is minimised by corrective steps."""
        return self.inner == "corrective"

    @property
    def rate(self) -> Rate | None:
        return cast(Rate, self.learning_rate)  # by `as_rate`

    def with_rate(self, rate: float) -> Self:
        return replace(self, learning_rate=rate)

    def init(self, x: Array) -> StateDict:
        return self.metric.init(x)

    def prepare(self, f: FiniteSum, constraint: Constraint, x: Array, state: StateDict) -> None:
        self.metric.prepare(x)

    def update(
        self, f: FiniteSum, constraint: Constraint, x: Array, g: Array, t: int,
        state: StateDict,
    ) -> tuple[Array, StateDict]:  # fmt: skip
        m, h, state = self.metric.update(g, t, state)  # line 3
        eta, bound, y = at(self.learning_rate, t), at(self.max_step, t), x  # line 4
        if self.inner_steps is None or self.corrective:
            if not m.any():  # nothing to move for
                return x, state
            enough = None if self.inner_gap is None else at(self.inner_gap, t)
            return subproblem.solve(constraint, x, m, h, eta, self.inner_steps, enough), state
        for _ in range(self.inner_steps):  # line 5
            grad_q = m + h * (y - x) / eta  # line 6
            d = constraint.lmo(grad_q) - y  # line 7
            if self.inner_gap is not None and -dot(grad_q, d) <= at(self.inner_gap, t):
                break
            gamma = short_step(grad_q, d, h, eta, bound)  # line 8
            y = y + gamma * d  # line 9
        return y, state  # line 11

    @property
    def most_lmo_calls(self) -> int:
        return hull_of_answers.MOST if self.inner_steps is None else self.inner_steps


def short_step(grad_q: Array, d: Array, h: Array, eta: float, bound: float) -> float:
    """min(-eta <grad Q, d> / <d, H d>, bound): the minimiser of Q on the way along d (line 8).

    0 when d does not descend, which is rounding at a minimiser of Q, or when d = 0; so that
    neither 0 / 0 nor inf * 0 is ever formed.
    """
    slope, curvature = -float(dot(grad_q, d)), float(dot(d, h * d))
    if not (slope > 0 and curvature > 0):
        return 0.0
    return bound if eta * slope >= bound * curvature else eta * slope / curvature
