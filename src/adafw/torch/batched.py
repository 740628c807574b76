"""Many small tensors moved together: one call for all of them, as torch's foreach does.

Matrices of one shape are stacked, so that the products of a spectral ball's LMO are made for all of
them at once: 6 times as fast for matrices of 16 x 16, twice for 64 x 64, no faster from 128 x 128
on. Steps along signs in plain torch are made by torch's functions of lists; compiled ones are made
by `lists`.
"""

from collections import defaultdict
from typing import TypeGuard

import torch
from torch import Tensor

from adafw.constraints import Constraint
from adafw.torch import masters, polar
from adafw.torch.matrices import SpectralNormBall, as_points
from adafw.torch.typing import Group

Work = tuple[Tensor, Tensor, Group]  # parameter, gradient, options


def may_stack(ball: Constraint | None, p: Tensor, options: Group) -> TypeGuard[SpectralNormBall]:
    """Whether p is to be moved together with others in such a ball."""
    if not isinstance(ball, SpectralNormBall) or options["foreach"] is False:
        return False
    return options["foreach"] or not p.is_cpu or p.numel() <= polar.SMALL


def may_list(p: Tensor, g: Tensor, options: Group) -> bool:
    """Whether a step along signs is to be made by functions of lists; else kernels may do it."""
    if p.dtype in masters.HALF or g.dtype is not p.dtype or options["foreach"] is False:
        return False
    return options["foreach"] or options["fused"] is False or not p.is_cpu


def vertices(balls: list[SpectralNormBall], directions: list[Tensor]) -> list[Tensor]:
    """lmo(d) over each ball, those of equal balls and shapes in one stack."""
    alike: dict[object, list[int]] = defaultdict(list)
    points = [as_points(ball, d) for ball, d in zip(balls, directions, strict=True)]
    for i, (ball, point) in enumerate(zip(balls, points, strict=True)):
        alike[repr(ball), point.shape, point.dtype, point.device].append(i)
    found = list(directions)
    for places in alike.values():
        ball = balls[places[0]]
        stack = torch.stack([points[i] for i in places])
        # With split > 1 each of them is a stack already.
        made = ball.lmo(stack.flatten(0, -3)).view_as(stack)
        for i, v in zip(places, made, strict=True):
            found[i] = v.reshape(directions[i].shape)
    return found


def along_signs(
    xs: list[Tensor], gs: list[Tensor], momenta: list[Tensor] | None,
    betas: tuple[float, float], keep: float, length: float,
) -> None:  # fmt: skip
    """x <- keep x - length sign(d), with d and m of the one form, for a list of tensors."""
    b1, b2 = betas
    if momenta is None:
        directions = list(gs)
    elif b1 == b2:
        torch._foreach_lerp_(momenta, gs, 1 - b1)
        directions = momenta
    else:
        directions = list(torch._foreach_lerp(momenta, gs, 1 - b1))
        torch._foreach_lerp_(momenta, gs, 1 - b2)
    if keep != 1:
        torch._foreach_mul_(xs, keep)
    torch._foreach_add_(xs, torch._foreach_sign(directions), alpha=-length)
