"""Dask arrays as recipes: a block of rows is a part."""

import numpy as np

from adafw.distributed.recipes import DaskPart, PartRecipe
from adafw.distributed.typing import DaskObject


def dask_recipes(
    X: DaskObject, y: DaskObject, sample_weight: DaskObject = None, *, outputs: bool = False
) -> list[PartRecipe]:
    """One recipe for each block of rows of X; with `outputs`, y may have several columns."""
    import dask.array as da

    if not isinstance(X, da.Array):
        raise TypeError(
            f"X must be a dask array, got {type(X).__name__}; use adafw.LinearModel for data of "
            "one machine, or from_parts for files."
        )
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions (rows are samples), got {X.ndim}.")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    columns = [X.to_delayed().ravel(), _per_row(y, X, "y", outputs).to_delayed().ravel()]
    if sample_weight is not None:
        columns.append(_per_row(sample_weight, X, "sample_weight").to_delayed().ravel())
    return [DaskPart(blocks, k, outputs) for k, blocks in enumerate(zip(*columns, strict=True))]


def _per_row(values: DaskObject, X: DaskObject, name: str, outputs: bool = False) -> DaskObject:
    """A dask array of one entry a row, or one row of `outputs`, cut as the rows of X are."""
    import dask.array as da

    known = not any(np.isnan(X.chunks[0]))
    if not isinstance(values, da.Array):
        values = np.asarray(values)
        if not known:
            raise ValueError(
                f"{name} must be a dask array where the sizes of X's blocks are unknown; call "
                "X.compute_chunk_sizes() first."
            )
    if not 1 <= values.ndim <= 1 + outputs or (known and values.shape[0] != X.shape[0]):
        raise ValueError(
            f"{name} must have one entry per row of X, shape ({X.shape[0]},), got {values.shape}."
        )
    if not isinstance(values, da.Array):
        return da.from_array(values, chunks=(X.chunks[0], *values.shape[1:]))
    if values.ndim > 1 and values.numblocks[1] > 1:
        values = values.rechunk({1: -1})
    if known and values.chunks[0] != X.chunks[0]:
        return values.rechunk({0: X.chunks[0]})
    if values.numblocks[0] != X.numblocks[0]:
        raise ValueError(
            f"{name} must have as many blocks as X, {X.numblocks[0]}, got {values.numblocks[0]}."
        )
    return values
