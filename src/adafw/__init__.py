"""adafw: projection-free optimisation with adaptive gradients."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# At once, as the function has the name of its module: whoever imported that first would win.
from adafw.minimize import minimize

if TYPE_CHECKING:
    from adafw import gradients, losses, metrics, objectives, schedules, steps
    from adafw.algorithm import Algorithm
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
    from adafw.objectives import Counted, LinearModel, MatrixCompletion, MatrixModel, UserSum
    from adafw.random import Blocks
    from adafw.recorder import Record, Trace, every
    from adafw.result import Result
    from adafw.solver import State
    from adafw.tuning import Tuning, tune
    from adafw.versions import show_versions

__version__ = "0.1.0"

#: Modules that are imported when first asked for, and those whose names are names of adafw.
_MODULES = (
    "datasets", "experiments", "gradients", "losses", "metrics", "objectives", "schedules",
    "sklearn", "steps", "theory", "torch",
)  # fmt: skip
_HOMES = (
    "algorithm", "algorithms", "constraints.exports", "objectives.exports", "random", "recorder",
    "result", "solver", "tuning", "versions",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"adafw.{name}")
    # Only what is public: `from adafw import checks` asks here, too, before it imports a module.
    for home in _HOMES if name in __all__ else ():
        found = vars(import_module(f"adafw.{home}"))
        if name in found:
            return globals().setdefault(name, found[name])  # asked for here once only
    raise AttributeError(f"module 'adafw' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})


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
    "Blocks",
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
    "show_versions",
    "steps",
    "tune",
]
