"""Whether rounding is what keeps a gap up: what values, and gaps, are rounded at."""

import math

import numpy as np

from adafw.constraints.base import Constraint
from adafw.objectives.base import FiniteSum
from adafw.objectives.intercept import WithIntercept
from adafw.objectives.kinds import model_of
from adafw.objectives.linear_model import LinearModel
from adafw.typing import Array

#: Units of the last digit by which values may differ that are the same; and gaps that are 0.
_UNITS, _GAP_UNITS = 4.0, 10.0
#: Shares of the way towards the best vertex that are tried.
_SHARES = tuple(10.0**-k for k in range(13))


def keeps_up(f: FiniteSum, constraint: Constraint, x: Array, gap: float) -> bool:
    """Whether a gap at x is what rounding makes of it.

    Of a linear model it is if the gap is no more than what rounding of the value, and of the
    predictions at the size of |A| |x|, makes of <g, x - v>. Of others, if nothing on the way to the
    vertex v, which the linear minimiser returns, is lower by more than values are rounded at.
    """
    g = f.gradient(x)
    d = constraint.lmo(g) - x
    value = f.value(x)
    noise = float(np.finfo(np.float64).eps) * abs(value)
    if isinstance(f, LinearModel | WithIntercept) and x.ndim == 1:
        return gap <= _GAP_UNITS * max(noise, _noise(f, x, d))
    line = f.along(x, d)
    return not any(line.value(share) < value - _UNITS * noise for share in _SHARES)


def _noise(f: LinearModel | WithIntercept, x: Array, d: Array) -> float:
    """What rounding of the predictions makes of <g, d>."""
    model, eps = model_of(f), float(np.finfo(np.float64).eps)
    z, b = f.predictions(x)
    sizes = np.sqrt(f.rows.mean_squares(np.ones(f.n_terms, f.dtype)))
    reach, far = float(sizes @ np.abs(x)), float(sizes @ np.abs(d))
    steep, bent, along = (
        float(np.linalg.norm(each.astype(np.float64))) / math.sqrt(f.n_terms)
        for each in (model.slopes_at(z + b), model.seconds_at(z + b), f.rows.dot(d))
    )
    # Sums of rounding errors grow like the root of how many there are; but what x is rounded by
    # moves all predictions alike.
    return eps * (steep * far / math.sqrt(f.n_terms) + bent * reach * along)
