"""The paper's algorithms by name, each a pair of a gradient estimator and a step."""

from collections.abc import Callable
from typing import Protocol

from adafw import gradients, metrics
from adafw.algorithm import Algorithm
from adafw.gradients import GradientEstimator
from adafw.schedules import BatchSizeLike, OpenLoop, QuadraticGrowth, RateLike, Share
from adafw.steps import (
    AdaptiveStep,
    AwayStep,
    BlendedPairwiseStep,
    BoostedStep,
    CorrectiveStep,
    FrankWolfeStep,
    HazanLuo,
    LanZhou,
    LineSearch,
    PairwiseStep,
    ProjectedStep,
    ShortStep,
    SlidingStep,
    StepRule,
)
from adafw.typing import ScheduleLike

# Template 1: Frank-Wolfe steps ------------------------------------------------------------------


def FW(step_size: ScheduleLike | StepRule = OpenLoop()) -> Algorithm:
    """Frank-Wolfe with exact gradients (1956); `step_size` may be a rule, as `LineSearch()`."""
    return Algorithm(gradients.Full(), FrankWolfeStep(step_size), "FW")


def SFW(
    step_size: ScheduleLike | StepRule = OpenLoop(), batch_size: BatchSizeLike | None = None
) -> Algorithm:
    """Stochastic Frank-Wolfe; b_t = ceil(t^2 / sqrt(m)) up to m (Hazan and Luo 2016)."""
    return Algorithm(_growing(batch_size), FrankWolfeStep(step_size), "SFW")


def _growing(batch_size: BatchSizeLike | None) -> gradients.Minibatch:
    return gradients.Minibatch(QuadraticGrowth() if batch_size is None else batch_size)


def SVRF(
    step_size: ScheduleLike | StepRule = OpenLoop(), batch_size: BatchSizeLike | None = None
) -> Algorithm:
    """Variance-reduced Frank-Wolfe; b_t = t up to m // 10 (Hazan and Luo 2016)."""
    return Algorithm(gradients.SVRF(batch_size), FrankWolfeStep(step_size), "SVRF")


def SPIDERFW(
    step_size: ScheduleLike | StepRule = OpenLoop(), batch_size: BatchSizeLike | None = None
) -> Algorithm:
    """SPIDER Frank-Wolfe; b_t doubling up to m (Yurtsever et al. 2019, Shen et al. 2019)."""
    return Algorithm(gradients.SPIDER(batch_size), FrankWolfeStep(step_size), "SPIDERFW")


def ORGFW(
    step_size: ScheduleLike | StepRule = OpenLoop(), batch_size: BatchSizeLike | None = None
) -> Algorithm:
    """Online recursive-gradient Frank-Wolfe; b_t = m // 100 (Xie et al. 2020)."""
    return Algorithm(gradients.ORGFW(batch_size), FrankWolfeStep(step_size), "ORGFW")


def CSFW(
    step_size: ScheduleLike | StepRule = OpenLoop(), batch_size: BatchSizeLike | None = None
) -> Algorithm:
    """Constant batch-size Frank-Wolfe; b = m // 100 (Negiar et al. 2020)."""
    return Algorithm(gradients.CSFW(batch_size), FrankWolfeStep(step_size), "CSFW")


def Corrective() -> Algorithm:
    """Fully corrective Frank-Wolfe with second-order steps on the atoms found so far."""
    return Algorithm(gradients.Full(), CorrectiveStep(), "Corrective")


def SAGAFW(
    step_size: ScheduleLike | StepRule = OpenLoop(), batch_size: BatchSizeLike | None = None
) -> Algorithm:
    """Frank-Wolfe with SAGA's estimate; b = m // 100 (Reddi et al. 2016)."""
    return Algorithm(gradients.SAGA(batch_size), FrankWolfeStep(step_size), "SAGAFW")


def MSFW(
    step_size: ScheduleLike | StepRule = OpenLoop(), batch_size: BatchSizeLike | None = None
) -> Algorithm:
    """Stochastic Frank-Wolfe with momentum; b = m // 100 (Mokhtari, Hassani, Karbasi 2020)."""
    return Algorithm(gradients.Momentum(batch_size), FrankWolfeStep(step_size), "MSFW")


