"""What is measured of a network in training: one record after every epoch."""

from typing import NamedTuple

from adafw.recorder import Records


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


class EpochTrace(Records[EpochRecord]):
    """The records of a training."""

    record, columns = EpochRecord, EpochRecord._fields
    counts = ("epoch", "iteration", "gradient_evaluations")
