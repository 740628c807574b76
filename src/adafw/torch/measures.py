"""What can be measured of a model: the exact Frank-Wolfe gap, loss and accuracy."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

from adafw.torch import matrices, sharded
from adafw.torch.base import ConstrainedOptimizer
from adafw.torch.feasible import name_of
from adafw.torch.typing import Batch, LossFunction, Options


def gap(
    model: nn.Module,
    loss_fn: LossFunction,
    loader: Iterable[Batch],
    groups: Iterable[Options] | ConstrainedOptimizer,
) -> float:
    """The Frank-Wolfe gap sum_p <g_p, x_p - lmo_p(g_p)>, g the exact gradient over the loader.

    Parameters
    ----------
    model : evaluated in eval mode, so that the loss is a function of the weights alone; modes and
        gradients are left as they were.
    loss_fn : loss_fn(model(*inputs), target), the mean over a batch (inputs..., target).
    loader : goes through the data once; batches are weighted by their size.
    groups : an optimizer of this package, or parameter groups with sets. Parameters that are
        frozen or have no set do not count, as the gap over the whole space is infinite. With
        Muon and its kin, whose weights may still be outside their balls, it may be too large.

    Sums are made in float64. Cost: a forward and backward pass over the data.
    """
    groups = groups.held_groups() if isinstance(groups, ConstrainedOptimizer) else groups
    held = [
        (p, group["constraint"], name_of(group, i))
        for group in groups
        if group.get("constraint") is not None
        for i, p in enumerate(group["params"])
        if p.requires_grad and p.numel() > 0
    ]
    for p, _, name in held:
        sharded.refuse(p, "gap", name)
    if not held:
        raise ValueError("groups must hold a trainable parameter with a set, got none.")
    params = [p for p, _, _ in held]
    total = [torch.zeros_like(p, dtype=torch.float64) for p in params]
    count = 0
    with evaluating(model), torch.enable_grad():
        for *inputs, target in loader:
            loss = loss_fn(model(*inputs), target)
            for sums, g in zip(
                total, torch.autograd.grad(loss, params, allow_unused=True), strict=True
            ):
                if g is not None:
                    sums.add_(g.double(), alpha=len(target))
            count += len(target)
    if count == 0:
        raise ValueError("loader must go through the data once, got no batch.")
    value = 0.0
    for (p, constraint, _), sums in zip(held, total, strict=True):
        value += matrices.gap(constraint, p.detach().double(), sums / count)
    return value


@torch.no_grad()
def evaluate(
    model: nn.Module,
    loss_fn: LossFunction,
    loader: Iterable[Batch],
    correct: LossFunction,
) -> tuple[float, float]:
    """(mean loss, accuracy) in eval mode; `correct(output, target)` is 1 (or True) where right."""
    loss, right, count = 0.0, 0.0, 0
    with evaluating(model):
        for *inputs, target in loader:
            output = model(*inputs)
            loss += len(target) * float(loss_fn(output, target))
            right += float(correct(output, target).sum())
            count += len(target)
    if count == 0:
        raise ValueError("loader must go through the data once, got no batch.")
    return loss / count, right / count


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Eval mode, every module's own mode restored afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
