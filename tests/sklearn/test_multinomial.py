"""Several classes, and several targets, in one problem: certificates recomputed by hand."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import log_softmax, softmax
from sklearn.preprocessing import StandardScaler

import adafw
from adafw.sklearn import (
    FrankWolfeClassifier,
    FrankWolfeClassifierCV,
    FrankWolfeRegressor,
    FrankWolfeRegressorCV,
)
from sklearn import datasets

RADII = {"l1": 3.0, "group": 2.0, "nuclear": 2.0, "linf": 0.2, "l2": 1.0, "simplex": 0.7}


def wine():
    X, y = datasets.load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def least(kind, g, r):
    """min <g, v> over the set of matrices, without the library; g has one row a feature."""
    if kind == "l1":
        return -r * np.abs(g).max()
    if kind == "group":
        return -r * np.linalg.norm(g, axis=1).max()
    if kind == "nuclear":
        return -r * np.linalg.norm(g, 2)
    if kind == "linf":
        return -r * np.abs(g).sum()
    return -r * np.linalg.norm(g) if kind == "l2" else r * g.min(axis=0).sum()


def inside(kind, x, r):
    """How much of the radius x uses."""
    if kind == "simplex":
        return np.abs(x.sum(axis=0) - r).max() / r + 1 if x.min() >= -1e-12 else np.inf
    norms = {
        "l1": np.abs(x).sum(), "group": np.linalg.norm(x, axis=1).sum(), "linf": np.abs(x).max(),
        "nuclear": np.linalg.norm(x, "nuc"), "l2": np.linalg.norm(x),
    }  # fmt: skip
    return norms[kind] / r


@pytest.mark.parametrize("kind", RADII)
def test_certificate_of_the_joint_problem(kind):
    X, y = wine()
    r = RADII[kind]
    model = FrankWolfeClassifier(constraint=kind, radius=r).fit(X, y)
    assert (model.status_, model.coef_.shape, model.intercept_.shape) == (
        "converged",
        (3, 13),
        (3,),
    )
    z = X @ model.coef_.T + model.intercept_
    own = np.eye(3)[y]
    assert np.isclose(model.value_, -(log_softmax(z, axis=1) * own).sum() / len(y), rtol=1e-12)
    slopes = (softmax(z, axis=1) - own) / len(y)
    np.testing.assert_allclose(slopes.sum(axis=0), 0, atol=1e-14)  # the best intercepts
    g, x = X.T @ slopes, model.coef_.T
    gap = np.vdot(g, x) - least(kind, g, r)
    np.testing.assert_allclose(model.gap_, gap, atol=1e-8)
    assert gap <= 1e-4 * model.value_ * 1.01
    assert inside(kind, x, r) <= 1 + 1e-9
    p = model.predict_proba(X)
    np.testing.assert_allclose(p, softmax(z, axis=1), atol=1e-14)
    np.testing.assert_array_equal(model.predict(X), p.argmax(axis=1))


@pytest.mark.parametrize("kind", ["l1", "group", "nuclear", "linf", "l2"])
@pytest.mark.parametrize("task", ["classes", "targets"])
def test_columns_of_any_unit_copied_and_constant(kind, task):
    """Units from 1e-3 to 1e3, every column twice, one of ones, one of 0: certified by hand."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(120, 10))
    s = A @ rng.normal(size=(10, 3)) + rng.normal(size=(120, 3))
    A = A * np.logspace(-3, 3, 10)
    A = np.column_stack([A, A, np.ones(120), np.zeros(120)])
    r = 5.0
    if task == "classes":
        y = s.argmax(axis=1)
        model = FrankWolfeClassifier(constraint=kind, radius=r, algorithm="Corrective").fit(A, y)
        z = A @ model.coef_.T + model.intercept_
        value = -(log_softmax(z, axis=1) * np.eye(3)[y]).sum() / 120
        slopes = (softmax(z, axis=1) - np.eye(3)[y]) / 120
    else:
        model = FrankWolfeRegressor(constraint=kind, radius=r, algorithm="Corrective").fit(A, s)
        rest = A @ model.coef_.T + model.intercept_ - s
        value, slopes = (rest**2).sum() / 120, 2 * rest / 120
    assert (model.status_, model.algorithm_) == ("converged", "Corrective")
    assert np.isclose(model.value_, value)
    g, x = A.T @ slopes, model.coef_.T
    assert np.vdot(g, x) - least(kind, g, r) <= 1.01e-4 * value
    assert inside(kind, x, r) <= 1 + 1e-9


