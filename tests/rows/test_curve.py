"""Products with Hessians in one pass, and moments of sparse columns."""

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw.rows import CSRRows, as_rows


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


@pytest.mark.parametrize("cores", ["1", "3"])
def test_products_of_large_sparse_data_have_every_part(cores, monkeypatch):
    """Sums are cut into four, and what is not summed between the cores."""
    monkeypatch.setattr("adafw.rows.csr._LARGE", 100)
    monkeypatch.setenv("OMP_NUM_THREADS", cores)
    rng = np.random.default_rng(6)
    A = rng.standard_normal((301, 7)) * (rng.random((301, 7)) < 0.7)
    rows = CSRRows(sparse.csr_array(A), passing=True)
    assert len(rows._ranges()) == 4
    w, d, P = rng.random(301), rng.standard_normal(7), rng.standard_normal((301, 2))
    image, move = rows.curve(w, d)
    for got, exact in (
        (image, A.T @ (w * (A @ d))), (move, A @ d), (rows.dot(d), A @ d),
        (rows.combine(w), w @ A), (rows.dot_matrix(np.stack([d, -d], 1)), A @ np.stack([d, -d], 1)),
        (rows.combine_matrix(P), A.T @ P),
    ):  # fmt: skip
        np.testing.assert_allclose(got, exact, atol=1e-12)


@pytest.mark.parametrize("m", [5, 300, 3000])  # of the last, sums are cut into four
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["Logistic", "Squared", "SquaredHinge"])
def test_loss_and_gradient_in_one_pass_are_those_of_the_model(loss, weighted, m):
    rng = np.random.default_rng(4)
    A = sparse.csr_array(rng.standard_normal((m, 100)) * (rng.random((m, 100)) < 0.8))
    y, x = np.where(rng.random(m) < 0.5, -1.0, 1.0), rng.standard_normal(100)
    weight = rng.random(m) * (rng.random(m) < 0.9) if weighted else None
    f = adafw.LinearModel(A, y, getattr(adafw.losses, loss)(), weight)
    value, gradient = f.rows.loss_and_gradient(f.loss_code, x, f.y, f.term_weights)
    expected, exact = f.value_and_gradient(x)
    assert value == pytest.approx(expected, rel=1e-13)
    np.testing.assert_allclose(gradient, exact, atol=1e-12 * np.abs(exact).max())


def test_sparse_gram_and_variances_are_those_of_the_dense_matrix():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((50, 9)) * (rng.random((50, 9)) < 0.4)
    w = rng.random(50)
    thin, full = as_rows(sparse.csr_matrix(A)), as_rows(A)
    np.testing.assert_allclose(thin.gram(w), A.T @ (w[:, None] * A), atol=1e-12)
    np.testing.assert_allclose(thin.variances(w), full.variances(w), atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_rough_products_have_six_digits(scale):
    rng = np.random.default_rng(2)
    A = rng.standard_normal((1 << 11, 1 << 9)) * rng.random(1 << 9)
    rows, w = as_rows(A), rng.random(1 << 11) / scale
    d = scale * rng.standard_normal(1 << 9)
    assert rows.rough
    assert not as_rows(A[:-1]).rough
    assert not as_rows(A.astype(np.float32)).rough
    image, _ = rows.rough_curve(w, d)
    exact, _ = rows.curve(w, d)
    error = np.abs(image - exact).max() / np.abs(exact).max()
    assert 1e-9 < error < 1e-6


def test_rough_products_beyond_single_precision():
    """An entry that it cannot hold is as large as it can, not infinite."""
    A = np.ones((1 << 11, 1 << 9))
    A[3, 5] = 1e39
    image, _ = as_rows(A).rough_curve(np.ones(1 << 11), np.eye(1 << 9)[0])
    np.testing.assert_allclose(image[:5], 1 << 11)


@pytest.mark.parametrize("kind", ["dense", "csr", "centred csr"])
def test_mean_squares(kind):
    rng = np.random.default_rng(3)
    A, w = rng.standard_normal((50, 9)) + 1, rng.random(50)
    rows = as_rows(sparse.csr_matrix(A) if "csr" in kind else A)
    if "centred" in kind:
        rows, mean = rows.centred()
        A = A - mean
    np.testing.assert_allclose(rows.mean_squares(w), w @ A**2 / w.sum(), rtol=1e-12)


def test_rough_products_have_the_same_bits_again():
    """The first makes the copy in single precision on its way; later ones read it."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((1051, 1001)) * np.logspace(-3, 4, 1001)
    rows, w, d = as_rows(A), rng.random(1051), rng.standard_normal(1001)
    first = rows.rough_curve(w, d)
    for got, expected in zip(rows.rough_curve(w, d), first, strict=True):
        np.testing.assert_array_equal(got, expected)
    assert rows._single.ctypes.data % 64 == 0
    np.testing.assert_array_equal(rows._single, A.astype(np.float32))


@pytest.mark.parametrize("size", [-1e300, 1e300, -1e-300])
def test_rough_products_along_any_direction(size):
    """Of long entries below zero and a short one above as well; both products have six digits."""
    rng = np.random.default_rng(5)
    A = rng.random((1 << 11, 1 << 9))
    rows, d = as_rows(A), size * (0.5 + rng.random(1 << 9))
    d[0] *= -1e-100 if abs(size) > 1 else -1.0
    w = rng.random(1 << 11) / abs(size)
    for rough, exact in zip(rows.rough_curve(w, d), rows.curve(w, d), strict=True):
        np.testing.assert_allclose(rough, exact, rtol=1e-5)
        assert rough.dtype == np.float64
    for rough in rows.rough_curve(0 * w, 0 * d):
        np.testing.assert_array_equal(rough, 0)
