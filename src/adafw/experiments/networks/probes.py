"""What trained networks can do without: accuracy with small weights left out, and under noise."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import partial

import torch
from torch import Tensor, nn

from adafw.torch.measures import evaluate
from adafw.torch.typing import Batch, LossFunction

#: Shares of the entries of each matrix that are kept, the largest ones.
KEPT = (1.0, 0.5, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01)
#: Deviations of the noise that is added, in root mean squares of each matrix.
NOISE = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
_DRAWS = 3  # of the noise, to be averaged over

Test = tuple[LossFunction, Iterable[Batch], LossFunction]


@torch.no_grad()
def probe(model: nn.Module, test: Test, seed: int) -> dict[str, dict[str, float]]:
    """{"kept": {share: accuracy}, "noise": {deviation: accuracy}} on the test data.

    Vectors (biases, norms) are left as they are: they are few.
    """
    rng = torch.Generator().manual_seed(seed)
    noise = {}
    for level in NOISE:
        disturb = partial(_noisy, level=level, rng=rng)
        found = [_accuracy(model, test, disturb) for _ in range(_DRAWS)]
        noise[f"{level:g}"] = sum(found) / _DRAWS
    kept = {f"{share:g}": _accuracy(model, test, partial(_largest, share=share)) for share in KEPT}
    return {"kept": kept, "noise": noise}


def _accuracy(model: nn.Module, test: Test, change: Callable[[Tensor], Tensor]) -> float:
    other = deepcopy(model)
    for p in other.parameters():
        if p.dim() > 1:
            p.copy_(change(p))
    loss_fn, batches, correct = test
    return evaluate(other, loss_fn, batches, correct)[1]


def _largest(weights: Tensor, share: float) -> Tensor:
    """The matrix with all but a share of its entries set to 0."""
    count = max(1, round(share * weights.numel()))
    if count >= weights.numel():
        return weights
    size = weights.abs().reshape(-1)
    chosen = torch.zeros_like(size).scatter_(0, size.topk(count).indices, 1.0)
    return weights * chosen.view_as(weights)


def _noisy(weights: Tensor, level: float, rng: torch.Generator) -> Tensor:
    size = weights.square().mean().sqrt()
    return weights + level * size * torch.randn(weights.shape, generator=rng, dtype=weights.dtype)
