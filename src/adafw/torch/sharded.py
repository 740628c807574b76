"""Frank-Wolfe steps on sharded parameters (FSDP2's DTensors), for sets that need sums only.

For all others see `owners`.

Every rank works on its shard. What the ranks must know of each other (the sums of a step size,
the best coordinate of an LMO) is put into one vector for all tensors and gathered once per inner
step; it stays on the device, in float64.
"""

import sys
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import torch
from torch import Tensor
from torch.nn import Parameter

from adafw.constraints import (
    Box,
    Constraint,
    L1Ball,
    L2Ball,
    LInfBall,
    Simplex,
    UnitSimplex,
)
from adafw.torch.typing import Options, Processes
from adafw.torch.updates import short_step

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor

#: Sets whose step is a matter of sums and of one best coordinate, hence exact on shards.
EXACT = (LInfBall, L1Ball, L2Ball, Simplex, UnitSimplex, Box)
#: Sets whose projection is entrywise.
ENTRYWISE = (LInfBall, Box)


def is_sharded(x: Tensor) -> "TypeGuard[DTensor]":
    """Whether x is a DTensor; if that module was never imported, nothing is."""
    if type(x) in (Tensor, Parameter):  # the common case, asked for at every step
        return False
    module = sys.modules.get("torch.distributed.tensor")
    kind = getattr(module, "DTensor", None)
    return kind is not None and isinstance(x, kind)


def full(x: Tensor) -> Tensor:
    """The whole tensor, gathered from all ranks if it is sharded."""
    return x.full_tensor() if is_sharded(x) else x


def refuse(x: Tensor, what: str, name: str) -> None:
    """Refuses a sharded tensor."""
    if is_sharded(x):
        raise TypeError(f"{what} works on whole tensors, but {name} is sharded; call it before.")


def aligned(g: "DTensor", p: "DTensor") -> Tensor:
    """A gradient cut as its parameter is; sums that are still to be made are made."""
    return g if g.placements == p.placements else g.redistribute(p.device_mesh, p.placements)


def check_placements(p: Tensor) -> None:
    """Refuses a parameter that is cut in an unknown way."""
    if is_sharded(p):
        Shard.of(p)


