"""Models of several outputs: derivatives, intercepts, and agreement with models of one."""

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize as scipy_minimize

import adafw
from adafw import losses
from adafw.objectives import LinearModel, MatrixModel, WithIntercept
from adafw.rows import DenseRows

RNG = np.random.default_rng(0)
A, W = RNG.normal(size=(60, 5)), RNG.random(60)
LABELS = RNG.integers(0, 4, 60)
NUMBERS, COUNTS = RNG.normal(size=(60, 3)), RNG.integers(0, 4, (60, 3)).astype(float)
CASES = [
    (losses.Softmax(), LABELS),
    (losses.Outputs(losses.Squared()), NUMBERS),
    (losses.Outputs(losses.Huber(0.5)), NUMBERS),
    (losses.Outputs(losses.Poisson()), COUNTS),
]
every_loss = pytest.mark.parametrize(("loss", "y"), CASES, ids=lambda v: str(v)[:30])
with_and_without = pytest.mark.parametrize("intercept", [False, True])


@with_and_without
@every_loss
def test_derivatives_are_those_of_the_value(loss, y, intercept):
    f = MatrixModel(A, y, loss, W, intercept=intercept)
    rng, h = np.random.default_rng(1), 1e-5
    x, d = 0.5 * rng.normal(size=f.shape), rng.normal(size=f.shape)
    slope = (f.value(x + h * d) - f.value(x - h * d)) / (2 * h)
    np.testing.assert_allclose(np.vdot(f.gradient(x), d), slope, rtol=1e-7)
    curve = (f.gradient(x + h * d) - f.gradient(x - h * d)) / (2 * h)
    np.testing.assert_allclose(f.hessian_product(x)(d), curve, rtol=1e-5, atol=1e-8)
    line = f.along(x, d)
    np.testing.assert_allclose(line.value(0.3), f.value(x + 0.3 * d), rtol=1e-12)
    np.testing.assert_allclose(line.slope(0.3), np.vdot(f.gradient(x + 0.3 * d), d), rtol=1e-9)


@every_loss
def test_sparse_dense_and_batches_agree(loss, y):
    f, g = MatrixModel(A, y, loss, W), MatrixModel(sparse.csr_array(A), y, loss, W)
    x = 0.5 * np.random.default_rng(2).normal(size=f.shape)
    np.testing.assert_allclose(f.gradient(x), g.gradient(x), rtol=1e-12)
    batches = np.arange(60).reshape(6, 10)
    for model in (f, g):
        parts = [model.gradient(x, batch) for batch in batches]
        np.testing.assert_allclose(np.mean(parts, axis=0), f.gradient(x), rtol=1e-11)


@every_loss
def test_batches_use_the_intercept_that_was_set(loss, y):
    f = MatrixModel(A, y, loss, W, intercept=True)
    x = 0.5 * np.random.default_rng(2).normal(size=f.shape)
    f.intercept = f.best_intercept(x)
    parts = [f.gradient(x, batch) for batch in np.arange(60).reshape(6, 10)]
    np.testing.assert_allclose(np.mean(parts, axis=0), f.gradient(x), rtol=1e-9, atol=1e-12)


def test_what_is_remembered_is_nobody_elses():
    f = MatrixModel(A.astype(np.float32), LABELS, losses.Softmax(), intercept=True)
    x = np.random.default_rng(3).normal(size=f.shape).astype(np.float32)
    g = f.gradient(x)
    kept = g.copy()
    g += 1.0
    np.testing.assert_array_equal(f.gradient(x), kept)
    # The same point in another precision is another one: certificates are in float64.
    assert f.gradient(x.astype(np.float64)).dtype == np.float64
    assert f.gradient(x).dtype == np.float32


def test_outputs_are_models_of_one_output_side_by_side():
    f = MatrixModel(A, NUMBERS, losses.Outputs(losses.Huber(0.5)), W, intercept=True)
    x = np.random.default_rng(3).normal(size=f.shape)
    each = [WithIntercept(LinearModel(A, y, losses.Huber(0.5), W)) for y in NUMBERS.T]
    total = sum(one.value(column) for one, column in zip(each, x.T, strict=True))
    np.testing.assert_allclose(f.value(x), total, rtol=1e-12)
    gradients = [one.gradient(column) for one, column in zip(each, x.T, strict=True)]
    np.testing.assert_allclose(f.gradient(x), np.transpose(gradients), rtol=1e-9)


