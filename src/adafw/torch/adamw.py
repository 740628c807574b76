"""AdamW for the parameters that get no ball, inside the optimizers that have one for the rest."""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.optim.adamw import adamw

from adafw.torch import masters, sharded
from adafw.torch.typing import Group, State

BUFFERS = ("exp_avg", "exp_avg_sq")


def step(work: list[tuple[Tensor, Tensor, Group]], states: Mapping[Tensor, State]) -> None:
    """One step of `torch.optim.AdamW` on all tensors of one group, by torch's own function.

    Options: lr, weight_decay, adamw_betas, adamw_eps. State: exp_avg, exp_avg_sq and a tensor
    `step`, as there.
    """
    options, kept = work[0][2], [states[p] for p, _, _ in work]
    params = [p if p.dtype not in masters.HALF else masters.to_move(p, state, torch.float32)
              for (p, _, _), state in zip(work, kept, strict=True)]  # fmt: skip
    beta1, beta2 = options["adamw_betas"]
    # The fused version is made for plain tensors on a processor or a GPU.
    fused = all(not sharded.is_sharded(p) and p.device.type in ("cpu", "cuda") for p in params)
    adamw(
        params, [g.to(p.dtype) for p, (_, g, _) in zip(params, work, strict=True)],
        [state["exp_avg"] for state in kept], [state["exp_avg_sq"] for state in kept],
        [], [state["step"] for state in kept],
        fused=fused and options["fused"] is not False, foreach=False,
        capturable=options["capturable"], differentiable=False,
        grad_scale=None, found_inf=None, has_complex=False, amsgrad=False, maximize=False,
        beta1=beta1, beta2=beta2, lr=options["lr"],
        weight_decay=options["weight_decay"], eps=options["adamw_eps"],
    )  # fmt: skip
    for x, (p, _, _) in zip(params, work, strict=True):
        if x is not p:
            p.copy_(x)


def prepare(p: Tensor, state: State, capturable: bool) -> None:
    """The state of a parameter met for the first time."""
    if "exp_avg" in state:
        return
    for name in BUFFERS:
        state[name] = torch.zeros_like(p, dtype=torch.promote_types(p.dtype, torch.float32))
    state["step"] = torch.zeros((), dtype=torch.float32, device=p.device if capturable else "cpu")
