import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import losses
from adafw.objectives import WithIntercept
from adafw.objectives.linear_model import TermPull
from adafw.rows import CSRRows, DenseRows

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
        ((np.ones((2, 2)), [[1], [1]], losses.Squared()), r"y must have one .* got \(2, 1\)"),
        ((np.ones((2, 2)), [1, np.nan], losses.Squared()), "y must be finite"),
        ((np.ones((2, 2)), [1, -np.inf], losses.Squared()), "y must be finite"),
        ((np.ones((2, 2)), ["x", "y"], losses.Squared()), "y must be an array of real numbers"),
        ((np.ones((2, 2)), [0, 1], losses.Logistic()), "takes labels"),
        ((np.ones((2, 2)), [0, 1], "logistic"), "loss must be one of adafw.losses"),
        ((np.ones((2, 2)), [1, 1], losses.Squared(), [-1, 1]), "sample_weight must be >= 0"),
        ((np.ones((2, 2)), [1, 1], losses.Squared(), [-1, 3]), "sample_weight must be >= 0"),
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


def test_a_loss_derived_from_a_known_one_is_its_own():
    """Kernels know exact types alone: what a subclass changes is not passed over."""

    class Steeper(losses.Squared):
        def value(self, z, y):
            return 2 * super().value(z, y)

        def slope(self, z, y):
            return 2 * super().slope(z, y)

        def second(self, z, y):
            return 2 * super().second(z, y)

    plain, steep = (adafw.LinearModel(A, SIGNS, loss) for loss in (losses.Squared(), Steeper()))
    assert (plain.loss_code is None, steep.loss_code is None) == (False, True)
    assert steep.value(X) == pytest.approx(2 * plain.value(X))
    np.testing.assert_allclose(steep.gradient(X), 2 * plain.gradient(X))
    np.testing.assert_allclose(steep.hessian(X), 2 * plain.hessian(X))
    for b in (0.0, 0.3):
        np.testing.assert_allclose(
            steep.sides_at(A @ X, b), 2 * np.array(plain.sides_at(A @ X, b)), rtol=1e-12
        )


@pytest.mark.parametrize("loss", [losses.Squared(), losses.Logistic(), losses.Huber(0.4)], ids=repr)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_curves_and_sides_are_sums_of_slopes_and_second_derivatives(loss, dtype):
    w = RNG.uniform(0, 3, 40)
    f = adafw.LinearModel(A.astype(dtype), SIGNS, loss, w)
    share, z, b = w / w.sum(), (A @ X).astype(dtype), 0.25
    tol = {"rtol": 1e-12 if dtype == np.float64 else 1e-4, "atol": 1e-7}
    value, slopes, bends = f.curves_at(z)
    np.testing.assert_allclose(value, share @ loss.value(z, SIGNS), **tol)
    np.testing.assert_allclose(slopes, share * loss.slope(z, SIGNS), **tol)
    np.testing.assert_allclose(bends, share * loss.second(z, SIGNS), **tol)
    slopes, seconds = (40 * share * part(z + b, SIGNS) for part in (loss.slope, loss.second))
    up = slopes > 0
    wanted = slopes[up].sum(), -slopes[~up].sum(), seconds[up].sum(), seconds[~up].sum()
    np.testing.assert_allclose(f.sides_at(z, b), wanted, **tol)


def test_what_someone_else_computed_is_used():
    f = adafw.LinearModel(A, SIGNS, losses.Logistic())
    curves = f.curves(X)
    g = adafw.LinearModel(A, SIGNS, losses.Logistic())
    g.remember(X, A @ X, curves)
    assert g.curves(X) is curves
    f.value(X + 1)
    assert f.curves(X) is not curves


def test_a_point_that_only_looks_like_the_last_is_another():
    f = adafw.LinearModel(A, SIGNS, losses.Squared())
    f.value(np.ones(7))
    for other in (np.ones(1), np.ones((1, 7)), np.ones((7, 7))):
        with pytest.raises(ValueError, match=r"shape|size|dimension"):
            f.slopes(other, np.array([0]))
        assert not f._last.is_at(other)
    assert f._last.is_at(np.ones(7))
    assert not f._last.is_at(np.ones(7, np.float32))