def test_two_classes_are_the_logistic_loss():
    y = (LABELS > 1).astype(int)
    f = MatrixModel(A, y, losses.Softmax(), W)
    x = np.random.default_rng(4).normal(size=(5, 2))
    binary = LinearModel(A, 2.0 * y - 1, losses.Logistic(), W)
    np.testing.assert_allclose(f.value(x), binary.value(x[:, 1] - x[:, 0]), rtol=1e-12)


@pytest.mark.parametrize("size", [1.0, 30.0, 1e3, 1e5])
@pytest.mark.parametrize("apart", [0.0, 5.0], ids=["mixed", "separable"])
def test_intercepts_balance_every_class(size, apart):
    """Also where all probabilities are 0 or 1 but for their last digits."""
    rng = np.random.default_rng(5)
    z = size * rng.normal(size=(60, 4))
    z[np.arange(60), LABELS] += apart * size
    f = MatrixModel(A, LABELS, losses.Softmax(), W, intercept=True)
    b = f.shift(z)
    slopes = f.slopes_at(z + b)
    noise = 1e-12 * np.abs(slopes).sum(axis=0) + 1e-25
    assert (np.abs(slopes.sum(axis=0)) <= noise + 1e-9 * (size > 100)).all()
    assert abs(b.mean()) <= 1e-9 * size
    if size == 1.0:  # someone else's minimum
        other = scipy_minimize(lambda c: f.value_at(z + c), np.zeros(4), tol=1e-12).fun
        assert f.value_at(z + b) <= other + 1e-12


def test_numbers_a_thousand_away_keep_their_digits():
    loss = losses.Softmax()
    z, y = np.array([[1e4, 0.0, -1e4], [0.0, 0.0, 800.0]]), np.array([1, 2])
    np.testing.assert_allclose(loss.value(z, y), [1e4, 0.0])
    assert loss.slope(z, y)[1].tolist() == [np.exp(-800.0), np.exp(-800.0), -2 * np.exp(-800.0)]
    np.testing.assert_allclose(loss.probabilities(z).sum(axis=1), 1, rtol=1e-15)


def test_small_values_have_all_their_digits():
    """Line searches near the end compare them; ln(1 + 1e-14) has two digits."""
    loss, y = losses.Softmax(), np.array([0, 0, 1, 2])
    z = np.array([[32.0, 0.0, -5.0], [700.0, 1.0, 0.0], [0.1, 0.2, -3.0], [3.0, 2.0, -40.0]])
    rest = [(-32.0, -37.0), (-699.0, -700.0), (-0.1, -3.2), (43.0, 42.0)]
    expected = [math.log1p(math.exp(a) + math.exp(b)) for a, b in rest]
    np.testing.assert_allclose(loss.value(z, y), expected, rtol=1e-15)


def test_what_is_refused():
    with pytest.raises(ValueError, match="got none of class number 1"):
        MatrixModel(A[:2], np.array([0, 2]), losses.Softmax(), intercept=True)
    with pytest.raises(ValueError, match="Softmax takes class numbers"):
        MatrixModel(A, LABELS - 1.5, losses.Softmax())
    with pytest.raises(ValueError, match="y must be finite"):
        MatrixModel(A, np.full((60, 2), np.nan), losses.Outputs(losses.Squared()))
    with pytest.raises(ValueError, match="one entry per row of A, 60, got 3"):
        MatrixModel(A, LABELS[:3], losses.Softmax())
    with pytest.raises(ValueError, match="n_outputs must be at least 4, got 2"):
        MatrixModel(A, LABELS, losses.Softmax(), n_outputs=2)
    with pytest.raises(TypeError, match="loss must be one of several predictions"):
        MatrixModel(A, LABELS, losses.Logistic())
    with pytest.raises(ValueError, match="sample_weight must be >= 0"):
        MatrixModel(A, LABELS, losses.Softmax(), -W)


@pytest.mark.parametrize(
    "algorithm", [adafw.SFW(), adafw.AdaSVRF(learning_rate=0.1), adafw.FW()], ids=str
)
def test_other_algorithms_take_it(algorithm):
    f = MatrixModel(A, LABELS, losses.Softmax())
    r = adafw.minimize(f, adafw.L1Ball(5.0), algorithm, max_epochs=30)
    assert r.value < f.value(np.zeros(f.shape))
    assert np.isclose(r.gap, np.vdot(f.gradient(r.x), r.x) + 5 * np.abs(f.gradient(r.x)).max())


