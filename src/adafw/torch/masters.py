"""Float32 masters of weights in half precision, which are only a rounded copy of them.

A bfloat16 weight has 8 bits: a step below half a unit in its last place (0.2 % of the weight)
leaves it where it is, so that a small learning rate stalls. The master takes the step, and the
weight is the master rounded.
"""

import torch
from torch import Tensor

from adafw.torch.typing import State

HALF = (torch.float16, torch.bfloat16)
NAME = "master"


def prepare(p: Tensor, state: State, masters: bool) -> None:
    """Makes the master of a half-precision weight, where masters are wanted."""
    if masters and p.dtype in HALF and NAME not in state:
        state[NAME] = p.detach().to(torch.float32, copy=True)


def to_move(p: Tensor, state: State, dtype: torch.dtype) -> Tensor:
    """What a step moves: the weight itself, its master, or a copy in `dtype`.

    Entries of the weight that were changed by others since the last step (a loaded checkpoint,
    `make_feasible`) count, not the master's; no accelerator is waited for.
    """
    master = state.get(NAME)
    if master is None:
        return p.to(dtype)
    return master.copy_(torch.where(master.to(p.dtype) == p, master, p.to(dtype)))