@pytest.mark.parametrize("intercept", [False, True])
def test_value_gradient_and_line_share_their_passes(intercept):
    """One product with the rows for each point, none at 0, where most runs begin."""

    class Watched(DenseRows):
        dots = combines = 0

        def dot(self, x, batch=None):
            self.dots += 1
            return super().dot(x, batch)

        def combine(self, weights, batch=None):
            self.combines += 1
            return super().combine(weights, batch)

    rows = Watched(A)
    f = adafw.LinearModel(rows, SIGNS, losses.Logistic())
    f = WithIntercept(f) if intercept else f
    zero = np.zeros(7)
    f.value(zero), f.gradient(zero), f.value_and_gradient(zero), f.slopes(zero)
    assert (rows.dots, rows.combines) == (0, 1)
    f.value(X), f.gradient(X), f.gradient(X.copy()), f.value(X), f.curves(X)
    assert (rows.dots, rows.combines) == (1, 2)
    line = f.along(X, X)
    for gamma in (0.0, 0.1, 0.2):
        line.value(gamma), line.slope(gamma)
    assert (rows.dots, rows.combines) == (2, 2)
    product = f.hessian_product(X)
    product(X), product(X)
    assert (rows.dots, rows.combines) == (4, 4)


def test_working_sets_are_kept_and_built_on():
    f = adafw.LinearModel(sparse.csr_array(A), SIGNS, losses.Logistic())
    told = []

    class Watched(CSRRows):
        def working(self, chosen, last=None):
            told.append(last)
            return super().working(chosen, last)

    f.rows = Watched(f.rows.matrix)
    first = f.working(np.array([1, 3]))
    assert f.working(np.array([1, 3])) is first
    second = f.working(np.array([1, 3, 5]))
    assert second is not first
    assert [each is known for each, known in zip(told, (None, first), strict=True)] == [True] * 2


def test_weights_are_summed_in_double_precision_and_must_be_finite():
    small = A[:2].astype(np.float32)
    heavy = adafw.LinearModel(small, SIGNS[:2], losses.Squared(), [3e38, 3e38])
    np.testing.assert_allclose(heavy.term_weights, 1.0, rtol=1e-6)
    for bad in ([1e308, 1e308], [np.inf, 1.0], [np.nan, 1.0], [0.0, -1.0]):
        with np.errstate(over="ignore"), pytest.raises(ValueError, match="sample_weight must be"):
            adafw.LinearModel(A[:2], SIGNS[:2], losses.Squared(), bad)


def test_the_curvature_is_that_of_the_heaviest_term():
    w = np.arange(40.0)
    f = adafw.LinearModel(A, SIGNS, losses.Logistic(), w)
    assert f.curvature == pytest.approx(0.25 * 39 * 40 / w.sum())
    assert adafw.LinearModel(A, SIGNS, losses.Logistic()).curvature == 0.25
    assert f.term_weights.mean() == pytest.approx(1.0)
    assert adafw.LinearModel(A, SIGNS, losses.Logistic()).term_weights.size == 0


@pytest.mark.parametrize("minus", [None, np.array([0.5, -1.0, 2.0])])
@pytest.mark.parametrize("weights", [None, np.array([1.0, 0.0, 3.0])])
def test_parts_of_a_pull_are_what_the_whole_is(weights, minus):
    """On several machines each has some of a batch."""
    y, z = np.array([1.0, -1.0, 1.0]), np.array([0.3, 0.2, -2.0])
    pull = TermPull(losses.Logistic(), y, weights, 7, minus, 0.4)
    slopes = losses.Logistic().slope(z + 0.4, y) * (1.0 if weights is None else weights)
    np.testing.assert_allclose(pull.slopes(z), slopes)
    np.testing.assert_allclose(pull.weights(slopes), slopes / 7 - (0 if minus is None else minus))
    which = np.array([2, 0])
    part = pull.part(which)
    np.testing.assert_allclose(part.slopes(z[which]), slopes[which])
    np.testing.assert_allclose(part.weights(slopes[which]), pull.weights(slopes)[which])


def test_bends_are_no_less_than_on_the_way_and_finite():
    f = adafw.LinearModel(np.eye(4), np.ones(4), losses.Poisson())
    z = np.zeros(4)
    met = f.bends(z, [np.array([1.0, -1.0, 1e-9, 800.0]), np.array([2.0, 0.5, 0.0, 0.1])])
    second = (np.e**2 - 1) / 2, (np.sqrt(np.e) - 1) / 0.5
    np.testing.assert_allclose(met, [second[0], second[1], 1.0, (np.exp(0.1) - 1) / 0.1])


def test_a_row_of_weight_zero_counts_for_nothing_where_its_loss_is_infinite():
    A = np.array([[1.0], [2.0], [1e3]])
    f = adafw.LinearModel(A, [1.0, 2.0, 0.0], losses.Poisson(), [1.0, 1.0, 0.0])
    without = adafw.LinearModel(A[:2], [1.0, 2.0], losses.Poisson())
    x = np.ones(1)
    assert f.value(x) == pytest.approx(without.value(x), rel=1e-15)
    assert np.allclose(f.gradient(x), without.gradient(x), rtol=1e-15)
    assert np.allclose(f.gradient(x, np.arange(3)), f.gradient(x), rtol=1e-15)
    assert np.allclose(f.hessian(x), without.hessian(x), rtol=1e-15)
