"""SFW, AdaSFW and AdamSFW, and AdaGrad and AMSGrad with projection, as torch optimizers."""

from typing import Any, Unpack

from adafw import checks
from adafw.metrics.amsgrad import check_betas
from adafw.torch import sharded, updates
from adafw.torch.base import ConstrainedOptimizer, Flags, rate_of
from adafw.torch.updates import Update

_RESCALE = (None, "gradient", "diameter")


class SFW(ConstrainedOptimizer):
    """Stochastic Frank-Wolfe with momentum: x <- x + gamma (v - x), v = lmo(m) (Template 1).

    Parameters
    ----------
    params : parameters, or groups such as `adafw.torch.constrain` returns.
    lr : the step size gamma, in [0, 1] unless it is rescaled; follows torch's schedulers.
    momentum : beta in m <- beta m + (1 - beta) g, where the first m is g; 0 for none.
    rescale : None: gamma = lr; "gradient": min(1, lr ||m|| / ||v - x||), a step as long as the
        gradient step's; "diameter": min(1, lr / D), D the l2 diameter of the set.
    fused : None: a compiled kernel where there is one; False: plain torch.

    A group without a set does the gradient step x <- x - lr m.
    """

    buffers = ("momentum",)
    update = Update(updates.sfw_momentum, updates.frank_wolfe)
    kernel = "sfw"

    def __init__(
        self,
        params: Any,
        lr: float,
        momentum: float = 0.9,
        rescale: str | None = None,
        *,
        weight_decay: float = 0.0,
        fused: bool | None = None,
        **flags: Unpack[Flags],
    ) -> None:
        defaults = {"lr": lr, "momentum": momentum, "rescale": rescale}
        super().__init__(params, defaults, weight_decay, fused, flags)

    def check_options(self, group: dict[str, Any]) -> None:
        super().check_options(group)
        check_rescale(group)
        if not checks.real(group["momentum"], "momentum", 0, 1) < 1:
            raise ValueError("momentum must be a number >= 0 and < 1, got 1.")

    def check_lr(self, group: dict[str, Any]) -> float:
        return step_size_of(group)

    def buffers_of(self, group: dict[str, Any]) -> tuple[str, ...]:
        return self.buffers if group["momentum"] else ()


class AdaSFW(ConstrainedOptimizer):
    """Algorithm 4: K Frank-Wolfe steps on AdaGrad's subproblem.

    Parameters
    ----------
    params : parameters, or groups such as `adafw.torch.constrain` returns.
    lr : the learning rate eta; follows torch's schedulers, 0 moves nothing.
    inner_steps : K.
    offset : delta in h = delta + sqrt(sum of g^2).
    max_step : the bound gamma_t on each inner step size.
    fused : None: a compiled kernel where there is one; False: plain torch.

    A group without a set does AdaGrad's step x <- x - lr g / h.
    """

    buffers = ("sum_squares",)
    update = Update(updates.adagrad_metric, updates.adaptive)
    kernel = "adasfw"

    def __init__(
        self,
        params: Any,
        lr: float,
        inner_steps: int = 2,
        offset: float = 1e-8,
        max_step: float = 1.0,
        *,
        weight_decay: float = 0.0,
        fused: bool | None = None,
        **flags: Unpack[Flags],
    ) -> None:
        defaults = {"lr": lr, "inner_steps": inner_steps, "offset": offset, "max_step": max_step}
        super().__init__(params, defaults, weight_decay, fused, flags)

    def check_options(self, group: dict[str, Any]) -> None:
        super().check_options(group)
        _check_inner(group)


