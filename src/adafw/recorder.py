"""What is measured during a run, when, and on which clock."""

import csv
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from adafw import checks
from adafw.constraints.base import Constraint
from adafw.objectives.base import FiniteSum
from adafw.solver import State

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Record(NamedTuple):
    """One row of a trace: the work done so far, and value and gap measured at x_t.

    `gap` is the exact Frank-Wolfe gap max_v <grad f(x_t), x_t - v>, with the full gradient;
    `lower_bound` the best value - gap up to here (nan unless f is convex); `nonzeros` counts
    |x_j| > 1e-15 of the set's radius; `violation` is how far x_t is outside, relative to it.
    Value and gap are computed in float64, in float32 runs too.
    """

    iteration: int
    epoch: float
    gradient_evaluations: int
    lmo_calls: int
    projections: int
    cpu_seconds: float
    wall_seconds: float
    value: float
    gap: float
    lower_bound: float
    nonzeros: int
    violation: float


_COUNTS = ("iteration", "gradient_evaluations", "lmo_calls", "projections", "nonzeros")
#: Where these stand in a row: on small problems, making a Record of each row would show.
_LOWER_BOUND = Record._fields.index("lower_bound")
_WALL_SECONDS = Record._fields.index("wall_seconds")


def as_record(row: tuple[float, ...]) -> Record:
    """A record from a row of numbers, counts being integers again."""
    named = dict(zip(Record._fields, row, strict=True))
    return Record(**{k: int(v) if k in _COUNTS else float(v) for k, v in named.items()})  # type: ignore[arg-type]


R = TypeVar("R", bound=tuple[object, ...])


