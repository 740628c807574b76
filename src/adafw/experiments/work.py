"""One piece of an experiment's work: what a worker needs, where its outcome goes, when to stop.

Every finished piece is one file, written whole or not at all; a run in progress saves its state
every few seconds and is taken up from there, bit for bit.
"""

import functools
import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

import adafw
from adafw.experiments.spec import Case, Method
from adafw.io.atomic import write_text
from adafw.typing import JsonTable

C_co = TypeVar("C_co", bound=Case[Method], covariant=True)
M_co = TypeVar("M_co", bound=Method, covariant=True)

RUN, SEARCH = "run", "search"  # roles; a kind may have more, of runs that are not compared


@dataclass(frozen=True)
class WorkItem(Generic[C_co, M_co]):
    """A method on a case from a seed: everything a worker needs, and where its outcome goes.

    `parts`: where the data lie. `state_file`: where the state of an unfinished run is kept.
    """

    kind: str
    role: str
    case: C_co
    method: M_co
    seed: int
    budget: JsonTable
    parts: Path
    file: Path
    state_file: Path


#: One of any kind.
AnyItem: TypeAlias = WorkItem[Case[Method], Method]


class Stopped(Exception):
    """The run was asked to stop and has saved its state."""


#: The event by which the main process asks its workers to stop; None outside of a worker.
_stop: Event | None = None


def listen_to(stop: Event) -> None:
    """From now on this process is a worker, asked to stop by the event."""
    global _stop
    _stop = stop


def asked_to_stop() -> bool:
    """Whether this worker is to save what it has and end."""
    return _stop is not None and bool(_stop.is_set())


def is_done(item: AnyItem) -> bool:
    """Whether the outcome is there; a file that cannot be read is set aside, and done again."""
    if not item.file.is_file():
        return False
    try:
        outcome = json.loads(item.file.read_text())
        wanted = {"exponent", "settled", "trials"} if item.role == SEARCH else {"status", "records"}
        if wanted <= set(outcome):
            return True
    except (ValueError, TypeError, RecursionError):
        pass
    set_aside(item.file)
    return False


def set_aside(path: Path) -> None:
    """Moves a damaged file out of the way, for those who want to know what happened to it."""
    path.replace(path.with_name(f"{path.name}.damaged"))


def finish(item: AnyItem, outcome: JsonTable) -> None:
    """Writes the outcome of a piece of work, and when and by which source it was made."""
    made = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "source": source()}
    write_text(item.file, json.dumps({**outcome, "made": made}))
    # After the outcome: a run killed in between is done, and its state is of no use.
    item.state_file.unlink(missing_ok=True)


@functools.cache
def source() -> str:
    """A mark of the package's source, which tells more than its version."""
    root = Path(adafw.__file__).parent
    texts = [path.read_text(encoding="utf-8") for path in sorted(root.rglob("*.py"))]
    return digest(texts)


def digest(thing: object) -> str:
    """A short mark that tells one plain table from another."""
    text = json.dumps(thing, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
