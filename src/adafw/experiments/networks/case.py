"""A network to train, every parameter in its set, and the optimizers of `adafw.torch`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import NamedTuple, Self

from adafw import checks
from adafw.experiments.keys import only
from adafw.experiments.spec import Case, Method, read_methods
from adafw.experiments.values import REGISTRIES, build
from adafw.typing import Json, JsonTable


class Maker(NamedTuple):
    """How an optimizer is made: the kind of method, its gradient estimator, its groups.

    `groups`: "set" (each tensor in the case's or the method's own set), "recipe" (those of
    `constrain(recipe=...)`), or "plain" (all parameters). `start`: the exponent i of the rate
    10^(i/2) that a search of a fixed number of trials begins around.
    """

    family: str
    estimator: str = "Minibatch"
    groups: str = "set"
    start: int = -4
    home: str = "adafw.torch"


_OPTIMIZERS = {
    "SFW": Maker("frank-wolfe"),
    "SVRF": Maker("frank-wolfe", "SVRF"),
    "SPIDERFW": Maker("frank-wolfe", "SPIDER"),
    "ORGFW": Maker("frank-wolfe", "ORGFW"),
    "AdaSFW": Maker("adaptive"),
    "AdamSFW": Maker("adaptive", start=-6),
    "AdaGrad": Maker("projected"),
    "AMSGrad": Maker("projected", start=-6),
    "Muon": Maker("frank-wolfe", groups="recipe"),
    "Scion": Maker("frank-wolfe", groups="recipe", start=-5),
    "Lion": Maker("frank-wolfe", groups="recipe", start=-7),
    "Signum": Maker("frank-wolfe", groups="plain", start=-6),
    "AdamW": Maker("other", groups="plain", start=-5, home="torch.optim"),
    "TorchMuon": Maker("other", groups="recipe", home="torch.optim"),
}
#: Networks of models.py: the loss each is trained with in words, and what searches look at.
NETWORKS = {
    "ImdbNet": ("logistic", "error"),
    "CifarNet": ("cross-entropy", "error"),
    "CharNet": ("cross-entropy", "loss"),
    "FashionNet": ("cross-entropy", "error"),
}
#: Sets for hidden matrices that only torch has.
_TORCH_SETS = ("NewtonSchulzBall",)


def need_torch() -> None:
    """Says what to install where networks cannot be trained."""
    if find_spec("torch") is None:
        raise ValueError("networks are trained by torch, which is missing; install adafw[torch].")


@dataclass(frozen=True)
class NetworkMethod(Method):
    """An optimizer by name; `arguments`: what it takes, made once; `set`: its own, or None."""

    arguments: JsonTable = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.optimizer not in _OPTIMIZERS:
            raise ValueError(
                f"an algorithm for a network must be one of {', '.join(_OPTIMIZERS)}, got "
                f"{self.table.get('name')!r}."
            )
        if self.set is not None:
            check_set(self.set, f"algorithm {self.label!r}")
        made = {k: build(k, v) for k, v in self.table.items() if k not in ("name", "set")}
        if "learning_rate" not in made:
            raise ValueError(f"algorithm {self.label!r} must have a learning_rate, got none.")
        # What torch calls lr.
        object.__setattr__(self, "arguments", {"lr": made.pop("learning_rate"), **made})

    @property
    def optimizer(self) -> str:
        """The name in `adafw.torch`."""
        return str(self.table.get("name"))

    @property
    def set(self) -> Mapping[str, Json] | None:
        """The method's own set, in place of the case's."""
        return self.table.get("set")

    @property
    def maker(self) -> Maker:
        """How it is made."""
        return _OPTIMIZERS[self.optimizer]

    @property
    def family(self) -> str:
        return self.maker.family

    @property
    def estimator(self) -> str:
        return self.maker.estimator

    @property
    def parts(self) -> str:
        options = ", ".join(f"{k}={v:.4g}" if k == "lr" else f"{k}={v}"
                            for k, v in self.arguments.items())  # fmt: skip
        own = "" if self.set is None else f" in {set_words(self.set)}"
        return f"{self.maker.home}.{self.optimizer.removeprefix('Torch')}({options}){own}"


def check_set(table: Json, where: str) -> None:
    """Refuses a table that tells no set: name, diameter or radius, and what goes with some.

    `rest`: the set is for hidden matrices, all other parameters lie in an linf ball of that
    radius. `share`: of the entries that a vertex of KSparse has.
    """
    if not isinstance(table, Mapping):
        table = {"name": table}
    only(table, ("name", "diameter", "radius", "rest", "share"), f"set of {where}")
    if ("diameter" in table) == ("radius" in table):
        raise ValueError(f"set of {where} must have a diameter or a radius, got {table}.")
    if ("share" in table) != (table.get("name") == "KSparse"):
        raise ValueError(f"set of {where} must have a share for KSparse and for no other.")
    for key in ("rest", "share"):
        if key in table:
            checks.real(table[key], f"{key} of {where}", 0, above=True)
    if table.get("name") not in _TORCH_SETS:
        REGISTRIES["set"].find(table.get("name"))
    elif "rest" not in table:
        raise ValueError(f"set of {where} must have a rest, for what is no hidden matrix.")


def set_words(table: Mapping[str, Json]) -> str:
    """A set in words."""
    size = (
        f"l2 diameter {table['diameter']:g} Glorot norms" if "diameter" in table
        else f"radius {table['radius']:g}"
    )  # fmt: skip
    share = f" with {100 * table['share']:g} % of the entries" if "share" in table else ""
    rest = (
        f"; what is no hidden matrix in LInfBall, radius {table['rest']:g}" if "rest" in table
        else ""
    )  # fmt: skip
    return f"{table['name']}{share}, {size}{rest}"


@dataclass(frozen=True, kw_only=True)
class NetworkCase(Case[NetworkMethod]):
    """Data, a network and the size of its batches.

    `set` names a class of sets, and either a radius or an l2 diameter in units of the norm to
    expect of Glorot's initialisation, as in `adafw.torch.constrain`; see `check_set` for more.
    `width` of the network's layers, where it may be chosen. `probes`: whether trained networks
    are pruned and disturbed, to see what they can do without.
    """

    network: str
    set: Mapping[str, Json]
    batch_size: int = 128
    width: int | None = None
    probes: bool = False

    def __post_init__(self) -> None:
        if self.network not in NETWORKS:
            known = ", ".join(NETWORKS)
            raise ValueError(f"network must be one of {known}, got {self.network!r}.")
        checks.integer(self.batch_size, "batch_size", 1)
        if self.width is not None:
            checks.integer(self.width, "width", 1)
        check_set(self.set, self.name)

    @classmethod
    def read(cls, table: JsonTable, source: str, folder: str) -> Self:
        """From a problem's table."""
        fields = {key: value for key, value in table.items() if key != "algorithms"}
        methods = read_methods(table["algorithms"], NetworkMethod, source)
        return cls(**fields, methods=methods, folder=folder)

    @property
    def identity(self) -> list[Json]:
        more = [self.width, self.probes] if self.width is not None or self.probes else []
        return [self.network, dict(self.set), self.batch_size, *more]

    @property
    def words(self) -> str:
        loss, _ = NETWORKS[self.network]
        width = "" if self.width is None else f" of width {self.width}"
        return (
            f"{self.network}{width}; {loss} loss; each tensor in {set_words(self.set)} unless the "
            f"method has its own; batch {self.batch_size}"
        )
