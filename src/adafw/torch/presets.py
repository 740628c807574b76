"""Muon, Scion, Lion and Signum: the one form of `SFW` on norm balls, as their users know them.

All do x <- (1 - gamma) x + length v, v the minimiser of <d, .> over a unit ball, from
d = b1 m + (1 - b1) g and m <- b2 m + (1 - b2) g with m = 0 first. Where gamma > 0 this is the
Frank-Wolfe step of size gamma in the ball of radius length / gamma; with gamma = 0 there is no
ball, and the step is the steepest descent of the norm. A start outside its ball is allowed: the
excess shrinks by 1 - gamma a step, and `describe()` tells it.
"""

import math
from typing import Unpack

from torch import Tensor

from adafw import checks
from adafw.constraints import ColumnBall, Constraint, LInfBall, RMSBall, RowBall
from adafw.torch.groups import Flags
from adafw.torch.matrices import DecomposedBall, MuonBall, NewtonSchulzBall
from adafw.torch.norm_optimizer import NormOptimizer
from adafw.torch.optimizers import check_momentum, check_weights
from adafw.torch.polar import MUON
from adafw.torch.typing import Group, Params

_SIGN = LInfBall(1.0)


class Muon(NormOptimizer):
    """Muon: spectral steps with Nesterov's momentum; Frank-Wolfe with gamma = lr * weight_decay.

    The ball: spectral norm <= a / weight_decay, a = sqrt(max(1, rows / columns)), or
    0.2 sqrt(max(rows, columns)) with adjust_lr_fn="match_rms_adamw". Arguments as those of
    `torch.optim.Muon`, and

    lmo : "feasible": the polar factor by six quintic steps and a cubic one, never outside the
        ball; "torch": Muon's own iteration in bfloat16 (ns_coefficients, ns_steps, eps count here
        only), whose steps end up to 20 % outside; "exact": singular value decomposition.
    adamw_betas, adamw_eps : of groups with "adamw": True, in which vectors must be.

    Groups may have "split": so many matrices stacked in a tensor (see `NewtonSchulzBall`).
    Convolutions are matrices (out, rest). Jordan et al. 2024; Liu et al., arXiv:2502.16982.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = MUON,
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
        *,
        lmo: str = "feasible",
        adamw_betas: tuple[float, float] = (0.9, 0.95),
        adamw_eps: float = 1e-8,
        fused: bool | None = None,
        **flags: Unpack[Flags],
    ) -> None:
        defaults = {"lr": lr, "weight_decay": weight_decay, "momentum": momentum,
                    "nesterov": nesterov, "ns_coefficients": ns_coefficients, "eps": eps,
                    "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn, "lmo": lmo,
                    "split": 1}  # fmt: skip
        super().__init__(params, defaults, adamw_betas, adamw_eps, fused, flags)

    def check_options(self, group: Group) -> None:
        super().check_options(group)
        check_momentum(group)
        checks.integer(group["ns_steps"], "ns_steps", 1)
        checks.integer(group["split"], "split", 1)
        if group["adjust_lr_fn"] not in (None, "original", "match_rms_adamw"):
            raise ValueError(
                "adjust_lr_fn must be None, 'original' or 'match_rms_adamw', got "
                f"{group['adjust_lr_fn']!r}."
            )
        if group["lmo"] not in ("feasible", "torch", "exact"):
            raise ValueError(f"lmo must be 'feasible', 'torch' or 'exact', got {group['lmo']!r}.")
        for p in () if group["adamw"] else group["params"]:
            if p.dim() < 2:
                raise ValueError(
                    "Muon trains matrices, got a parameter of shape "
                    f'{tuple(p.shape)}; put it into a group with "adamw": True, as '
                    'adafw.torch.constrain(model, recipe="muon") does.'
                )

    def unit_ball(self, group: Group, p: Tensor) -> Constraint:
        split = group["split"]
        if group["lmo"] == "feasible":
            return NewtonSchulzBall(1.0, split)
        if group["lmo"] == "exact":
            return DecomposedBall(1.0, split)
        coefficients = tuple(group["ns_coefficients"])
        return MuonBall(1.0, split, coefficients, group["ns_steps"], group["eps"])

    def factor(self, group: Group, p: Tensor) -> float:
        *_, rows, columns = NewtonSchulzBall(1.0, group["split"]).stacked(tuple(p.shape))
        if group["adjust_lr_fn"] == "match_rms_adamw":
            return 0.2 * math.sqrt(max(rows, columns))
        return math.sqrt(max(1.0, rows / columns))


class Lion(NormOptimizer):
    """Lion: signs of an interpolated momentum (Chen et al., arXiv:2302.06675).

    The ball: largest entry <= 1 / weight_decay, gamma = lr * weight_decay; with weight_decay = 0
    there is no ball. `betas` = (b1, b2) of the one form.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        adamw_betas: tuple[float, float] = (0.9, 0.95),
        adamw_eps: float = 1e-8,
        fused: bool | None = None,
        **flags: Unpack[Flags],
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "weight_decay": weight_decay}
        super().__init__(params, defaults, adamw_betas, adamw_eps, fused, flags)

    def check_options(self, group: Group) -> None:
        super().check_options(group)
        check_weights(group["betas"])

    def unit_ball(self, group: Group, p: Tensor) -> Constraint:
        return _SIGN