def LSVRFW(
    step_size: ScheduleLike | StepRule = OpenLoop(),
    batch_size: BatchSizeLike | None = None,
    probability: ScheduleLike | None = None,
) -> Algorithm:
    """Frank-Wolfe with loopless SVRG's estimate; b = m // 100, p = b / m (Nazykov et al. 2024)."""
    gradient = gradients.LSVRG(batch_size, probability)
    return Algorithm(gradient, FrankWolfeStep(step_size), "LSVRFW")


def PAGEFW(
    step_size: ScheduleLike | StepRule = OpenLoop(),
    batch_size: BatchSizeLike | None = None,
    probability: ScheduleLike | None = None,
) -> Algorithm:
    """Frank-Wolfe with PAGE's estimate; b = m // 100, p = b / (m + b) (Beznosikov et al. 2024)."""
    return Algorithm(gradients.PAGE(batch_size, probability), FrankWolfeStep(step_size), "PAGEFW")


def LuFreundFW(
    step_size: ScheduleLike = OpenLoop(), batch_size: BatchSizeLike | None = None
) -> Algorithm:
    """Frank-Wolfe with substitute gradients; b = m // 100 (Lu and Freund 2021)."""
    gradient = gradients.LuFreund(batch_size, step_size)
    return Algorithm(gradient, FrankWolfeStep(step_size), "LuFreundFW")


# Active sets, boosting, sliding ------------------------------------------------------------------


def AFW(step_size: StepRule = LineSearch(), lazy: bool = False) -> Algorithm:
    """Away-step Frank-Wolfe with exact gradients (Guelat and Marcotte 1986)."""
    return Algorithm(gradients.Full(), AwayStep(step_size, lazy), "AFW")


def PFW(step_size: StepRule = LineSearch(), lazy: bool = False) -> Algorithm:
    """Pairwise Frank-Wolfe with exact gradients (Lacoste-Julien and Jaggi 2015)."""
    return Algorithm(gradients.Full(), PairwiseStep(step_size, lazy), "PFW")


def BPCG(step_size: StepRule = LineSearch(), lazy: bool = False) -> Algorithm:
    """Blended pairwise conditional gradients, exact ones (Tsuji, Tanaka, Pokutta 2022)."""
    return Algorithm(gradients.Full(), BlendedPairwiseStep(step_size, lazy), "BPCG")


def BoostFW(
    step_size: ScheduleLike | StepRule = ShortStep(),
    rounds: int | None = None,
    improvement: float = 1e-3,
) -> Algorithm:
    """Boosted Frank-Wolfe with exact gradients and short steps (Combettes and Pokutta 2020)."""
    return Algorithm(gradients.Full(), BoostedStep(step_size, rounds, improvement), "BoostFW")


def BoostCSFW(
    step_size: ScheduleLike = OpenLoop(),
    rounds: int | None = None,
    improvement: float = 1e-3,
    batch_size: BatchSizeLike | None = None,
) -> Algorithm:
    """Boosted steps with CSFW's estimate; b = m // 100, step 2 / (t + 2)."""
    step = BoostedStep(step_size, rounds, improvement)
    return Algorithm(gradients.CSFW(batch_size), step, "BoostCSFW")


def CGS(L: float | None = None, diameter: float | None = None) -> Algorithm:
    """Conditional gradient sliding with exact gradients (Lan and Zhou 2016)."""
    return Algorithm(gradients.Full(), SlidingStep(LanZhou(), L, diameter), "CGS")


def SCGS(
    L: float | None = None,
    diameter: float | None = None,
    batch_size: BatchSizeLike | None = None,
) -> Algorithm:
    """Stochastic conditional gradient sliding; minibatches of m // 100 (Lan and Zhou 2016)."""
    step = SlidingStep(LanZhou(stochastic=True), L, diameter)
    return Algorithm(gradients.Minibatch(batch_size), step, "SCGS")


