"""Sets, losses and algorithms by name: one table for the command line, estimators and experiments.

Wherever a name is taken, the short one ("l1", "logistic") and that of the Python object ("L1Ball",
"Logistic") mean the same. Sets and losses declare theirs (`called`), presets are lines here.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any, Generic, TypeVar

from adafw import algorithms, constraints, losses
from adafw.algorithm import Algorithm
from adafw.called import NEEDED as NEEDED
from adafw.called import Called
from adafw.constraints.base import Constraint
from adafw.losses import Loss, Task

T = TypeVar("T")


@dataclass(frozen=True)
class Named(Generic[T]):
    """What one name stands for.

    Its members are those of `Called`; `sized`: whether there is a radius.
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

    def find(self, name: object) -> Named[T]:
        """The entry of a short or long name."""
        if not isinstance(name, str) or name not in self._found:
            raise ValueError(f"{self.kind} must be one of {self}, got {name!r}.")
        return self._found[name]

    def called(self, kind: str) -> "Registry[T]":
        """The same names under another word, as a file's key is."""
        return Registry(kind, *self.entries)

    def make(self, name: object, /, **parameters: Any) -> T:
        """The object of a name with these parameters, which are those of the Python object."""
        make = self.find(name).make
        try:
            inspect.signature(make).bind(**parameters)
        except TypeError as error:
            raise ValueError(f"{self.kind} {name} cannot be made: {error}.") from None
        return make(**parameters)


def _collected(kind: str, package: ModuleType) -> "Registry[Any]":
    """All classes of a package that declare a name, in the order of its exports."""
    found = []
    for long_name in package.__all__:
        thing = getattr(package, long_name)
        # Of the class itself: a subclass does not go by the name of its base.
        called = vars(thing).get("called") if inspect.isclass(thing) else None
        if isinstance(called, Called):
            sized = "radius" in inspect.signature(thing).parameters
            found.append(Named(called.name, thing, called.help, called.parameters, sized,
                               called.matrices, called.per_column))  # fmt: skip
    return Registry(kind, *found)


SETS: Registry[Constraint] = _collected("constraint", constraints)

#: Those that coefficients of a linear model can lie in.
VECTOR_SETS: Registry[Constraint] = Registry(SETS.kind, *(e for e in SETS if not e.matrices))

LOSSES: Registry[Loss] = _collected("loss", losses)


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


@cache
def losses_for(task: Task) -> Registry[Loss]:
    """Those whose targets are labels, or numbers."""
    fitting = (entry for entry in LOSSES if loss_class(entry.name).task == task)
    return Registry("loss", *fitting)


def takes_rate(make: Callable[..., Algorithm]) -> bool:
    """Whether a preset asks for a learning rate."""
    return "learning_rate" in inspect.signature(make).parameters
