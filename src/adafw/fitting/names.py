"""Losses, sets and algorithms by the names that front ends take."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from adafw import algorithms, constraints, losses
from adafw.algorithms import Algorithm
from adafw.constraints.base import Constraint
from adafw.losses import Loss

#: name -> loss; a new one is a line here.
LOSSES: dict[str, type[Loss]] = {
    "logistic": losses.Logistic,
    "squared_hinge": losses.SquaredHinge,
    "smoothed_hinge": losses.SmoothedHinge,
    "squared": losses.Squared,
    "huber": losses.Huber,
    "poisson": losses.Poisson,
}
CLASSIFICATION = {name: loss for name, loss in LOSSES.items() if loss.task == "classification"}
REGRESSION = {name: loss for name, loss in LOSSES.items() if loss.task == "regression"}

#: name -> class in adafw.constraints, and its parameters beside the radius with their defaults
#: (`...` where one must be given).
SETS: dict[str, tuple[str, dict[str, Any]]] = {
    "l1": ("L1Ball", {}),
    "l2": ("L2Ball", {}),
    "linf": ("LInfBall", {}),
    "lp": ("LpBall", {"p": ...}),
    "simplex": ("Simplex", {}),
    "unit_simplex": ("UnitSimplex", {}),
    "ksparse": ("KSparse", {"k": 10}),
    "group": ("GroupBall", {"groups": ...}),
    "nuclear": ("NuclearBall", {"shape": ...}),
    "spectral": ("SpectralBall", {"shape": ...}),
}

#: The presets of `adafw`, by their own names.
ALGORITHMS = (
    "FW", "SFW", "SVRF", "SPIDERFW", "ORGFW", "CSFW",
    "AdaFW", "AdaSFW", "AdaSVRF", "AdaSPIDERFW", "AdaORGFW", "AdaCSFW", "AdamSFW",
    "AdaGrad", "AMSGrad",
)  # fmt: skip


def loss_named(name: Any, table: Mapping[str, Callable[..., Loss]], **options: Any) -> Loss:
    """The loss of a name in `table`; one of `adafw.losses` is kept."""
    if isinstance(name, Loss):
        return name
    if name not in table:
        raise ValueError(f"loss must be one of {', '.join(table)}, got {name!r}.")
    return table[name](**options)


def declared(loss: Any) -> type[Loss]:
    """The class of a loss, or of its name; of what is neither, `Loss`, which declares nothing."""
    if isinstance(loss, Loss):
        return type(loss)
    known = isinstance(loss, str) and loss in LOSSES
    return LOSSES[loss] if known else Loss


def constraint_named(name: Any, radius: float, options: Mapping[str, Any] | None) -> Constraint:
    """The set of a name, a radius and further parameters; a set is kept."""
    if isinstance(name, Constraint):
        if options:
            raise ValueError("constraint_params must be None where constraint is a set itself.")
        return name
    if not isinstance(name, str) or name not in SETS:
        raise ValueError(f"constraint must be a set or one of {', '.join(SETS)}, got {name!r}.")
    kind, defaults = SETS[name]
    given = dict(options or {})
    for key in given:
        if key not in defaults:
            known = f"may hold {', '.join(defaults)}" if defaults else "must be None"
            raise ValueError(f"constraint_params {known} for constraint={name!r}, got {key!r}.")
    parameters = {**defaults, **given}
    for key, value in parameters.items():
        if value is ...:
            raise ValueError(
                f"constraint={name!r} needs {key}: give constraint_params={{{key!r}: ...}}."
            )
    return getattr(constraints, kind)(radius, **parameters)


def algorithm_named(name: str) -> Callable[..., Algorithm]:
    """The preset of a name, a function that makes the algorithm."""
    if name not in ALGORITHMS:
        raise ValueError(
            f"algorithm must be 'auto', an adafw.Algorithm or one of {', '.join(ALGORITHMS)}, "
            f"got {name!r}."
        )
    preset: Callable[..., Algorithm] = getattr(algorithms, name)
    return preset


def takes_rate(make: Callable[..., Any]) -> bool:
    """Whether a function that makes an algorithm asks for a learning rate."""
    return "learning_rate" in inspect.signature(make).parameters
