"""Norms of rows, of columns and of the whole matrix, dense, sparse and of single entries."""

import numpy as np
import pytest
from scipy import sparse

from adafw.rows import EntryRows, as_rows, spectral


def entries(dtype=np.float64):
    rows = EntryRows(np.array([0, 2, 2, 1, 2]), np.array([1, 0, 0, 1, 0]), (3, 2), np.dtype(dtype))
    matrix = np.zeros((5, 6))
    matrix[np.arange(5), [1, 4, 4, 3, 4]] = 1
    return rows, matrix


def kinds(m, n, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    A = (rng.standard_normal((m, n)) * (rng.random((m, n)) < 0.6)).astype(dtype)
    return [(as_rows(A), A), (as_rows(sparse.csr_array(A)), A), entries(dtype)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("p", [1, 2, np.inf])
@pytest.mark.parametrize("axis", [0, 1])
def test_norms_of_rows_and_columns(p, axis, dtype):
    for rows, A in kinds(7, 4, dtype=dtype):
        reference = np.linalg.norm(A.astype(np.float64), p, axis=axis)
        got = rows.norms(p, axis=axis)
        assert got.dtype == np.float64
        np.testing.assert_allclose(got, reference[: len(got)], rtol=1e-15)
        assert (reference[len(got) :] == 0).all()  # places after the last observed one


@pytest.mark.parametrize("shape", [(7, 4), (4, 7), (1, 5), (5, 1), (40, 40)])
def test_spectral_norm_is_exact_for_small_data(shape):
    weights = np.random.default_rng(1).random(shape[0])
    for rows, A in kinds(*shape)[:2]:
        assert rows.spectral_norm() == (pytest.approx(np.linalg.norm(A, 2), rel=1e-13), True)
        scaled = np.sqrt(weights)[:, None] * A
        assert rows.spectral_norm(weights)[0] == pytest.approx(np.linalg.norm(scaled, 2), rel=1e-13)


@pytest.mark.parametrize("shape", [(9000, 3), (3, 9000), (4097, 2), (2, 4097)])
@pytest.mark.parametrize("place", [0, -1])
def test_spectral_norm_of_long_data_takes_each_weight_to_its_row(shape, place):
    """Dense data are read in slices, of which each has weights of its own."""
    rng = np.random.default_rng(4)
    A, weights = rng.standard_normal(shape), rng.random(shape[0])
    weights[place] = 1e4
    true = np.linalg.norm(np.sqrt(weights)[:, None] * A, 2)
    for data in (A, A.astype(np.float32), sparse.csr_array(A)):
        tolerance = 1e-6 if data.dtype == np.float32 else 1e-12
        norm, exact = as_rows(data).spectral_norm(weights)
        assert norm == pytest.approx(true, rel=tolerance)
        assert exact


def test_spectral_norm_of_entries_is_the_root_of_the_most_observations():
    rows, A = entries()
    weights = np.arange(1.0, 6.0)
    assert rows.spectral_norm() == (pytest.approx(np.linalg.norm(A, 2)), True)
    scaled = np.sqrt(weights)[:, None] * A
    assert rows.spectral_norm(weights) == (pytest.approx(np.linalg.norm(scaled, 2)), True)


@pytest.mark.parametrize("shape", [(300, 200), (200, 300)])
@pytest.mark.parametrize("decay", [1.0, 0.97, 0.5])
def test_large_data_get_an_upper_bound_within_two_percent(shape, decay, monkeypatch):
    monkeypatch.setattr(spectral, "EXACT", 64)
    A = np.random.default_rng(2).standard_normal(shape) * decay ** np.arange(shape[1])
    true = np.linalg.norm(A, 2)
    for rows in (as_rows(A), as_rows(sparse.csr_array(A))):
        bound, exact = rows.spectral_norm()
        assert not exact
        assert true <= bound <= 1.02 * true


@pytest.mark.parametrize("shape", [(1500, 1025), (1025, 1500)])
def test_beyond_1024_rows_and_columns_a_bound_is_given(shape):
    rng = np.random.default_rng(2)
    u, v = rng.standard_normal(shape[0]), rng.standard_normal(shape[1])
    true = np.linalg.norm(u) * np.linalg.norm(v)
    bound, exact = as_rows(np.outer(u, v)).spectral_norm()
    assert not exact
    assert true <= bound <= 1.02 * true


def test_bound_of_weighted_float32_data(monkeypatch):
    rng = np.random.default_rng(3)
    A, weights = rng.standard_normal((60, 40)).astype(np.float32), rng.random(60)
    true = np.linalg.norm(np.sqrt(weights)[:, None] * A.astype(np.float64), 2)
    monkeypatch.setattr(spectral, "EXACT", 8)
    for data in (A, sparse.csr_array(A)):
        assert true <= as_rows(data).spectral_norm(weights)[0] <= 1.02 * true
        wide = data.T[:, :30]
        least = np.linalg.norm(np.sqrt(weights[:40])[:, None] * A.T[:, :30].astype(float), 2)
        assert least <= as_rows(wide).spectral_norm(weights[:40])[0] <= 1.02 * least


def test_no_data_at_all_has_norm_zero():
    assert as_rows(np.zeros((3, 2))).spectral_norm() == (0.0, True)


def test_an_invariant_start_ends_lanczos(monkeypatch):
    monkeypatch.setattr(spectral, "EXACT", 1)
    for A in (np.zeros((5, 3)), np.eye(4)):
        bound, _ = as_rows(A).spectral_norm()
        assert A.max() <= bound <= 1.02 * A.max()
