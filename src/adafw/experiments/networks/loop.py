"""One training loop for every optimizer here, with or without snapshots."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

from torch import Tensor, nn

from adafw.torch.typing import Batch, Closure, LossFunction
from adafw.torch.variance_reduction import RecursiveOptimizer


class Optimizes(Protocol):
    """An optimizer of this package or of torch, or several as one."""

    def zero_grad(self) -> None: ...
    def step(self, closure: Closure, /) -> Any: ...


def train(
    model: nn.Module,
    optimizer: Optimizes,
    loss_fn: LossFunction,
    loader: Iterable[Batch],
    epochs: int,
    after_epoch: Callable[[int], object] | None = None,
) -> None:
    """Trains for a number of epochs, taking a snapshot at the beginning of each where needed.

    `optimizer` is one of these or of torch's. `loader` yields batches (inputs..., target) and is
    gone through anew in each epoch, twice with snapshots. `after_epoch(epoch)` is called with 1,
    2, ...; returning True stops.
    """

    def closure(batch: Batch) -> Tensor:
        *inputs, target = batch
        optimizer.zero_grad()
        loss = loss_fn(model(*inputs), target)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    for epoch in range(1, epochs + 1):
        model.train()
        if isinstance(optimizer, RecursiveOptimizer) and optimizer.snapshots:
            optimizer.snapshot(closure, loader)
        for batch in loader:
            optimizer.step(partial(closure, batch))
        if after_epoch is not None and after_epoch(epoch):
            return
