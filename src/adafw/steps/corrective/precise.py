"""Single precision near the minimum: steps in double precision, whose ends alone are rounded.

Values that are right to seven digits cannot tell whether a short step descends, and along columns
of large units such steps leave large gaps.
"""

import numpy as np

from adafw.constraints.base import Constraint
from adafw.objectives.base import FiniteSum
from adafw.steps.corrective.base import AnyCorrector, Memory
from adafw.typing import Array

#: Share of the last gap from which on gaps hardly fall; the mark that they did.
HARDLY, DOUBLE = 0.5, -1.0
#: Iterations that are left in single precision, whatever gaps do: most are far from the minimum.
SINGLE = 3


def last_gap(constraint: Constraint, x: Array, g: Array, last: float) -> float:
    """The gap at x, or DOUBLE if gaps hardly fell once: from then on."""
    if last == DOUBLE:
        return DOUBLE
    gap = constraint.bare.gap(x, g)
    return DOUBLE if gap > HARDLY * last else max(gap, 0.0)


def in_double(
    corrector: AnyCorrector, f: FiniteSum, constraint: Constraint, x: Array, t: int, state: Memory
) -> tuple[Array, Memory]:
    """An iteration from x in double precision, rounded in the end.

    What was rounded may be outside: from there the best point of a model inside is no way down.
    """
    double = np.asarray(constraint.bare.project(x.astype(np.float64)), np.float64)
    new, kept = corrector.improve(f, constraint, double, f.gradient(double), t, state)
    kept["last"] = DOUBLE
    kept.pop("predictions", None)  # those of what is rounded are others
    return new.astype(x.dtype), kept
