"""The paper's algorithms by name, each a pair of a gradient estimator and a step."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from adafw import gradients, metrics
from adafw.constraints.base import Constraint
from adafw.describe import describe
from adafw.gradients import GradientEstimator
from adafw.objectives.base import FiniteSum
from adafw.schedules import OpenLoop, QuadraticGrowth, Share
from adafw.steps import AdaptiveStep, CorrectiveStep, FrankWolfeStep, ProjectedStep, Step
from adafw.typing import Plain, ScheduleLike


@dataclass(frozen=True)
class Algorithm:
    """Any gradient estimator (line 2 of both templates) with any step (the lines after it)."""

    gradient: GradientEstimator
    step: Step
    name: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.gradient, GradientEstimator):
            raise TypeError(f"gradient must be one of adafw.gradients, got {self.gradient!r}.")
        if not isinstance(self.step, Step):
            raise TypeError(f"step must be one of adafw.steps, got {self.step!r}.")
        if not self.name:
            parts = type(self.gradient).__name__, type(self.step).__name__
            object.__setattr__(self, "name", " + ".join(parts))

    def check(self, f: FiniteSum, constraint: Constraint) -> None:
        """Refuses a problem that lacks what the parts need, before any work."""
        self.gradient.check(f)
        self.step.check(f, constraint, self.gradient)

    def describe(self) -> Plain:
        """Both parts as plain numbers: what a state remembers of its algorithm."""
        return {"gradient": describe(self.gradient), "step": describe(self.step)}

    def __str__(self) -> str:
        return self.name


class _Required:
    """Stands for a learning rate that was not given."""

    def __repr__(self) -> str:
        return "required"


_REQUIRED: Any = _Required()


def _rate(learning_rate: Any, name: str) -> Any:
    if learning_rate is _REQUIRED:
        raise TypeError(
            f"{name} needs learning_rate: no value fits all problems; give one, or let adafw.tune "
            "search for it as the paper does."
        )
    return learning_rate


# Template 1: Frank-Wolfe steps ------------------------------------------------------------------


def FW(step_size: Any = OpenLoop()) -> Algorithm:
    """Frank-Wolfe with exact gradients (1956); `step_size` may be a rule, as `LineSearch()`."""
    return Algorithm(gradients.Full(), FrankWolfeStep(step_size), "FW")


def SFW(step_size: Any = OpenLoop(), batch_size: ScheduleLike | None = None) -> Algorithm:
    """Stochastic Frank-Wolfe; b_t = ceil(t^2 / sqrt(m)) up to m (Hazan and Luo 2016)."""
    return Algorithm(_growing(batch_size), FrankWolfeStep(step_size), "SFW")


def _growing(batch_size: ScheduleLike | None) -> gradients.Minibatch:
    return gradients.Minibatch(QuadraticGrowth() if batch_size is None else batch_size)


def SVRF(step_size: Any = OpenLoop(), batch_size: ScheduleLike | None = None) -> Algorithm:
    """Variance-reduced Frank-Wolfe; b_t = t up to m // 10 (Hazan and Luo 2016)."""
    return Algorithm(gradients.SVRF(batch_size), FrankWolfeStep(step_size), "SVRF")


def SPIDERFW(step_size: Any = OpenLoop(), batch_size: ScheduleLike | None = None) -> Algorithm:
    """SPIDER Frank-Wolfe; b_t doubling up to m (Yurtsever et al. 2019, Shen et al. 2019)."""
    return Algorithm(gradients.SPIDER(batch_size), FrankWolfeStep(step_size), "SPIDERFW")


def ORGFW(step_size: Any = OpenLoop(), batch_size: ScheduleLike | None = None) -> Algorithm:
    """Online recursive-gradient Frank-Wolfe; b_t = m // 100 (Xie et al. 2020)."""
    return Algorithm(gradients.ORGFW(batch_size), FrankWolfeStep(step_size), "ORGFW")


def CSFW(step_size: Any = OpenLoop(), batch_size: ScheduleLike | None = None) -> Algorithm:
    """Constant batch-size Frank-Wolfe; b = m // 100 (Negiar et al. 2020)."""
    return Algorithm(gradients.CSFW(batch_size), FrankWolfeStep(step_size), "CSFW")