@dataclass(frozen=True)
class Shard:
    """Where the local part of a DTensor lies: `start` in dimension `dim` of `shape`."""

    shape: tuple[int, ...]
    dim: int
    start: int
    group: Processes  # the process group that holds the other parts, None if there are none
    rank: int

    @classmethod
    def of(cls, p: "DTensor") -> "Shard":
        """The shard of this rank. One mesh dimension may shard; others must replicate."""
        shape, mesh = tuple(p.shape), p.device_mesh
        cut = [i for i, placement in enumerate(p.placements) if not placement.is_replicate()]
        if not cut:
            return cls(shape, 0, 0, None, 0)
        kind = sys.modules["torch.distributed.tensor"].Shard
        if len(cut) > 1 or type(p.placements[cut[0]]) is not kind:
            raise TypeError(
                "a parameter must be sharded over one mesh dimension and replicated over the "
                f"others, got placements {p.placements}."
            )
        dim, rank = cast(Any, p.placements[cut[0]]).dim, mesh.get_local_rank(cut[0])
        chunk = -(-shape[dim] // mesh.size(cut[0]))  # as torch.chunk cuts
        start = min(rank * chunk, shape[dim])
        return cls(shape, dim, start, mesh.get_group(cut[0]), rank)

    def part(self, value: Tensor, like: Tensor) -> Tensor:
        """The part of a whole array (or number) that belongs to this shard."""
        whole = value.broadcast_to(self.shape) if value.dim() else value.broadcast_to(like.shape)
        return whole.narrow(self.dim, self.start, like.shape[self.dim]) if value.dim() else whole

    def global_index(self, i: Tensor, local_shape: torch.Size) -> Tensor:
        """The flat index in the whole tensor of the flat index i in this part."""
        inner = 1
        for n in self.shape[self.dim + 1 :]:
            inner *= n
        length = local_shape[self.dim]
        outer, rest = i // (length * inner), i % (length * inner)
        return (outer * self.shape[self.dim] + self.start) * inner + rest


class Job:
    """One parameter on its way through the inner steps: x, the gradient of Q, and the metric."""

    def __init__(
        self, shard: Shard, x: Tensor, m: Tensor, h: Tensor | None,
        constraint: Constraint, options: Options,
    ) -> None:  # fmt: skip
        self.shard, self.x, self.constraint, self.options = shard, x, constraint, options
        self.grad = m.clone()
        self.h = None if h is None else h.clone()  # it lies in memory that the next tensor reuses
        self.inner_steps = 1 if h is None else int(options["inner_steps"])

    def report(self) -> Tensor:
        """What the other ranks must know of this part, as one vector of float64."""
        g, y = self.grad.double().reshape(-1), self.x.double().reshape(-1)
        h = torch.ones_like(y) if self.h is None else self.h.double().reshape(-1)
        if isinstance(self.constraint, ENTRYWISE):
            d = (self.x - self._entrywise()).double().reshape(-1)
            sums = [g @ g, g @ d, d @ (h * d)]
        elif isinstance(self.constraint, L2Ball):
            sums = [g @ g, g @ y, y @ (h * y), y @ (h * g), g @ (h * g)]
        else:
            return torch.stack([g @ g, g @ y, y @ (h * y), *self._best(g, y, h)])
        return torch.stack(sums)

    def _entrywise(self) -> Tensor:
        if isinstance(self.constraint, LInfBall):
            return self.grad.sign() * -self.constraint.radius
        lower, upper = bounds(cast(Box, self.constraint), self.shard, self.x)
        middle = lower + (upper - lower) / 2
        return torch.where(self.grad > 0, lower, torch.where(self.grad < 0, upper, middle))

    def _best(self, g: Tensor, y: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        """(score, index, g_i, y_i, h_i) at the coordinate i that this part would choose."""
        if g.numel() == 0:  # an empty part chooses nothing
            nothing = g.new_zeros(())
            return nothing - torch.inf, nothing + torch.inf, nothing, nothing, nothing
        score = g.abs() if isinstance(self.constraint, L1Ball) else -g
        i = score.argmax()
        index = self.shard.global_index(i, self.x.shape).double()
        return score.take(i), index, g.take(i), y.take(i), h.take(i)

    def move(self, reports: Tensor) -> None:
        """One inner step, from the reports of all ranks (one row each)."""
        squares, slope, curvature, d = self._direction(reports)
        gamma = self._step_size(squares, slope, curvature).to(self.x.dtype)
        if self.h is not None:
            self.grad.addcmul_(self.h * d, gamma / self.options["lr"], value=-1)
        self.x.addcmul_(d, gamma, value=-1)

    def _step_size(self, squares: Tensor, slope: Tensor, curvature: Tensor) -> Tensor:
        lr = self.options["lr"]
        if self.h is not None:
            return short_step(slope, curvature, lr, self.options["max_step"])
        if self.options["rescale"] == "gradient":
            gamma = lr * (squares / curvature).sqrt()
            gamma = gamma.nan_to_num(0.0, posinf=1.0).clamp(max=1.0)
        elif self.options["rescale"] == "short":
            gamma = (lr * slope / curvature).nan_to_num(0.0, posinf=1.0).clamp(0.0, 1.0)
        elif self.options["rescale"] == "diameter":
            diameter = self.constraint.diameter(self.shard.shape)
            gamma = torch.full_like(squares, min(1.0, lr / diameter) if diameter > 0 else 1.0)
        else:
            gamma = torch.full_like(squares, lr)
        return gamma * (squares > 0)

    def _direction(self, reports: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """(||g||^2, <g, d>, <d, h d>, d on this shard), d = y - v."""
        total = reports.sum(0)
        if isinstance(self.constraint, ENTRYWISE):
            return total[0], total[1], total[2], self.x - self._entrywise()
        if isinstance(self.constraint, L2Ball):
            length = total[0].sqrt()
            scale = self.constraint.radius / torch.where(length > 0, length, 1.0)  # v = -scale g
            curvature = total[2] + 2 * scale * total[3] + scale**2 * total[4]
            d = self.x + self.grad * scale.to(self.x.dtype)
            return total[0], total[1] + scale * total[0], curvature, d
        return self._vertex(reports, total)

    def _vertex(self, reports: Tensor, total: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        score, index = reports[:, 3], reports[:, 4]
        tied = torch.where(score == score.max(), index, torch.inf)  # the lowest index wins
        winner = tied.argmin()
        g, y, h = reports[:, 5:].index_select(0, winner.reshape(1))[0]
        radius = self.constraint.scale
        if isinstance(self.constraint, L1Ball):
            v = -radius * g.sign()
        elif isinstance(self.constraint, UnitSimplex):
            v = radius * (g < 0).to(g.dtype)  # a bool times a number would be float32
        else:
            v = torch.full_like(g, radius)
        d = self.x.clone().reshape(-1)
        if d.numel() > 0:
            own = self.grad.reshape(-1)
            i = (own.abs() if isinstance(self.constraint, L1Ball) else -own).argmax()
            mine = (v * (winner == self.shard.rank)).to(d.dtype)
            d.scatter_add_(0, i.reshape(1), -mine.reshape(1))
        curvature = total[2] + h * v * (v - 2 * y)  # h (y - v)^2 in place of h y^2
        return total[0], total[1] - g * v, curvature, d.reshape(self.x.shape)


def bounds(box: Box, shard: Shard, like: Tensor) -> tuple[Tensor, Tensor]:
    """The bounds of a Box on this part."""
    return shard.part(box.lower.like(like), like), shard.part(box.upper.like(like), like)


def clip(x: Tensor, constraint: Constraint, shard: Shard) -> None:
    """Projects this part of a point onto an entrywise set, in place."""
    if isinstance(constraint, LInfBall):
        x.clamp_(-constraint.radius, constraint.radius)
    else:
        x.clamp_(*bounds(cast(Box, constraint), shard, x))


def local(x: Tensor) -> Tensor:
    """The part of x that lies on this rank (x itself if it is whole)."""
    return x.to_local() if is_sharded(x) else x


def assign(p: Tensor, value: Tensor) -> None:
    """p <- value, of which every rank has the whole."""
    part = local(p)
    if is_sharded(p) and part.numel() > 0:
        value = Shard.of(p).part(value, part)
    if part.numel() > 0:
        part.copy_(value)


def run(jobs: list[Job]) -> None:
    """All inner steps of all jobs, side by side: one gather per inner step and process group."""
    for k in range(max((job.inner_steps for job in jobs), default=0)):
        by_group: dict[Processes, list[Job]] = defaultdict(list)
        for job in jobs:
            if k < job.inner_steps:
                by_group[job.shard.group].append(job)
        for group, members in by_group.items():
            parts = [job.report() for job in members]
            reports = _gather(torch.cat(parts), group)
            columns = torch.split(reports, [part.numel() for part in parts], 1)
            for job, own in zip(members, columns, strict=True):
                job.move(own)


def _gather(vector: Tensor, group: Processes) -> Tensor:
    """The vectors of all ranks of the group as rows."""
    if group is None:
        return vector[None]
    import torch.distributed as dist

    rows = [torch.empty_like(vector) for _ in range(dist.get_world_size(group))]
    dist.all_gather(rows, vector, group=group)
    return torch.stack(rows)
