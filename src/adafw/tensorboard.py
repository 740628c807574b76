"""Logging to TensorBoard; needs the extra `tensorboard`."""

import math
import os
from collections.abc import Mapping
from typing import Any

from adafw.recorder import Record


def writer_class() -> Any:
    """What writes the files; says what to install where it is missing."""
    try:
        from tensorboard.summary import Writer
    except ImportError:
        raise ImportError(
            "logging to TensorBoard needs the package tensorboard; install adafw[tensorboard]."
        ) from None
    return Writer


class TensorBoard:
    """Writes numbers as scalars to a folder that `tensorboard --logdir` shows.

    A callback of `minimize`, which then logs every record under its iteration:

        minimize(f, constraint, algorithm, callbacks=[TensorBoard("runs/csfw")])

    and for training loops, `log(step, numbers)`:

        train(..., after_epoch=lambda epoch: board.log(epoch, {"accuracy": accuracy()}))
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._writer = writer_class()(os.fspath(folder))

    def __call__(self, state: object, record: Record) -> None:
        """Logs a record of `minimize`."""
        numbers = record._asdict()
        self.log(int(numbers.pop("iteration")), numbers)

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Logs every finite number under its name; the others have no place on a curve."""
        for name, number in numbers.items():
            if math.isfinite(number):
                self._writer.add_scalar(name, float(number), step=step)
        self._writer.flush()

    def close(self) -> None:
        """Ends the file."""
        self._writer.close()