def test_the_penalised_model_of_scikit_learn(l1_logistic):
    """saga at the penalty that the multiplier says has our coefficients."""
    X, y = wine()
    model = FrankWolfeClassifier(radius=3.0, tol=1e-8).fit(X, y)
    z = X @ model.coef_.T + model.intercept_
    g = X.T @ (softmax(z, axis=1) - np.eye(3)[y]) / len(y)
    saga = l1_logistic(
        C=1 / (len(y) * np.abs(g).max()), solver="saga", tol=1e-8, max_iter=20000
    ).fit(X, y)
    np.testing.assert_allclose(saga.predict_proba(X), model.predict_proba(X), atol=1e-3)


def test_groups_take_features_in_or_out_of_all_classes():
    X, y = wine()
    x = FrankWolfeClassifier(constraint="group", radius=1.0).fit(X, y).coef_
    used = np.abs(x).max(axis=0) > 1e-6
    assert 0 < used.sum() < 13
    assert (np.abs(x[:, used]) > 0).all()
    pairs = np.arange(13) // 2
    joint = FrankWolfeClassifier(
        constraint="group", radius=1.0, constraint_params={"groups": pairs}
    ).fit(X, y)
    used = np.abs(joint.coef_).max(axis=0) > 1e-6
    assert (used[0:12:2] == used[1:12:2]).all()


def test_two_classes_and_one_against_the_rest_stay_what_they_were():
    X, y = wine()
    each = FrankWolfeClassifier(radius=3.0, multi_class="ovr").fit(X, y)
    assert each.gap_.shape == (3,)
    two = [FrankWolfeClassifier(radius=3.0, multi_class=m).fit(X, y > 0) for m in
           ("auto", "ovr", "multinomial")]  # fmt: skip
    for model in two:
        assert model.coef_.shape == (1, 13)
        np.testing.assert_array_equal(model.coef_, two[0].coef_)
    hinge = FrankWolfeClassifier("squared_hinge", radius=3.0).fit(X, y)
    assert hinge.gap_.shape == (3,)
    csfw = FrankWolfeClassifier(algorithm="CSFW", tol=1e-2, radius=1.0, max_epochs=5).fit(X, y > 1)
    assert csfw.coef_.shape == (1, 13)


@pytest.mark.parametrize("seed", [6, 13, 22, 42])
def test_copies_of_a_row_are_a_weight_to_the_last_digits(seed):
    """Classes that can be told apart: the value is 1e-5 or less, and its gap far below that."""
    rng = np.random.RandomState(seed)
    X, y, weight = rng.rand(15, 30), rng.randint(0, 3, 15), rng.randint(0, 5, 15)
    order = rng.permutation(15)
    copies = FrankWolfeClassifier().fit(X.repeat(weight, axis=0), y.repeat(weight))
    weighted = FrankWolfeClassifier().fit(X[order], y[order], sample_weight=weight[order])
    expected = copies.decision_function(X)
    np.testing.assert_allclose(weighted.decision_function(X), expected, rtol=1e-7, atol=1e-9)


def test_float32_sparse_weights_and_warm_starts():
    X, y = wine()
    model = FrankWolfeClassifier(radius=3.0).fit(X, y)
    single = FrankWolfeClassifier(radius=3.0).fit(sparse.csr_array(X.astype(np.float32)), y)
    assert single.coef_.dtype == np.float32
    np.testing.assert_allclose(single.coef_, model.coef_, atol=1e-2)
    counts = np.random.default_rng(0).integers(1, 3, len(y))
    a = FrankWolfeClassifier(radius=3.0, tol=1e-7).fit(X, y, sample_weight=counts)
    b = FrankWolfeClassifier(radius=3.0, tol=1e-7).fit(X.repeat(counts, 0), y.repeat(counts))
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-4)
    again = FrankWolfeClassifier(radius=3.0, warm_start=True).fit(X, y).fit(X, y)
    assert again.n_iter_ <= 1
    search = FrankWolfeClassifierCV(radii=[0.5, 3.0], cv=2, tol=1e-2).fit(X, y)
    assert search.coef_.shape == (3, 13)
    assert search.radius_ == 3.0


