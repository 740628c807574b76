"""Centred rows, Gram matrices and variances: against dense arithmetic."""

import numpy as np
import pytest
from scipy import sparse

from adafw.rows import CentredRows, as_rows
from adafw.rows.base import mean_weights


@pytest.fixture
def A():
    rng = np.random.default_rng(0)
    return np.where(rng.random((40, 7)) < 0.4, rng.normal(size=(40, 7)) + 1, 0.0)


@pytest.mark.parametrize("weights", [None, np.arange(40.0)])
def test_sparse_rows_centred_without_filling_in(A, weights):
    rows, mean = as_rows(sparse.csr_array(A)).centred(weights)
    assert isinstance(rows, CentredRows)
    B = A - np.average(A, axis=0, weights=weights)
    np.testing.assert_allclose(mean, np.average(A, axis=0, weights=weights))
    rng = np.random.default_rng(1)
    x, w, batch = rng.normal(size=7), rng.normal(size=40), np.array([3, 3, 30])
    np.testing.assert_allclose(rows.dot(x), B @ x, atol=1e-13)
    np.testing.assert_allclose(rows.dot(x, batch), B[batch] @ x, atol=1e-13)
    np.testing.assert_allclose(rows.combine(w), w @ B, atol=1e-12)
    np.testing.assert_allclose(rows.combine(w[:3], batch), w[:3] @ B[batch], atol=1e-12)
    for p in (1, 2, np.inf):
        for axis in (0, 1):
            np.testing.assert_allclose(rows.norms(p, axis), np.linalg.norm(B, p, axis=axis))
    norm, exact = rows.spectral_norm(weights)
    root = np.ones(40) if weights is None else np.sqrt(weights)
    assert norm >= np.linalg.norm(root[:, None] * B, 2)
    assert not exact
    assert rows.describe()["name"] == "centred csr"


def test_dense_rows_are_centred_to_rounding():
    """Means a million times the spread keep ten digits."""
    rng = np.random.default_rng(2)
    B = rng.normal(size=(50, 3))
    B -= B.mean(axis=0)
    rows, _ = as_rows(B + 1e6).centred()
    np.testing.assert_allclose(rows.array, B, atol=1e-9)
    assert np.abs(rows.array.mean(axis=0)).max() < 1e-15


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_gram_and_variances(A, make):
    w = np.random.default_rng(3).random(40)
    rows = as_rows(make(A))
    np.testing.assert_allclose(rows.gram(w), (A * w[:, None]).T @ A)
    inner, mean = rows.centred(w)
    B = A - mean
    np.testing.assert_allclose(inner.gram(w), (B * w[:, None]).T @ B, atol=1e-12)
    expected = np.average(B**2, axis=0, weights=w)
    np.testing.assert_allclose(rows.variances(w), expected)
    np.testing.assert_allclose(inner.variances(w), expected)


def test_float32_is_kept(A):
    small = A.astype(np.float32)
    for make in (np.asarray, sparse.csr_array):
        inner, mean = as_rows(make(small)).centred()
        assert inner.dtype == mean.dtype == np.float32
        assert inner.combine(np.ones(40, np.float32)).dtype == np.float32
        assert inner.gram(np.ones(40, np.float32)).dtype == np.float32


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_float32_rows_in_double_precision(A, make):
    """Products are those of the float64 copy, to its rounding, and nothing is copied."""
    small = as_rows(make(A.astype(np.float32)))
    rows, B = small.doubled(), A.astype(np.float32).astype(np.float64)
    stored = (small.array, rows.array) if make is np.asarray else (small.matrix, rows.matrix)
    assert stored[0] is stored[1]
    rng = np.random.default_rng(2)
    x, w, batch = rng.normal(size=7), rng.random(40), np.array([3, 3, 30])
    inner, mean = rows.centred()
    C = B - B.mean(axis=0)
    for got, exact in (
        (rows.dot(x), B @ x), (rows.dot(x, batch), B[batch] @ x), (rows.combine(w), w @ B),
        (rows.combine(w[:3], batch), w[:3] @ B[batch]), (rows.gram(w), B.T @ (B * w[:, None])),
        (mean, B.mean(axis=0)), (inner.dot(x), C @ x), (inner.combine(w), w @ C),
        (inner.gram(w), C.T @ (C * w[:, None])), (inner.norms(2), np.linalg.norm(C, axis=1)),
        (inner.variances(np.ones(40)), C.var(axis=0)),
    ):  # fmt: skip
        assert got.dtype == np.float64
        np.testing.assert_allclose(got, exact, atol=1e-12)


def test_products_in_pieces():
    """Rows of more entries than are converted at a time."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(300, 1000)).astype(np.float32)
    rows, B = as_rows(A).doubled(), A.astype(np.float64)
    x, w = rng.normal(size=1000), rng.normal(size=300)
    np.testing.assert_allclose(rows.dot(x), B @ x, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(rows.combine(w), w @ B, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_single_precision_weights_are_shared_out_in_double_precision(A, kind):
    rng = np.random.default_rng(5)
    weights = rng.random(40).astype(np.float32)
    share = mean_weights(weights, 40)
    assert share.dtype == np.float64
    assert share.sum() == pytest.approx(1, abs=1e-15)
    np.testing.assert_array_equal(mean_weights(None, 40), np.full(40, 1 / 40))
    rows, exact = as_rows(kind(A)), weights.astype(np.float64)
    mean = np.average(A, axis=0, weights=exact)
    for found, wanted in (
        (rows.variances(weights), np.average((A - mean) ** 2, axis=0, weights=exact)),
        (rows.mean_squares(weights), np.average(A**2, axis=0, weights=exact)),
    ):
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