def Corrective() -> Algorithm:
    """Fully corrective Frank-Wolfe with second-order steps on the atoms found so far."""
    return Algorithm(gradients.Full(), CorrectiveStep(), "Corrective")


# Template 3: adaptive gradients without projection ----------------------------------------------


class AdaptivePreset(Protocol):
    """The signature that most presets of Template 3 share."""

    def __call__(
        self,
        learning_rate: ScheduleLike = _REQUIRED,
        inner_steps: int | None = None,
        max_step: ScheduleLike = 1.0,
        offset: float = 1e-8,
        batch_size: ScheduleLike | None = None,
        inner: str = "frank_wolfe",
    ) -> Algorithm: ...


def _adaptive(
    name: str, doc: str, estimator: Callable[[ScheduleLike | None], GradientEstimator]
) -> AdaptivePreset:
    """The preset that joins an estimate with Template 3 and AdaGrad's metric."""

    def preset(
        learning_rate: ScheduleLike = _REQUIRED,
        inner_steps: int | None = None,
        max_step: ScheduleLike = 1.0,
        offset: float = 1e-8,
        batch_size: ScheduleLike | None = None,
        inner: str = "frank_wolfe",
    ) -> Algorithm:
        metric = metrics.AdaGrad(offset)
        rate = _rate(learning_rate, name)
        step = AdaptiveStep(rate, inner_steps, max_step, metric, inner=inner)
        return Algorithm(estimator(batch_size), step, name)

    preset.__name__ = preset.__qualname__ = name
    preset.__doc__ = doc
    return preset


def AdaFW(
    learning_rate: ScheduleLike = _REQUIRED,
    inner_steps: int | None = None,
    max_step: ScheduleLike = 1.0,
    offset: float = 1e-8,
    inner: str = "frank_wolfe",
) -> Algorithm:
    """Template 3 with exact gradients and AdaGrad's metric."""
    metric = metrics.AdaGrad(offset)
    rate = _rate(learning_rate, "AdaFW")
    step = AdaptiveStep(rate, inner_steps, max_step, metric, inner=inner)
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
    learning_rate: ScheduleLike = _REQUIRED,
    inner_steps: int | None = None,
    max_step: ScheduleLike = 1.0,
    offset: float = 1e-8,
    batch_size: ScheduleLike | None = None,
    betas: tuple[float, float] = (0.9, 0.99),
    inner: str = "frank_wolfe",
) -> Algorithm:
    """Algorithm 7: minibatches, b = m // 100, AMSGrad's metric and its momentum."""
    metric = metrics.AMSGrad(betas, offset)
    rate = _rate(learning_rate, "AdamSFW")
    step = AdaptiveStep(rate, inner_steps, max_step, metric, inner=inner)
    return Algorithm(gradients.Minibatch(batch_size), step, "AdamSFW")


# Adaptive gradients with projection -------------------------------------------------------------


def AdaGrad(
    learning_rate: ScheduleLike = _REQUIRED,
    offset: float = 1e-8,
    batch_size: ScheduleLike | None = None,
    gradient: GradientEstimator | None = None,
) -> Algorithm:
    """Algorithm 2: projected AdaGrad; minibatches of m // 100, or any `gradient` estimator."""
    step = ProjectedStep(_rate(learning_rate, "AdaGrad"), metrics.AdaGrad(offset))
    return Algorithm(_estimator(gradient, batch_size), step, "AdaGrad")


def AMSGrad(
    learning_rate: ScheduleLike = _REQUIRED,
    offset: float = 1e-8,
    batch_size: ScheduleLike | None = None,
    gradient: GradientEstimator | None = None,
    betas: tuple[float, float] = (0.9, 0.99),
) -> Algorithm:
    """Projected AMSGrad; minibatches of m // 100, or any `gradient` estimator."""
    step = ProjectedStep(_rate(learning_rate, "AMSGrad"), metrics.AMSGrad(betas, offset))
    return Algorithm(_estimator(gradient, batch_size), step, "AMSGrad")


def _estimator(
    gradient: GradientEstimator | None, batch_size: ScheduleLike | None
) -> GradientEstimator:
    if gradient is None:
        return gradients.Minibatch(Share(100) if batch_size is None else batch_size)
    if batch_size is not None:
        raise ValueError("give batch_size to the gradient estimator, not beside gradient=.")
    return gradient
