"""Who is there, who holds which part, and what happens when one is lost."""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Iterable, Sequence, Sized
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from adafw.distributed.parts import Header
from adafw.distributed.placement import Placement, Worker
from adafw.distributed.recipes import PartRecipe
from adafw.distributed.shelf import shelve, tidy, widen
from adafw.distributed.typing import DaskObject
from adafw.distributed.wire import Failed
from adafw.objectives.base import Unavailable

log = logging.getLogger("adafw.distributed")

#: Seconds between two looks at who is there, and between two tries when no one is.
LOOK, RETRY = 1.0, 0.2


@dataclass
class Traffic:
    """What was asked so far: round trips, bytes of arrays either way, rows looked at, losses.

    `seconds` is CPU time of the workers, of the one that took longest in each round trip.
    """

    trips: int = 0
    sent: int = 0
    received: int = 0
    rows: int = 0
    seconds: float = 0.0
    lost: int = 0
    loads: int = 0

    def copy(self) -> "Traffic":
        return Traffic(**vars(self))


class Gone(Exception):
    """A worker does not answer, or does not have what it should."""


T = TypeVar("T")


class Crew:
    """The workers of a client and the parts they hold; all of it runs on the client's event loop.

    What a worker holds can be made anew from its recipe: losing one only costs the time for that.
    Parts are made by tasks of Dask's; who is there is asked of the scheduler.
    """

    def __init__(
        self, client: DaskObject, data: str, recipes: Sequence[PartRecipe], n_features: int | None,
        patience: float,
    ) -> None:  # fmt: skip
        self.client, self.data, self.patience = client, data, patience
        self.recipes = list(recipes)
        self.headers: list[Header | None] = [None] * len(self.recipes)
        self.placement = Placement(len(self.recipes))
        self.traffic = Traffic()
        self.features = n_features
        self.zero_based: bool | None = None
        self.settled = False  #: whether all parts are known, and as wide as they will be
        self._looked = -math.inf
        self._coming: dict[int, tuple[str, DaskObject]] = {}
        self._seen: dict[str, Worker] = {}
        self._suspects: set[str] = set()
        #: Workers that lost parts, and may hold them still; those that could not make a part.
        self._left: set[str] = set()
        self._unable: set[str] = set()

    async def watched(self, worker: str, call: Awaitable[T]) -> T:
        """What the call returns; `Gone` as soon as the scheduler has no such worker any more."""
        task = asyncio.ensure_future(call)
        try:
            while not (await asyncio.wait({task}, timeout=LOOK))[0]:
                if worker not in await self._workers():
                    raise Gone("the scheduler has lost it")
            return task.result()
        except (OSError, TimeoutError) as error:
            if isinstance(error, Unavailable):
                raise
            raise Gone(f"{type(error).__name__}") from None
        finally:
            task.cancel()  # nothing, if it is done

    async def _workers(self) -> dict[str, Worker]:
        """The workers that the scheduler knows; it is waited for if need be."""
        began = time.monotonic()
        while True:
            left = self.patience - (time.monotonic() - began)
            try:
                return await asyncio.wait_for(self._told(), max(left, RETRY))
            except (OSError, TimeoutError, RuntimeError) as error:
                waited = time.monotonic() - began
                if waited > self.patience or self.client.status == "closed":
                    raise Unavailable(
                        f"the Dask scheduler has not answered for {waited:.0f} s "
                        f"({type(error).__name__})",
                        "connect to another",
                    ) from None
            await asyncio.sleep(RETRY)

    async def _told(self) -> dict[str, Worker]:
        """What the scheduler says of the workers; their sizes are asked for once."""
        scheduler = self.client.scheduler
        if scheduler is None:
            raise OSError("not connected")
        threads = await scheduler.ncores()
        if not threads.keys() <= self._seen.keys():
            known = (await self._about(scheduler))["workers"]
            self._seen = {
                w: Worker(about["nthreads"], about["memory_limit"] or math.inf)
                for w, about in known.items()
            }
        return {w: self._seen[w] for w in threads if w in self._seen}

    @staticmethod
    async def _about(scheduler: DaskObject) -> DaskObject:
        """What the scheduler knows of all workers; of the first five only, if it is not told."""
        try:
            return await scheduler.identity(n_workers=-1)
        except TypeError:  # releases that always tell of all
            return await scheduler.identity()

    async def look(self) -> None:
        """Once in a while: are there new workers, and has a part arrived where it was sent?"""
        for k, (worker, future) in list(self._coming.items()):
            if not future.done():
                continue
            del self._coming[k]
            await self._arrived(k, worker, future)
        if time.monotonic() - self._looked < LOOK:
            return
        workers = await self._workers()
        self._looked = time.monotonic()
        for gone in self.placement.workers - set(workers):
            await self.lose(gone, self.placement.parts_of(gone), "the scheduler has lost it")
        self._free_lost(workers)
        self._coming = {k: move for k, move in self._coming.items() if move[0] in workers}
        if not self._coming:
            able = {w: about for w, about in workers.items() if w not in self._unable}
            for k, worker in self.placement.moves(able):
                self._coming[k] = (worker, self._submit(k, worker))

    async def _arrived(self, k: int, worker: str, future: DaskObject) -> None:
        """From now on this worker is asked for the part, if it could make it."""
        try:
            (made,) = await self._task(worker, future)
        except Gone as gone:
            made = gone
        except Unavailable:
            raise
        except Exception as error:
            made = Failed(error)
        if isinstance(made, Failed):
            self._unable.add(worker)  # perhaps it cannot see the files: others can
        if not isinstance(made, Header):
            log.warning("part %d has not moved to %s (%r)", k, worker, made)
            return
        self._check_same(k, made)
        old = self.placement.owner.get(k)
        self.placement.put(k, worker, made.nbytes)
        if old is not None and old != worker:
            self._tidy(old, [k])
        log.info("part %d has moved to %s", k, worker)

    def _free_lost(self, workers: dict[str, Worker]) -> None:
        """A worker that did not answer, and is there after all, need not hold what others do."""
        for worker in self._left & workers.keys():
            coming = [k for k, (where, _) in self._coming.items() if where == worker]
            wanted = {*self.placement.parts_of(worker), *coming}
            self._tidy(worker, [k for k in range(len(self.recipes)) if k not in wanted])
        self._left.clear()

    async def lose(self, worker: str, numbers: Sequence[int], why: str) -> None:
        """Forgets what a worker had: all of it, as who has lost a part has been restarted."""
        self._looked = -math.inf
        for k in set(numbers) | set(self.placement.parts_of(worker)):
            self.placement.owner.pop(k, None)
        self.traffic.lost += 1
        self._suspects.add(worker)
        self._left.add(worker)
        self.client.rpc.remove(worker)
        log.warning("worker %s is lost (%s): its %d parts go elsewhere", worker, why, len(numbers))

    async def load_all(self) -> None:
        """Makes every part, then sees to it that they agree on columns and ids."""
        numbers = range(len(self.recipes))
        await self.place(numbers)
        headers = [self.header(k) for k in numbers]
        flags = {h.zero_based for h in headers} - {None}
        self.zero_based = (True in flags) if flags else None
        # Files without an id 0 were read as if they counted from 1.
        shifted = [k for k in numbers if headers[k].zero_based not in (None, self.zero_based)]
        widths = [h.features + (k in shifted) for k, h in enumerate(headers)]
        self.features = self.features or max(widths)
        _check_alike([(headers[k], self.recipes[k]) for k in self.filled], self.features)
        self.recipes = [r.settled(self.features, self.zero_based) for r in self.recipes]
        for k in shifted:
            self.placement.owner.pop(k)
        await self.place(shifted)
        narrow = [k for k in self.filled if self.header(k).features < self.features]
        for worker, some in self.placement.groups(narrow).items():
            future = self.client.submit(
                widen, self.data, some, self.features, workers=[worker], pure=False
            )
            try:
                await self._task(worker, future)
            except Gone as gone:
                await self.lose(worker, some, str(gone))
        self.headers = [replace(self.header(k), features=self.features) for k in numbers]
        self.settled = True

    async def place(self, numbers: Iterable[int]) -> None:
        """Makes these parts, each on the worker with most room; waits while there is none."""
        missing, began = list(numbers), time.monotonic()
        while missing:
            workers = await self._workers()
            for k, header in await self._tried(missing, workers):
                began = time.monotonic()
                self._check_same(k, header)
                self.headers[k] = header
                missing.remove(k)
            if missing:  # asked after a try: to hear of the workers may have taken long
                self._check_patience(began, workers, missing)
                await asyncio.sleep(RETRY)

    def _check_same(self, k: int, made: Header) -> None:
        """Refuses a part that is not what it was: a run would go on to nowhere."""
        if self.settled and not self.header(k).is_of(made):
            raise ValueError(
                f"{self.recipes[k]} must make the same rows whenever it is asked, as they may be "
                "lost with a worker, got others than at first; seed what is random."
            )

    async def _tried(
        self, missing: list[int], workers: dict[str, Worker]
    ) -> list[tuple[int, Header]]:
        """The parts among these that could be made now."""
        if not workers:
            return []
        # The scheduler may not have heard yet of one that has just gone.
        there = {w: about for w, about in workers.items() if w not in self._suspects}
        homes = self.placement.homes(missing, there or workers, [self._bytes(k) for k in missing])
        self._suspects.clear()
        results = await asyncio.gather(
            *(self._load(k, worker) for k, worker in homes), return_exceptions=True
        )
        made = []
        for (k, worker), result in zip(homes, results, strict=True):
            if isinstance(result, Gone):
                log.warning("part %d could not be made on %s (%s)", k, worker, result)
            elif isinstance(result, BaseException):
                raise result
            else:
                self.placement.put(k, worker, result.nbytes)
                made.append((k, result))
        return made

    def _check_patience(self, began: float, workers: Sized, missing: list[int]) -> None:
        waited = time.monotonic() - began
        if waited > self.patience:
            raise Unavailable(
                f"{len(workers)} workers are there, and {len(missing)} of {len(self.recipes)} "
                f"parts could not be placed for {waited:.0f} s",
                "start workers",
            )

    async def _load(self, k: int, worker: str) -> Header:
        """Makes part k on a worker, by a task of Dask's: delayed blocks are computed on the way."""
        (made,) = await self._task(worker, self._submit(k, worker))
        if isinstance(made, Failed):
            raise made.error
        return made

    async def _task(self, worker: str, future: DaskObject) -> list[Any]:
        """[its result], as long as the worker is there; the future is used up."""
        from distributed.scheduler import KilledWorker, NoValidWorkerError

        # Dask's futures that are cancelled raise the one, what is awaited here the other.
        cancelled = (CancelledError, asyncio.CancelledError)
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(done.set))
        try:
            await self.watched(worker, done.wait())
            # A worker that dies now takes the result along, and no other may make it again. What is
            # gathered may be shared with others: it is not cancelled but ends with the future.
            return await self.watched(worker, asyncio.shield(self.client._gather([future])))
        except (KilledWorker, NoValidWorkerError, *cancelled) as error:
            raise Gone(type(error).__name__) from None
        finally:
            future.release()

    def _submit(self, k: int, worker: str) -> DaskObject:
        from dask import delayed

        self.traffic.loads += 1
        recipe = self.recipes[k]
        task = delayed(shelve, pure=False)(
            self.data, k, self.features, recipe.bare(), *recipe.arguments()
        )
        return self.client.compute(task, workers=[worker], allow_other_workers=False)

    def _tidy(self, worker: str, numbers: list[int]) -> None:
        from distributed import fire_and_forget

        fire_and_forget(self.client.submit(tidy, self.data, numbers, workers=[worker], pure=False))

    @property
    def filled(self) -> list[int]:
        """The parts that have rows: of others there is nothing to ask."""
        return [k for k in range(len(self.recipes)) if self.header(k).rows]

    @property
    def known_headers(self) -> list[Header]:
        """One a part, in their order."""
        return [self.header(k) for k in range(len(self.recipes))]

    def header(self, k: int) -> Header:
        header = self.headers[k]
        assert header is not None
        return header

    def _bytes(self, k: int) -> int:
        header = self.headers[k]
        return 0 if header is None else header.nbytes


def _check_alike(parts: list[tuple[Header, PartRecipe]], n: int) -> None:
    """Refuses parts that do not belong together."""
    if not parts:
        raise ValueError("some part must have a row, got none in any of them.")
    first, its_recipe = parts[0]
    for header, recipe in parts:
        if header.features != n and header.zero_based is None:
            raise ValueError(
                f"all parts must have as many columns, got {header.features} in {recipe}, {n} "
                "elsewhere."
            )
        if header.dtype != first.dtype or header.kind != first.kind:
            raise ValueError(
                f"all parts must be of one kind, got {header.dtype} {header.kind} in {recipe}, "
                f"{first.dtype} {first.kind} in {its_recipe}."
            )
        if header.names != first.names:
            raise ValueError(f"all parts must have the same columns, got others in {recipe}.")
        if (header.weight is None) != (first.weight is None):
            raise ValueError(f"all parts must have weights or none, got both: see {recipe}.")