@every_loss
def test_batches_begin_with_the_intercept_of_no_coefficients_at_all(loss, y):
    f = MatrixModel(A, y, loss, W, intercept=True)
    np.testing.assert_allclose(f.intercept, f.best_intercept(np.zeros(f.shape)), atol=1e-12)
    assert np.abs(f.intercept).max() > 1e-3
    assert MatrixModel(A, y, loss, W).intercept.tolist() == [0.0] * f.n_outputs


def test_more_classes_than_occur_have_columns_of_their_own():
    f = MatrixModel(A, LABELS, losses.Softmax(), n_outputs=6)
    assert f.shape == (5, 6)
    assert f.value(np.zeros((5, 6))) == pytest.approx(np.log(6))
    assert MatrixModel(A, LABELS, losses.Softmax(), n_outputs=4).shape == (5, 4)
    assert not f.has_intercept
    assert repr(f) == "MatrixModel(60 x 5 dense, 6 outputs, Softmax())"


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_weights_are_of_mean_one_and_in_the_dtype_of_the_data(dtype):
    f = MatrixModel(A.astype(dtype), LABELS, losses.Softmax(), 5 * W)
    assert f.term_weights.dtype == dtype
    np.testing.assert_allclose(f.term_weights, 60 * W / W.sum(), rtol=1e-6)
    x = 0.3 * np.random.default_rng(6).normal(size=f.shape).astype(dtype)
    wanted = W @ losses.Softmax().value(A @ x, LABELS) / W.sum()
    assert f.value(x) == pytest.approx(wanted, rel=1e-5)
    one_below = np.where(np.arange(60) == 7, -0.1, W)
    for bad in (W[:3], W[:, None], -W, one_below, 0 * W, W * np.nan, W * 1e308):
        with np.errstate(over="ignore"), pytest.raises(ValueError, match="sample_weight must"):
            MatrixModel(A, LABELS, losses.Softmax(), bad)


def test_the_lower_bound_is_the_mean_over_the_rows_that_count():
    weight = np.where(np.arange(60) % 3, W, 0.0)
    loss, counts = losses.Outputs(losses.Poisson()), weight > 0
    for w in (None, W, 7 * weight):
        f = MatrixModel(A, COUNTS, loss, w)
        wanted = np.average(loss.least(COUNTS), weights=w)
        assert f.lower_bound == pytest.approx(wanted, rel=1e-12)
        each = [LinearModel(A, y, losses.Poisson(), w).lower_bound for y in COUNTS.T]
        assert f.lower_bound == pytest.approx(sum(each), rel=1e-12)
        assert MatrixModel(A, COUNTS, loss, w, intercept=True).lower_bound == f.lower_bound
    # As if the others were not there.
    some = MatrixModel(A[counts], COUNTS[counts], loss, weight[counts])
    assert MatrixModel(A, COUNTS, loss, weight).lower_bound == pytest.approx(some.lower_bound)
    assert MatrixModel(A, LABELS, losses.Softmax(), weight).lower_bound == 0


def test_the_lower_bound_is_reached_where_every_row_has_coefficients_of_its_own():
    weight = np.where(np.arange(60) % 3, W, 0.0)
    f = MatrixModel(np.eye(60), COUNTS, losses.Outputs(losses.Poisson()), weight)
    best = np.log(np.maximum(COUNTS, 1e-300))
    assert f.lower_bound <= f.value(best) <= f.lower_bound + 1e-12


def test_a_model_is_as_far_away_as_its_rows():
    class Far(DenseRows):
        remote = True

        def status(self):
            return "3 of 4 machines"

    far = MatrixModel(Far(A), LABELS, losses.Softmax())
    assert (far.remote, far.status()) == (True, "3 of 4 machines")
    here = MatrixModel(A, LABELS, losses.Softmax())
    assert (here.remote, here.status()) == (False, "")
    one = LinearModel(Far(A), W, losses.Squared())
    assert (one.remote, one.status()) == (True, "3 of 4 machines")


def test_a_loss_without_second_derivatives_is_told_before_the_run():
    class Absolute(losses.Loss):
        curvature, lower_bound = math.inf, 0.0

        def value(self, z, y):
            return np.abs(z - y)

        def slope(self, z, y):
            return np.sign(z - y)

    f = MatrixModel(A, NUMBERS, losses.Outputs(Absolute()))
    assert not f.has_hessian
    with pytest.raises(TypeError, match="CorrectiveStep needs an objective with second derivati"):
        adafw.minimize(f, adafw.L2Ball(1.0), adafw.Corrective(), max_iterations=1)
    assert MatrixModel(A, NUMBERS, losses.Outputs(losses.Squared())).has_hessian
