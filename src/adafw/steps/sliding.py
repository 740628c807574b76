"""Conditional gradient sliding: an accelerated method whose projections are Frank-Wolfe runs."""

from dataclasses import dataclass
from typing import NamedTuple, TypedDict

from adafw import checks
from adafw.arrays import dot
from adafw.constraints.base import Constraint
from adafw.gradients.base import GradientEstimator
from adafw.objectives.base import FiniteSum
from adafw.schedules import Stages
from adafw.steps.base import Step
from adafw.typing import Array


class Sliding(NamedTuple):
    """Parameters of one iteration: gamma, beta / L, eta / (L D^2), whether it begins a stage."""

    gamma: float
    beta: float
    eta: float
    restart: bool


@dataclass(frozen=True)
class LanZhou:
    """gamma = 3 / (k + 2), beta = 3 L / (k + 1), eta = L D^2 / (k (k + 1)), k = t + 1.

    With noise (`stochastic`), beta = 4 L / (k + 2). Lan and Zhou (2016), corollaries 2.2 and 3.2;
    docs/theory.md derives their bounds from these numbers. Their batches of
    ceil(sigma^2 (k + 2)^3 / (L D)^2) need the variance sigma^2, which nobody knows: `SCGS` takes
    m // 100 instead, our choice.
    """

    stochastic: bool = False

    def __call__(self, t: int) -> Sliding:
        k = t + 1
        beta = 4 / (k + 2) if self.stochastic else 3 / (k + 1)
        return Sliding(3 / (k + 2), beta, 1 / (k * (k + 1)), t == 0)


@dataclass(frozen=True)
class HazanLuo:
    """gamma = 2 / (k + 1), beta = 3 L / k, eta = 2 L D^2 / (N k), k counted within a stage of N.

    Stages begin anew from their x; the s-th has N = ceil(2^(s/2 + 2)) iterations. Hazan and Luo
    (2016), theorem 2; docs/theory.md derives its bound from these numbers. Their batches grow with
    N, by constants in the hundreds, to more than all terms here: `STORC` takes m // 100 instead,
    our choice.
    """

    def __call__(self, t: int) -> Sliding:
        begin, length = Stages().around(t)
        k = t - begin + 1
        return Sliding(2 / (k + 1), 3 / k, 2 / (length * k), k == 1)


class Centre(TypedDict, total=False):
    """c; nothing before t = 0."""

    centre: Array


@dataclass(frozen=True)
class SlidingStep(Step[Centre]):
    """u = argmin over C of <g, u> + beta ||u - c||^2 / 2 to a gap of eta, x <- x + gamma (u - x).

    c is the last u; g is asked for at x + gamma (c - x). The subproblem is solved by Frank-Wolfe
    steps from c, each of the best length, at most `inner_steps` of them. `rule`: gamma, beta and
    eta of t, `LanZhou()` or `HazanLuo()`. `L`: smoothness, None takes `f.smoothness`; `diameter`
    (D): None takes the set's. An error of eps takes O(eps^(-1/2)) gradients and O(1 / eps) LMO
    calls, where Frank-Wolfe needs O(1 / eps) of both. Lan and Zhou (2016), algorithm 1.
    """

    rule: LanZhou | HazanLuo = LanZhou()
    L: float | None = None
    diameter: float | None = None
    inner_steps: int = 10_000

    def __post_init__(self) -> None:
        if not isinstance(self.rule, LanZhou | HazanLuo):
            raise TypeError(f"rule must be steps.LanZhou() or steps.HazanLuo(), got {self.rule!r}.")
        for name in ("L", "diameter"):
            if getattr(self, name) is not None:
                value = checks.real(getattr(self, name), name, 0, above=True)
                object.__setattr__(self, name, value)
        object.__setattr__(self, "inner_steps", checks.integer(self.inner_steps, "inner_steps", 1))

    def check(self, f: FiniteSum, constraint: Constraint, gradient: GradientEstimator) -> None:
        self._smoothness(f)
        shape = constraint.shape if f.shape is None else f.shape
        if shape is not None:
            self._diameter(constraint, shape)

    def init(self, x: Array) -> Centre:
        return {}

    def layout(self, x: Array, t: int) -> Centre:
        return {"centre": x} if t else {}

    def query(self, x: Array, t: int, state: Centre) -> Array:
        now = self.rule(t)
        return x if now.restart else x + now.gamma * (state["centre"] - x)

    def update(
        self, f: FiniteSum, constraint: Constraint, x: Array, g: Array, t: int,
        state: Centre,
    ) -> tuple[Array, Centre]:  # fmt: skip
        now, L = self.rule(t), self._smoothness(f)
        D = self._diameter(constraint, x.shape)
        centre = x if now.restart else state["centre"]
        if not g.any():  # u = c: to where the gradient is 0
            return x + now.gamma * (centre - x), {"centre": centre}
        beta, eta = L * now.beta, L * D * D * now.eta
        u = centre
        for _ in range(self.inner_steps):
            slope = g + beta * (u - centre)
            d = constraint.lmo(slope) - u
            gap = -float(dot(slope, d))
            if not gap > eta:
                break
            # The curvature underflows where the set is tiny; the whole step is best there.
            u = u + min(1.0, gap / max(beta * float(dot(d, d)), 1e-300)) * d
        return x + now.gamma * (u - x), {"centre": u}

    @property
    def most_lmo_calls(self) -> int:
        return self.inner_steps

    def _smoothness(self, f: FiniteSum) -> float:
        if self.L is not None:
            return self.L
        try:
            return f.smoothness
        except TypeError as unknown:
            raise TypeError(
                f"SlidingStep needs L, and {f!r} does not know its smoothness constant L; give one "
                "that holds on the set, as in CGS(L=10.0)."
            ) from unknown

    def _diameter(self, constraint: Constraint, shape: tuple[int, ...]) -> float:
        if self.diameter is not None:
            return self.diameter
        try:
            return constraint.diameter(shape)
        except TypeError as unknown:
            raise TypeError(
                f"SlidingStep needs the diameter of the set, which {constraint!r} does not know; "
                "give it, or a bound above it, as in CGS(diameter=2.0)."
            ) from unknown