class AdamSFW(ConstrainedOptimizer):
    """Algorithm 7: K Frank-Wolfe steps on the subproblem of AMSGrad, with momentum.

    Parameters
    ----------
    params : parameters, or groups such as `adafw.torch.constrain` returns.
    lr : the learning rate eta; follows torch's schedulers, 0 moves nothing.
    inner_steps : K.
    betas : (beta_m, beta_s) with beta_m < sqrt(beta_s).
    offset : delta in h = delta + sqrt(max of s).
    max_step : the bound gamma_t on each inner step size.
    fused : None: a compiled kernel where there is one; False: plain torch.

    A group without a set does AMSGrad's step x <- x - lr m / h, without bias correction.
    """

    buffers = ("momentum", "mean_squares", "max_squares")
    update = Update(updates.amsgrad_metric, updates.adaptive)
    kernel = "adamsfw"

    def __init__(
        self,
        params: Any,
        lr: float,
        inner_steps: int = 5,
        betas: tuple[float, float] = (0.9, 0.99),
        offset: float = 1e-8,
        max_step: float = 1.0,
        *,
        weight_decay: float = 0.0,
        fused: bool | None = None,
        **flags: Unpack[Flags],
    ) -> None:
        defaults = {"lr": lr, "inner_steps": inner_steps, "betas": betas, "offset": offset,
                    "max_step": max_step}  # fmt: skip
        super().__init__(params, defaults, weight_decay, fused, flags)

    def check_options(self, group: dict[str, Any]) -> None:
        super().check_options(group)
        _check_inner(group)
        check_betas(group["betas"])


class AdaGrad(ConstrainedOptimizer):
    """Algorithm 2: AdaGrad, projected in the norm of its own metric.

    `lr` (eta), `offset` (delta). Sets without a projection in a diagonal metric are refused.
    """

    buffers = ("sum_squares",)
    update = Update(updates.adagrad_metric, updates.projected)
    sharded_sets = sharded.ENTRYWISE

    def __init__(
        self, params: Any, lr: float, offset: float = 1e-8, *, weight_decay: float = 0.0,
        **flags: Unpack[Flags],
    ) -> None:  # fmt: skip
        super().__init__(params, {"lr": lr, "offset": offset}, weight_decay, None, flags)

    def check_options(self, group: dict[str, Any]) -> None:
        super().check_options(group)
        _check_projection(group)


class AMSGrad(ConstrainedOptimizer):
    """AMSGrad with momentum and no bias correction, projected in the norm of its own metric.

    `lr` (eta), `betas` (beta_m, beta_s), `offset` (delta). Sets without a projection in a
    diagonal metric are refused.
    """

    buffers = ("momentum", "mean_squares", "max_squares")
    update = Update(updates.amsgrad_metric, updates.projected)
    sharded_sets = sharded.ENTRYWISE

    def __init__(
        self,
        params: Any,
        lr: float,
        betas: tuple[float, float] = (0.9, 0.99),
        offset: float = 1e-8,
        *,
        weight_decay: float = 0.0,
        **flags: Unpack[Flags],
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "offset": offset}
        super().__init__(params, defaults, weight_decay, None, flags)

    def check_options(self, group: dict[str, Any]) -> None:
        super().check_options(group)
        _check_projection(group)
        check_betas(group["betas"])


def check_rescale(group: dict[str, Any]) -> None:
    """`rescale` of a Template 1 step."""
    if group["rescale"] not in _RESCALE:
        raise ValueError(
            f"rescale must be None, 'gradient' or 'diameter', got {group['rescale']!r}."
        )


def step_size_of(group: dict[str, Any]) -> float:
    """lr of a Template 1 step, at most 1 where it is the step size itself."""
    lr = rate_of(group)
    if lr > 1 and group["rescale"] is None and group["constraint"] is not None:
        raise ValueError(
            f"lr must be a number >= 0 and <= 1, as it is the step size, got {lr:g}; with "
            "rescale='gradient' or 'diameter' it may be larger."
        )
    return lr


def _check_inner(group: dict[str, Any]) -> None:
    checks.integer(group["inner_steps"], "inner_steps", 1)
    checks.real(group["offset"], "offset", 0, above=True)
    checks.real(group["max_step"], "max_step", 0, 1)


def _check_projection(group: dict[str, Any]) -> None:
    checks.real(group["offset"], "offset", 0, above=True)
    constraint = group["constraint"]
    if constraint is not None and constraint.projection != "metric":
        raise TypeError(
            f"a projected step needs a set with a projection in a diagonal metric, which "
            f"{constraint!r} has not; use AdaSFW or AdamSFW, which need none."
        )
