"""The one form on the ball of the largest entry, compiled, one call for all tensors; see `lists`.

d = b1 m + (1 - b1) g, then m <- b2 m + (1 - b2) g. SFW on LInfBall: x <- x - gamma (x + radius
sign(d)); Lion and Signum: x <- keep x - length sign(d).
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import numpy as np

from adafw.kernels.addresses import array_at
from adafw.kernels.jit import jit
from adafw.torch.kernels import SLICE

#: x - gamma d is rounded once, as torch's addcmul does it: plain torch and shards then agree with
#: the kernel to the bit, without which gradients of low rank part from each other.
FUSED = {"contract"}


@jit
def sfw(table, numbers, like):
    """As `Update(one_form, frank_wolfe)` on LInfBalls, gamma being lr, for tensors listed by rows.

    table : size, addresses of x, g and m (of g where there is none). numbers : b1, b2, gamma,
    radius.
    """
    for i in range(len(table)):
        size, row = table[i, 0], numbers[i]
        x, g = array_at(table[i, 1], size, like), array_at(table[i, 2], size, like)
        m = array_at(table[i, 3], size, like)
        if row[0] == row[1]:
            _sfw(x, g, m, row[1], row[2], row[3])
        else:
            _toward_signs(x, g, m, row[0], row[1], row[2], row[3])


@jit
def decayed(table, numbers, like):
    """As the presets do it: x decays also where d is 0 everywhere.

    table : as for `sfw`. numbers : b1, b2, keep, length.
    """
    for i in range(len(table)):
        size, row = table[i, 0], numbers[i]
        x, g = array_at(table[i, 1], size, like), array_at(table[i, 2], size, like)
        if table[i, 3] == table[i, 2]:
            _signs(x, g, row[2], row[3])
        else:
            m = array_at(table[i, 3], size, like)
            _signs_of_mean(x, g, m, row[0], row[1], row[2], row[3])


@jit(inline="always")
def _side(q, length):
    """length sign(q)."""
    return length if q > 0 else (-length if q < 0 else q)


@jit(fastmath={"reassoc"})
def _is_finite(g):
    infinite, none, one = g.dtype.type(np.inf), g.dtype.type(0), g.dtype.type(1)
    found = none  # counted in the dtype of g, as many of which fit a register as of g
    for i in range(g.size):
        found += none if abs(g[i]) < infinite else one
    return found == 0


@jit
def first_not_finite(table, like):
    """The first row (size, address) of an array with NaN or infinity, -1 if all are finite."""
    for i in range(len(table)):
        if not _is_finite(array_at(table[i, 1], table[i, 0], like)):
            return i
    return -1


@jit(fastmath=FUSED)
def _sfw(x, g, m, beta, gamma, radius):
    real = x.dtype.type
    beta, rest, gamma, radius = real(beta), real(1 - beta), real(gamma), real(radius)
    moving = False
    for i in range(x.size):  # an estimate that is 0 everywhere moves nothing
        if beta * m[i] + rest * g[i] != 0:
            moving = True
            break
    for low in range(0, x.size, SLICE):
        high = min(low + SLICE, x.size)
        y, mean, new = x[low:high], m[low:high], g[low:high]
        if beta > 0:
            for i in range(y.size):
                mean[i] = beta * mean[i] + rest * new[i]
        else:
            for i in range(y.size):
                mean[i] = new[i]
        if moving:
            for i in range(y.size):
                y[i] = y[i] - gamma * (y[i] + _side(mean[i], radius))


@jit
def _signs(x, g, keep, length):
    real = x.dtype.type
    keep, length = real(keep), real(length)
    for i in range(x.size):
        q = g[i]
        x[i] = keep * x[i] - _side(q, length)


@jit
def _signs_of_mean(x, g, m, b1, b2, keep, length):
    real = x.dtype.type
    old_d, new_d, old_m, new_m = real(b1), real(1 - b1), real(b2), real(1 - b2)
    keep, length = real(keep), real(length)
    for i in range(x.size):
        q = old_d * m[i] + new_d * g[i]
        m[i] = old_m * m[i] + new_m * g[i]
        x[i] = keep * x[i] - _side(q, length)


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
        x[i] = y - gamma * (y + _side(q, radius))
