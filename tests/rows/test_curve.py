"""Products with Hessians in one pass, and moments of sparse columns."""

import numpy as np
import pytest
from scipy import sparse

from adafw.rows import as_rows


@pytest.mark.parametrize("shape", [(7, 3), (400, 90), (3000, 40)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["dense", "csr", "centred dense", "centred csr"])
def test_curve_is_the_weighted_gram_matrix_times_d(kind, dtype, shape):
    rng = np.random.default_rng(0)
    A = (rng.standard_normal(shape) * (rng.random(shape) < 0.7)).astype(dtype)
    rows = as_rows(sparse.csr_matrix(A) if "csr" in kind else A)
    if "centred" in kind:
        rows, mean = rows.centred()
        A = A - mean
    w, d = rng.random(shape[0]).astype(dtype), rng.standard_normal(shape[1]).astype(dtype)
    image, move = rows.curve(w, d)
    A, exact = A.astype(float), A.astype(float).T @ (w * (A.astype(float) @ d))
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(move, A @ d, atol=40 * eps * np.abs(A @ d).max())
    np.testing.assert_allclose(image, exact, atol=400 * eps * np.abs(exact).max())


def test_sparse_gram_and_variances_are_those_of_the_dense_matrix():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((50, 9)) * (rng.random((50, 9)) < 0.4)
    w = rng.random(50)
    thin, full = as_rows(sparse.csr_matrix(A)), as_rows(A)
    np.testing.assert_allclose(thin.gram(w), A.T @ (w[:, None] * A), atol=1e-12)
    np.testing.assert_allclose(thin.variances(w), full.variances(w), atol=1e-12)
