"""Directions along which rows are long, from a few of them."""

import numpy as np
from scipy import sparse

from adafw.rows import as_rows
from adafw.rows.sketch import RANK


def factors(m=4400, n=256, k=5, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    loadings = rng.standard_normal((k, n))
    A = 3 * rng.standard_normal((m, k)) @ loadings
    return A + noise * rng.standard_normal((m, n)), loadings


def test_the_basis_holds_the_factors_and_the_rest_is_noise():
    A, loadings = factors()
    found = as_rows(A).sketch(np.ones(256))
    assert found.basis.shape == (256, RANK)
    np.testing.assert_allclose(found.basis.T @ found.basis, np.eye(RANK), atol=1e-5)
    left = loadings - (loadings @ found.basis) @ found.basis.T
    assert np.linalg.norm(left) < 0.05 * np.linalg.norm(loadings)
    images = A[:: found.step] @ found.basis
    np.testing.assert_allclose(found.images, images, atol=1e-5 * np.abs(images).max())
    assert 0.3 * 0.25 < np.median(found.rest) < 0.25


def test_it_is_made_once_for_the_same_weights():
    rows, ones = as_rows(factors()[0]), np.ones(256)
    first = rows.sketch(ones)
    assert rows.sketch(ones.copy()) is first
    other = rows.sketch(4 * ones)
    explained = first.images @ first.basis.T
    np.testing.assert_allclose(2 * other.images @ other.basis.T, explained, atol=1e-4)


def test_a_rest_below_single_precision_is_told_in_double():
    A, _ = factors(noise=1e-3)
    weights = np.mean(A**2, axis=0)
    found = as_rows(A).sketch(weights)
    part = A[:: found.step] / np.sqrt(weights)
    known = part @ found.basis @ found.basis.T
    np.testing.assert_allclose(found.rest, np.mean(part**2 - known**2, axis=0), rtol=1e-4)
    np.testing.assert_allclose(found.basis.T @ found.basis, np.eye(RANK), atol=1e-12)


def test_sparse_and_small_data_have_none():
    A = factors()[0]
    assert as_rows(sparse.csr_matrix(A)).sketch(np.ones(256)) is None
    assert as_rows(A[:4000]).sketch(np.ones(256)) is None


def test_how_many_rows_it_looks_at():
    """Two a column, and never more than every eighth."""
    for m, step in ((4400, 8), (5120, 10), (8192, 16)):
        found = as_rows(factors(m)[0]).sketch(np.ones(256))
        assert found.step == step
        assert found.images.shape == (-(-m // step), RANK)


def test_weights_that_change_in_place_are_others():
    rows, weights = as_rows(factors()[0]), np.ones(256)
    first = rows.sketch(weights)
    weights *= 4
    other = rows.sketch(weights)
    assert other is not first
    np.testing.assert_allclose(2 * other.images @ other.basis.T, first.images @ first.basis.T)


def test_rows_that_are_too_few_to_choose_from_have_none():
    assert as_rows(np.ones((511, 2100))).sketch(np.ones(2100)) is None
    rng = np.random.default_rng(1)
    assert as_rows(rng.standard_normal((512, 2100))).sketch(np.ones(2100)) is not None


def test_what_is_left_is_the_mean_square_that_the_basis_does_not_explain():
    """In units of the weights, between a least share and 1."""
    A, weights = factors()[0], np.random.default_rng(2).uniform(50, 200, 256)
    found = as_rows(A).sketch(weights)
    B = A[:: found.step] / np.sqrt(weights)
    np.testing.assert_allclose(found.images, B @ found.basis, atol=1e-9)
    explained = np.diag(found.basis @ (found.images.T @ found.images) @ found.basis.T)
    left = (np.sum(B**2, axis=0) - explained) / len(B)
    np.testing.assert_allclose(found.rest, np.clip(left, 1e-9, 1), atol=1e-9)
    light = as_rows(A).sketch(1e-9 * weights)
    assert light.rest.max() == 1.0
