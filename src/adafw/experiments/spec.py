"""What an experiment is: cases (data, a model, a set), and the methods compared on them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, Self, TypedDict, TypeVar

from adafw.experiments.keys import check_types
from adafw.experiments.values import SEARCHED, in_words
from adafw.typing import Json, JsonTable


class About(TypedDict):
    """What the data of a case are."""

    name: str
    description: str
    is_stand_in: bool
    label: str
    shape: list[int]


@dataclass(frozen=True)
class Method(ABC):
    """One entry of a file's `algorithms`: a label, the table it is made from, who chose it."""

    label: str
    table: Mapping[str, Json]
    note: str = ""

    @property
    @abstractmethod
    def family(self) -> str:
        """frank-wolfe, adaptive, projected, or other: the alternatives of section 3.1, say."""

    @property
    @abstractmethod
    def estimator(self) -> str:
        """The gradient estimator's name; "Minibatch" for plain means."""

    @property
    @abstractmethod
    def parts(self) -> str:
        """What the method is, spelled out for the report."""

    @property
    def options(self) -> JsonTable:
        """All settings by name, those of a step among them."""
        step = self.table.get("step")
        return {**self.table, **(step if isinstance(step, dict) else {})}

    @property
    def searched(self) -> bool:
        """Whether the learning rate is left to the paper's search."""
        return bool(self.options.get("learning_rate") == SEARCHED)

    @property
    def setting(self) -> str:
        """The settings in words: what trace.csv and the figures show."""
        table = {k: v for k, v in self.table.items() if k != "name"}
        return ", ".join(f"{key}={in_words(value)}" for key, value in table.items()) or "defaults"

    def with_rate(self, eta: float | str) -> Self:
        """The same method with another learning rate, a number or as the paper writes it."""
        table = dict(self.table)
        if "learning_rate" in table or not isinstance(table.get("step"), dict):
            table["learning_rate"] = eta
        else:
            table["step"] = {**table["step"], "learning_rate": eta}
        return replace(self, table=table)


M = TypeVar("M", bound=Method)
M_co = TypeVar("M_co", bound=Method, covariant=True)


def read_methods(
    entries: list[JsonTable], make: Callable[[str, JsonTable, str], M], source: str
) -> tuple[M, ...]:
    """The methods of a file's `algorithms`, made from (label, table, note)."""
    found = []
    for entry in entries:
        check_types({key: entry[key] for key in ("label", "note") if key in entry}, source)
        table = {k: v for k, v in entry.items() if k not in ("label", "note")}
        label = entry.get("label", entry.get("name"))
        paired = "step" in table and "gradient" in table
        if label is None or ("name" in table) == paired:
            raise ValueError(
                f"an algorithm needs a name, or a label, a gradient and a step, in {source}, "
                f"got {entry!r}."
            )
        found.append(make(label, table, entry.get("note", "")))
    labels = [method.label for method in found]
    if len(set(labels)) < len(labels):
        raise ValueError(f"labels of algorithms must differ in {source}, got {labels}.")
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class Case(ABC, Generic[M_co]):
    """One entry of a file's `problems`: data, what is minimised on them, the methods compared.

    Relative paths in the data's table start at `folder`.
    """

    name: str
    data: Mapping[str, Json]
    methods: tuple[M_co, ...]
    folder: str = "."

    @property
    @abstractmethod
    def identity(self) -> list[Json]:
        """Whatever changes the outcome of a run, beside data and method."""

    @property
    @abstractmethod
    def words(self) -> str:
        """What is minimised over which set, in words."""


@dataclass(frozen=True)
class Spec:
    """An experiment: cases of one kind, the budget of every run, seeds, repeats, what is claimed.

    `kind`: the name of an entry of `adafw.experiments.kinds`.
    """

    name: str
    title: str
    kind: str
    cases: tuple[Case[Method], ...]
    budget: Mapping[str, Json]
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)
    repeats: int = 1
    notes: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    goals: tuple[float, ...] = ()
    search: Mapping[str, Json] = field(default_factory=dict)
    quick: bool = False
    reduced: bool = False

    @property
    def form(self) -> str:
        """Which form of the experiment it is, in a word."""
        return "quick" if self.quick else "reduced" if self.reduced else "full"

    def setting(self, case: Case[Method], method: Method) -> str:
        """The settings of a method, with the case in front where there are several."""
        return f"{case.name}: {method.setting}" if len(self.cases) > 1 else method.setting
