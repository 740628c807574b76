"""What a parameter group may hold beside its set, and how its options and gradients are read."""

import math
from typing import NoReturn, TypedDict

import torch
from torch import Tensor

from adafw import checks
from adafw.arrays import all_finite
from adafw.torch import lists, sharded
from adafw.torch.feasible import name_of
from adafw.torch.typing import Group


class Flags(TypedDict, total=False):
    """Options spelled as torch spells them.

    maximize : ascend. foreach : a wish that changes no result. capturable : nothing is read back
    from an accelerator, which holds here anyway; `lr` must then be a number. differentiable :
    must be False, as the steps are made in place. masters : weights in half precision have float32
    masters in the state, which take the steps; see `adafw.torch.masters`.
    """

    maximize: bool
    foreach: bool | None
    capturable: bool
    differentiable: bool
    masters: bool


#: What they are unless given, and `fused`; a checkpoint without them is taken.
FLAGS = {"maximize": False, "foreach": None, "capturable": False, "differentiable": False,
         "fused": None, "masters": False}  # fmt: skip


def refuse_decay(decay: object) -> None:
    """Refuses weight decay, which is a set of its own."""
    if decay == 0:
        return
    radius = f"{1 / decay:g}" if isinstance(decay, int | float) and decay > 0 else "1 / w"
    raise ValueError(
        f"weight_decay must be 0, got {decay}: the set already bounds the weights, and a decay "
        "would move them by another objective than the one whose gap is measured; a decay w is a "
        f"ball of radius 1 / w, so take a set of radius {radius}, "
        "or Muon, Scion, Lion or Signum, which take one."
    )


def rate_of(group: Group) -> float:
    """lr, finite and >= 0; asked for at every step, hence a quick answer where all is well."""
    lr = float(group["lr"])
    return lr if 0.0 <= lr < math.inf else checks.real(lr, "lr", 0)


def state_dtype(p: Tensor) -> torch.dtype:
    """The dtype to compute in: the parameter's own, but float32 at least."""
    return torch.promote_types(p.dtype, torch.float32)


#: A gradient, the group of its parameter, and the parameter's place in it.
Found = tuple[Tensor, Group, int]


def refuse_sparse(group: Group, i: int) -> NoReturn:
    """Refuses a sparse gradient."""
    raise TypeError(
        f"the gradient of {name_of(group, i)} is sparse, which is refused as a Frank-Wolfe step "
        "moves every entry; construct the layer with sparse=False."
    )


def check_finite(gradients: list[Found], compiled: bool) -> None:
    """Refuses NaN and infinity where looking costs little.

    On an accelerator a look would make the host wait, and on shards one rank would stop while
    others wait for it; there NaN spreads to the weights, as with torch's own optimizers.
    """
    if compiled and len(gradients) > 1 and lists.surely_finite([g for g, _, _ in gradients]):
        return
    for g, group, i in gradients:
        if not g.is_cpu or sharded.is_sharded(g) or math.isfinite(g.sum().item()):
            continue
        if not all_finite(g):  # the sum of finite numbers may overflow
            raise ValueError(
                f"the gradient of {name_of(group, i)} must be finite, got NaN or infinity; no "
                "parameter was moved."
            )


def check_gradient(g: Tensor, group: Group, i: int) -> None:
    """Refuses a gradient that is sparse or not finite."""
    if g.layout is not torch.strided:
        refuse_sparse(group, i)
    check_finite([(g, group, i)], False)