def STORC(
    L: float | None = None,
    diameter: float | None = None,
    batch_size: BatchSizeLike | None = None,
) -> Algorithm:
    """Variance-reduced sliding in stages; b = m // 100 (Hazan and Luo 2016)."""
    step = SlidingStep(HazanLuo(), L, diameter)
    return Algorithm(gradients.StagedSVRG(batch_size), step, "STORC")


# Template 3: adaptive gradients without projection ----------------------------------------------


class AdaptivePreset(Protocol):
    """The signature that most presets of Template 3 share."""

    def __call__(
        self,
        learning_rate: RateLike = "auto",
        inner_steps: int | None = None,
        max_step: ScheduleLike = 1.0,
        offset: float = 1e-8,
        batch_size: BatchSizeLike | None = None,
        inner: str = "frank_wolfe",
    ) -> Algorithm: ...


def _adaptive(
    name: str, doc: str, estimator: Callable[[BatchSizeLike | None], GradientEstimator]
) -> AdaptivePreset:
    """The preset that joins an estimate with Template 3 and AdaGrad's metric."""

    def preset(
        learning_rate: RateLike = "auto",
        inner_steps: int | None = None,
        max_step: ScheduleLike = 1.0,
        offset: float = 1e-8,
        batch_size: BatchSizeLike | None = None,
        inner: str = "frank_wolfe",
    ) -> Algorithm:
        metric = metrics.AdaGrad(offset)
        step = AdaptiveStep(learning_rate, inner_steps, max_step, metric, inner=inner)
        return Algorithm(estimator(batch_size), step, name)

    preset.__name__ = preset.__qualname__ = name
    preset.__doc__ = doc
    return preset


def AdaFW(
    learning_rate: RateLike = "auto",
    inner_steps: int | None = None,
    max_step: ScheduleLike = 1.0,
    offset: float = 1e-8,
    inner: str = "frank_wolfe",
) -> Algorithm:
    """Template 3 with exact gradients and AdaGrad's metric."""
    metric = metrics.AdaGrad(offset)
    step = AdaptiveStep(learning_rate, inner_steps, max_step, metric, inner=inner)
    return Algorithm(gradients.Full(), step, "AdaFW")


AdaSFW = _adaptive(
    "AdaSFW",
    "Algorithm 4: SFW's minibatches, b_t = ceil(t^2 / sqrt(m)) up to m, and AdaGrad's metric.",
    _growing,
)
AdaSVRF = _adaptive(
    "AdaSVRF",
    "Algorithm 5: SVRF's estimate, b_t = t up to m // 10, and AdaGrad's metric.",
    gradients.SVRF,
)
AdaSPIDERFW = _adaptive(
    "AdaSPIDERFW",
    "Template 3 with SPIDER's estimate, b_t doubling up to m, and AdaGrad's metric.",
    gradients.SPIDER,
)
AdaORGFW = _adaptive(
    "AdaORGFW",
    "Template 3 with ORGFW's estimate, b_t = m // 100, and AdaGrad's metric.",
    gradients.ORGFW,
)
AdaCSFW = _adaptive(
    "AdaCSFW",
    "Algorithm 6: CSFW's estimate, b = m // 100, and AdaGrad's metric.",
    gradients.CSFW,
)


def AdamSFW(
    learning_rate: RateLike = "auto",
    inner_steps: int | None = None,
    max_step: ScheduleLike = 1.0,
    offset: float = 1e-8,
    batch_size: BatchSizeLike | None = None,
    betas: tuple[float, float] = (0.9, 0.99),
    inner: str = "frank_wolfe",
) -> Algorithm:
    """Algorithm 7: minibatches, b = m // 100, AMSGrad's metric and its momentum."""
    metric = metrics.AMSGrad(betas, offset)
    step = AdaptiveStep(learning_rate, inner_steps, max_step, metric, inner=inner)
    return Algorithm(gradients.Minibatch(batch_size), step, "AdamSFW")


# Adaptive gradients with projection -------------------------------------------------------------