def test_streams_of_several_classes():
    X, y = wine()
    model = FrankWolfeClassifier(radius=5.0, learning_rate=0.3)
    for _ in range(30):
        model.partial_fit(X, y, classes=[0, 1, 2])
    assert model.coef_.shape == (3, 13)
    assert model.score(X, y) > 0.95
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


@pytest.mark.parametrize(("kind", "r"), [("l1", 30.0), ("group", 20.0), ("nuclear", 20.0)])
def test_several_targets(kind, r):
    X, Y = datasets.load_linnerud(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    Y = np.column_stack([Y, Y[:, 0] - Y[:, 1]])
    model = FrankWolfeRegressor(constraint=kind, radius=r / 10).fit(X, Y)
    assert model.coef_.shape == (4, 3)
    assert (model.intercept_.shape, model.predict(X).shape) == ((4,), (20, 4))
    rest = X @ model.coef_.T + model.intercept_ - Y
    assert np.isclose(model.value_, (rest**2).sum() / 20)
    g = X.T @ (2 * rest / 20)
    gap = np.vdot(g, model.coef_.T) - least(kind, g, r / 10)
    np.testing.assert_allclose(model.gap_, gap, atol=1e-6 * model.value_)
    column = FrankWolfeRegressor(radius=3.0).fit(X, Y[:, :1])
    assert (column.coef_.shape, column.predict(X).shape) == ((1, 3), (20, 1))
    plain = FrankWolfeRegressor(radius=3.0).fit(X, Y[:, 0])
    np.testing.assert_allclose(column.coef_[0], plain.coef_, atol=0.05)


def test_reduced_rank_regression_finds_the_rank():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 8))
    truth = rng.normal(size=(8, 2)) @ rng.normal(size=(2, 6))
    Y = X @ truth + 0.1 * rng.normal(size=(200, 6))
    r = 0.95 * np.linalg.norm(truth, "nuc")
    model = FrankWolfeRegressor(constraint="nuclear", radius=r).fit(X, Y)
    assert np.linalg.matrix_rank(model.coef_, tol=1e-2) == 2
    search = FrankWolfeRegressorCV(radii=[1.0, r], cv=2, constraint="nuclear", tol=1e-2).fit(X, Y)
    assert search.radius_ == r
    assert search.coef_.shape == (6, 8)
    stream = FrankWolfeRegressor(radius=50.0, learning_rate=0.3)
    for _ in range(20):
        stream.partial_fit(X, Y)
    assert stream.score(X, Y) > 0.8


def test_what_is_refused():
    X, y = wine()
    for constraint in ("l1", "group", "nuclear"):
        with pytest.raises(ValueError, match="at least two classes"):
            FrankWolfeClassifier(constraint=constraint).fit(X, np.ones(len(y)))
    with pytest.raises(ValueError, match="radius must be a number that is finite and > 0, got 0"):
        FrankWolfeClassifier(radius=0).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        FrankWolfeClassifier().fit(np.where(X > 2, np.nan, X), y)
    with pytest.raises(ValueError, match=r"shape must be left out, or be .* \(13, 3\)"):
        FrankWolfeClassifier(constraint="nuclear", constraint_params={"shape": (3, 3)}).fit(X, y)
    with pytest.raises(ValueError, match="every class must have a sample of positive weight"):
        FrankWolfeClassifier().fit(X, y, sample_weight=(y != 1).astype(float))
    with pytest.raises(TypeError, match=r"loss must be one of adafw\.losses"):
        adafw.LinearModel(X, y, adafw.losses.Softmax())
