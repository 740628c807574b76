import numpy as np
import pytest

import adafw
from adafw.datasets import low_rank, matching
from adafw.rows import MatrixRows, as_rows


def test_low_rank_data_are_matrix_completion():
    A, y = low_rank(6, rank=2, share=0.5, seed=3)
    f = adafw.LinearModel(MatrixRows(as_rows(A), (6, 6)), y, adafw.losses.Squared())
    g = adafw.MatrixCompletion(A.indices // 6, A.indices % 6, y, (6, 6))
    X = np.random.default_rng(0).standard_normal((6, 6))
    assert f.value(X) == pytest.approx(g.value(X), rel=1e-14)
    batch = np.array([0, 3, 3, 7])
    np.testing.assert_allclose(f.gradient(X, batch), g.gradient(X, batch), atol=1e-15)
    np.testing.assert_allclose(f.gradient(X), g.gradient(X), atol=1e-15)
    assert f.smoothness == pytest.approx(g.smoothness)
    assert f.shape == (6, 6)


def test_low_rank_without_noise_has_that_rank():
    _, y = low_rank(30, rank=3, share=1.0, noise=0.0, seed=1)
    values = np.linalg.svd(y.reshape(30, 30), compute_uv=False)
    assert values[3] < 1e-12 * values[0] < values[2]


def test_matching_without_noise_is_solved_by_a_permutation():
    A, y = matching(7, features=4, noise=0.0, seed=2)
    f = adafw.LinearModel(MatrixRows(as_rows(A), (7, 7)), y, adafw.losses.Squared())
    result = adafw.minimize(f, adafw.Birkhoff(), adafw.AdaFW(learning_rate=0.3), max_iterations=600)
    assert result.value < 1e-3
    P = adafw.Birkhoff().lmo(-result.x)
    assert f.value(P) == pytest.approx(0, abs=1e-25)


def test_products_and_descriptions():
    A = np.arange(24.0).reshape(4, 6)
    rows = MatrixRows(as_rows(A), (2, 3))
    X, w = np.ones((2, 3)), np.array([1.0, 0, 2, -1])
    np.testing.assert_array_equal(rows.dot(X), A.sum(1))
    np.testing.assert_array_equal(rows.combine(w), (w @ A).reshape(2, 3))
    np.testing.assert_array_equal(rows.norms(1), np.abs(A).sum(1))
    assert rows.describe() != MatrixRows(as_rows(A), (3, 2)).describe()
    assert str(rows) == "4 matrices of 2 x 3"
    with pytest.raises(ValueError, match="as many entries as a row of A, 6, got 2 x 2"):
        MatrixRows(as_rows(A), (2, 2))
