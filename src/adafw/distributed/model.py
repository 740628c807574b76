"""A linear model whose rows are on the workers of a Dask cluster."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from adafw.arrays import floating
from adafw.distributed.blocks import dask_recipes
from adafw.distributed.cluster import client_or_default
from adafw.distributed.crew import Traffic
from adafw.distributed.engine import PATIENCE, Engine
from adafw.distributed.recipes import PartLike, PartRecipe, as_recipes
from adafw.distributed.rows import DistributedRows
from adafw.distributed.typing import Common, DaskObject
from adafw.io.tables.columns import joined_targets
from adafw.losses import Loss
from adafw.objectives import LinearModel
from adafw.objectives.linear_model import check_loss
from adafw.typing import Array, Batch


class DistributedLinearModel(LinearModel):
    """`LinearModel` of rows that stay on the workers: the same iterates, to rounding error.

    The coordinator keeps one number a row and a few a column (targets, CSFW's alpha, x); a worker
    keeps nothing that it could not make anew. Values and full gradients send x and bring back one
    vector a worker; batches send row numbers, and what is needed of targets and alpha.

    Parameters
    ----------
    X : a dask array, blocks of rows, dense or scipy CSR.
    y, sample_weight : arrays of dask or numpy, one entry a row.
    loss : one of `adafw.losses`.
    client : a `distributed.Client`; None means the one that was made last.
    patience : seconds to wait for lost workers, or the scheduler, before `ClusterLost` is raised.
    """

    rows: DistributedRows

    def __init__(
        self, X: DaskObject, y: DaskObject, loss: Loss, sample_weight: DaskObject = None, *,
        client: DaskObject = None, patience: float = PATIENCE,
    ) -> None:  # fmt: skip
        check_loss(loss)
        recipes = dask_recipes(X, y, sample_weight)
        self._start(distributed_rows(recipes, client=client, patience=patience), loss)

    @classmethod
    def from_parts(
        cls, parts: Iterable[PartLike], loss: Loss, *, client: DaskObject = None,
        format: str | None = None, target: str | None = None, n_features: int | None = None,
        dtype: DTypeLike = np.float64,
        patience: float = PATIENCE,
    ) -> "DistributedLinearModel":  # fmt: skip
        """From files that every worker can read, or functions that return (X, y[, weight]).

        Parameters
        ----------
        parts : names of LIBSVM, npy, npz, Parquet or CSV files, or functions without arguments;
            each is one part, made on the worker that holds it, again if that is lost.
        format, target, n_features, dtype : of files, as in `adafw fit`.
        """
        check_loss(loss)
        recipes = as_recipes(
            parts, format=format, target=target, n_features=n_features, dtype=dtype
        )
        rows = distributed_rows(recipes, client=client, n_features=n_features, patience=patience)
        model = cls.__new__(cls)
        model._start(rows, loss)
        return model

    def _start(self, rows: DistributedRows, loss: Loss) -> None:
        y, weight = targets_of(rows)
        for recipe, header in zip(rows.engine.crew.recipes, rows.engine.known_headers, strict=True):
            try:
                loss.check(floating(header.y, "y"))
            except ValueError as error:
                raise ValueError(f"{recipe}: {error}") from None
        LinearModel.__init__(self, rows, y, loss, weight)
        self._total = float(self.n_terms if weight is None else weight.sum(dtype=np.float64))
        self._whole: tuple[Array, float, Array] | None = None

    @property
    def traffic(self) -> Traffic:
        """Round trips, bytes and losses so far."""
        return self.rows.traffic

    def value(self, x: Array) -> float:
        return super().value(x) if self._last.is_at(x) else self._measured(x)[0]

    def gradient(self, x: Array, batch: Batch = None) -> Array:
        if batch is not None or self._last.is_at(x):
            return super().gradient(x, batch)
        return self._measured(x)[1].copy()

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        return self.value(x), self.gradient(x)

    def local_points(self, x: Array, how: Common) -> Array:
        """The mean, weighted by rows, of the points that the parts reach by themselves."""
        sizes = np.diff(self.rows.starts) / self.n_terms
        return self.rows.mean_of_points(
            x, {**how, "loss": self.loss}, lambda k: {"number": k, "weight": float(sizes[k])}
        )

    def _measured(self, x: Array) -> tuple[float, Array]:
        """Value and gradient at x in one round trip, remembered for the last x."""
        whole = self._whole
        if whole is None or whole[0].dtype != x.dtype or not np.array_equal(whole[0], x):
            whole = self._whole = (x.copy(), *self.rows.risk(x, self.loss, self._total))
        return whole[1], whole[2]

    def __repr__(self) -> str:
        return f"DistributedLinearModel({self.rows}, {type(self.loss).__name__})"


def distributed_rows(
    recipes: Sequence[PartRecipe], *, client: DaskObject = None, n_features: int | None = None,
    patience: float = PATIENCE,
) -> DistributedRows:  # fmt: skip
    """Rows made by these recipes, on the workers of the client."""
    return DistributedRows(Engine(client_or_default(client), recipes, n_features, patience))


def targets_of(rows: DistributedRows) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """(y, sample weights or None) as the parts came with them."""
    headers = [header for header in rows.engine.known_headers if header.rows]
    weights = [header.weight for header in headers if header.weight is not None]
    y = joined_targets([header.y for header in headers])
    return y, np.concatenate(weights) if weights else None
