"""The one form on the ball of the largest entry, compiled: x <- keep x - length sign(d).

d = b1 m + (1 - b1) g, then m <- b2 m + (1 - b2) g, all in one pass: Lion, Signum, SFW on LInfBall.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from typing import Any

import torch
from torch import Tensor

from adafw.kernels.jit import jit
from adafw.torch.updates import Options, State, weights_of


def one_form(x: Tensor, g: Tensor, state: State, options: Options) -> None:
    """As `Update(one_form, frank_wolfe)` on an LInfBall, gamma being lr."""
    gamma = options["lr"]
    length = gamma * options["constraint"].radius
    begins = state["step"] == 0 and options["start"] == "gradient"
    _move(x, g, state, (0.0, 0.0) if begins else weights_of(options), 1 - gamma, length, False)


def decayed(
    x: Tensor, g: Tensor, state: State, betas: tuple[float, float], keep: float, length: float
) -> None:
    """As the presets do it: x decays also where d is 0 everywhere."""
    _move(x, g, state, betas, keep, length, True)


def _move(
    x: Tensor, g: Tensor, state: State, betas: tuple[float, float], keep: float, length: float,
    always: bool,
) -> None:  # fmt: skip
    m = state.get("momentum")
    point, new = _flat(x), _flat(g)
    if m is None:
        _signs(point, new, keep, length, always)
    else:
        _signs_of_mean(point, new, _flat(m), *betas, keep, length, always)
    torch.autograd.graph.increment_version(x)


def _flat(x: Tensor) -> Any:
    return (x.detach() if x.requires_grad else x).numpy().reshape(-1)


@jit
def _signs(x, g, keep, length, always):
    real = x.dtype.type
    keep, length = real(keep), real(length)
    moving = always
    for i in range(x.size):  # a direction that is 0 everywhere moves nothing
        if moving:
            break
        moving = g[i] != 0
    if moving:
        for i in range(x.size):
            q = g[i]
            x[i] = keep * x[i] - (length if q > 0 else (-length if q < 0 else q))


@jit
def _signs_of_mean(x, g, m, b1, b2, keep, length, always):
    real = x.dtype.type
    old_d, new_d, old_m, new_m = real(b1), real(1 - b1), real(b2), real(1 - b2)
    keep, length = real(keep), real(length)
    moving = always
    for i in range(x.size):
        if moving:
            break
        moving = old_d * m[i] + new_d * g[i] != 0
    if not moving:
        keep, length = real(1), real(0)
    for i in range(x.size):
        q = old_d * m[i] + new_d * g[i]
        m[i] = old_m * m[i] + new_m * g[i]
        x[i] = keep * x[i] - (length if q > 0 else (-length if q < 0 else q))
