"""The data of an experiment, by the name its file gives."""

from collections.abc import Callable, Mapping
from inspect import signature
from pathlib import Path
from typing import Any

from adafw import datasets
from adafw.datasets import Dataset
from adafw.typing import Json


def _support_vector(m: int = 20_000, n: int = 1_000, seed: int = 0) -> Dataset:
    A, y = datasets.support_vector(m, n, seed)
    return Dataset(A, y, "support-vector data", f"the paper's generator, seed {seed}")


def _text_like(**options: Any) -> Dataset:
    A, y = datasets.text_like(**options)
    return Dataset(A, y, "text-like data", "generated, Zipf terms")


def _correlated_regression(m: int = 463_715, n: int = 90, seed: int = 0) -> Dataset:
    X, y = datasets.correlated_regression(m, n, seed)
    A = datasets.standardised(X)
    return Dataset(A, y - y.mean(), "correlated regression", "generated, standardised")


def _low_rank(n: int, seed: int = 0, **options: Any) -> Dataset:
    A, y = datasets.low_rank(n, seed=seed, **options)
    return Dataset(A, y, f"observed entries of a {n} x {n} matrix", f"generated, seed {seed}")


def _matching(n: int, seed: int = 0, **options: Any) -> Dataset:
    A, y = datasets.matching(n, seed=seed, **options)
    return Dataset(A, y, f"features of {n} items to match", f"generated, seed {seed}")


_LOADERS: dict[str, Callable[..., Dataset]] = {
    "support_vector": _support_vector,
    "text_like": _text_like,
    "correlated_regression": _correlated_regression,
    "low_rank": _low_rank,
    "matching": _matching,
    "rcv1": datasets.rcv1,
    "year_prediction": datasets.year_prediction,
    "libsvm": datasets.from_libsvm,
    "parts": datasets.from_parts,
}


def load(table: Mapping[str, Json], folder: Path) -> Dataset:
    """The data of a table {name, rows, options}; a relative `path` is taken from `folder`.

    `rows` keeps the first so many.
    """
    options = dict(table)
    name, rows = options.pop("name", None), options.pop("rows", None)
    if name not in _LOADERS:
        raise ValueError(f"data must be one of {', '.join(_LOADERS)}, got {name!r}.")
    paths = [folder / options.pop("path")] if "path" in options else []
    try:
        signature(_LOADERS[name]).bind(*paths, **options)
    except TypeError as error:
        raise ValueError(f"data {name} cannot be loaded: {error}.") from None
    data = _LOADERS[name](*paths, **options)
    return data if rows is None else data.first(rows)
