"""The parts that a worker holds, and the handler through which it is asked for them."""

import asyncio
import multiprocessing
import signal
import threading
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import numpy as np
from distributed import WorkerPlugin, get_worker
from distributed.protocol import to_serialize

from adafw.distributed.parts import OPERATIONS, Header, HeldPart, summed
from adafw.distributed.recipes import PartRecipe
from adafw.distributed.typing import DaskObject, Own, Summed, Told
from adafw.distributed.wire import Failed, Message, Missing, Reply
from adafw.typing import Array

#: The name of the handler, of the plugin and of the extension that holds the parts.
NAME = "adafw"
#: Points x that are kept, for the next to be sent as a change of one of them.
POINTS = 4


class Shelf:
    """Parts by (data, number), and the last points x of each data, by version."""

    def __init__(self, threads: int) -> None:
        self.parts: dict[tuple[str, int], HeldPart] = {}
        self.points: dict[str, OrderedDict[int, Array]] = {}
        self._lock = threading.Lock()  # of the points: several coordinators may ask at a time
        self.pool = ThreadPoolExecutor(max(1, threads), thread_name_prefix="adafw")
        self.closed = False

    async def answer(self, message: Message, **_: Any) -> dict[str, Any]:
        """The handler: off the event loop, which must go on beating."""
        loop = asyncio.get_running_loop()
        try:
            reply = await loop.run_in_executor(None, self.perform, message)
        except RuntimeError:  # the loop is about to end, and takes no more work
            reply = Missing(message.parts)
        return {"reply": to_serialize(reply)}

    def perform(self, message: Message) -> Reply | Missing | Failed:
        """One operation on all parts that are named, several at a time."""
        try:
            missing = [k for k in message.parts if (message.data, k) not in self.parts]
            if missing:
                return Missing(missing)
            x = self._point(message)
            if x is None and message.x is not None:
                return Missing([], x=True)
            parts = [self.parts[message.data, k] for k in message.parts]
            operation = OPERATIONS[message.operation]

            def one(part: HeldPart, own: Own) -> tuple[Summed, Told, float]:
                began = time.thread_time()
                with np.errstate(over="ignore", invalid="ignore"):
                    # Operations that use x are sent one.
                    total, alone = operation(part, cast(Array, x), message.common, own)
                return total, alone, time.thread_time() - began

            totals, alone, seconds = zip(*self.pool.map(one, parts, message.own), strict=True)
            return Reply(summed(list(totals)), list(alone), sum(seconds))
        except Exception as error:
            # A worker that leaves takes its threads away first: others have to make its parts.
            return Missing(message.parts) if self.closed else Failed.by(error)

    def _point(self, message: Message) -> Array | None:
        """x, kept for the messages to come; None if what it builds on is not there."""
        if message.x is None:
            return None
        with self._lock:
            known = self.points.setdefault(message.data, OrderedDict())
            base = None if message.x.base is None else known.get(message.x.base)
            if message.x.base is not None and base is None:
                return None
            x = known[message.version] = message.x.unpack(base)
            while len(known) > POINTS:
                known.popitem(last=False)
        return x

    def drop(self, data: str, numbers: list[int] | None = None) -> None:
        """Forgets parts of some data, or all that there is of them."""
        if numbers is None:
            self.points.pop(data, None)
        for key in [k for k in self.parts if k[0] == data]:
            if numbers is None or key[1] in numbers:
                del self.parts[key]

    def close(self) -> None:
        """Answers no more."""
        self.closed = True
        self.parts.clear()
        self.points.clear()
        self.pool.shutdown(wait=False)


class ShelfPlugin(WorkerPlugin):  # type: ignore[misc]
    """Gives every worker a shelf, those that come later, too."""

    name = NAME
    idempotent = True

    def setup(self, worker: DaskObject) -> None:
        """Called by Dask on the worker."""
        shelf = worker.extensions.setdefault(NAME, Shelf(worker.state.nthreads))
        worker.handlers[NAME] = shelf.answer

    def teardown(self, worker: DaskObject) -> None:
        """Called by Dask on the worker."""
        worker.extensions[NAME].close()


class DeafPlugin(WorkerPlugin):  # type: ignore[misc]
    """Ctrl-C on a terminal is for the coordinator: workers that it started do not hear it."""

    name = f"{NAME}-deaf"
    idempotent = True

    def setup(self, worker: DaskObject) -> None:
        """Called by Dask on the worker."""
        own_process = multiprocessing.parent_process() is not None
        if own_process and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def shelf_here() -> Shelf:
    """The shelf of the worker that runs this task."""
    return get_worker().extensions[NAME]


def shelve(
    data: str, number: int, n: int | None, recipe: PartRecipe, *arguments: Any
) -> Header | Failed:
    """A task: makes a part, puts it on the shelf, and tells of it.

    What is wrong with the data is told, too, not raised: Dask's own errors are those of the
    cluster.
    """
    try:
        block = recipe.make(*arguments)
        if not block.X.shape[0]:  # what a filter left of a block: known, and never asked for
            return Header.of_nothing(block)
        part = HeldPart.of(block, str(recipe))
        if n is not None:
            part.widen(n)
        shelf_here().parts[data, number] = part
        return part.header()
    except Exception as error:
        return Failed.by(error, f"while {recipe} was made")


def tidy(data: str, numbers: list[int] | None = None) -> None:
    """A task: forgets parts."""
    shelf_here().drop(data, numbers)


def widen(data: str, numbers: list[int], n: int) -> None:
    """A task: gives parts the columns that others have.

    What is not here was lost with a worker of the same address, and is made anew when asked for.
    """
    shelf = shelf_here()
    for k in numbers:
        if (data, k) in shelf.parts:
            shelf.parts[data, k].widen(n)
