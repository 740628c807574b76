"""adafw: projection-free optimisation with adaptive gradients."""

from typing import Any

from adafw import gradients, losses, metrics, objectives, schedules, steps
from adafw.algorithms import (
    AFW,
    BPCG,
    CGS,
    CSFW,
    FW,
    LSVRFW,
    MSFW,
    ORGFW,
    PAGEFW,
    PFW,
    SAGAFW,
    SCGS,
    SFW,
    SPIDERFW,
    STORC,
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
    BoostCSFW,
    BoostFW,
    Corrective,
    LuFreundFW,
)
from adafw.constraints import (
    Birkhoff,
    Box,
    ColumnBall,
    Columns,
    Constraint,
    GroupBall,
    Hull,
    KSparse,
    L1Ball,
    L2Ball,
    LInfBall,
    LpBall,
    Monotone,
    Nonnegative,
    NuclearBall,
    Polytope,
    Product,
    RMSBall,
    RowBall,
    Simplex,
    SpectralBall,
    UnitSimplex,
    UserSet,
)
from adafw.minimize import minimize
from adafw.objectives import Counted, LinearModel, MatrixCompletion, MatrixModel, UserSum
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
    "AFW",
    "BPCG",
    "CGS",
    "CSFW",
    "FW",
    "LSVRFW",
    "MSFW",
    "ORGFW",
    "PAGEFW",
    "PFW",
    "SAGAFW",
    "SCGS",
    "SFW",
    "SPIDERFW",
    "STORC",
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
    "BoostCSFW",
    "BoostFW",
    "Box",
    "ColumnBall",
    "Columns",
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
    "LuFreundFW",
    "MatrixCompletion",
    "MatrixModel",
    "Monotone",
    "Nonnegative",
    "NuclearBall",
    "Polytope",
    "Product",
    "RMSBall",
    "Record",
    "Result",
    "RowBall",
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
