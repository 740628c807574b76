"""A network to train, every parameter in its set, and the optimizers of `adafw.torch`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Self

import adafw
from adafw import checks
from adafw.experiments.keys import only
from adafw.experiments.spec import Case, Method, read_methods
from adafw.experiments.values import REGISTRIES, build

#: Optimizers of `adafw.torch` by name: what kind of method each is, its gradient estimator.
_OPTIMIZERS = {
    "SFW": ("frank-wolfe", "Minibatch"),
    "SVRF": ("frank-wolfe", "SVRF"),
    "SPIDERFW": ("frank-wolfe", "SPIDER"),
    "ORGFW": ("frank-wolfe", "ORGFW"),
    "AdaSFW": ("adaptive", "Minibatch"),
    "AdamSFW": ("adaptive", "Minibatch"),
    "AdaGrad": ("projected", "Minibatch"),
    "AMSGrad": ("projected", "Minibatch"),
}
#: Networks of models.py, and the loss each is trained with, in words.
NETWORKS = {"ImdbNet": "logistic", "CifarNet": "cross-entropy"}


def need_torch() -> None:
    """Says what to install where networks cannot be trained."""
    if find_spec("torch") is None:
        raise ValueError("networks are trained by torch, which is missing; install adafw[torch].")


@dataclass(frozen=True)
class NetworkMethod(Method):
    """An optimizer of `adafw.torch` by name; `arguments`: what it takes, made once."""

    arguments: dict[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.optimizer not in _OPTIMIZERS:
            raise ValueError(
                f"an algorithm for a network must be one of {', '.join(_OPTIMIZERS)}, got "
                f"{self.table.get('name')!r}."
            )
        made = {k: build(k, v) for k, v in self.table.items() if k != "name"}
        if "learning_rate" not in made:
            raise ValueError(f"algorithm {self.label!r} must have a learning_rate, got none.")
        # What torch calls lr.
        object.__setattr__(self, "arguments", {"lr": made.pop("learning_rate"), **made})

    @property
    def optimizer(self) -> str:
        """The name in `adafw.torch`."""
        return str(self.table.get("name"))

    @property
    def family(self) -> str:
        return _OPTIMIZERS[self.optimizer][0]

    @property
    def estimator(self) -> str:
        return _OPTIMIZERS[self.optimizer][1]

    @property
    def parts(self) -> str:
        options = ", ".join(f"{k}={v:.4g}" if k == "lr" else f"{k}={v}"
                            for k, v in self.arguments.items())  # fmt: skip
        return f"adafw.torch.{self.optimizer}({options})"


@dataclass(frozen=True, kw_only=True)
class NetworkCase(Case[NetworkMethod]):
    """Data, a network and the size of its batches.

    `set` names a class of sets, the `family`, and either a radius or an l2 diameter in units of the
    norm to expect of Glorot's initialisation, as in `adafw.torch.constrain`.
    """

    network: str
    set: Mapping[str, Any]
    batch_size: int = 128
    family: type[adafw.Constraint] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.network not in NETWORKS:
            known = ", ".join(NETWORKS)
            raise ValueError(f"network must be one of {known}, got {self.network!r}.")
        checks.integer(self.batch_size, "batch_size", 1)
        table = self.set if isinstance(self.set, Mapping) else {"name": self.set}
        only(table, ("name", "diameter", "radius"), f"set of {self.name}")
        if ("diameter" in table) == ("radius" in table):
            raise ValueError(f"set of {self.name} must have a diameter or a radius, got {table}.")
        object.__setattr__(self, "family", REGISTRIES["set"].find(table.get("name")).make)

    @classmethod
    def read(cls, table: dict[str, Any], source: str, folder: str) -> Self:
        """From a problem's table."""
        fields = {key: value for key, value in table.items() if key != "algorithms"}
        methods = read_methods(table["algorithms"], NetworkMethod, source)
        return cls(**fields, methods=methods, folder=folder)

    @property
    def identity(self) -> list[Any]:
        return [self.network, dict(self.set), self.batch_size]

    @property
    def words(self) -> str:
        size = (
            f"l2 diameter {self.set['diameter']:g} Glorot norms" if "diameter" in self.set
            else f"radius {self.set['radius']:g}"
        )  # fmt: skip
        loss = NETWORKS[self.network]
        return (
            f"{self.network}; {loss} loss; each tensor in {self.family.__name__}, {size}; "
            f"batch {self.batch_size}"
        )
