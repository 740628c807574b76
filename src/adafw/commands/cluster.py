"""What `adafw fit --workers` and `--scheduler` ask for: a client, and parts read by its workers."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
from numpy.typing import NDArray

from adafw.io.tables import Piece


@contextmanager
def client_of(workers: int | None, scheduler: str | None) -> Iterator[Any]:
    """A client of a new local cluster or of a running one, or None; closed in the end."""
    if workers is None and scheduler is None:
        yield None
        return
    try:
        from adafw.distributed.cluster import connected, local_client
    except ModuleNotFoundError as missing:
        raise click.UsageError(
            f"--workers and --scheduler need Dask, and {missing.name} is not installed; "
            "run pip install 'adafw[dask]'."
        ) from None
    with local_client(workers or 1) if scheduler is None else connected(scheduler) as client:
        yield client


def read_parts(
    parts: Sequence[str], client: Any, format: str | None, target: str | None,
    n_features: int | None, dtype: str,
) -> tuple[Piece, NDArray[Any]]:  # fmt: skip
    """(a table whose rows are on the workers, its targets)."""
    from adafw.distributed.model import distributed_rows, targets_of
    from adafw.distributed.recipes import as_recipes

    recipes = as_recipes(parts, format=format, target=target, n_features=n_features, dtype=dtype)
    rows = distributed_rows(recipes, client=client, n_features=n_features)
    y = targets_of(rows)[0]
    return Piece(rows, y, rows.first.names, rows.engine.crew.zero_based), y
