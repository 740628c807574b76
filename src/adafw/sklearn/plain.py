"""Data that scikit-learn's checks would hand back as they are, told in a tenth of their time.

A fit of a few hundred rows takes as long as these checks do. Whatever is not known at once to be
fine goes to them, who know what to say.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from adafw.typing import MatrixLike

_SPARSE = (sparse.csr_array, sparse.csr_matrix)


def is_plain(X: object, y: object) -> bool:
    """Whether these are rows of finite floats, at least one, and as many numbers or texts."""
    if type(y) is not np.ndarray or y.ndim != 1 or y.dtype.kind not in "biufU":
        return False
    if type(X) is np.ndarray:
        values = X
    elif type(X) in _SPARSE:
        values = X.data  # type: ignore[attr-defined]
    else:
        return False
    shape = X.shape  # type: ignore[attr-defined]
    return (
        len(shape) == 2
        and shape[0] == y.size
        and min(shape) > 0
        and values.dtype in (np.float64, np.float32)
        and _sum_is_finite(values)
        and (y.dtype.kind != "f" or _sum_is_finite(y))
    )


def are_labels(y: NDArray[np.generic], classes: NDArray[np.generic]) -> bool:
    """Whether these are labels beyond doubt: no fractions, and not a kind for every other row."""
    if y.ndim != 1 or 2 * classes.size > y.size:
        return False
    # np.unique has sorted them: fractions, NaN and infinities are among `classes`, if anywhere.
    if classes.dtype.kind != "f":
        return classes.dtype.kind in "biuU"
    numbers = classes.astype(np.float64)
    return bool(((np.abs(numbers) < 2**53) & (numbers == np.rint(numbers))).all())


def _sum_is_finite(values: MatrixLike) -> bool:
    """So that all entries are; a sum that overflows is left to others."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.sum(values, dtype=np.float64)))
