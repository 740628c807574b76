"""What a kind of experiment must know: to read its cases, run, judge and show them.

A kind is a folder of its own beside this file, and one entry of kinds.py. All else in this folder
asks a `Kind` and knows none of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

from adafw.experiments.outcome import Curve, Outcome
from adafw.experiments.spec import About, Case, Method, Spec
from adafw.experiments.verdicts import Claim
from adafw.experiments.work import WorkItem
from adafw.recorder import AnyRecords
from adafw.tuning import Measure, Trial, Tuning
from adafw.typing import Json, JsonTable, Plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure


C = TypeVar("C", bound=Case[Method])
M = TypeVar("M", bound=Method)


class Extra(NamedTuple):
    """A run that is not compared: its role, and what runs on which budget."""

    role: str
    method: Method
    budget: Mapping[str, Json]


class Kind(ABC, Generic[C, M]):
    """One kind of experiment.

    `key`: the key of a problem's table by which the kind is known, "" for that which has none.
    `needed`, `optional`: all keys of a problem's table. `trace`: what the records of a run become.
    `step`: the column that numbers them. `spread`, `rule`: what curves show over seeds, and when a
    claim holds, in words. `claims`: the names a file may use. `is_long`: whether runs take hours,
    so that `adafw reproduce all` leaves them out.
    """

    name: ClassVar[str]
    key: ClassVar[str]
    needed: ClassVar[tuple[str, ...]]
    optional: ClassVar[tuple[str, ...]]
    trace: ClassVar[type[AnyRecords]]
    step: ClassVar[str]
    spread: ClassVar[str]
    rule: ClassVar[str]
    claims: ClassVar[Collection[str]]
    state_suffix: ClassVar[str]
    is_long: ClassVar[bool] = False

    @abstractmethod
    def case(self, table: JsonTable, source: str, folder: str) -> C:
        """The case of a problem's table; whatever can be made is, so that mistakes are told."""

    @abstractmethod
    def budget(self, table: Json, source: str) -> JsonTable:
        """The budget of a run, checked."""

    def search_budget(self, table: Json, source: str) -> JsonTable:
        """The budget of a run of a search, and what else bounds the search, checked."""
        return self.budget(table, source)

    @abstractmethod
    def check(self, spec: Spec, source: str) -> None:
        """Refuses what does not go together, before any work."""

    @abstractmethod
    def store(self, case: C, parts: Path) -> About:
        """Writes the data for the workers to map; returns what they are.

        That is name, description, is_stand_in, label and shape. Refuses, before any run, what only
        the data tell.
        """

    @abstractmethod
    def extras(self, spec: Spec, case: C) -> list[Extra]:
        """The runs on a case that are not compared."""

    @abstractmethod
    def run(self, item: WorkItem[C, M]) -> JsonTable:
        """In a worker: the outcome of a run, {status, records, ...}, from its last saved state on.

        Saves the state and raises `Stopped` when asked to stop.
        """

    @abstractmethod
    def search(self, item: WorkItem[C, M]) -> Tuning:
        """In a worker: the search for a learning rate that the file asks for."""

    @abstractmethod
    def tune(
        self, case: C, method: M, budget: Mapping[str, Json], measure: Measure, seed: int,
        report: Callable[[Trial], None] | None,
    ) -> Tuning:  # fmt: skip
        """The paper's search for a learning rate, for `adafw tune`."""

    @abstractmethod
    def judge(self, outcome: Outcome) -> list[Claim]:
        """Verdicts on all claims that the file names."""

    @abstractmethod
    def draw(self, outcome: Outcome) -> "Figure":
        """A matplotlib figure, but for its title and foot."""

    @abstractmethod
    def tables(self, outcome: Outcome) -> list[str]:
        """The report between claims and settings: headings, tables and what they show, as HTML."""

    @abstractmethod
    def final(self, curve: Curve) -> dict[str, dict[str, float]]:
        """Column -> numbers over seeds at the end of the runs, for summary.json."""

    @abstractmethod
    def summary(self, outcome: Outcome) -> dict[str, Plain]:
        """What summary.json has beside what it has for every kind."""


#: One of any kind: of its cases and methods only it knows the types.
AnyKind: TypeAlias = Kind[Any, Any]
