"""Dask arrays as features: rows that stay on the workers of a cluster."""

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from adafw.rows import Rows
from adafw.sklearn.typing import PerRow, SklearnObject
from adafw.typing import MatrixLike


def is_dask(X: MatrixLike) -> bool:
    """Whether X is a dask array; if dask was never imported, nothing is."""
    array = sys.modules.get("dask.array")
    return array is not None and isinstance(X, array.Array)


def validated(
    estimator: SklearnObject, X: MatrixLike, y: PerRow, *, numeric: bool, reset: bool
) -> tuple[Rows, NDArray[Any]]:
    """(rows on the workers, targets here), checked as scikit-learn's own checks do."""
    from adafw.distributed.blocks import dask_recipes
    from adafw.distributed.model import distributed_rows, targets_of

    rows = distributed_rows(dask_recipes(X, y, outputs=numeric))  # numbers may be several a row
    if reset:
        estimator.n_features_in_ = rows.shape[1]
    _check_width(rows.shape[1], estimator.n_features_in_)
    targets = targets_of(rows)[0]
    dtype = np.float64 if numeric else None
    return rows, check_array(targets, ensure_2d=False, dtype=dtype, input_name="y")


class DaskBlocks:
    """A dask array, of which only products with coefficients are made, block by block."""

    def __init__(self, X: MatrixLike, n_features: int) -> None:
        self.X = X
        _check_width(X.shape[1], n_features)

    def __matmul__(self, coefficients: NDArray[Any]) -> NDArray[Any]:
        X = self.X if self.X.numblocks[1] == 1 else self.X.rechunk({1: -1})
        chunks = (X.chunks[0], (coefficients.shape[1],))
        product = X.map_blocks(_product, coefficients, chunks=chunks, dtype=coefficients.dtype)
        return np.asarray(product.compute())


def _product(block: MatrixLike, coefficients: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(block @ coefficients)


def _check_width(n: int, needed: int) -> None:
    if n != needed:
        raise ValueError(f"X has {n} features, but the model needs {needed}.")
