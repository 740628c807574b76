"""Steps on sharded parameters whose set needs the whole tensor: one rank owns it and computes.

Every rank sends its parts of a tensor to the tensor's owner, which computes as a single process
would and sends the parts of the result back: two exchanges for all tensors of a step together, in
the dtype of the computation, so that nothing is rounded on the way. The owners' work is balanced.
"""

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from adafw.torch.sharded import Shard
from adafw.torch.typing import Processes

#: Whole tensors to (a whole tensor, a number).
Act = Callable[..., tuple[Tensor, float | Tensor]]


@dataclass
class Job:
    """`act` on the whole of the tensors whose parts are given; `put` takes this rank's share."""

    shard: Shard
    parts: list[Tensor]
    act: Act
    put: Callable[[Tensor, Tensor], object]

    def __post_init__(self) -> None:
        # They may lie in memory that the next tensor's update uses.
        self.parts = [part.clone() for part in self.parts]

    @property
    def cost(self) -> int:
        """The work of a product with the matrix, to balance owners by."""
        rows = self.shard.shape[0] if self.shard.shape else 1
        size = math.prod(self.shard.shape)
        return size * max(1, min(rows, size // max(1, rows)))

    def shapes(self, world: int) -> list[tuple[int, ...]]:
        """The shape of each rank's part, as torch.chunk cuts."""
        shape, dim = self.shard.shape, self.shard.dim
        chunk = -(-shape[dim] // world)
        ends = [min(rank * chunk, shape[dim]) for rank in range(world + 1)]
        return [(*shape[:dim], ends[r + 1] - ends[r], *shape[dim + 1 :]) for r in range(world)]


def run(jobs: list[Job]) -> None:
    """All jobs: an exchange to the owners and one back, for each process group and dtype."""
    by_group: dict[Processes, list[Job]] = defaultdict(list)
    for job in jobs:
        if job.shard.group is None:
            whole, number = _guarded(job.act, job.parts)
            job.put(whole, torch.as_tensor(number))
        else:
            by_group[job.shard.group, job.parts[0].dtype].append(job)
    for (group, _), members in by_group.items():
        _exchange(members, group)


def _exchange(jobs: list[Job], group: Processes) -> None:
    import torch.distributed as dist

    world, rank = dist.get_world_size(group), dist.get_rank(group)
    owners, shapes = _owners(jobs, world), [job.shapes(world) for job in jobs]
    mine = [i for i, owner in enumerate(owners) if owner == rank]

    def sent(i: int, to: int) -> int:
        return len(jobs[i].parts) * math.prod(shapes[i][to])

    # To the owners: my parts, and everybody's parts of the tensors I own.
    out = [part.reshape(-1) for owner in range(world) for i in range(len(jobs))
           if owners[i] == owner for part in jobs[i].parts]  # fmt: skip
    give = [sum(sent(i, rank) for i in range(len(jobs)) if owners[i] == owner)
            for owner in range(world)]  # fmt: skip
    take = [sum(sent(i, source) for i in mine) for source in range(world)]
    received = _all_to_all(out, give, take, jobs[0].parts[0], group)

    pieces: dict[int, list[list[Tensor]]] = {i: [[] for _ in jobs[i].parts] for i in mine}
    for source, block in enumerate(received):
        at = 0
        for i in mine:
            size = math.prod(shapes[i][source])
            for found in pieces[i]:
                found.append(block[at : at + size].view(shapes[i][source]))
                at += size
    results = {
        i: _guarded(jobs[i].act, [torch.cat(found, jobs[i].shard.dim) for found in pieces[i]])
        for i in mine
    }

    # Back: each rank's part of what I computed, and the number beside it.
    out = []
    for to in range(world):
        for i in mine:
            (whole, number), dim = results[i], jobs[i].shard.dim
            start = sum(shapes[i][r][dim] for r in range(to))
            out.append(whole.narrow(dim, start, shapes[i][to][dim]).reshape(-1))
            out.append(torch.as_tensor(number).to(whole).reshape(1))
    give = [sum(math.prod(shapes[i][to]) + 1 for i in mine) for to in range(world)]
    take = [sum(math.prod(shapes[i][rank]) + 1 for i in range(len(jobs)) if owners[i] == owner)
            for owner in range(world)]  # fmt: skip
    received = _all_to_all(out, give, take, jobs[0].parts[0], group)
    for owner, block in enumerate(received):
        at = 0
        for i in range(len(jobs)):
            if owners[i] == owner:
                size = math.prod(shapes[i][rank])
                jobs[i].put(block[at : at + size].view(shapes[i][rank]), block[at + size])
                at += size + 1


def _owners(jobs: list[Job], world: int) -> list[int]:
    """An owner for each job, the dearest first, each to who has least to do."""
    load, owners = [0] * world, [0] * len(jobs)
    for i in sorted(range(len(jobs)), key=lambda i: -jobs[i].cost):
        owners[i] = load.index(min(load))
        load[owners[i]] += jobs[i].cost
    return owners


def _all_to_all(
    out: list[Tensor], give: list[int], take: list[int], like: Tensor, group: Processes
) -> list[Tensor]:
    """One vector from each rank, of the sizes `take`; `out` holds mine one after the other."""
    import torch.distributed as dist

    source = torch.cat(out) if out else like.new_empty(0)
    target = like.new_empty(sum(take))
    dist.all_to_all_single(target, source, take, give, group=group)
    return list(torch.split(target, take))


def _guarded(act: Act, wholes: list[Tensor]) -> tuple[Tensor, float | Tensor]:
    """act, or NaN where a tensor is not finite: an error on one rank would let the others wait."""
    if all(bool(torch.isfinite(whole).all()) for whole in wholes):
        return act(*wholes)
    return torch.full_like(wholes[0], torch.nan), torch.nan