class Signum(NormOptimizer):
    """Signum: signs of the momentum (Bernstein et al., arXiv:1802.04434).

    The ball: largest entry <= 1 / weight_decay, gamma = lr * weight_decay; with weight_decay = 0
    there is no ball. `momentum` = 0 is signSGD.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        *,
        nesterov: bool = False,
        adamw_betas: tuple[float, float] = (0.9, 0.95),
        adamw_eps: float = 1e-8,
        fused: bool | None = None,
        **flags: Unpack[Flags],
    ) -> None:
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay,
                    "nesterov": nesterov}  # fmt: skip
        super().__init__(params, defaults, adamw_betas, adamw_eps, fused, flags)

    def check_options(self, group: Group) -> None:
        super().check_options(group)
        check_momentum(group)

    def unit_ball(self, group: Group, p: Tensor) -> Constraint:
        return _SIGN


#: Scion's norms: name -> unit ball.
_BALLS: dict[str, Constraint] = {"sign": _SIGN, "row": RowBall(1.0), "column": ColumnBall(1.0),
                                 "rms": RMSBall(1.0)}  # fmt: skip
NORMS = ("spectral", "conv", "sign", "row", "column", "embedding", "rms")


class Scion(NormOptimizer):
    """Scion: a norm for each kind of layer (Pethick et al., arXiv:2502.07529).

    x <- (1 - lr) x + lr * scale * a * v: Frank-Wolfe with gamma = lr in the ball of radius
    scale * a of the group's norm; with unconstrained=True x <- x + lr * scale * a * v.

    lr : gamma in [0, 1].
    momentum : b in m <- b m + (1 - b) g; the authors' code calls 1 - b momentum.
    scale : the radius in units of the norm's own, one per group as a rule.
    norm : of a group; by default "auto": "spectral" for matrices, "conv" for more dimensions,
        "rms" for vectors. a is, for weights of shape (out, in): "spectral": sqrt(out / in);
        "conv": sqrt(out / in) / prod(kernel); "sign" (last layers): 1 / in; "row":
        1 / sqrt(in); "column": sqrt(out); "embedding" (rows of nn.Embedding): sqrt(dim);
        "rms" (biases): 1.
    """

    formula = "lr"

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        momentum: float = 0.9,
        scale: float = 1.0,
        unconstrained: bool = False,
        norm: str = "auto",
        *,
        nesterov: bool = False,
        adamw_betas: tuple[float, float] = (0.9, 0.95),
        adamw_eps: float = 1e-8,
        fused: bool | None = None,
        **flags: Unpack[Flags],
    ) -> None:
        defaults = {"lr": lr, "momentum": momentum, "scale": scale, "nesterov": nesterov,
                    "unconstrained": unconstrained, "norm": norm, "split": 1,
                    "weight_decay": 0.0}  # fmt: skip
        super().__init__(params, defaults, adamw_betas, adamw_eps, fused, flags)

    def check_options(self, group: Group) -> None:
        super().check_options(group)
        check_momentum(group)
        checks.real(group["scale"], "scale", 0, above=True)
        if group["norm"] not in ("auto", *NORMS):
            raise ValueError(
                f"norm must be 'auto' or one of {', '.join(NORMS)}, got {group['norm']!r}."
            )
        if group["weight_decay"] and not group["adamw"]:
            raise ValueError(
                f"Scion's decay is lr itself: weight_decay must be 0, got {group['weight_decay']}; "
                f"take scale={1 / group['weight_decay']:g} for the same ball."
            )
        for p in () if group["adamw"] else group["params"]:
            if p.dim() < 2 and group["norm"] not in ("auto", "sign", "rms"):
                raise ValueError(
                    f"norm={group['norm']!r} is for matrices, got a parameter of shape "
                    f"{tuple(p.shape)}; take 'rms' or 'sign' for it."
                )

    def _norm(self, group: Group, p: Tensor) -> str:
        if group["norm"] != "auto":
            return group["norm"]
        if group["split"] > 1 or p.dim() == 2:
            return "spectral"
        return "conv" if p.dim() > 2 else "rms"

    def unit_ball(self, group: Group, p: Tensor) -> Constraint:
        norm = self._norm(group, p)
        if norm in ("spectral", "conv"):
            return NewtonSchulzBall(1.0, group["split"])
        return _BALLS["row" if norm == "embedding" else norm]

    def decay(self, group: Group) -> float:
        return 0.0 if group["unconstrained"] else 1.0

    def factor(self, group: Group, p: Tensor) -> float:
        return group["scale"] * self.shape_factor(group, p)

    def shape_factor(self, group: Group, p: Tensor) -> float:
        if group["adamw"]:
            return 1.0
        norm, shape = self._norm(group, p), tuple(p.shape)
        if norm == "rms":
            return 1.0
        if norm == "conv":
            return math.sqrt(shape[0] / shape[1]) / math.prod(shape[2:])
        if norm == "spectral":
            *_, rows, columns = NewtonSchulzBall(1.0, group["split"]).stacked(shape)
            return math.sqrt(rows / columns)
        rest = math.prod(shape[1:])
        return {"sign": 1 / rest, "row": 1 / math.sqrt(rest), "column": math.sqrt(shape[0]),
                "embedding": math.sqrt(rest)}[norm]  # fmt: skip
