"""Products with large dense data: our own passes over them, and the bits that they share."""

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw.rows import CSRRows, DenseRows, as_rows, passes
from adafw.sklearn import FrankWolfeClassifier

#: Rows and columns that no step of a kernel divides; the first has fewer rows than a part.
SHAPES = [(7, 5), (131, 9), (1030, 33), (515, 1)]


@pytest.fixture
def large(monkeypatch):
    monkeypatch.setattr("adafw.rows.dense._LARGE", 1)


@pytest.mark.parametrize("cores", ["1", "3"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("stored", "asked"), [("f4", "f4"), ("f4", "f8"), ("f8", "f8")])
def test_products_are_those_of_numpy(stored, asked, shape, cores, large, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", cores)
    rng = np.random.default_rng(0)
    A = rng.standard_normal(shape).astype(stored)
    x, w = rng.standard_normal(shape[1]).astype(asked), rng.random(shape[0]).astype(asked)
    rows, exact = DenseRows(A, asked), A.astype(float)
    image, move = rows.curve(w, x)
    eps = 20 * shape[0] * np.finfo(asked).eps
    for got, expected in (
        (rows.dot(x), exact @ x), (rows.combine(w), w @ exact), (move, exact @ x),
        (image, exact.T @ (w * (exact @ x))),
    ):  # fmt: skip
        assert got.dtype == asked
        np.testing.assert_allclose(got, expected, atol=eps * np.abs(expected).max())
    np.testing.assert_allclose(
        rows.mean_squares(np.full(shape[0], 3.0)), np.mean(exact**2, axis=0), rtol=1e-12
    )
    np.testing.assert_allclose(rows.mean_squares(w), w @ exact**2 / w.sum(), rtol=1e-5)


def test_wrong_lengths_are_refused(large):
    rows = as_rows(np.ones((6, 4)))
    with pytest.raises(ValueError, match=r"x must have shape \(4,\), got \(5,\)"):
        rows.dot(np.ones(5))
    with pytest.raises(ValueError, match=r"weights must have shape \(6,\), got \(5,\)"):
        rows.combine(np.ones(5))
    with pytest.raises(ValueError, match=r"d must have shape \(4,\), got \(3,\)"):
        rows.curve(np.ones(6), np.ones(3))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", ["Logistic", "Squared", "SquaredHinge"])
def test_what_was_asked_before_changes_no_bit(loss, shape, weighted, large, monkeypatch):
    """Value, gradient and predictions in one pass are those of a pass each, on any machine."""
    rng = np.random.default_rng(1)
    A, x = rng.standard_normal(shape), rng.standard_normal(shape[1])
    y = np.where(rng.random(shape[0]) < 0.5, -1.0, 1.0)
    weight = rng.random(shape[0]) if weighted else None

    def model():
        return adafw.LinearModel(A, y, getattr(adafw.losses, loss)(), weight)

    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    once = model()
    value, gradient = once.value_and_gradient(x)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    apart = model()
    z = apart.predictions(x)[0]
    assert apart.value(x) == value
    np.testing.assert_array_equal(apart.gradient(x), gradient)
    np.testing.assert_array_equal(once.predictions(x)[0], z)
    for one, other in zip(once.curves(x)[1:], apart.curves(x)[1:], strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(z, A @ x, atol=1e-13)
    whole = apart.rows.loss_and_gradient(apart.loss_code, x, apart.y, apart.term_weights)
    assert whole[0] == value
    np.testing.assert_array_equal(whole[1], gradient)


def test_one_pass_is_one_pass(large, monkeypatch):
    """A gradient at a new point reads the data once; that at 0 is made where NaN is looked for."""
    read = []
    for name in ("dots", "adds", "at_once", "curve", "squares", "survey"):
        plain = getattr(passes, name)
        monkeypatch.setattr(passes, name, lambda *a, n=name, f=plain: read.append(n) or f(*a))
    f = adafw.LinearModel(np.eye(5) + 1, np.ones(5), adafw.losses.Squared())
    f.gradient(np.zeros(5))
    f.rows.mean_squares(np.ones(5))
    assert read == ["survey"]
    f.gradient(np.ones(5))
    f.value(np.ones(5))
    assert read == ["survey", "at_once"]
    f.value(np.full(5, 2.0))
    f.gradient(np.full(5, 2.0))
    assert read == ["survey", "at_once", "dots", "adds"]
    f.rows.curve(np.ones(5), np.ones(5))
    assert read[4:] == ["curve"]
    f.gradient(np.zeros(5))
    assert read[5:] == ["adds"]
    del read[:]
    for A, loss in ((np.eye(5, dtype="f4"), "Squared"), (np.eye(5), "Huber")):
        adafw.LinearModel(A, np.ones(5), getattr(adafw.losses, loss)())
    assert read == ["squares", "squares"]  # which have no such pass
    del read[:]
    adafw.LinearModel(as_rows(np.eye(5)), np.ones(5), adafw.losses.Squared())
    assert read == ["squares"]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("cores", ["1", "3"])
def test_a_first_look_is_bit_for_bit_what_it_replaces(shape, weighted, cores, large, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", cores)
    rng = np.random.default_rng(3)
    A, y = rng.standard_normal(shape), rng.standard_normal(shape[0])
    weight = rng.random(shape[0]) if weighted else None
    looked = adafw.LinearModel(A, y, adafw.losses.Squared(), weight)
    plain = adafw.LinearModel(as_rows(A), y, adafw.losses.Squared(), weight)
    zero = np.zeros(shape[1])
    np.testing.assert_array_equal(looked.gradient(zero), plain.gradient(zero))
    assert looked.value(zero) == plain.value(zero)
    ones = np.ones(shape[0])
    np.testing.assert_array_equal(looked.rows.mean_squares(ones), plain.rows.mean_squares(ones))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_entries_that_are_no_numbers_are_found(bad, dtype, large):
    A = np.ones((9, 5), dtype)
    A[8, 4] = bad
    with pytest.raises(ValueError, match="A must be finite, got NaN or infinity"):
        as_rows(A)
    for loss in (adafw.losses.Squared(), adafw.losses.Huber()):
        with pytest.raises(ValueError, match="A must be finite, got NaN or infinity"):
            adafw.LinearModel(A, np.zeros(9), loss)  # whose slopes at 0 are 0


def test_entries_whose_squares_are_infinite_are_numbers(large):
    A = np.ones((9, 5))
    A[8, 4] = 1e200
    assert as_rows(A).mean_squares(np.ones(9))[4] == np.inf
    assert as_rows(np.full((9, 5), 1e30, np.float32)).finite


def test_data_below_the_bound_are_numpys():
    A = np.random.default_rng(2).standard_normal((1 << 10, (1 << 10) - 1))
    assert not as_rows(A).large
    assert as_rows(np.ones((1 << 10, 1 << 10))).large
    x = np.ones(A.shape[1])
    np.testing.assert_array_equal(as_rows(A).dot(x), A @ x)
    assert as_rows(A).at_once(0, x, x, x) is None


def test_few_rows_run_the_code_of_all():
    """What is compiled on a few rows is what all of them will need."""
    rows = as_rows(np.random.default_rng(3).standard_normal((2100, 500)))
    few = rows.few(np.arange(8))
    assert few.large
    assert few.rough
    assert few.kind == rows.kind
    assert not rows.take(np.arange(8)).large
    w, d = np.ones(8), np.ones(500)
    few.rough_curve(w, d)
    assert few._single.shape == (8, 500)


def mostly_zero(m, n, share, dtype="f8", seed=4):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((m, n)) * (rng.random((m, n)) < share)).astype(dtype)


@pytest.mark.parametrize("cores", ["1", "3"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(1030, 33), (131, 90), (3, 5000)])
def test_arrays_that_are_mostly_zero_are_listed(shape, dtype, cores, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", cores)
    A = mostly_zero(*shape, 0.2, dtype)
    A[0], A[-1], A[:, 3] = 0, 0, -0.0
    A[1, -1] = 7  # the last entry of a row, and rows that end with zeros
    rows = DenseRows(A).without_zeros()
    assert isinstance(rows, CSRRows)
    assert rows.matrix.nnz == np.count_nonzero(A)
    assert rows.matrix.indices.dtype == np.int32
    assert rows.dtype == dtype
    np.testing.assert_array_equal(rows.matrix.toarray(), A)
    assert DenseRows(A, "f8").without_zeros().dtype == np.float64
    again = as_rows(rows.matrix.copy())  # as scipy would have made it
    assert again.describe() == rows.describe()


def test_which_arrays_stay_what_they_are():
    for A in (
        mostly_zero(1000, 40, 0.35), mostly_zero(90, 90, 0.1), np.ones((200, 50)),
        np.where(np.arange(1000)[:, None] % 15 == 0, 0.0, np.ones(40)),  # looked at: all 0
    ):  # fmt: skip
        rows = DenseRows(A)
        assert rows.without_zeros() is rows
    sparse_rows = as_rows(mostly_zero(1000, 40, 0.1)).without_zeros()
    assert sparse_rows.without_zeros() is sparse_rows


@pytest.mark.parametrize("intercept", [False, True])
def test_fits_of_arrays_that_are_mostly_zero_are_those_of_sparse_matrices(intercept):
    A = mostly_zero(900, 30, 0.15)
    y = np.where(A[:, :5].sum(axis=1) + np.random.default_rng(0).logistic(size=900) > 0, 1, 0)
    fit = FrankWolfeClassifier(radius=5.0, fit_intercept=intercept)
    coefficients = fit.fit(A, y).coef_.copy()
    np.testing.assert_array_equal(fit.fit(sparse.csr_array(A), y).coef_, coefficients)
    np.testing.assert_array_equal(fit.predict(A), fit.predict(sparse.csr_array(A)))
    stream = FrankWolfeClassifier(radius=5.0).partial_fit(A, y, classes=[0, 1])
    assert np.isfinite(stream.coef_).all()


def test_gram_matrices_have_weights_of_any_sign():
    rng = np.random.default_rng(5)
    A, w = rng.standard_normal((70, 9)), rng.random(70)
    for weights in (w, w - 0.5, np.zeros(70)):
        exact = A.T @ (weights[:, None] * A)
        np.testing.assert_allclose(as_rows(A).gram(weights), exact, atol=1e-12)


def test_a_pickle_holds_the_data_once():
    rng = np.random.default_rng(6)
    A = rng.standard_normal((8000, 140))
    f = adafw.LinearModel(A, np.sign(A[:, 0]), adafw.losses.Logistic())
    first = adafw.minimize(f, adafw.LInfBall(0.1), adafw.Corrective(), max_iterations=2)
    data = pickle.dumps(f)
    assert len(data) < 1.1 * A.nbytes
    for again in (pickle.loads(data), copy.deepcopy(f)):
        second = adafw.minimize(again, adafw.LInfBall(0.1), adafw.Corrective(), max_iterations=2)
        np.testing.assert_array_equal(second.x, first.x)
