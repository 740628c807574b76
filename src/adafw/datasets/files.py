"""A user's own files as data sets."""

import os
from pathlib import Path
from typing import Any

from adafw.datasets.dataset import Dataset
from adafw.io.libsvm import read_libsvm
from adafw.io.parts import load_parts


def from_libsvm(path: str | os.PathLike[str], **options: Any) -> Dataset:
    """A LIBSVM file, plain or packed; options as in `read_libsvm`."""
    A, y = read_libsvm(path, **options)
    return Dataset(A, y, Path(path).name, f"LIBSVM file {path}")


def from_parts(directory: str | os.PathLike[str]) -> Dataset:
    """A directory of mapped parts."""
    A, y = load_parts(directory)
    return Dataset(A, y, Path(directory).name, f"mapped parts in {directory}")
