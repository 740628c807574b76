"""What is measured of a network in training: one record after every epoch."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np


class EpochRecord(NamedTuple):
    """After `epoch` passes; losses are means, accuracies shares, times without measuring.

    `gradient_evaluations` counts gradients of single samples: methods with snapshots need up to
    three for each sample of an epoch.
    """

    epoch: int
    iteration: int
    gradient_evaluations: int
    cpu_seconds: float
    wall_seconds: float
    train_loss: float
    train_accuracy: float
    test_loss: float
    test_accuracy: float
    violation: float


class EpochTrace:
    """The records of a run, as rows (iterate, index) and as columns (`trace["test_loss"]`)."""

    columns = EpochRecord._fields

    def __init__(self, rows: list[tuple[float, ...]]) -> None:
        self._records = [EpochRecord(*row) for row in rows]  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[EpochRecord]:
        return iter(self._records)

    def __getitem__(self, key: str | int) -> Any:
        """A column by name, or a record by number."""
        if isinstance(key, str):
            return np.array([getattr(record, key) for record in self._records], dtype=float)
        return self._records[key]
