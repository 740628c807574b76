"""SFW, AdaSFW and AdamSFW, and AdaGrad and AMSGrad with projection, as torch optimizers."""

from dataclasses import fields, is_dataclass
from typing import Unpack

from adafw import checks
from adafw.constraints import Box, Constraint
from adafw.metrics.amsgrad import check_betas
from adafw.torch import batched, sharded, updates
from adafw.torch.base import ConstrainedOptimizer, Work
from adafw.torch.groups import Flags, rate_of
from adafw.torch.matrices import with_radius
from adafw.torch.typing import Group, Params
from adafw.torch.updates import Update

_RESCALE = (None, "gradient", "diameter", "short")


class SFW(ConstrainedOptimizer):
    """Stochastic Frank-Wolfe: d = b1 m + (1 - b1) g; x <- x + gamma (lmo(d) - x) (Template 1).

    Then m <- b2 m + (1 - b2) g. Muon, Scion, Lion and Signum are this form on a ball.

    Parameters
    ----------
    params : parameters, or groups such as `adafw.torch.constrain` returns.
    lr : the step size gamma, in [0, 1] unless it is rescaled; follows torch's schedulers.
    momentum : b1 = b2; 0 for none.
    rescale : None: gamma = lr; "gradient": min(1, lr ||d|| / ||v - x||), a step as long as the
        gradient step's; "diameter": min(1, lr / D), D the l2 diameter of the set; "short":
        min(1, lr <d, x - v> / ||x - v||^2), the short step of a function with curvature 1 / lr.
    betas : (b1, b2), in place of `momentum`; (0.9, 0.99) are Lion's.
    nesterov : b1 = momentum^2, as in Muon.
    start : the first m is the "gradient", or "zero".
    radius_scale : the set is used so many times as large; may be changed in the parameter group
        (see `RadiusSchedule`). Where it shrinks, what lies outside shrinks by 1 - gamma a step.
    fused : None: a compiled kernel where there is one; False: plain torch.

    A group without a set does the gradient step x <- x - lr d.
    """

    buffers = ("momentum",)
    update = Update(updates.one_form, updates.frank_wolfe)
    kernel = "sfw"

    def __init__(
        self,
        params: Params,
        lr: float,
        momentum: float = 0.9,
        rescale: str | None = None,
        *,
        betas: tuple[float, float] | None = None,
        nesterov: bool = False,
        start: str = "gradient",
        radius_scale: float = 1.0,
        weight_decay: float = 0.0,
        fused: bool | None = None,
        **flags: Unpack[Flags],
    ) -> None:
        defaults: Group = {
            "lr": lr, "momentum": momentum, "rescale": rescale, "nesterov": nesterov,
            "start": start, "radius_scale": radius_scale,
        }  # fmt: skip
        if betas is not None:  # schedulers that cycle a momentum look for the name
            defaults["betas"] = betas
        super().__init__(params, defaults, weight_decay, fused, flags)

    def check_options(self, group: Group) -> None:
        super().check_options(group)
        check_rescale(group)
        check_momentum(group)
        if group["start"] not in ("gradient", "zero"):
            raise ValueError(f"start must be 'gradient' or 'zero', got {group['start']!r}.")
        checks.real(group["radius_scale"], "radius_scale", 0, above=True)

    def check_lr(self, group: Group) -> float:
        return step_size_of(group)

    def buffers_of(self, group: Group) -> tuple[str, ...]:
        return self.buffers if any(updates.weights_of(group)) else ()

    def gamma_of(self, group: Group) -> float | None:
        return None if group["rescale"] or group["constraint"] is None else float(group["lr"])

    def current_set(self, group: Group) -> Constraint | None:
        return scaled(group["constraint"], float(group["radius_scale"]))

    def move_together(self, work: list[Work]) -> list[Work]:
        stacked = [batched.may_stack(options["constraint"], p, options) for p, _, options in work]
        if sum(stacked) < 2:
            return work
        together = [one for one, taken in zip(work, stacked, strict=True) if taken]
        rest = [one for one, taken in zip(work, stacked, strict=True) if not taken]
        moved = [(p, *self._in_precision(p, g), options) for p, g, options in together]
        directions = [updates.kept_form(g, self.state[p], options) for p, _, g, options in moved]
        sets = [options["constraint"] for *_, options in moved]
        found = batched.vertices(sets, directions)
        for (p, x, _, options), m, v in zip(moved, directions, found, strict=True):
            away = x - v
            gamma = updates.step_size(m, away, options["constraint"], options) * m.any()
            x.addcmul_(away, gamma, value=-1)
            self._moved(p, x)
        return rest


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
        params: Params,
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

    def check_options(self, group: Group) -> None:
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
        params: Params,
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

    def check_options(self, group: Group) -> None:
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
        self, params: Params, lr: float, offset: float = 1e-8, *, weight_decay: float = 0.0,
        **flags: Unpack[Flags],
    ) -> None:  # fmt: skip
        super().__init__(params, {"lr": lr, "offset": offset}, weight_decay, None, flags)

    def check_options(self, group: Group) -> None:
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
        params: Params,
        lr: float,
        betas: tuple[float, float] = (0.9, 0.99),
        offset: float = 1e-8,
        *,
        weight_decay: float = 0.0,
        **flags: Unpack[Flags],
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "offset": offset}
        super().__init__(params, defaults, weight_decay, None, flags)

    def check_options(self, group: Group) -> None:
        super().check_options(group)
        _check_projection(group)
        check_betas(group["betas"])


