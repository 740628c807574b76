"""The spectral norm of a data matrix: exact where that is cheap, bounded from above elsewhere."""

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw import arrays
from adafw.lanczos import golub_kahan
from adafw.typing import Array, MatrixLike

#: Up to so many rows or columns the Gram matrix is formed and its eigenvalue computed.
EXACT = 1024
#: Lanczos steps beyond that, and the probability that their bound fails.
_STEPS, _FAILURE = 100, 1e-12


def spectral_norm(A: MatrixLike, weights: NDArray[Any] | None) -> tuple[float, bool]:
    """(||W^(1/2) A||_2, True) up to 1024 rows or columns, else (an upper bound, False).

    The bound is sqrt(theta / (1 - e)), theta being the largest Ritz value after 100 Lanczos
    steps from a random start and e the relative error that theta has with probability at most
    1e-12: about 3 %, so 1.5 % of the norm (Kuczynski and Wozniakowski 1992).
    """
    from scipy.linalg import eigvalsh

    size = min(A.shape)
    root = None if weights is None else np.sqrt(weights.astype(np.float64))
    if size <= EXACT:
        last = [size - 1, size - 1]
        largest = eigvalsh(_gram(A, root), subset_by_index=last)[0]
        return math.sqrt(max(0.0, float(largest))), True
    error = (math.log(1.648 * math.sqrt(size) / _FAILURE) / (2 * _STEPS - 1)) ** 2
    return math.sqrt(_largest_ritz_value(A, root) / (1 - error)), False


def _gram(A: MatrixLike, root: NDArray[Any] | None) -> NDArray[np.float64]:
    """A^T W A, or W^(1/2) A A^T W^(1/2) if that is smaller."""
    m, n = A.shape
    from scipy import sparse

    if sparse.issparse(A):
        B = A.astype(np.float64)
        if root is not None:
            B = sparse.diags_array(root) @ B
        return np.asarray((B.T @ B if n <= m else B @ B.T).toarray())
    gram = np.zeros((min(m, n),) * 2)
    # In slices, so that float32 data are never copied to float64 as a whole.
    for start in range(0, max(m, n), 4096):
        part = slice(start, start + 4096)
        B = (A[part] if n <= m else A[:, part]).astype(np.float64)
        if root is not None:
            B *= (root[part] if n <= m else root)[:, None]
        gram += B.T @ B if n <= m else B @ B.T
    return gram


def _largest_ritz_value(A: MatrixLike, root: NDArray[Any] | None) -> float:
    """The largest singular value of B, squared, after 100 steps from a random v.

    v is a vector of the smaller side, whose length the bound on the error grows with.
    """

    def times(
        B: MatrixLike, u: Array, after: Array | None = None, before: Array | None = None
    ) -> Array:
        u = u if before is None else before * u
        image = arrays.double(B @ u.astype(B.dtype, copy=False))
        return image if after is None else after * image

    sides = (partial(times, A, after=root), partial(times, A.T, before=root))
    m, n = A.shape
    v = np.random.default_rng(0).standard_normal(min(m, n))
    small = np.zeros((_STEPS, _STEPS + 1))
    for k, (alpha, beta) in zip(
        range(_STEPS), golub_kahan(*(sides if n <= m else sides[::-1]), v), strict=False
    ):
        small[k, k], small[k, k + 1] = alpha, beta
        # Without reorthogonalisation B has copies of singular values, but none too large.
        if min(alpha, beta) <= 1e-12 * small[0, 0]:  # an invariant subspace: nothing is left
            break
    return float(np.linalg.svd(small[: k + 1, : k + 1], compute_uv=False)[0]) ** 2
