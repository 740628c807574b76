"""Batches for the training loop: shuffled anew in each epoch, from a generator of their own."""

from collections.abc import Iterator
from copy import copy
from typing import Self

import numpy as np
import torch
from torch import Tensor

from adafw import checks
from adafw.typing import Array


class TensorBatches:
    """Rows of tensors that are in memory, as batches (inputs..., target).

    `seed`: of the order, which changes with each pass; None keeps the order of the rows.
    """

    def __init__(self, *tensors: Tensor, batch_size: int, seed: int | None = None) -> None:
        if len({len(t) for t in tensors}) != 1:
            raise ValueError(f"tensors must have equal lengths, got {[len(t) for t in tensors]}.")
        self.tensors = tensors
        self.batch_size = checks.integer(batch_size, "batch_size", 1)
        self.rng = None if seed is None else torch.Generator().manual_seed(seed)
        self.size: int | None = None

    def reordered(self, batch_size: int, seed: int | None, size: int | None = None) -> Self:
        """The same rows, without a copy of them, in batches of another size and order.

        `size`: of so many rows, drawn anew, is a pass; None means all.
        """
        other = copy(self)
        other.batch_size = checks.integer(batch_size, "batch_size", 1)
        other.rng = None if seed is None else torch.Generator().manual_seed(seed)
        other.size = size
        return other

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        for rows in self._rows(len(self.tensors[0])):
            yield tuple(t[rows] for t in self.tensors)

    def _rows(self, n: int) -> Iterator[Tensor]:
        order = torch.arange(n, device="cpu")
        if self.rng is not None:
            order = torch.randperm(n, generator=self.rng, device="cpu")
        yield from torch.split(order[: self.size], self.batch_size)


class ImageBatches(TensorBatches):
    """Images of bytes: batches (pixels between 0 and 1, class)."""

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        for pixels, target in super().__iter__():
            yield pixels.float() / 255, target


class TextBatches(TensorBatches):
    """Windows of a text for `CharNet`: batches (characters, the ones that follow)."""

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        for characters, following in super().__iter__():
            yield characters.long(), following.long()


class ReviewBatches(TensorBatches):
    """Texts as sets of word ids, for `ImdbNet`: batches (ids, offsets, target).

    Parameters
    ----------
    ids : word ids of all texts in one array.
    offsets : where each text begins, and the end: one more than there are texts.
    labels : 0 or 1 for each text.

    A word that occurs several times in a text counts once (a multi-hot vector).
    """

    def __init__(
        self,
        ids: Array,
        offsets: Array,
        labels: Array | Tensor,
        *,
        batch_size: int,
        seed: int | None = None,
    ) -> None:
        offsets = np.asarray(offsets, dtype=np.int64)
        if len(offsets) != len(labels) + 1 or offsets[-1] != len(ids):
            raise ValueError(
                "offsets must have one entry more than labels and end at the number of ids, got "
                f"{len(offsets)} entries ending at {offsets[-1]} for {len(labels)} labels and "
                f"{len(ids)} ids."
            )
        super().__init__(torch.as_tensor(labels).float(), batch_size=batch_size, seed=seed)
        words, texts = int(np.max(ids)) + 1, len(labels)
        keys = np.repeat(np.arange(texts), np.diff(offsets)) * words + np.asarray(ids, np.int64)
        keys = np.unique(keys)
        self.ids = torch.as_tensor(keys % words)
        self.lengths = torch.as_tensor(np.bincount(keys // words, minlength=texts))
        self.parts = torch.split(self.ids, self.lengths.tolist())

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        for rows in self._rows(len(self.lengths)):
            ends = self.lengths[rows].cumsum(0)
            starts = torch.cat([ends.new_zeros(1), ends[:-1]])
            ids = torch.cat([self.parts[i] for i in rows.tolist()])
            yield ids, starts, self.tensors[0][rows]
