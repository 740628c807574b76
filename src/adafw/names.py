"""Sets, losses and algorithms by name: one table for the command line, estimators and experiments.

Wherever a name is taken, the short one ("l1", "logistic") and that of the Python object ("L1Ball",
"Logistic") mean the same. To add one: a line of SETS, LOSSES or ALGORITHMS.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from adafw import algorithms, constraints, losses
from adafw.algorithm import Algorithm
from adafw.constraints.base import Constraint
from adafw.losses import Loss, Task

T = TypeVar("T")

#: Stands for a parameter that has no default.
NEEDED: Any = ...


@dataclass(frozen=True)
class Named(Generic[T]):
    """What one name stands for.

    `parameters`: beside the radius, with the default that a linear model takes (NEEDED if none).
    `sized`: whether there is a radius. `matrices`: whether a set holds nothing but those.
    `per_column`: whether it holds each column of a matrix, and not the matrix as a whole.
    """

    name: str
    make: Callable[..., T]
    help: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    sized: bool = True
    matrices: bool = False
    per_column: bool = False

    @property
    def long_name(self) -> str:
        """That of the Python object."""
        return self.make.__name__


class Registry(Generic[T]):
    """The things of one kind that have names; `kind` is the word for them in messages."""

    def __init__(self, kind: str, *entries: Named[T]) -> None:
        self.kind, self.entries = kind, entries
        self._found = {e.name: e for e in entries} | {e.long_name: e for e in entries}

    def __iter__(self) -> Iterator[Named[T]]:
        return iter(self.entries)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._found

    def __str__(self) -> str:
        return ", ".join(entry.name for entry in self.entries)

    def find(self, name: Any) -> Named[T]:
        """The entry of a short or long name."""
        if name not in self:
            raise ValueError(f"{self.kind} must be one of {self}, got {name!r}.")
        return self._found[name]

    def called(self, kind: str) -> "Registry[T]":
        """The same names under another word, as a file's key is."""
        return Registry(kind, *self.entries)

    def make(self, name: Any, /, **parameters: Any) -> T:
        """The object of a name with these parameters, which are those of the Python object."""
        make = self.find(name).make
        try:
            inspect.signature(make).bind(**parameters)
        except TypeError as error:
            raise ValueError(f"{self.kind} {name} cannot be made: {error}.") from None
        return make(**parameters)


_shape = {"shape": NEEDED}

SETS: Registry[Constraint] = Registry(
    "constraint",
    Named("l1", constraints.L1Ball, "sum of |x_i| <= radius: few features"),
    Named("l2", constraints.L2Ball, "Euclidean norm <= radius"),
    Named("linf", constraints.LInfBall, "every |x_i| <= radius"),
    Named("lp", constraints.LpBall, "p-norm <= radius", {"p": NEEDED}),
    Named("simplex", constraints.Simplex, "x >= 0 of sum radius", per_column=True),
    Named("unit_simplex", constraints.UnitSimplex, "x >= 0 of sum <= radius", per_column=True),
    Named("ksparse", constraints.KSparse, "|x_i| <= radius, their sum <= k radius", {"k": 10}),
    Named("group", constraints.GroupBall, "sum of the groups' norms <= radius", {"groups": NEEDED}),
    Named("nuclear", constraints.NuclearBall, "singular values of sum <= radius", _shape),
    Named("spectral", constraints.SpectralBall, "singular values <= radius", _shape),
    Named("nonnegative", constraints.Nonnegative, "0 <= x_i <= radius"),
    Named("monotone", constraints.Monotone, "-radius <= x_1 <= ... <= x_n <= radius",
          per_column=True),
    Named("box", constraints.Box, "lower_i <= x_i <= upper_i",
          {"lower": NEEDED, "upper": NEEDED}, sized=False),
    Named("hull", constraints.Hull, "mixtures of given vertices", {"vertices": NEEDED}, False,
          per_column=True),
    Named("polytope", constraints.Polytope, "A_ub x <= b_ub, A_eq x = b_eq, bounds",
          {"A_ub": None, "b_ub": None, "A_eq": None, "b_eq": None, "bounds": (0, None)}, False,
          per_column=True),
    Named("birkhoff", constraints.Birkhoff, "doubly stochastic matrices", {}, False, matrices=True),
)  # fmt: skip

#: Those that coefficients of a linear model can lie in.
VECTOR_SETS: Registry[Constraint] = Registry(SETS.kind, *(e for e in SETS if not e.matrices))

LOSSES: Registry[Loss] = Registry(
    "loss",
    Named("logistic", losses.Logistic, "ln(1 + exp(-y z)), with probabilities"),
    Named("squared_hinge", losses.SquaredHinge, "max(0, 1 - y z)^2"),
    Named("smoothed_hinge", losses.SmoothedHinge, "the hinge, its kink rounded off", {"width": 1}),
    Named("squared", losses.Squared, "(y - z)^2"),
    Named("huber", losses.Huber, "quadratic up to |y - z| = delta, linear beyond", {"delta": 1}),
    Named("poisson", losses.Poisson, "for counts of mean exp(z)"),
)


def _preset(make: Callable[..., Algorithm]) -> Named[Algorithm]:
    """A preset is named as its function, and says in its docstring what it is."""
    return Named(make.__name__, make, inspect.getdoc(make) or "")


ALGORITHMS: Registry[Algorithm] = Registry(
    "algorithm",
    _preset(algorithms.FW),
    _preset(algorithms.SFW),
    _preset(algorithms.SVRF),
    _preset(algorithms.SPIDERFW),
    _preset(algorithms.ORGFW),
    _preset(algorithms.CSFW),
    _preset(algorithms.Corrective),
    _preset(algorithms.SAGAFW),
    _preset(algorithms.MSFW),
    _preset(algorithms.LSVRFW),
    _preset(algorithms.PAGEFW),
    _preset(algorithms.LuFreundFW),
    _preset(algorithms.AFW),
    _preset(algorithms.PFW),
    _preset(algorithms.BPCG),
    _preset(algorithms.BoostFW),
    _preset(algorithms.BoostCSFW),
    _preset(algorithms.CGS),
    _preset(algorithms.SCGS),
    _preset(algorithms.STORC),
    _preset(algorithms.AdaFW),
    _preset(algorithms.AdaSFW),
    _preset(algorithms.AdaSVRF),
    _preset(algorithms.AdaSPIDERFW),
    _preset(algorithms.AdaORGFW),
    _preset(algorithms.AdaCSFW),
    _preset(algorithms.AdamSFW),
    _preset(algorithms.AdaGrad),
    _preset(algorithms.AMSGrad),
)


def loss_class(loss: str | Loss) -> type[Loss]:
    """The class of a loss or of its name, which declares its task and what it knows."""
    if isinstance(loss, Loss):
        return type(loss)
    return getattr(losses, LOSSES.find(loss).long_name)


def losses_for(task: Task) -> Registry[Loss]:
    """Those whose targets are labels, or numbers."""
    fitting = (entry for entry in LOSSES if loss_class(entry.name).task == task)
    return Registry("loss", *fitting)


def takes_rate(make: Callable[..., Algorithm]) -> bool:
    """Whether a preset asks for a learning rate."""
    return "learning_rate" in inspect.signature(make).parameters