class Records(Generic[R]):
    """Records of one type, as rows (iterate, index) and as columns (`trace["cpu_seconds"]`).

    `record`: the type, a NamedTuple; `columns`: its fields; `counts`: those that are integers.
    """

    record: ClassVar[Callable[..., Any]]
    columns: ClassVar[tuple[str, ...]]
    counts: ClassVar[tuple[str, ...]]

    def __init__(self, rows: list[tuple[float, ...]]) -> None:
        kinds = [int if name in self.counts else float for name in self.columns]
        self._records: list[R] = [
            self.record(*(kind(v) for kind, v in zip(kinds, row, strict=True))) for row in rows
        ]

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[R]:
        return iter(self._records)

    def __getitem__(self, key: str | int) -> Any:
        """A column by name, or a record by number."""
        if isinstance(key, str):
            if key not in self.columns:
                raise KeyError(f"{key!r} is no column of a trace; there are {self.columns}.")
            return self.column(key)
        return self._records[key]

    def column(self, name: str) -> NDArray[Any]:
        """One column as an array."""
        kind = np.int64 if name in self.counts else np.float64
        return np.array([getattr(record, name) for record in self._records], dtype=kind)

    def to_pandas(self) -> Any:
        """A pandas DataFrame with these columns."""
        import pandas

        return pandas.DataFrame({name: self.column(name) for name in self.columns})

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes the trace as a CSV file whose numbers read back to the same bits."""
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows(self._records)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} records, columns {', '.join(self.columns)})"


#: Records of whatever type.
AnyRecords: TypeAlias = Records[Any]


class Trace(Records[Record]):
    """The records of a run of `minimize`."""

    record, columns, counts = Record, Record._fields, _COUNTS

    def plot(
        self, ax: "Axes | None" = None, x: str = "cpu_seconds", y: str = "gap", **style: Any
    ) -> "Axes":
        """Draws column y against column x on a matplotlib axis, y on a logarithmic scale."""
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots()
        ax.plot(self[x], self[y], **style)
        ax.set(xlabel=x.replace("_", " "), ylabel=y.replace("_", " "), yscale="log")
        return ax


class Clock:
    """CPU and wall seconds of the algorithm alone: it runs inside `with clock:` only."""

    def __init__(self, cpu: float = 0.0, wall: float = 0.0) -> None:
        self.cpu, self.wall = cpu, wall

    def start(self) -> None:
        """Lets it run."""
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    def pause(self) -> None:
        """Makes it stand still."""
        cpu, wall = time.process_time(), time.perf_counter()
        self.cpu, self.wall = self.cpu + (cpu - self._cpu), self.wall + (wall - self._wall)
        # So that a second pause counts nothing twice.
        self._cpu, self._wall = cpu, wall

    def __enter__(self) -> "Clock":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.pause()


@dataclass(frozen=True)
class Every:
    """Record whenever so many seconds of the paused clock have passed."""

    seconds: float


def every(seconds: float) -> Every:
    """For `minimize(record_every=...)`: a record every so many seconds, and the last iterate."""
    return Every(checks.real(seconds, "seconds", 0, above=True))


class Recorder:
    """Decides when to measure, measures, and appends the record to the state."""

    def __init__(self, f: FiniteSum, constraint: Constraint, every: int | Every | None) -> None:
        self.f, self.constraint = f, constraint
        if not (every is None or isinstance(every, Every)):
            every = checks.integer(every, "record_every", 1)
        self.every = every

    def iterations_left(self, s: State) -> float:
        """Iterations to the next record after s.t; inf if that is a matter of time."""
        if isinstance(self.every, Every):
            return math.inf
        if self.every is not None:
            return self.every - s.t % self.every
        return next_geometric(s.t) - s.t

    def seconds_left(self, s: State) -> float:
        """Seconds to the next record; inf if that is a matter of iterations."""
        if not isinstance(self.every, Every):
            return math.inf
        # From the last record, not from a fixed beat: a resumed run keeps its distance.
        last = s.records[-1][_WALL_SECONDS] if s.records else 0.0
        return self.every.seconds - (s.wall_seconds - last)

    def due(self, s: State) -> bool:
        """Whether the state the run is in now is one to record, and has not been yet."""
        # A resumed run begins at a record that is there already.
        if s.records and s.records[-1][0] == s.t:
            return False
        if s.t == 0:
            return True
        if isinstance(self.every, Every):
            return self.seconds_left(s) <= 0
        if self.every is not None:
            return s.t % self.every == 0
        return next_geometric(s.t - 1) == s.t

    def measure(self, s: State) -> Record:
        """Value, exact gap and all counts at s.x, appended to the trace; counts no work."""
        # In float64 whatever dtype the run has: in float32 the gap would be rounding error near
        # the minimum, and no certificate.
        x = s.x.astype(np.float64, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):  # told by the status, not by warnings
            value, g = self.f.value_and_gradient(x)
        gap = math.nan
        if np.isfinite(value) and np.isfinite(g).all():
            gap = self.constraint.gap(x, g)
            if gap < 0:  # rounding at an optimal x, where no gap can be
                gap = 0.0
        bound = math.nan
        if self.f.convex:
            before = s.records[-1][_LOWER_BOUND] if s.records else -math.inf
            # fmax passes over NaN: one bad record does not lose the bounds before it.
            bound = float(np.fmax(before, value - gap))
        record = Record(
            iteration=s.t,
            epoch=s.gradient_evaluations / self.f.n_terms,
            gradient_evaluations=s.gradient_evaluations,
            lmo_calls=s.lmo_calls,
            projections=s.projections,
            cpu_seconds=s.cpu_seconds,
            wall_seconds=s.wall_seconds,
            value=value,
            gap=gap,
            lower_bound=bound,
            # What rounding leaves of an entry that has gone is not counted.
            nonzeros=int(np.count_nonzero(np.abs(s.x) > 1e-15 * self.constraint.scale)),
            violation=self.constraint.violation(s.x),
        )
        s.records.append(tuple(record))
        return record


def next_geometric(t: int) -> int:
    """The smallest ceil(1.2^j) above t."""
    if t < 1:
        return 1
    # One below, as the logarithm is rounded and two j may have one ceiling.
    j = max(0, math.floor(math.log(t) / math.log(1.2)) - 1)
    while (n := math.ceil(1.2**j)) <= t:
        j += 1
    return n