def AdaGrad(
    learning_rate: RateLike = "auto",
    offset: float = 1e-8,
    batch_size: BatchSizeLike | None = None,
    gradient: GradientEstimator | None = None,
) -> Algorithm:
    """Algorithm 2: projected AdaGrad; minibatches of m // 100, or any `gradient` estimator."""
    step = ProjectedStep(learning_rate, metrics.AdaGrad(offset))
    return Algorithm(_estimator(gradient, batch_size), step, "AdaGrad")


def AMSGrad(
    learning_rate: RateLike = "auto",
    offset: float = 1e-8,
    batch_size: BatchSizeLike | None = None,
    gradient: GradientEstimator | None = None,
    betas: tuple[float, float] = (0.9, 0.99),
) -> Algorithm:
    """Projected AMSGrad; minibatches of m // 100, or any `gradient` estimator."""
    step = ProjectedStep(learning_rate, metrics.AMSGrad(betas, offset))
    return Algorithm(_estimator(gradient, batch_size), step, "AMSGrad")


def _estimator(
    gradient: GradientEstimator | None, batch_size: BatchSizeLike | None
) -> GradientEstimator:
    if gradient is None:
        return gradients.Minibatch(Share(100) if batch_size is None else batch_size)
    if batch_size is not None:
        raise ValueError("give batch_size to the gradient estimator, not beside gradient=.")
    return gradient


# What presets take -------------------------------------------------------------------------------

#: (type, meaning) of every argument; one name means one thing in all presets.
_ARGUMENTS = {
    "step_size": (
        "number, function of t or rule",
        "gamma_t; rules such as `ShortStep()`, `LineSearch()` and `Backtracking()` need exact "
        "gradients.",
    ),
    "batch_size": (
        "number, function of t or None",
        "b_t, rounded up; None for what is said above. An epoch is m terms, whatever b_t is.",
    ),
    "probability": ("number, function of t or None", "p, of an exact gradient in an iteration."),
    "lazy": ("bool", "Whether atoms at hand are tried before a linear minimisation is made."),
    "rounds": ("int or None", "Linear minimisations an iteration at most; None for no limit."),
    "improvement": ("float", "Gain in alignment below which no further round is made."),
    "L": ("float or None", "Lipschitz constant of the gradient; None asks f for it."),
    "diameter": ("float or None", "Of the set in the l2 norm; None asks the set for it."),
    "learning_rate": (
        'number, function of t or "auto"',
        'eta_t; "auto" moves it by the curvature that the steps meet.',
    ),
    "inner_steps": (
        "int or None",
        "K, the Frank-Wolfe steps on the subproblem; None for 5 of them, or until it is solved "
        'with `inner="corrective"`.',
    ),
    "max_step": ("number or function of t", "Bound on the step sizes of the inner loop."),
    "offset": ("float", "delta, added to the metric's diagonal."),
    "inner": (
        '"frank_wolfe" or "corrective"',
        "How the subproblem is solved: by plain steps, or with atoms kept and corrected, which "
        "leads to the projection in the metric.",
    ),
    "betas": ("pair of floats", "Of the momentum and of the squares; beta_m < sqrt(beta_s)."),
    "gradient": ("gradient estimator or None", "In the place of minibatches."),
}


def _explain(preset: Callable[..., Algorithm]) -> None:
    """Adds its arguments to the docstring."""
    code = preset.__code__  # of plain functions all
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    rows = [f"{name} : {{}}\n    {{}}".format(*_ARGUMENTS[name]) for name in names]
    if rows and preset.__doc__:
        preset.__doc__ += "\n\nParameters\n----------\n" + "\n".join(rows) + "\n"


_PRESETS: list[Callable[..., Algorithm]] = [
    FW, SFW, SVRF, SPIDERFW, ORGFW, CSFW, SAGAFW, MSFW, LSVRFW, PAGEFW, LuFreundFW,
    AFW, PFW, BPCG, BoostFW, BoostCSFW, CGS, SCGS, STORC,
    AdaFW, AdaSFW, AdaSVRF, AdaSPIDERFW, AdaORGFW, AdaCSFW, AdamSFW, AdaGrad, AMSGrad,
]  # fmt: skip
for _preset in _PRESETS:
    _explain(_preset)
