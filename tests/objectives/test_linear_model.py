import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import losses

RNG = np.random.default_rng(8)
A = RNG.normal(size=(40, 7)) * (RNG.random((40, 7)) < 0.6)
X = RNG.normal(size=7)
SIGNS = np.where(RNG.random(40) < 0.5, -1.0, 1.0)


@pytest.mark.parametrize("loss", [losses.Squared(), losses.Logistic(), losses.SquaredHinge()])
@pytest.mark.parametrize("weights", [None, RNG.uniform(0, 3, 40)], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    "kind", [np.asarray, sparse.csr_array, sparse.csr_matrix, sparse.csc_array]
)
def test_value_gradient_and_terms_agree(kind, weights, loss):
    f = adafw.LinearModel(kind(A), SIGNS, loss, weights)
    w = np.ones(40) if weights is None else weights
    assert f.value(X) == pytest.approx((w * loss.value(A @ X, SIGNS)).sum() / w.sum(), rel=1e-13)
    expected = (w * loss.slope(A @ X, SIGNS)) @ A / w.sum()
    assert np.allclose(f.gradient(X), expected, rtol=1e-12, atol=1e-14)
    value, gradient = f.value_and_gradient(X)
    assert value == f.value(X)
    assert (gradient == f.gradient(X)).all()
    # The mean over all terms, in any order and with repeats, is made of the same terms.
    assert np.allclose(f.gradient(X, RNG.permutation(40)), f.gradient(X), atol=1e-14)
    batch = np.array([3, 3, 17])
    terms = [f.gradient(X, np.array([i])) for i in batch]
    assert np.allclose(f.gradient(X, batch), np.mean(terms, axis=0), atol=1e-14)
    assert np.allclose(f.slopes(X, batch) @ A[batch] / 3, f.gradient(X, batch), atol=1e-14)
    assert np.allclose(f.combine(np.ones(3), batch), A[batch].sum(axis=0), atol=1e-14)


def test_numerical_derivative_of_the_mean():
    f = adafw.LinearModel(A, SIGNS, losses.Logistic(), RNG.uniform(0, 3, 40))
    for i in range(7):
        e = np.eye(7)[i] * 1e-6
        assert (f.value(X + e) - f.value(X - e)) / 2e-6 == pytest.approx(f.gradient(X)[i], abs=1e-8)


def test_integer_weight_k_equals_k_copies():
    counts = RNG.integers(0, 4, size=40)
    weighted = adafw.LinearModel(A, SIGNS, losses.Squared(), counts)
    copied = adafw.LinearModel(
        np.repeat(A, counts, axis=0), np.repeat(SIGNS, counts), losses.Squared()
    )
    assert weighted.value(X) == pytest.approx(copied.value(X), rel=1e-13)
    assert np.allclose(weighted.gradient(X), copied.gradient(X), atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, bool])
def test_dtypes(dtype):
    wanted = dtype if dtype in (np.float32, np.float64) else np.float64
    for data in (
        A.astype(dtype),
        sparse.csr_array(A.astype(dtype)),
        sparse.csc_array(A.astype(dtype)),
    ):
        f = adafw.LinearModel(data, SIGNS, losses.Squared())
        assert f.dtype == wanted
        assert f.gradient(X.astype(wanted)).dtype == wanted


def test_data_that_fits_is_not_copied_and_never_changed():
    dense = np.ascontiguousarray(A)
    assert np.shares_memory(adafw.LinearModel(dense, SIGNS, losses.Squared()).rows.array, dense)
    csr = sparse.csr_array(A)
    assert np.shares_memory(
        adafw.LinearModel(csr, SIGNS, losses.Squared()).rows.matrix.data, csr.data
    )
    messy = sparse.csr_array(
        (np.array([1.0, 2.0, 4.0]), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 2)
    )
    before = messy.data.copy(), messy.indices.copy()
    f = adafw.LinearModel(messy, np.ones(1), losses.Squared())
    assert np.array_equal(f.rows.dot(np.array([1.0, 10.0])), [52.0])
    assert np.array_equal(messy.data, before[0])
    assert np.array_equal(messy.indices, before[1])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((np.full((2, 2), np.nan), [1, 1], losses.Squared()), "A must be finite"),
        ((sparse.csr_array([[np.inf, 1.0]]), [1], losses.Squared()), "A must be finite"),
        ((np.zeros(3), [1], losses.Squared()), "A must have two dimensions"),
        ((np.zeros((0, 3)), [], losses.Squared()), "at least one row"),
        ((np.zeros((2, 0)), [1, 1], losses.Squared()), "at least one row"),
        (([["a"]], [1], losses.Squared()), "A must be an array of real numbers"),
        ((np.ones((2, 2)), [1], losses.Squared()), r"y must have one entry per row of A, shape"),
        ((np.ones((2, 2)), [1, np.nan], losses.Squared()), "y must be finite"),
        ((np.ones((2, 2)), ["x", "y"], losses.Squared()), "y must be an array of real numbers"),
        ((np.ones((2, 2)), [0, 1], losses.Logistic()), "takes labels"),
        ((np.ones((2, 2)), [0, 1], "logistic"), "loss must be one of adafw.losses"),
        ((np.ones((2, 2)), [1, 1], losses.Squared(), [-1, 1]), "sample_weight must be >= 0"),
        ((np.ones((2, 2)), [1, 1], losses.Squared(), [0, 0]), "sample_weight must be >= 0"),
        ((np.ones((2, 2)), [1, 1], losses.Squared(), [1]), "sample_weight must have one entry"),
    ],
)  # fmt: skip
def test_bad_input(args, message):
    with pytest.raises((ValueError, TypeError), match=message):
        adafw.LinearModel(*args)


def test_one_sample_one_feature():
    f = adafw.LinearModel([[2.0]], [3.0], losses.Squared())
    r = adafw.minimize(f, adafw.L1Ball(5.0), adafw.CSFW(), max_iterations=200)
    assert r.x[0] == pytest.approx(1.5, abs=0.05)
