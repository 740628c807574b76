"""SVRF, SPIDER-FW and ORGFW for torch: Template 1 with the estimates of Table 1.

Each step evaluates its closure at two points with the same random numbers (transform locking:
the same augmentation and dropout for both gradients of a batch; Defazio and Bottou 2019).
Snapshots are taken by the caller, once per epoch:

    def closure(batch):
        optimizer.zero_grad()
        loss = loss_fn(model(batch[0]), batch[1])
        loss.backward()
        return loss

    for epoch in range(epochs):
        optimizer.snapshot(closure, loader)        # SVRF and SPIDERFW
        for batch in loader:
            optimizer.step(partial(closure, batch))
"""

import random
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, cast

import numpy as np
import torch
from torch import Tensor

from adafw import checks
from adafw.torch import sharded, updates
from adafw.torch.base import ConstrainedOptimizer
from adafw.torch.feasible import name_of
from adafw.torch.groups import Flags, check_gradient, state_dtype
from adafw.torch.optimizers import check_rescale, step_size_of
from adafw.torch.typing import Batch, Closure, Group, Params, State
from adafw.torch.updates import Update

Gradients = dict[Tensor, Tensor | None]
#: States of torch's generators (host, devices), of Python's and of numpy's.
Generators = tuple[Tensor, list[Tensor] | None, tuple[Any, ...], Any]


class RecursiveOptimizer(ConstrainedOptimizer):
    """Template 1 on an estimate made of gradients at the current and at an older point.

    The state holds the older point as "anchor" and a gradient as "estimate". A subclass says how
    the two gradients of a batch become the next estimate. Layers that keep statistics of their
    batches (BatchNorm) see each batch twice; freeze them.
    """

    buffers = ("anchor", "estimate")
    update = Update(updates.plain_gradient, updates.frank_wolfe)
    kernel = "sfw"
    #: Whether an exact gradient must be taken before the first step.
    snapshots: ClassVar[bool]
    #: Whether the anchor follows every step; else it stays at the snapshot.
    follows: ClassVar[bool]
    #: Options beside lr, rescale and those that all optimizers have.
    own: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        params: Params,
        lr: float,
        rescale: str | None = None,
        *,
        weight_decay: float = 0.0,
        **options: Any,
    ) -> None:
        own = {name: options.pop(name) for name in self.own if name in options}
        fused = options.pop("fused", None)
        defaults = {"lr": lr, "rescale": rescale, **own}
        super().__init__(params, defaults, weight_decay, fused, cast(Flags, options))

    def check_options(self, group: Group) -> None:
        super().check_options(group)
        check_rescale(group)
        for i, p in enumerate(group["params"]):
            sharded.refuse(p, type(self).__name__, name_of(group, i))

    def check_lr(self, group: Group) -> float:
        return step_size_of(group)

    def combine(self, here: Tensor, there: Tensor, state: State, group: Group) -> Tensor:
        """The estimate, from the batch's gradients at x and at the anchor."""
        raise NotImplementedError

    def step(self, closure: Closure | None = None) -> Any:
        """Evaluates the closure (zero_grad, loss, backward) at both points, and moves."""
        for group in self.param_groups:
            self.check_lr(group)
        still = all(float(group["lr"]) == 0 for group in self.param_groups)
        if closure is None:
            if still:  # how torch's distributed checkpoints have the state made
                return super().step()
            raise TypeError(
                f"{type(self).__name__} needs the gradient at two points: call step(closure), "
                "where closure() zeroes the gradients, computes the loss and calls backward()."
            )
        if still:
            with torch.enable_grad():
                return closure()
        there, state = self._gradients_at_anchor(closure)
        if state is not None:
            _set_random_state(state)
        with torch.enable_grad():
            loss = closure()
        for p, group, i in self._named():
            if p.grad is not None:
                check_gradient(p.grad, group, i)
        self._step({p: self._estimate(p, group, i, there) for p, group, i in self._named()})
        return loss

    def _named(self) -> Iterable[tuple[Tensor, Group, int]]:
        for group in self.param_groups:
            for i, p in enumerate(group["params"]):
                yield p, group, i

    def _gradients_at_anchor(self, closure: Closure) -> tuple[Gradients, Generators | None]:
        """The closure's gradients at the anchor, and the random state it began with."""
        moved = [p for p, _, _ in self._named() if self.state.get(p, {}).get("begun")]
        if not moved:
            return {}, None
        state = _random_state()
        kept = [p.detach().clone() for p in moved]
        try:
            with torch.no_grad():
                for p in moved:
                    p.copy_(self.state[p]["anchor"])
            with torch.enable_grad():
                closure()
            gradients = {p: None if p.grad is None else p.grad.detach().clone() for p in moved}
        finally:
            with torch.no_grad():
                for p, x in zip(moved, kept, strict=True):
                    p.copy_(x)
        return gradients, state

    @torch.no_grad()
    def _estimate(self, p: Tensor, group: Group, i: int, there: Gradients) -> Tensor | None:
        here = p.grad
        if here is None or p.numel() == 0 or float(group["lr"]) == 0:
            return None
        if not self.state[p]:
            self._prepare(p, group, i)
        state, here = self.state[p], here.to(state_dtype(p))
        if self.snapshots and not state.get("begun"):
            raise RuntimeError(
                f"{type(self).__name__} has no exact gradient for {name_of(group, i)}: call "
                "snapshot(closure, loader) at the beginning of each epoch."
            )
        old = there.get(p)
        there_p = torch.zeros_like(here) if old is None else old.to(here.dtype)
        estimate = self.combine(here, there_p, state, group)
        if self.follows:
            self._remember(p, estimate)
        return estimate

    def snapshot(self, closure: Callable[[Batch], Any], batches: Iterable[Batch]) -> float:
        """Takes the exact gradient at the current point, and makes that point the anchor.

        `closure(batch)` as for `step`, the loss being the mean over the batch; `batches` go once
        through the data. Batches are weighted by their size. Returns the mean loss.
        """
        if not self.snapshots:
            raise TypeError(f"{type(self).__name__} takes no snapshots; only call step(closure).")
        total: dict[Tensor, Tensor] = {}
        loss, count = 0.0, 0
        for batch in batches:
            size = batch_size(batch)
            with torch.enable_grad():
                value = closure(batch)
            value = value.item() if isinstance(value, Tensor) else float(value)
            loss, count = loss + size * value, count + size
            with torch.no_grad():
                for p, group, i in self._named():
                    if p.grad is not None:
                        check_gradient(p.grad, group, i)
                        sums = total.setdefault(p, torch.zeros_like(p, dtype=state_dtype(p)))
                        sums.add_(p.grad, alpha=size)
        if count == 0:
            raise ValueError("batches must go through the data once, got none.")
        self._keep({p: sums / count for p, sums in total.items()})
        return loss / count

    @torch.no_grad()
    def _keep(self, gradients: dict[Tensor, Tensor]) -> None:
        for p, group, i in self._named():
            if p.requires_grad and p.numel() > 0:
                if not self.state[p]:
                    self._prepare(p, group, i)
                nothing = torch.zeros_like(self.state[p]["estimate"])
                self._remember(p, gradients.get(p, nothing))

    def _remember(self, p: Tensor, estimate: Tensor) -> None:
        """Makes the current point the anchor."""
        state = self.state[p]
        state["begun"] = True
        state["anchor"].copy_(p)
        state["estimate"].copy_(estimate)


