"""How each network is trained: its batches, its loss, and which of its outputs are right."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from adafw.experiments.networks.batches import (
    ImageBatches,
    ReviewBatches,
    TensorBatches,
    TextBatches,
)
from adafw.experiments.networks.data import Arrays
from adafw.experiments.networks.models import CharNet, CifarNet, FashionNet, ImdbNet


class Lesson(NamedTuple):
    """What `Training` asks of a network; `batches(arrays, size)` in the order of the data.

    `correct` is 1 where an output is right, and the share of right ones where there are several in
    a sample. `measured`: how many samples the loss in training is measured on, None for all.
    """

    model: Callable[..., nn.Module]
    batches: Callable[[Arrays, int], TensorBatches]
    loss_fn: Callable[[Tensor, Tensor], Tensor]
    correct: Callable[[Tensor, Tensor], Tensor]
    measured: int | None = None


def _tensor(array: NDArray[np.generic]) -> Tensor:
    return torch.tensor(array)  # a copy: mapped files are read-only, which torch does not know


def _reviews(arrays: Arrays, size: int) -> ReviewBatches:
    y = _tensor(arrays["y"])
    return ReviewBatches(arrays["ids"], arrays["offsets"], y, batch_size=size)


def _images(arrays: Arrays, size: int) -> ImageBatches:
    return ImageBatches(_tensor(arrays["x"]), _tensor(arrays["y"]).long(), batch_size=size)


def _windows(arrays: Arrays, size: int) -> TextBatches:
    return TextBatches(_tensor(arrays["x"]), _tensor(arrays["y"]), batch_size=size)


def _next_characters(out: Tensor, y: Tensor) -> Tensor:
    return cross_entropy(out.flatten(0, 1), y.flatten())


LESSONS = {
    "ImdbNet": Lesson(
        ImdbNet, _reviews, binary_cross_entropy_with_logits,
        lambda out, y: (out > 0) == (y > 0.5),
    ),
    "CifarNet": Lesson(CifarNet, _images, cross_entropy, lambda out, y: out.argmax(1) == y),
    "FashionNet": Lesson(
        FashionNet, _images, cross_entropy, lambda out, y: out.argmax(1) == y, 2000
    ),
    "CharNet": Lesson(
        CharNet, _windows, _next_characters, lambda out, y: (out.argmax(2) == y).float().mean(1),
        80,
    ),
}  # fmt: skip
