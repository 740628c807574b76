"""The coordinator's side of every operation: one message to each worker, one answer back."""

import asyncio
import logging
import weakref
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, ParamSpec, TypeVar
from uuid import uuid4

import numpy as np
from distributed.protocol import to_serialize
from numpy.typing import DTypeLike, NDArray

from adafw import checks
from adafw.distributed.crew import Crew, Gone, Traffic
from adafw.distributed.parts import Header
from adafw.distributed.placement import Placement
from adafw.distributed.recipes import PartRecipe
from adafw.distributed.shelf import NAME, POINTS, ShelfPlugin
from adafw.distributed.typing import Common, DaskObject, Each, Summed, Told
from adafw.distributed.wire import Failed, Message, Missing, Packed, Reply, pack
from adafw.objectives.base import Unavailable
from adafw.typing import Array

log = logging.getLogger("adafw.distributed")

#: Seconds to wait for workers, or for the scheduler, before a run is given up.
PATIENCE = 60.0


P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Answer:
    """Sums over all parts that were asked, and what each of them said of itself."""

    summed: Summed
    own: dict[int, Told]

    @property
    def total(self) -> NDArray[Any]:
        """The only sum."""
        (one,) = self.summed
        return np.asarray(one)

    def each(self) -> list[Told]:
        """What the parts said, in their order."""
        return [self.own[k] for k in sorted(self.own)]

    def by_rows(
        self, positions: Mapping[int, NDArray[np.integer[Any]]] | None = None, size: int = 0,
        shape: tuple[int, ...] = (), dtype: DTypeLike = float,
    ) -> NDArray[Any]:  # fmt: skip
        """One entry a row: of all rows, or of a batch of that size and where its rows are in it.

        `shape` and `dtype` are those of an entry of an empty batch.
        """
        if positions is None:
            return np.concatenate(self.each())
        first = next(iter(self.own.values()), np.empty((0, *shape), dtype))
        out = np.empty((size, *first.shape[1:]), first.dtype)
        for k, values in self.own.items():
            out[positions[k]] = values
        return out


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
        self, client: DaskObject, recipes: Sequence[PartRecipe], n_features: int | None = None,
        patience: float = PATIENCE,
    ) -> None:  # fmt: skip
        if client.asynchronous:
            raise TypeError("client must be a synchronous Dask client, got an asynchronous one.")
        self.client = client
        self.data = f"adafw-{uuid4().hex}"
        patience = checks.real(patience, "patience", 0)
        self.crew = Crew(client, self.data, recipes, n_features, patience)
        self._points: dict[str, list[tuple[int, Array]]] = {}
        self._versions = count(1)
        self._lock: asyncio.Lock | None = None
        client.register_plugin(ShelfPlugin())
        self._sync(self.crew.load_all)
        weakref.finalize(self, _forget, weakref.ref(client), self.data)

    @property
    def known_headers(self) -> list[Header]:
        """What is known of the parts, in their order."""
        return self.crew.known_headers

    @property
    def placement(self) -> Placement:
        """Who holds what."""
        return self.crew.placement

    @property
    def traffic(self) -> Traffic:
        """What was asked so far."""
        return self.crew.traffic

    def ask(
        self, operation: str, parts: Iterable[int] | None = None, *, x: Array | None = None,
        common: Common | None = None,
        own: Each = lambda k: {},
    ) -> Answer:  # fmt: skip
        """One operation on some parts, or on all: one round trip where nothing is lost."""
        numbers = self.crew.filled if parts is None else list(parts)
        point = None if x is None else np.array(x, copy=True).reshape(-1)  # others keep it
        replies = self._sync(self._ask, operation, numbers, point, common or {}, own)
        return self._joined(replies)

    def _sync(self, call: Callable[P, Awaitable[T]], *arguments: P.args, **named: P.kwargs) -> T:
        async def one_at_a_time() -> T:
            if self._lock is None:
                self._lock = asyncio.Lock()
            async with self._lock:
                return await call(*arguments, **named)

        if self.client.status not in ("running", "connecting"):
            raise Unavailable(f"the Dask client is {self.client.status}", "connect a new one")
        return self.client.sync(one_at_a_time)

    def _joined(self, replies: list[tuple[list[int], Reply]]) -> Answer:
        """Sums in the order of the parts, so that they do not depend on who answered first."""
        replies.sort(key=lambda reply: reply[0][0])
        totals: list[Any] = []
        own: dict[int, Told] = {}
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
        self, operation: str, numbers: list[int], x: Array | None, common: Common,
        own: Each,
    ) -> list[tuple[list[int], Reply]]:  # fmt: skip
        await self.crew.look()
        left, replies = list(numbers), []
        version = next(self._versions)
        while left:
            await self.crew.place([k for k in left if k not in self.crew.placement.owner])
            groups = self.crew.placement.groups(left)
            calls = [
                self._call(worker, operation, some, x, version, common, own)
                for worker, some in groups.items()
            ]
            for (worker, some), reply in zip(
                groups.items(), await asyncio.gather(*calls, return_exceptions=True), strict=True
            ):
                if isinstance(reply, Gone):
                    self._points.pop(worker, None)
                    await self.crew.lose(worker, some, str(reply))
                elif isinstance(reply, BaseException):
                    raise reply
                else:
                    replies.append((some, reply))
                    left = [k for k in left if k not in some]
        self.traffic.trips += 1
        self.traffic.seconds += max((reply.seconds for _, reply in replies), default=0.0)
        self.traffic.rows += sum(
            len(own(k).get("batch", range(self.crew.header(k).rows))) for k in numbers
        )
        return replies

    async def _call(
        self, worker: str, operation: str, numbers: list[int], x: Array | None, version: int,
        common: Common, own: Each,
    ) -> Reply:  # fmt: skip
        """Asks one worker; `Gone` if it cannot answer."""
        details = [own(k) for k in numbers]
        for _ in range(3):
            packed = None if x is None else self._packed(worker, x)
            message = Message(self.data, numbers, operation, common, details, packed, version)
            reply = await self._send(worker, message)
            if isinstance(reply, Missing) and reply.x:
                self._points.pop(worker, None)  # it forgot: the next message has all of x
                continue
            if isinstance(reply, Missing):
                raise Gone("it has lost its rows")
            if isinstance(reply, Failed):
                raise reply.error
            if x is not None:
                known = self._points.setdefault(worker, [])
                known.append((version, x))
                del known[:-POINTS]
            self.traffic.received += reply.nbytes
            return reply
        raise Gone("it forgets what it is told")

    async def _send(self, worker: str, message: Message) -> Reply | Missing | Failed:
        self.traffic.sent += message.nbytes
        remote = getattr(self.client.rpc(worker), NAME)
        answer = await self.crew.watched(worker, remote(message=to_serialize(message)))
        if answer is None:  # Dask's answer of a worker at the old address that has no shelf yet
            raise Gone("it has been restarted")
        return answer["reply"]

    def _packed(self, worker: str, x: Array) -> Packed:
        """x, as a change of the last point that the worker knows where that is shorter."""
        known = self._points.get(worker, [])
        for version, point in reversed(known):
            if np.array_equal(point, x):
                return Packed(x.size, x[:0], np.empty(0, np.uint32), version)
        return pack(x, known[-1] if known else None)


def _unpacked(value: Any) -> Any:
    """A sum as it is added to: an array of its own."""
    if isinstance(value, Packed):
        full = value.unpack()
        return full if full.flags.writeable else full.copy()
    return value


def _forget(client: "weakref.ref[DaskObject]", data: str) -> None:
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


async def _drop(data: str, dask_worker: DaskObject = None) -> None:
    if NAME in dask_worker.extensions:
        dask_worker.extensions[NAME].drop(data)
