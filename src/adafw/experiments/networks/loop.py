"""One training loop for every optimizer here, with or without snapshots."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from torch import Tensor, nn

from adafw.torch.variance_reduction import RecursiveOptimizer


def train(
    model: nn.Module,
    optimizer: Any,
    loss_fn: Callable[[Any, Any], Tensor],
    loader: Iterable[Any],
    epochs: int,
    after_epoch: Callable[[int], Any] | None = None,
) -> None:
    """Trains for a number of epochs, taking a snapshot at the beginning of each where needed.

    `optimizer` is one of these or of torch's. `loader` yields batches (inputs..., target) and is
    gone through anew in each epoch, twice with snapshots. `after_epoch(epoch)` is called with 1,
    2, ...; returning True stops.
    """

    def closure(batch: Any) -> Tensor:
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
