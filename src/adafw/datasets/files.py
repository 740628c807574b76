"""A user's own files as data sets."""

import os
from pathlib import Path

from numpy.typing import DTypeLike

from adafw.datasets.dataset import Dataset
from adafw.io.libsvm import ZeroBased, read_libsvm
from adafw.io.parts import load_parts


def from_libsvm(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    dtype: DTypeLike = "float64",
    threads: int | None = None,
) -> Dataset:
    """A LIBSVM file, plain or packed; options as in `read_libsvm`."""
    A, y = read_libsvm(
        path, n_features=n_features, zero_based=zero_based, dtype=dtype, threads=threads
    )
    return Dataset(A, y, Path(path).name, f"LIBSVM file {path}")


def from_parts(directory: str | os.PathLike[str]) -> Dataset:
    """A directory of mapped parts."""
    A, y = load_parts(directory)
    return Dataset(A, y, Path(directory).name, f"mapped parts in {directory}")
