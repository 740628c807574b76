"""Theorems as code, the paper's and others': their constants, their schedules, their bounds."""

from adafw.theory.problem_constants import (
    Constants,
    DataConstants,
    constants,
    data_constants,
    prediction_range,
)
from adafw.theory.rates import frank_wolfe, sliding, storc
from adafw.theory.theorems import (
    Guarantee,
    effective_batch,
    theorem_3_1,
    theorem_3_3,
    theorem_3_5,
    theorem_3_7,
)

__all__ = [
    "Constants",
    "DataConstants",
    "Guarantee",
    "constants",
    "data_constants",
    "effective_batch",
    "frank_wolfe",
    "prediction_range",
    "sliding",
    "storc",
    "theorem_3_1",
    "theorem_3_3",
    "theorem_3_5",
    "theorem_3_7",
]
