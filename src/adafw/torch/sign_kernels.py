"""The one form on the ball of the largest entry, compiled, all in one pass.

d = b1 m + (1 - b1) g, then m <- b2 m + (1 - b2) g. Lion and Signum: x <- keep x - length sign(d);
SFW on LInfBall: x <- x - gamma (x + radius sign(d)).
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from typing import Any

import torch
from torch import Tensor

from adafw.kernels.jit import jit
from adafw.torch.kernels import FUSED
from adafw.torch.updates import Options, State, weights_of


def one_form(x: Tensor, g: Tensor, state: State, options: Options) -> None:
    """As `Update(one_form, frank_wolfe)` on an LInfBall, gamma being lr."""
    begins = state["step"] == 0 and options["start"] == "gradient"
    betas = (0.0, 0.0) if begins else weights_of(options)
    new = _flat(g)
    m = _flat(state["momentum"]) if "momentum" in state else new
    _toward_signs(_flat(x), new, m, *betas, options["lr"], options["constraint"].radius)
    torch.autograd.graph.increment_version(x)


def decayed(
    x: Tensor, g: Tensor, state: State, betas: tuple[float, float], keep: float, length: float
) -> None:
    """As the presets do it: x decays also where d is 0 everywhere."""
    m = state.get("momentum")
    point, new = _flat(x), _flat(g)
    if m is None:
        _signs(point, new, keep, length)
    else:
        _signs_of_mean(point, new, _flat(m), *betas, keep, length)
    torch.autograd.graph.increment_version(x)


def _flat(x: Tensor) -> Any:
    return (x.detach() if x.requires_grad else x).numpy().reshape(-1)


@jit
def _signs(x, g, keep, length):
    real = x.dtype.type
    keep, length = real(keep), real(length)
    for i in range(x.size):
        q = g[i]
        x[i] = keep * x[i] - (length if q > 0 else (-length if q < 0 else q))


@jit
def _signs_of_mean(x, g, m, b1, b2, keep, length):
    real = x.dtype.type
    old_d, new_d, old_m, new_m = real(b1), real(1 - b1), real(b2), real(1 - b2)
    keep, length = real(keep), real(length)
    for i in range(x.size):
        q = old_d * m[i] + new_d * g[i]
        m[i] = old_m * m[i] + new_m * g[i]
        x[i] = keep * x[i] - (length if q > 0 else (-length if q < 0 else q))


@jit(fastmath=FUSED)
def _toward_signs(x, g, m, b1, b2, gamma, radius):
    real = x.dtype.type
    old_d, new_d, old_m, new_m = real(b1), real(1 - b1), real(b2), real(1 - b2)
    gamma, radius = real(gamma), real(radius)
    moving = False
    for i in range(x.size):  # a direction that is 0 everywhere moves nothing
        if old_d * m[i] + new_d * g[i] != 0:
            moving = True
            break
    if not moving:
        gamma = real(0)
    for i in range(x.size):
        q = old_d * m[i] + new_d * g[i]
        m[i] = old_m * m[i] + new_m * g[i]
        y = x[i]
        x[i] = y - gamma * (y + (radius if q > 0 else (-radius if q < 0 else q)))