def check_momentum(group: Group) -> None:
    """`momentum`, or the `betas` in its place."""
    if not checks.real(group["momentum"], "momentum", 0, 1) < 1:
        raise ValueError("momentum must be a number >= 0 and < 1, got 1.")
    if group.get("betas") is None:
        return
    check_weights(group["betas"])
    if group["nesterov"]:
        raise ValueError("nesterov must be False where betas are given: it is betas=(b * b, b).")


def check_weights(betas: object) -> None:
    """A pair (b1, b2) of the one form."""
    if not isinstance(betas, tuple | list) or len(betas) != 2:
        raise ValueError(f"betas must be a pair (b1, b2), got {betas!r}.")
    for name, b in zip(("b1", "b2"), betas, strict=True):
        checks.real(b, f"{name} of betas", 0, 1, below=True)


def scaled(constraint: Constraint | None, factor: float) -> Constraint | None:
    """The set `factor` times as large."""
    if constraint is None or factor == 1:
        return constraint
    if isinstance(constraint, Box):
        return Box(factor * constraint.lower.value, factor * constraint.upper.value)
    if not is_dataclass(constraint) or "radius" not in {f.name for f in fields(constraint)}:
        raise TypeError(
            f"radius_scale must be 1 for a set without a radius, got {factor:g} for {constraint!r}."
        )
    return with_radius(constraint, factor * constraint.scale)


def check_rescale(group: Group) -> None:
    """`rescale` of a Template 1 step."""
    if group["rescale"] not in _RESCALE:
        raise ValueError(
            f"rescale must be None, 'gradient', 'diameter' or 'short', got {group['rescale']!r}."
        )


def step_size_of(group: Group) -> float:
    """lr of a Template 1 step, at most 1 where it is the step size itself."""
    lr = rate_of(group)
    if lr > 1 and group["rescale"] is None and group["constraint"] is not None:
        raise ValueError(
            f"lr must be a number >= 0 and <= 1, as it is the step size, got {lr:g}; with "
            "rescale='gradient', 'diameter' or 'short' it may be larger."
        )
    return lr


def _check_inner(group: Group) -> None:
    checks.integer(group["inner_steps"], "inner_steps", 1)
    checks.real(group["offset"], "offset", 0, above=True)
    checks.real(group["max_step"], "max_step", 0, 1)


def _check_projection(group: Group) -> None:
    checks.real(group["offset"], "offset", 0, above=True)
    constraint = group["constraint"]
    if constraint is not None and constraint.projection != "metric":
        raise TypeError(
            f"a projected step needs a set with a projection in a diagonal metric, which "
            f"{constraint!r} has not; use AdaSFW or AdamSFW, which need none."
        )
