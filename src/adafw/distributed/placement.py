"""Which worker holds which part."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

#: Share of a worker's memory that its parts may take: products need some, and Dask spills at 0.6.
ROOM = 0.55
#: How much more than another a worker must hold for a part to move.
UNEVEN = 1.25


@dataclass(frozen=True)
class Worker:
    """Threads, and bytes of memory."""

    threads: int
    memory: float


class Placement:
    """Owners and sizes of parts; all decisions are made here, from plain numbers."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.owner: dict[int, str] = {}
        self.sizes: dict[int, int] = {}

    @property
    def workers(self) -> set[str]:
        """Those that own something."""
        return set(self.owner.values())

    def parts_of(self, worker: str) -> list[int]:
        return sorted(k for k, who in self.owner.items() if who == worker)

    def put(self, k: int, worker: str, size: int) -> None:
        self.owner[k], self.sizes[k] = worker, size

    def groups(self, numbers: Iterable[int]) -> dict[str, list[int]]:
        """{worker: its parts among these}."""
        found: dict[str, list[int]] = {}
        for k in sorted(numbers):
            found.setdefault(self.owner[k], []).append(k)
        return found

    def homes(
        self, missing: Sequence[int], workers: Mapping[str, Worker], sizes: Sequence[int]
    ) -> list[tuple[int, str]]:
        """(part, worker) for parts without an owner; none for those that fit nowhere now.

        At first neighbours stay together; later a part goes where there is least to do.
        """
        names = sorted(workers)
        if not self.owner and not any(sizes):
            return [(k, names[i * len(names) // len(missing)]) for i, k in enumerate(missing)]
        load = self._load(names)
        found = []
        for k, size in sorted(zip(missing, sizes, strict=True), key=lambda part: -part[1]):
            fitting = [w for w in names if load[w] + size <= ROOM * workers[w].memory]
            if not fitting:
                continue
            best = min(fitting, key=lambda w: (load[w] / workers[w].threads, w))
            load[best] += size
            found.append((k, best))
        return found

    def moves(self, workers: Mapping[str, Worker]) -> list[tuple[int, str]]:
        """(part, worker) that would make the loads more even: work for those that came late."""
        names = sorted(workers)
        if len(names) < 2 or any(w not in workers for w in self.workers):
            return []
        load, owner, found = self._load(names), dict(self.owner), []
        for _ in range(self.count):
            busy, idle = max(names, key=load.__getitem__), min(names, key=load.__getitem__)
            gap = load[busy] - load[idle]
            mine = [k for k, who in owner.items() if who == busy and 0 < self.sizes[k] < gap]
            if not mine or load[busy] <= UNEVEN * load[idle]:
                break
            k = min(mine, key=lambda k: abs(self.sizes[k] - gap / 2))
            if load[idle] + self.sizes[k] > ROOM * workers[idle].memory:
                break
            load[busy] -= self.sizes[k]
            load[idle] += self.sizes[k]
            owner[k] = idle
            found.append((k, idle))
        return found

    def _load(self, names: Iterable[str]) -> dict[str, int]:
        load = dict.fromkeys(names, 0)
        for k, who in self.owner.items():
            if who in load:
                load[who] += self.sizes[k]
        return load
