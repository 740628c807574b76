"""The coordinator's side: who holds which part, who is asked, and what happens when one is lost."""

import asyncio
import logging
import math
import time
import weakref
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any
from uuid import uuid4

import numpy as np
from distributed.protocol import to_serialize

from adafw.distributed.parts import Header
from adafw.distributed.placement import Placement, Worker
from adafw.distributed.recipes import Recipe
from adafw.distributed.shelf import NAME, POINTS, ShelfPlugin, shelve, tidy, widen
from adafw.distributed.wire import Failed, Message, Missing, Packed, Reply, pack
from adafw.objectives.base import Unavailable

log = logging.getLogger(__name__)

#: Seconds between two looks at who is there, and between two tries when no one is.
LOOK, RETRY = 1.0, 0.2
#: Seconds to wait for workers, or for the scheduler, before a run is given up.
PATIENCE = 60.0


@dataclass
class Traffic:
    """What was asked so far: round trips, bytes of arrays either way, rows looked at, losses."""

    trips: int = 0
    sent: int = 0
    received: int = 0
    rows: int = 0
    lost: int = 0
    loads: int = 0

    def copy(self) -> "Traffic":
        return Traffic(**vars(self))


@dataclass(frozen=True)
class Answer:
    """Sums over all parts that were asked, and what each of them said of itself."""

    summed: tuple[Any, ...]
    own: dict[int, Any]


class _Gone(Exception):
    """A worker does not answer, or does not have what it should."""


