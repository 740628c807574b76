"""adafw: projection-free optimisation with adaptive gradients."""

from typing import Any

from adafw import gradients, losses, metrics, objectives, schedules, steps
from adafw.algorithms import (
    CSFW,
    FW,
    ORGFW,
    SFW,
    SPIDERFW,
    SVRF,
    AdaCSFW,
    AdaFW,
    AdaGrad,
    AdamSFW,
    AdaORGFW,
    AdaSFW,
    AdaSPIDERFW,
    AdaSVRF,
    Algorithm,
    AMSGrad,
    Corrective,
)
from adafw.constraints import (
    Birkhoff,
    Box,
    Constraint,
    GroupBall,
    Hull,
    KSparse,
    L1Ball,
    L2Ball,
    LInfBall,
    LpBall,
    NuclearBall,
    Polytope,
    Product,
    Simplex,
    SpectralBall,
    UnitSimplex,
    UserSet,
)
from adafw.minimize import minimize
from adafw.objectives import Counted, LinearModel, MatrixCompletion, UserSum
from adafw.recorder import Record, Trace, every
from adafw.result import Result
from adafw.solver import State
from adafw.tuning import Tuning, tune

__version__ = "0.1.0"

#: Parts that are imported when first asked for: they need more than the core does.
_LATER = ("datasets", "experiments", "sklearn", "theory", "torch")


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from importlib import import_module

        return import_module(f"adafw.{name}")
    raise AttributeError(f"module 'adafw' has no attribute {name!r}")


__all__ = [
    "CSFW",
    "FW",
    "ORGFW",
    "SFW",
    "SPIDERFW",
    "SVRF",
    "AMSGrad",
    "AdaCSFW",
    "AdaFW",
    "AdaGrad",
    "AdaORGFW",
    "AdaSFW",
    "AdaSPIDERFW",
    "AdaSVRF",
    "AdamSFW",
    "Algorithm",
    "Birkhoff",
    "Box",
    "Constraint",
    "Corrective",
    "Counted",
    "GroupBall",
    "Hull",
    "KSparse",
    "L1Ball",
    "L2Ball",
    "LInfBall",
    "LinearModel",
    "LpBall",
    "MatrixCompletion",
    "NuclearBall",
    "Polytope",
    "Product",
    "Record",
    "Result",
    "Simplex",
    "SpectralBall",
    "State",
    "Trace",
    "Tuning",
    "UnitSimplex",
    "UserSet",
    "UserSum",
    "every",
    "gradients",
    "losses",
    "metrics",
    "minimize",
    "objectives",
    "schedules",
    "steps",
    "tune",
]
