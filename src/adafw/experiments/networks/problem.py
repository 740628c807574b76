"""A network to train, as a problem of an experiment."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import adafw
from adafw import checks
from adafw.experiments.keys import only
from adafw.experiments.networks.trace import EpochTrace
from adafw.experiments.spec import AlgorithmSpec, build

#: Optimizers of `adafw.torch` by name, and what kind of method each is.
FAMILIES = {
    "SFW": "frank-wolfe",
    "SVRF": "frank-wolfe",
    "SPIDERFW": "frank-wolfe",
    "ORGFW": "frank-wolfe",
    "AdaSFW": "adaptive",
    "AdamSFW": "adaptive",
    "AdaGrad": "projected",
    "AMSGrad": "projected",
}
#: Networks of `adafw.torch.networks`, and the loss each is trained with.
NETWORKS = {"ImdbNet": "logistic", "CifarNet": "cross-entropy"}


def need_torch() -> None:
    """Says what to install where networks cannot be trained."""
    if find_spec("torch") is None:
        raise ValueError("networks are trained by torch, which is missing; install adafw[torch].")


@dataclass(frozen=True)
class NetworkProblem:
    """Data, a network whose every parameter has its set, and the optimizers that are compared.

    `set` names a class of sets and either a radius or an l2 diameter in units of the norm to expect
    of Glorot's initialisation, as in `adafw.torch.constrain`.
    """

    name: str
    data: Mapping[str, Any]
    network: str
    set: Mapping[str, Any]
    algorithms: tuple[AlgorithmSpec, ...]
    batch_size: int = 128
    folder: str = "."

    trace: ClassVar[Any] = EpochTrace

    def __post_init__(self) -> None:
        if self.network not in NETWORKS:
            known = ", ".join(NETWORKS)
            raise ValueError(f"network must be one of {known}, got {self.network!r}.")
        checks.integer(self.batch_size, "batch_size", 1)
        self.set_family()
        for line in self.algorithms:
            if line.table.get("name") not in FAMILIES:
                raise ValueError(
                    f"an algorithm for a network must be one of {', '.join(FAMILIES)}, got "
                    f"{line.table.get('name')!r}."
                )
            self.options(line)

    def set_family(self) -> type[adafw.Constraint]:
        """The class of sets."""
        table = self.set if isinstance(self.set, Mapping) else {"name": self.set}
        only(table, ("name", "diameter", "radius"), f"set of {self.name}")
        if ("diameter" in table) == ("radius" in table):
            raise ValueError(f"set of {self.name} must have a diameter or a radius, got {table}.")
        family = getattr(adafw, str(table.get("name")), None)
        if not (isinstance(family, type) and issubclass(family, adafw.Constraint)):
            raise ValueError(f"set must be a name in adafw, got {table.get('name')!r}.")
        return family

    def options(self, line: AlgorithmSpec) -> dict[str, Any]:
        """The optimizer's arguments: `learning_rate` is what torch calls lr."""
        options = {k: build(k, v) for k, v in line.table.items() if k != "name"}
        if "learning_rate" not in options:
            raise ValueError(f"algorithm {line.label!r} must have a learning_rate, got none.")
        return {"lr": options.pop("learning_rate"), **options}

    @property
    def identity(self) -> list[Any]:
        """Whatever changes the outcome of a run, beside data and algorithm."""
        return [self.network, dict(self.set), self.batch_size]

    @property
    def words(self) -> str:
        """Network, loss and set in words."""
        name = self.set["name"]
        size = (
            f"l2 diameter {self.set['diameter']:g} Glorot norms" if "diameter" in self.set
            else f"radius {self.set['radius']:g}"
        )  # fmt: skip
        loss = NETWORKS[self.network]
        return (
            f"{self.network}; {loss} loss; each tensor in {name}, {size}; batch {self.batch_size}"
        )

    def family(self, line: AlgorithmSpec) -> str:
        """frank-wolfe, adaptive or projected."""
        return FAMILIES[line.table["name"]]

    def minibatch(self, line: AlgorithmSpec) -> bool:
        """Whether gradients are plain minibatch means."""
        return line.table["name"] not in ("SVRF", "SPIDERFW", "ORGFW")

    def parts(self, line: AlgorithmSpec) -> str:
        """What the algorithm is, spelled out for the report."""
        options = ", ".join(f"{k}={v:.4g}" if k == "lr" else f"{k}={v}"
                            for k, v in self.options(line).items())  # fmt: skip
        return f"adafw.torch.{line.table['name']}({options})"

    def store(self, parts: Path) -> dict[str, Any]:
        """Writes the data for the workers to map; returns what they are."""
        from adafw.experiments.networks.data import load

        need_torch()
        from adafw.experiments.networks.training import check

        data = load(self.data, self.network)
        check(self)  # refuses options that no optimizer takes, before any run
        data.save(parts)
        return data.about