class SVRF(RecursiveOptimizer):
    """g = grad f(z) + grad_B(x) - grad_B(z), z the last snapshot (Hazan and Luo 2016).

    `lr` (gamma) and `rescale` as in `SFW`. Call `snapshot` at the beginning of each epoch.
    """

    snapshots, follows = True, False

    def combine(self, here: Tensor, there: Tensor, state: State, group: Group) -> Tensor:
        return state["estimate"] + (here - there)


class SPIDERFW(RecursiveOptimizer):
    """g_t = g_{t-1} + grad_B(x_t) - grad_B(x_{t-1}), exact at snapshots (Yurtsever et al. 2019).

    `lr` (gamma) and `rescale` as in `SFW`. Call `snapshot` at the beginning of each epoch.
    """

    snapshots, follows = True, True

    def combine(self, here: Tensor, there: Tensor, state: State, group: Group) -> Tensor:
        return state["estimate"] + (here - there)


class ORGFW(RecursiveOptimizer):
    """g_t = grad_B(x_t) + (1 - rho_t) (g_{t-1} - grad_B(x_{t-1})) (Xie et al. 2020).

    `lr` (gamma) and `rescale` as in `SFW`; `forgetting` (rho_t): (t + 1)^(-2/3) if None, else a
    number in [0, 1], which may be changed in the parameter group. Needs no snapshots.
    """

    snapshots, follows = False, True
    own = ("forgetting",)

    def __init__(
        self,
        params: Params,
        lr: float,
        rescale: str | None = None,
        forgetting: float | None = None,
        *,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, lr, rescale, weight_decay=weight_decay, forgetting=forgetting)

    def check_options(self, group: Group) -> None:
        super().check_options(group)
        if group["forgetting"] is not None:
            checks.real(group["forgetting"], "forgetting", 0, 1)

    def combine(self, here: Tensor, there: Tensor, state: State, group: Group) -> Tensor:
        if not state.get("begun"):
            return here
        rho = group["forgetting"]
        rho = (state["step"] + 1) ** (-2 / 3) if rho is None else rho
        return here + (1 - rho) * (state["estimate"] - there)


def batch_size(batch: Batch) -> int:
    """The length of the last tensor of a batch (its targets)."""
    if isinstance(batch, Tensor):
        return len(batch)
    parts = list(batch.values()) if isinstance(batch, dict) else list(batch)
    return batch_size(parts[-1])


def _random_state() -> Generators:
    """The state of every generator a closure may draw from."""
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None  # type: ignore[no-untyped-call]
    return torch.get_rng_state(), devices, random.getstate(), np.random.get_state()  # noqa: NPY002


def _set_random_state(state: Generators) -> None:
    torch.set_rng_state(state[0])
    if state[1] is not None:
        torch.cuda.set_rng_state_all(state[1])
    random.setstate(state[2])
    np.random.set_state(state[3])  # noqa: NPY002
