"""Preconditioned conjugate gradients for the systems of Newton steps."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.steps.corrective.curvature import Product, Vector

_ROUNDING = 8.0  # units of the last digit that a preconditioned residual is wrong by


@dataclass(frozen=True)
class Solution:
    """d with H d ~ b; `residual` is b - H d, `move` what d does to the predictions."""

    d: Vector
    residual: Vector
    move: Vector
    steps: int


def solve(
    product: Product,
    b: Vector,
    precondition: Callable[[Vector], Vector],
    tolerance: float,
    limit: int,
    *,
    damping: float = 0.0,
    metric: NDArray[Any] | None = None,
    leave: Callable[[Vector], bool] | None = None,
    projects: bool = False,
) -> Solution:
    """d with (H + damping * metric) d = b, until the preconditioned residual fell by `tolerance`.

    `precondition` maps a residual to a direction; one that `projects` onto a subspace keeps d
    there, and it ends where only rounding is left of the residual there. It ends at a direction
    without curvature, of which the model knows nothing, and as soon as `leave(d)`, which ends it
    at that d. Hestenes and Stiefel (1952).
    """
    d, r = np.zeros_like(b), b
    s = precondition(r)
    p, rho = s, float(np.vdot(r, s))
    first, move, k = rho, np.zeros(0, b.dtype), 0
    # What rounding of `precondition` makes of <r, s>, as a share of <r, r>.
    length = max(float(np.linalg.norm(r)), 1e-300)
    noise = _ROUNDING * float(np.finfo(b.dtype).eps) * float(np.linalg.norm(s)) / length * projects
    while k < limit and rho > max(tolerance**2 * first, noise * float(np.vdot(r, r))):
        image, step = product(p)
        if damping:
            image = image + damping * (p if metric is None else metric * p)
        bend = float(np.vdot(p, image))
        if not bend > 0:
            break
        alpha = rho / bend
        d, r = d + alpha * p, r - alpha * image
        move = alpha * step if not k else move + alpha * step
        k += 1
        if leave is not None and leave(d):
            break
        s = precondition(r)
        rho, last = float(np.vdot(r, s)), rho
        p = s + (rho / last) * p
    return Solution(d, r, move, k)