class Engine:
    """Parts of the rows on the workers of a client.

    Every worker is asked directly, in one message for all of its parts; the scheduler only tells
    who is there. A worker that is lost is no loss: its parts are made anew from their recipes on
    others, and they are asked again. All of it runs on the client's event loop, one operation at
    a time.

    Parameters
    ----------
    client : a Dask client.
    recipes : one a part, in the order of the rows.
    n_features : columns, if more than occur in LIBSVM files.
    patience : seconds to wait for a worker, or for the scheduler, to come back.
    """

    def __init__(
        self, client: Any, recipes: Sequence[Recipe], n_features: int | None = None,
        patience: float = PATIENCE,
    ) -> None:  # fmt: skip
        if client.asynchronous:
            raise TypeError("client must be a synchronous Dask client, got an asynchronous one.")
        self.client, self.patience = client, float(patience)
        self.recipes = list(recipes)
        self.data = f"adafw-{uuid4().hex}"
        self.headers: list[Header | None] = [None] * len(self.recipes)
        self.traffic = Traffic()
        self.placement = Placement(len(self.recipes))
        self.features = n_features
        self.zero_based: bool | None = None
        self._points: dict[str, list[tuple[int, Any]]] = {}
        self._versions = count(1)
        self._lock: asyncio.Lock | None = None
        self._looked = -math.inf
        self._coming: dict[int, tuple[str, Any]] = {}
        self._seen: dict[str, Worker] = {}
        self._suspects: set[str] = set()
        client.register_plugin(ShelfPlugin())
        self._sync(self._load_all)
        weakref.finalize(self, _forget, weakref.ref(client), self.data)

    # -- asking ------------------------------------------------------------------------------

    def ask(
        self, operation: str, parts: Iterable[int] | None = None, *, x: Any = None,
        common: dict[str, Any] | None = None,
        own: Callable[[int], dict[str, Any]] = lambda k: {},
    ) -> Answer:  # fmt: skip
        """One operation on some parts, or on all: one round trip where nothing is lost."""
        numbers = list(range(len(self.recipes)) if parts is None else parts)
        point = None if x is None else np.array(x, copy=True).reshape(-1)  # others keep it
        replies = self._sync(self._ask, operation, numbers, point, common or {}, own)
        return self._joined(replies)

    def _sync(self, call: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        async def one_at_a_time() -> Any:
            if self._lock is None:
                self._lock = asyncio.Lock()
            async with self._lock:
                return await call(*arguments)

        if self.client.status not in ("running", "connecting"):
            raise Unavailable(
                f"the Dask client is {self.client.status}: connect a new one, make the objective "
                "anew and go on with state=error.state."
            )
        return self.client.sync(one_at_a_time)

    def _joined(self, replies: list[tuple[list[int], Reply]]) -> Answer:
        """Sums in the order of the parts, so that they do not depend on who answered first."""
        replies.sort(key=lambda reply: reply[0][0])
        totals: list[Any] = []
        own: dict[int, Any] = {}
        for numbers, reply in replies:
            own.update(zip(numbers, reply.own, strict=True))
            for i, value in enumerate(reply.summed):
                if i == len(totals):
                    totals.append(_unpacked(value))
                elif isinstance(value, Packed) and value.index is not None:
                    totals[i][value.index] += value.values
                else:
                    totals[i] = totals[i] + _unpacked(value)
        return Answer(tuple(totals), own)

    async def _ask(
        self, operation: str, numbers: list[int], x: Any, common: dict[str, Any],
        own: Callable[[int], dict[str, Any]],
    ) -> list[tuple[list[int], Reply]]:  # fmt: skip
        await self._look()
        left, replies = list(numbers), []
        version = next(self._versions)
        while left:
            await self._place([k for k in left if k not in self.placement.owner])
            groups = self.placement.groups(left)
            calls = [
                self._call(worker, operation, some, x, version, common, own)
                for worker, some in groups.items()
            ]
            for (worker, some), reply in zip(
                groups.items(), await asyncio.gather(*calls, return_exceptions=True), strict=True
            ):
                if isinstance(reply, _Gone):
                    await self._lose(worker, some, str(reply))
                elif isinstance(reply, BaseException):
                    raise reply
                else:
                    replies.append((some, reply))
                    left = [k for k in left if k not in some]
        self.traffic.trips += 1
        self.traffic.rows += sum(self._header(k).rows for k in numbers)
        return replies

    async def _call(
        self, worker: str, operation: str, numbers: list[int], x: Any, version: int,
        common: dict[str, Any], own: Callable[[int], dict[str, Any]],
    ) -> Reply:  # fmt: skip
        """Asks one worker; `_Gone` if it cannot answer."""
        details = [own(k) for k in numbers]
        for _ in range(3):
            packed = None if x is None else self._packed(worker, x)
            message = Message(self.data, numbers, operation, common, details, packed, version)
            reply = await self._send(worker, message)
            if isinstance(reply, Missing) and reply.x:
                self._points.pop(worker, None)  # it forgot: the next message has all of x
                continue
            if isinstance(reply, Missing):
                raise _Gone("it has lost its rows")
            if isinstance(reply, Failed):
                raise reply.error
            if x is not None:
                known = self._points.setdefault(worker, [])
                known.append((version, x))
                del known[:-POINTS]
            self.traffic.received += reply.nbytes
            return reply
        raise _Gone("it forgets what it is told")

    async def _send(self, worker: str, message: Message) -> Reply | Missing | Failed:
        self.traffic.sent += message.nbytes
        remote = getattr(self.client.rpc(worker), NAME)
        answer = await self._watched(worker, remote(message=to_serialize(message)))
        return answer["reply"]  # type: ignore[no-any-return]

    def _packed(self, worker: str, x: Any) -> Packed:
        """x, as a change of the last point that the worker knows where that is shorter."""
        known = self._points.get(worker, [])
        for version, point in reversed(known):
            if np.array_equal(point, x):
                return Packed(x.size, x[:0], np.empty(0, np.uint32), version)
        return pack(x, known[-1] if known else None)

    async def _watched(self, worker: str, call: Awaitable[Any]) -> Any:
        """What the call returns; `_Gone` as soon as the scheduler has no such worker any more."""
        task = asyncio.ensure_future(call)
        while True:
            done, _ = await asyncio.wait({task}, timeout=LOOK)
            if done:
                break
            if worker not in await self._workers():
                task.cancel()
                raise _Gone("the scheduler has lost it")
        try:
            return task.result()
        except (OSError, asyncio.TimeoutError) as error:
            raise _Gone(f"{type(error).__name__}") from None

    # -- who is there ------------------------------------------------------------------------

    async def _workers(self) -> dict[str, Worker]:
        """The workers that the scheduler knows; it is waited for if need be."""
        began = time.monotonic()
        while True:
            try:
                scheduler = self.client.scheduler
                if scheduler is None:
                    raise OSError("not connected")
                threads = await asyncio.wait_for(scheduler.ncores(), self.patience)
                if not threads.keys() <= self._seen.keys():
                    known = (await scheduler.identity(n_workers=-1))["workers"]
                    self._seen = {
                        w: Worker(about["nthreads"], about["memory_limit"] or math.inf)
                        for w, about in known.items()
                    }
                return {w: self._seen[w] for w in threads if w in self._seen}
            except (OSError, asyncio.TimeoutError, RuntimeError) as error:
                waited = time.monotonic() - began
                if waited > self.patience or self.client.status == "closed":
                    raise Unavailable(
                        f"the Dask scheduler has not answered for {waited:.0f} s "
                        f"({type(error).__name__}); connect to another, make the objective anew "
                        "and go on with state=error.state."
                    ) from None
            await asyncio.sleep(RETRY)

    async def _look(self) -> None:
        """Once in a while: are there new workers, and has a part arrived where it was sent?"""
        for k, (worker, future) in list(self._coming.items()):
            if not future.done():
                continue
            del self._coming[k]
            if future.status == "finished":
                old = self.placement.owner.get(k)
                self.placement.put(k, worker, self._header(k).nbytes)
                if old is not None and old != worker:
                    self._tidy(old, [k])
                log.info("part %d has moved to %s", k, worker)
        if time.monotonic() - self._looked < LOOK:
            return
        workers = await self._workers()
        self._looked = time.monotonic()
        for gone in self.placement.workers - set(workers):
            await self._lose(gone, self.placement.parts_of(gone), "the scheduler has lost it")
        self._coming = {k: move for k, move in self._coming.items() if move[0] in workers}
        if not self._coming:
            for k, worker in self.placement.moves(workers):
                self._coming[k] = (worker, self._submit(k, worker))

    async def _lose(self, worker: str, numbers: Sequence[int], why: str) -> None:
        """Forgets what a worker had; if it lives, only the parts that it has lost."""
        self._looked = -math.inf
        self._points.pop(worker, None)
        for k in set(numbers) | set(self.placement.parts_of(worker)):
            self.placement.owner.pop(k, None)
        self.traffic.lost += 1
        self._suspects.add(worker)
        self.client.rpc.remove(worker)
        log.warning("worker %s is lost (%s): its %d parts go elsewhere", worker, why, len(numbers))

    # -- parts -------------------------------------------------------------------------------

    async def _load_all(self) -> None:
        """Makes every part, then sees to it that they agree on columns and ids."""
        numbers = range(len(self.recipes))
        await self._place(numbers)
        headers = [self._header(k) for k in numbers]
        flags = {h.zero_based for h in headers} - {None}
        self.zero_based = (True in flags) if flags else None
        # Files without an id 0 were read as if they counted from 1.
        shifted = [k for k in numbers if headers[k].zero_based not in (None, self.zero_based)]
        widths = [h.features + (k in shifted) for k, h in enumerate(headers)]
        self.features = self.features or max(widths)
        _check_alike(headers, self.recipes, self.features)
        self.recipes = [r.settled(self.features, self.zero_based) for r in self.recipes]
        for k in shifted:
            self.placement.owner.pop(k)
        await self._place(shifted)
        narrow = [k for k in numbers if self._header(k).features < self.features]
        for worker, some in self.placement.groups(narrow).items():
            future = self.client.submit(
                widen, self.data, some, self.features, workers=[worker], pure=False
            )
            try:
                await self._task(worker, future)
            except _Gone as gone:
                await self._lose(worker, some, str(gone))

    async def _place(self, numbers: Iterable[int]) -> None:
        """Makes these parts, each on the worker with most room; waits while there is none."""
        missing, began = list(numbers), time.monotonic()
        while missing:
            workers = await self._workers()
            if not workers or time.monotonic() - began > self.patience:
                self._check_patience(began, workers, missing)
                await asyncio.sleep(RETRY)
                continue
            # The scheduler may not have heard yet of one that has just gone.
            there = {w: about for w, about in workers.items() if w not in self._suspects}
            homes = self.placement.homes(
                missing, there or workers, [self._bytes(k) for k in missing]
            )
            self._suspects.clear()
            results = await asyncio.gather(
                *(self._load(k, worker) for k, worker in homes), return_exceptions=True
            )
            for (k, worker), result in zip(homes, results, strict=True):
                if isinstance(result, _Gone):
                    log.warning("part %d could not be made on %s (%s)", k, worker, result)
                elif isinstance(result, BaseException):
                    raise result
                else:
                    began = time.monotonic()
                    self.headers[k] = result
                    self.placement.put(k, worker, result.nbytes)
                    missing.remove(k)
            if missing:
                await asyncio.sleep(RETRY)

    def _check_patience(self, began: float, workers: Any, missing: list[int]) -> None:
        waited = time.monotonic() - began
        if waited > self.patience:
            raise Unavailable(
                f"{len(workers)} workers are there, and {len(missing)} of {len(self.recipes)} "
                f"parts could not be placed for {waited:.0f} s; start workers, make the objective "
                "anew and go on with state=error.state."
            )

    async def _load(self, k: int, worker: str) -> Header:
        """Makes part k on a worker, by a task of Dask's: delayed blocks are computed on the way."""
        from distributed.scheduler import KilledWorker, NoValidWorkerError

        future = self._submit(k, worker)
        try:
            (made,) = await self._task(worker, future)
        except (KilledWorker, NoValidWorkerError, asyncio.CancelledError) as error:
            raise _Gone(type(error).__name__) from None
        finally:
            future.release()
        if isinstance(made, Failed):
            raise made.error
        return made  # type: ignore[no-any-return]

    async def _task(self, worker: str, future: Any) -> Any:
        """[its result], as long as the worker is there."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(done.set))
        await self._watched(worker, done.wait())
        return await self.client._gather([future])

    def _submit(self, k: int, worker: str) -> Any:
        from dask import delayed

        self.traffic.loads += 1
        recipe = self.recipes[k]
        task = delayed(shelve, pure=False)(
            self.data, k, self.features, recipe.bare(), *recipe.arguments()
        )
        return self.client.compute(task, workers=[worker], allow_other_workers=False)

    def _tidy(self, worker: str, numbers: list[int]) -> None:
        from distributed import fire_and_forget

        fire_and_forget(
            self.client.submit(tidy, self.data, numbers, workers=[worker], pure=False)
        )

    @property
    def known_headers(self) -> list[Header]:
        """One a part, in their order."""
        return [self._header(k) for k in range(len(self.recipes))]

    def _header(self, k: int) -> Header:
        header = self.headers[k]
        assert header is not None
        return header

    def _bytes(self, k: int) -> int:
        header = self.headers[k]
        return 0 if header is None else header.nbytes


def _unpacked(value: Any) -> Any:
    """A sum as it is added to: an array of its own."""
    if isinstance(value, Packed):
        full = value.unpack()
        return full if full.flags.writeable else full.copy()
    return value


def _check_alike(headers: list[Header], recipes: Sequence[Recipe], n: int) -> None:
    """Refuses parts that do not belong together."""
    first = headers[0]
    for header, recipe in zip(headers, recipes, strict=True):
        if header.features != n and header.zero_based is None:
            raise ValueError(
                f"all parts must have as many columns, got {header.features} in {recipe}, {n} "
                "elsewhere."
            )
        if header.dtype != first.dtype or header.kind != first.kind:
            raise ValueError(
                f"all parts must be of one kind, got {header.dtype} {header.kind} in {recipe}, "
                f"{first.dtype} {first.kind} in {recipes[0]}."
            )
        if header.names != first.names:
            raise ValueError(f"all parts must have the same columns, got others in {recipe}.")
        if (header.weight is None) != (first.weight is None):
            raise ValueError(f"all parts must have weights or none, got both: see {recipe}.")


def _forget(client: "weakref.ref[Any]", data: str) -> None:
    """Frees the workers' memory when no one asks for the parts any more."""
    alive = client()
    if alive is None or alive.status != "running":
        return

    async def drop() -> None:
        try:
            await alive._run(_drop, data, wait=False)
        except Exception as error:  # the cluster is going down: nothing is left to free
            log.debug("parts of %s could not be dropped: %r", data, error)

    # Whoever collects the garbage may be the event loop itself: it is not waited for.
    alive.loop.add_callback(drop)


async def _drop(data: str, dask_worker: Any = None) -> None:
    if NAME in dask_worker.extensions:
        dask_worker.extensions[NAME].drop(data)
