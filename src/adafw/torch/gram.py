"""Spectral steps on matrices cut by rows that far outnumber their columns: no row is sent.

With A = G^T G, the polar factor that `polar.feasible` finds is G Q(A) with a small square matrix Q.
So the ranks add up their shares of A (columns x columns), each makes Q for itself and multiplies
its own rows: one sum and one maximum for all matrices of a step, in place of all rows sent to an
owner and back. A and Q are made in float64, as A squares the singular values: those above 1e-8 of
the largest keep their digits.
"""

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeGuard

import torch
from torch import Tensor

from adafw.constraints import Constraint
from adafw.torch import polar
from adafw.torch.matrices import NewtonSchulzBall
from adafw.torch.sharded import Shard
from adafw.torch.typing import Processes


def fits(ball: Constraint | None, shard: Shard) -> TypeGuard[NewtonSchulzBall]:
    """Whether a step over this set, on a tensor cut like this, is of that kind."""
    if type(ball) is not NewtonSchulzBall or ball.split != 1 or shard.group is None:
        return False
    rows, columns = shard.shape[0], math.prod(shard.shape[1:])
    return shard.dim == 0 and rows >= columns and polar.is_far((rows, columns))


@dataclass
class Job:
    """`put(v, any)` takes this rank's rows of the minimiser v of <d, .>, and whether d is not 0."""

    shard: Shard
    d: Tensor
    ball: NewtonSchulzBall
    put: Callable[[Tensor, Tensor], object]

    def __post_init__(self) -> None:
        self.shape, self.dtype = self.d.shape, self.d.dtype
        columns = math.prod(self.shard.shape[1:])
        # A copy: d may lie in memory that the next tensor's update uses.
        self.d = self.d.to(torch.float64, copy=True).reshape(self.shape[0], columns)

    def share(self) -> tuple[Tensor, Tensor]:
        """This rank's share of (A, the columns' sums), and its largest sum of a row."""
        size = self.d.abs()
        sums = torch.cat([(self.d.mT @ self.d).reshape(-1), size.sum(0)])
        rows = size.sum(1)
        return sums, rows.amax().reshape(1) if rows.numel() else rows.new_zeros(1)

    def finish(self, sums: Tensor, row: Tensor) -> None:
        """The rows of v, from the sums and the maximum over all ranks."""
        n = self.d.shape[1]
        a, columns = sums[: n * n].view(n, n), sums[n * n :]
        q = polar.gram_factor(a, columns.amax() * row.squeeze(), self.ball.iterations)
        v = (self.d @ q).mul_(-self.ball.radius)
        self.put(v.to(self.dtype).view(self.shape), a.trace() > 0)


def run(jobs: list[Job]) -> None:
    """All jobs: a sum and a maximum over the ranks of each process group."""
    by_group: dict[Processes, list[Job]] = defaultdict(list)
    for job in jobs:
        by_group[job.shard.group].append(job)
    for group, members in by_group.items():
        import torch.distributed as dist

        shares = [job.share() for job in members]
        sums = torch.cat([part for part, _ in shares])
        rows = torch.cat([row for _, row in shares])
        dist.all_reduce(sums, group=group)
        dist.all_reduce(rows, dist.ReduceOp.MAX, group=group)
        lengths = [part.numel() for part, _ in shares]
        for job, own, row in zip(members, torch.split(sums, lengths), rows, strict=True):
            job.finish(own, row)
