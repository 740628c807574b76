"""What happens in each layer while training: gap, alignment, norms and step sizes."""

import math
import os
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from adafw import checks
from adafw.constraints import Constraint, Simplex, UnitSimplex
from adafw.torch import matrices, sharded, updates
from adafw.torch.base import ConstrainedOptimizer
from adafw.torch.description import columns
from adafw.torch.feasible import name_of, plain_name
from adafw.torch.groups import state_dtype
from adafw.torch.typing import Group

_TINY = 1e-12


class Writer(Protocol):
    """As torch's SummaryWriter."""

    def add_scalar(self, tag: str, value: float, step: int) -> object:
        """Keeps one number."""


class Row(NamedTuple):
    """One parameter at one step; nan where a number has no meaning for its set."""

    step: int
    name: str
    gap: float
    kappa: float
    norm: float
    gamma: float
    clipped: float


class Monitor:
    """Looks at every parameter with a set, at every `every`-th step of an optimizer.

    gap : <d, x - v>, d the direction that the step minimises over the set (momentum and all), v
        its vertex: an estimate from one batch; `adafw.torch.gap` is the exact one.
    kappa : <d, v> / min <d, .>, what the set's LMO attains: 1 where it is exact.
    norm : norm of the weights / radius; above 1 they are outside.
    gamma : the size of the step, of the first inner one where there are several.
    clipped : the share of the looks at which gamma was cut to its bound.

    `writer`: a folder for TensorBoard, a SummaryWriter, or None. `rows` holds all looks, `table()`
    shows the last. Costs about two steps of the largest decompositions per look (the norms of
    matrices), nothing between looks; changes no bit of the training.
    """

    def __init__(
        self,
        optimizer: ConstrainedOptimizer,
        every: int = 100,
        writer: str | os.PathLike[str] | Writer | None = None,
    ) -> None:
        if not isinstance(optimizer, ConstrainedOptimizer):
            raise TypeError(
                f"optimizer must be one of adafw.torch, got {type(optimizer).__name__}."
            )
        for group in optimizer.param_groups:
            for i, p in enumerate(group["params"]):
                sharded.refuse(p, "Monitor", name_of(group, i))
        self.optimizer, self.every = optimizer, checks.integer(every, "every", 1)
        self.writer: Writer | None = _writer(writer)
        self.rows: list[Row] = []
        self.step = 0
        self._seen: dict[str, list[bool]] = {}
        self._hook = optimizer.register_step_pre_hook(self._before)

    def remove(self) -> None:
        """Ends the looking."""
        self._hook.remove()

    def table(self) -> str:
        """The last look, a line for each parameter."""
        rows: list[tuple[str, ...]] = [Row._fields]
        last = self.rows[-1].step if self.rows else None
        rows += [tuple(_cell(value) for value in row) for row in self.rows if row.step == last]
        return columns(rows)

    @torch.no_grad()
    def _before(self, *_: object) -> None:
        if self.step % self.every == 0:
            for row in self._look():
                self.rows.append(row)
                for key in ("gap", "kappa", "norm", "gamma", "clipped"):
                    value = getattr(row, key)
                    if self.writer is not None and not math.isnan(value):
                        self.writer.add_scalar(f"{row.name}/{key}", value, row.step)
        self.step += 1

    def _look(self) -> Iterator[Row]:
        for group in self.optimizer.param_groups:
            for i, p in enumerate(group["params"]):
                held = self.optimizer.set_of(group, p)
                if held is not None and p.grad is not None and p.numel() > 0:
                    name = plain_name(group, i)
                    yield self._row(name, p, held, {**group, "constraint": held})

    def _row(self, name: str, p: Tensor, held: Constraint, options: Group) -> Row:
        x = p.detach().to(state_dtype(p))
        m, h = self._direction(p, options)
        v = matrices.lmo(held, m)
        d = (x - v).double()
        slope = float((m.double() * d).sum())
        gamma, bound = self._step_size(options, m, x - v, h)
        cut = gamma >= bound and bound > 0
        seen = self._seen.setdefault(name, [])
        seen.append(cut)
        share = math.nan if gamma != gamma else sum(seen) / len(seen)
        attained = -float((m.double() * v.double()).sum())
        best = matrices.gap(held, torch.zeros_like(x, dtype=torch.float64), m.double())
        kappa = attained / best if best > 0 else math.nan
        return Row(self.step, name, slope, kappa, gauge(held, x), gamma, share)

    def _direction(self, p: Tensor, options: Group) -> tuple[Tensor, Tensor | None]:
        """(m, h) of the coming step, made from a copy of the state."""
        assert p.grad is not None
        g = (-p.grad if options["maximize"] else p.grad).to(state_dtype(p))
        state = {key: value.clone() if isinstance(value, Tensor) else value
                 for key, value in self.optimizer.state.get(p, {}).items()}  # fmt: skip
        for buffer in self.optimizer.buffers_of(options):
            state.setdefault(buffer, torch.zeros_like(g))
        state.setdefault("step", 0)
        m, h = self.optimizer.metric_of(g, state, options)
        return m.clone(), None if h is None else h.clone()

    def _step_size(
        self, options: Group, m: Tensor, d: Tensor, h: Tensor | None
    ) -> tuple[float, float]:
        """gamma, and the bound it was cut to (0 where there is none)."""
        if h is not None and "inner_steps" in options:
            slope, curvature = float((m * d).sum()), float((d * h * d).sum())
            bound = float(options["max_step"])
            return updates.short_step(slope, curvature, float(options["lr"]), bound), bound
        if options.get("rescale") in ("gradient", "short"):
            numbers = {**options, "lr": float(options["lr"])}
            return float(updates.step_size(m, d, options["constraint"], numbers)), 1.0
        gamma = self.optimizer.gamma_of(options)
        return (math.nan if gamma is None else gamma), 0.0


def gauge(held: Constraint, x: Tensor) -> float:
    """Norm of x / radius, for balls; nan for other sets.

    How far x is outside a ball of a tiny radius is its norm but for that radius.
    """
    if not held.radial or isinstance(held, Simplex | UnitSimplex):
        return math.nan
    tiny = matrices.with_radius(held, _TINY * held.scale)
    return _TINY * (1 + tiny.violation(matrices.as_points(held, x.double())))


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.4g}"
    return str(value)


def _writer(writer: str | os.PathLike[str] | Writer | None) -> Writer | None:
    if isinstance(writer, str | os.PathLike):
        from torch.utils.tensorboard import SummaryWriter

        return SummaryWriter(os.fspath(writer))
    return writer
