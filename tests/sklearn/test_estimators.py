"""Fits against reference solutions at matched radius, and the habits of scikit-learn."""

import json
import pickle
import warnings

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import adafw
from adafw import losses
from adafw.sklearn import FrankWolfeClassifier, FrankWolfeRegressor, matching_penalty
from sklearn import datasets

LOSSES = {
    "logistic": losses.Logistic(),
    "squared_hinge": losses.SquaredHinge(),
    "smoothed_hinge": losses.SmoothedHinge(),
    "squared": losses.Squared(),
    "huber": losses.Huber(),
    "poisson": losses.Poisson(),
}


def text_like(m=600, n=3000, seed=0):
    """Rows of few words drawn by Zipf's law, of norm 1, as a text model sees them."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, n + 1)
    lengths = rng.integers(20, 80, m)
    rows = np.repeat(np.arange(m), lengths)
    words = rng.choice(n, lengths.sum(), p=share / share.sum())
    A = sparse.csr_array((np.ones(len(rows)), (rows, words)), shape=(m, n))
    A.sum_duplicates()
    idf = np.log(m / (1 + np.bincount(A.indices, minlength=n))) + 1
    A = sparse.csr_array(A.multiply(idf[None, :]))
    A = sparse.csr_array(A.multiply(1 / np.sqrt(A.multiply(A).sum(axis=1))[:, None]))
    A.indices, A.indptr = A.indices.astype(np.int32), A.indptr.astype(np.int32)
    z = A @ np.where(rng.random(n) < 0.1, rng.normal(size=n), 0)
    return A, np.where(z + 0.05 * rng.normal(size=m) > np.median(z), 1, 0)


def objective(model, X, y, k=0):
    """The mean loss by hand, from what a user sees of a model."""
    coef = np.atleast_2d(model.coef_)[k].astype(float)
    z = np.asarray(X @ coef).ravel() + np.atleast_1d(model.intercept_)[k]
    return float(LOSSES[model.loss].value(z, y).mean())


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_logistic_equals_the_penalised_model_at_matched_radius(make, l1_logistic):
    X, y = datasets.load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    C = matching_penalty(X, y, 8.0)
    reference = l1_logistic(C=C, solver="saga", tol=1e-7, max_iter=50_000)
    reference.fit(X, y)
    model = FrankWolfeClassifier(radius=8.0, tol=1e-6).fit(make(X), y)
    assert model.status_ == "converged"
    assert np.abs(reference.coef_).sum() == pytest.approx(8.0, rel=1e-4)
    reference.loss = "logistic"
    best = objective(reference, X, 2 * y - 1)
    assert model.value_ == pytest.approx(objective(model, X, 2 * y - 1), rel=1e-12)
    assert model.value_ - model.gap_ <= best + 1e-9
    assert model.value_ <= best + model.gap_ + 1e-7
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=2e-3)
    assert model.intercept_ == pytest.approx(reference.intercept_, abs=2e-3)


def test_lasso_at_matched_radius():
    X, y = datasets.load_diabetes(return_X_y=True)
    model = FrankWolfeRegressor(radius=700.0, tol=1e-9)
    C = matching_penalty(X, y, 700.0, loss="squared")
    reference = Lasso(alpha=1 / (2 * len(y) * C), tol=1e-10, max_iter=100_000).fit(X, y)
    for make in (np.asarray, sparse.csr_array):
        model.fit(make(X), y)
        np.testing.assert_allclose(model.coef_, reference.coef_, atol=0.05)
        assert model.intercept_ == pytest.approx(reference.intercept_, abs=1e-3)


def test_ridge_at_matched_radius():
    X, y = datasets.load_diabetes(return_X_y=True)
    reference = Ridge(alpha=0.3).fit(X, y)
    radius = float(np.linalg.norm(reference.coef_))
    model = FrankWolfeRegressor(constraint="l2", radius=radius, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-3, atol=0.01)


@pytest.mark.filterwarnings("ignore:the radius:UserWarning")
def test_poisson_without_an_active_constraint():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = rng.poisson(np.exp(X @ [0.3, -0.5, 0.2, 0.0] + 0.7))
    reference = PoissonRegressor(alpha=0, tol=1e-10).fit(X, y)
    model = FrankWolfeRegressor("poisson", radius=5.0, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-4)
    np.testing.assert_allclose(model.predict(X), reference.predict(X), rtol=1e-3)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "smoothed_hinge"])
@pytest.mark.parametrize("constraint", ["l1", "linf", "simplex"])
def test_certificate_of_every_class(loss, constraint):
    """Each binary problem: no other algorithm finds a point of the set below value - gap."""
    X, y = datasets.load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = FrankWolfeClassifier(loss, constraint=constraint, radius=1.5, multi_class="ovr")
    model.fit(X, y)
    assert model.status_ == ["converged"] * 3
    for k in range(3):
        target = np.where(y == k, 1.0, -1.0)
        f = adafw.objectives.WithIntercept(adafw.LinearModel(X, target, LOSSES[loss]))
        other = adafw.minimize(
            f, model._settings().plan("classification").constraint,
            adafw.FW(adafw.steps.LineSearch()), max_iterations=30,
        )  # fmt: skip
        assert model.value_[k] == pytest.approx(objective(model, X, target, k), rel=1e-9)
        assert model.value_[k] - model.gap_[k] <= other.value
        assert other.lower_bound <= model.value_[k] + 1e-12
        assert model.gap_[k] <= 1e-4 * max(model.value_[k], 1e-12)
    assert (model.violation_ <= 1e-12).all()


def test_sparse_text_scores_as_the_penalised_model(l1_logistic):
    X, y = text_like(1200)
    train, test, y_train, y_test = train_test_split(X, y, random_state=0)
    model = FrankWolfeClassifier(radius=150.0).fit(train, y_train)
    assert model.algorithm_ == "Corrective"
    assert model.status_ == "converged"
    C = matching_penalty(train, y_train, 150.0, tol=1e-6)
    reference = l1_logistic(C=C, solver="liblinear", tol=1e-6)
    reference.fit(train, y_train)
    assert model.score(test, y_test) >= reference.score(test, y_test) - 0.02
    reference.loss = "logistic"
    # liblinear bounds the intercept too, so that it can only be worse.
    assert model.value_ <= objective(reference, train, 2 * y_train - 1) + model.gap_ + 1e-4


def test_implicit_centring_equals_the_explicit_one():
    X, _ = text_like(200, 600)
    rng = np.random.default_rng(1)
    y = X @ rng.normal(size=600) + 3
    weight = rng.random(200)
    fits = [
        FrankWolfeRegressor(radius=5.0, tol=1e-8).fit(data, y, sample_weight=weight)
        for data in (X, X.toarray())
    ]
    assert fits[0].value_ == pytest.approx(fits[1].value_, rel=1e-6)
    np.testing.assert_allclose(fits[0].predict(X), fits[1].predict(X), atol=1e-3)
    assert isinstance(fits[0]._settings().plan("regression").constraint, adafw.L1Ball)


@pytest.mark.parametrize("constraint", ["l1", "l2", "linf", "simplex"])
@pytest.mark.parametrize("radius", [10.0, 100.0])
@pytest.mark.parametrize("scaled", [True, False])
def test_float32_is_kept_and_converges(constraint, radius, scaled):
    """Coefficients of 24 bits, a certificate of them, and no stall at what 24 bits can do."""
    X, y = datasets.load_breast_cancer(return_X_y=True)
    X = (StandardScaler().fit_transform(X) if scaled else X).astype(np.float32)
    small = FrankWolfeClassifier(constraint=constraint, radius=radius).fit(X, y)
    large = FrankWolfeClassifier(constraint=constraint, radius=radius, tol=1e-7).fit(
        X.astype(np.float64), y
    )
    assert small.status_ == "converged"
    assert small.coef_.dtype == small.intercept_.dtype == np.float32
    assert small.decision_function(X).dtype == np.float32
    assert small.gap_ <= 1e-4 * small.value_
    assert small.violation_ <= 1e-6
    assert small.lower_bound_ <= large.value_
    assert small.value_ - small.gap_ <= large.value_
    exact = objective(small, X.astype(np.float64), np.where(y == 1, 1.0, -1.0))
    assert exact == pytest.approx(small.value_, rel=1e-12)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_float32_regression_has_the_minimum_of_float64(make, fit_intercept):
    X, y = datasets.load_diabetes(return_X_y=True)
    X = (X + 3).astype(np.float32)
    settings = dict(radius=500.0, fit_intercept=fit_intercept, tol=1e-6)
    small = FrankWolfeRegressor(**settings).fit(make(X), y.astype(np.float32))
    large = FrankWolfeRegressor(**settings).fit(X.astype(np.float64), y)
    assert small.coef_.dtype == np.float32
    assert small.status_ == "converged"
    assert small.value_ == pytest.approx(large.value_, rel=1e-6)
    by_hand = np.mean((X.astype(float) @ small.coef_.astype(float) + small.intercept_ - y) ** 2)
    assert by_hand == pytest.approx(small.value_, rel=1e-9)


@pytest.mark.filterwarnings("ignore:the radius 5 has no effect")
@pytest.mark.parametrize("outputs", [1, 2])
def test_float32_numbers_are_predicted_in_float32(outputs):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)).astype(np.float32)
    y = (X @ rng.normal(size=(3, outputs)) + 1).astype(np.float32)
    model = FrankWolfeRegressor(radius=5.0, tol=1e-2).fit(X, y[:, 0] if outputs == 1 else y)
    assert np.asarray(model.intercept_).dtype == model.coef_.dtype == np.float32
    assert model.predict(X).dtype == np.float32


def test_far_out_on_raw_features():
    """Radius 1000 on features of sizes 0.1 to 1000: no stall, and no warning about numbers.

    That the radius has no effect is told where a loss ends at 0 exactly, which is rounding's say.
    """
    X, y = datasets.load_wine(return_X_y=True)
    for loss in ("logistic", "squared_hinge", "smoothed_hinge"):
        for constraint in ("l1", "simplex", "linf"):
            model = FrankWolfeClassifier(loss, constraint=constraint, radius=1000.0)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "the radius 1000 has no effect")
                model.fit(X, y == 0)
            assert model.status_ == "converged"
    with pytest.raises(ValueError, match=r"features must be at most 1e\+145 .* change their unit"):
        FrankWolfeClassifier().fit(X * 1e200, y)


def test_a_simplex_on_which_every_slope_is_uphill():
    """Targets 3 below what any mixture can reach: the multiplier of sum x = 1 is negative."""
    rng = np.random.default_rng(0)
    X = 5 + 0.1 * rng.standard_normal((200, 30))
    y = X[:, :5] @ np.full(5, 0.2) + 0.02 * rng.standard_normal(200) - 3
    model = FrankWolfeRegressor(constraint="simplex", radius=1.0, fit_intercept=False, tol=1e-6)
    assert model.fit(X, y).status_ == "converged"
    assert model.value_ == pytest.approx(8.933592, abs=1e-5)


def test_weights_count_as_copies():
    X, y = datasets.load_iris(return_X_y=True)
    X, y = X[50:], y[50:]
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    a = FrankWolfeClassifier(radius=5.0, tol=1e-8).fit(X, y, sample_weight=weight)
    b = FrankWolfeClassifier(radius=5.0, tol=1e-8).fit(X.repeat(weight, 0), y.repeat(weight))
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-6)
    c = FrankWolfeClassifier(radius=5.0, class_weight={1: 2, 2: 1}).fit(X, y)
    d = FrankWolfeClassifier(radius=5.0).fit(X, y, sample_weight=np.where(y == 1, 2, 1))
    np.testing.assert_allclose(c.coef_, d.coef_)
    e = FrankWolfeClassifier(radius=5.0, class_weight="balanced").fit(X[:70], y[:70])
    w = np.where(y[:70] == 1, 70 / (2 * 50), 70 / (2 * 20))
    f = FrankWolfeClassifier(radius=5.0).fit(X[:70], y[:70], sample_weight=w)
    np.testing.assert_allclose(e.coef_, f.coef_, rtol=1e-9)


def test_warm_start_saves_iterations():
    X, y = text_like()
    model = FrankWolfeClassifier(radius=100.0, warm_start=True, tol=1e-6)
    first = model.fit(X, y).n_iter_
    assert model.fit(X, y).n_iter_ < first
    smaller = model.set_params(radius=50.0).fit(X, y)
    assert np.abs(smaller.coef_).sum() <= 50.0 * (1 + 1e-9)
    cold = FrankWolfeClassifier(radius=50.0, tol=1e-6).fit(X, y)
    assert smaller.value_ == pytest.approx(cold.value_, rel=1e-5)
    model.fit(X, np.where(np.arange(len(y)) % 3 == 0, 2, y))
    assert model.coef_.shape == (3, X.shape[1])


def test_named_and_given_algorithms():
    X, y = text_like(200, 300)
    settings = dict(radius=10.0, tol=2e-2, max_epochs=300)
    searched = FrankWolfeClassifier(algorithm="AdaCSFW", **settings).fit(X, y)
    assert 2 * np.log10(searched.learning_rate_) == pytest.approx(
        round(2 * np.log10(searched.learning_rate_))
    )
    given = adafw.AdaCSFW(learning_rate=searched.learning_rate_)
    same = FrankWolfeClassifier(algorithm=given, **settings).fit(X, y)
    np.testing.assert_array_equal(searched.coef_, same.coef_)
    preset = FrankWolfeClassifier(
        algorithm=adafw.AdaCSFW, learning_rate=searched.learning_rate_, **settings
    ).fit(X, y)
    np.testing.assert_array_equal(searched.coef_, preset.coef_)
    assert FrankWolfeClassifier(algorithm="CSFW", **settings).fit(X, y).learning_rate_ == np.inf
    projected = FrankWolfeClassifier(learning_rate=1.0, **settings).fit(X, y)
    assert projected.algorithm_ == "AdaGrad"
    best = FrankWolfeClassifier(radius=10.0, tol=1e-6).fit(X, y)
    for model in (searched, projected):
        assert best.value_ - best.gap_ <= model.value_ <= best.value_ + model.gap_
        # The intercept is the best one for the coefficients, not that of some batch.
        z = X @ model.coef_[0] + model.intercept_[0]
        assert abs(LOSSES["logistic"].slope(z, 2.0 * y - 1).mean()) < 1e-12


def test_any_set_object():
    X, y = datasets.load_iris(return_X_y=True)
    box = adafw.Box(np.array([0, 0, -1, -1.0]), np.array([1, 0, 1, 2.0]))
    model = FrankWolfeClassifier(constraint=box).fit(X, y == 1)
    assert box.contains(model.coef_[0])
    user = adafw.UserSet(adafw.L1Ball(2.0).lmo, np.zeros(4))
    again = FrankWolfeClassifier(constraint=user, tol=1e-8).fit(X, y == 1)
    named = FrankWolfeClassifier(constraint="l1", radius=2.0, tol=1e-8).fit(X, y == 1)
    np.testing.assert_allclose(again.coef_, named.coef_, atol=1e-4)


def test_a_fit_that_stops_early_warns_with_its_gap():
    X, y = text_like(300, 800)
    model = FrankWolfeClassifier(radius=200.0, tol=1e-12, max_epochs=2)
    with pytest.warns(ConvergenceWarning, match=r"gap \S+ is \S+ of the value .*tol=1e-12") as seen:
        model.fit(X, y)
    assert model.status_ == "max_epochs"
    assert f"{model.gap_:.3g}" in str(seen[0].message)


def test_a_radius_without_effect_warns():
    X, y = datasets.make_classification(300, 5, flip_y=0.3, random_state=0)
    with pytest.warns(UserWarning, match="the radius 1000 has no effect"):
        FrankWolfeClassifier(radius=1000.0).fit(X, y)
    X, y = datasets.load_diabetes(return_X_y=True)
    with pytest.warns(UserWarning, match="has no effect"):
        FrankWolfeRegressor(radius=1e5).fit(X, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "hinge"}, "loss must be one of logistic, squared_hinge, smoothed_hinge"),
        ({"constraint": "l3"}, "constraint must be a set or one of l1, l2, linf"),
        ({"constraint": "group", "multi_class": "ovr"}, "needs groups"),
        ({"multi_class": "softmax"}, "multi_class must be one of auto, ovr, multinomial"),
        (
            {"multi_class": "multinomial", "loss": "squared_hinge"},
            "multi_class='multinomial' needs loss='logistic', got 'squared_hinge'",
        ),
        ({"constraint_params": {"k": 3}}, "constraint_params must be None"),
        ({"radius": 0}, "radius must be a number that is finite and > 0, got 0"),
        ({"tol": -1}, "tol must be a number that is finite and >= 0"),
        ({"max_epochs": 0}, "max_epochs must be"),
        ({"algorithm": "Adam"}, "algorithm must be 'auto'"),
        ({"algorithm": "CSFW", "learning_rate": 1.0}, "has no learning rate"),
        ({"algorithm": adafw.CSFW(), "learning_rate": 1.0}, "learning_rate must be 'auto'"),
        ({"fit_intercept": "yes"}, "fit_intercept must be True or False"),
    ],
)
def test_bad_settings_are_named(settings, message):
    X, y = datasets.load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        FrankWolfeClassifier(**settings).fit(X, y)


def test_bad_targets_are_named():
    X = np.ones((4, 2))
    with pytest.raises(ValueError, match="Poisson takes targets y >= 0, got -1"):
        FrankWolfeRegressor("poisson").fit(X, [1, -1, 2, 3])
    with pytest.raises(ValueError, match="at least two classes"):
        FrankWolfeClassifier().fit(X, [1, 1, 1, 1])
    with pytest.raises(ValueError, match="at least two classes"):
        FrankWolfeClassifier().fit(X, [1, 1, 2, 2], sample_weight=[1, 1, 0, 0])
    with pytest.raises(AttributeError, match="predict_proba"):
        _ = FrankWolfeClassifier("squared_hinge").predict_proba


def test_probabilities():
    X, y = datasets.load_iris(return_X_y=True)
    for target in (y, y == 1):
        model = FrankWolfeClassifier(radius=3.0).fit(X, target)
        p = model.predict_proba(X)
        np.testing.assert_allclose(p.sum(axis=1), 1)
        np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
        np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), p)


def test_pipeline_search_and_jobs():
    X, y = datasets.load_breast_cancer(return_X_y=True)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), FrankWolfeClassifier()),
        {"frankwolfeclassifier__radius": [1.0, 10.0]}, cv=3, n_jobs=2,
    ).fit(X, y)  # fmt: skip
    assert search.best_score_ > 0.96
    scores = cross_val_score(
        LogisticRegression(max_iter=5000), StandardScaler().fit_transform(X), y
    )
    assert search.best_score_ > scores.mean() - 0.02


def test_pickle_joblib_clone(tmp_path):
    X, y = datasets.load_iris(return_X_y=True)
    model = FrankWolfeClassifier(radius=5.0, constraint="l2", multi_class="ovr").fit(X, y)
    joblib.dump(model, tmp_path / "m.joblib")
    for copy in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "m.joblib")):
        np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
        assert copy.trace_[0][-1].gap == model.gap_[0]
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(AttributeError):
        _ = clone(model).coef_


def test_metadata_routing():
    from sklearn import config_context

    X, y = datasets.load_iris(return_X_y=True)
    weight = np.where(y == 0, 0.1, 1.0)
    with config_context(enable_metadata_routing=True):
        model = FrankWolfeClassifier(radius=5.0).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipe = make_pipeline(scaler, model).fit(X, y, sample_weight=weight)
    plain = FrankWolfeClassifier(radius=5.0)
    plain.fit(StandardScaler().fit_transform(X), y, sample_weight=weight)
    np.testing.assert_array_equal(pipe[-1].coef_, plain.coef_)


def test_feature_names():
    frame = datasets.load_iris(as_frame=True)
    model = FrankWolfeClassifier(radius=5.0).fit(frame.data, frame.target)
    assert list(model.feature_names_in_) == list(frame.data.columns)
    assert model.n_features_in_ == 4
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.data.rename(columns=str.upper))


def test_same_seed_same_bits():
    X, y = text_like(200, 300)
    fits = [
        FrankWolfeClassifier(
            algorithm="AdaCSFW", learning_rate=10.0, radius=10.0, tol=5e-2, random_state=s
        ).fit(X, y)
        for s in (3, 3, 4)
    ]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert not np.array_equal(fits[0].coef_, fits[2].coef_)


def test_stream_reaches_the_batch_solution():
    X, y = datasets.make_classification(4000, 20, n_informative=5, random_state=1)
    model = FrankWolfeClassifier(radius=1.0)
    for epoch in range(5):
        order = np.random.default_rng(epoch).permutation(len(y))
        for part in np.array_split(order, 10):
            model.partial_fit(X[part], y[part], classes=[0, 1])
    batch = FrankWolfeClassifier(radius=1.0).fit(X, y)
    assert objective(model, X, 2 * y - 1) <= batch.value_ + 0.01
    assert np.abs(model.coef_).sum() <= 1.0 * (1 + 1e-9)
    assert np.isnan(model.gap_)
    assert model.status_ == "streaming"
    json.dumps(model.n_iter_)


def test_stream_goes_on_from_a_fit():
    X, y = datasets.load_diabetes(return_X_y=True)
    model = FrankWolfeRegressor(radius=1000.0, constraint="l1").fit(X, y)
    before = model.score(X, y)
    model.partial_fit(X, y)
    assert model.score(X, y) > before - 0.05


def test_stream_says_what_it_needs():
    X, y = datasets.load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="classes must be given at the first call"):
        FrankWolfeClassifier().partial_fit(X, y)
    model = FrankWolfeClassifier(learning_rate=0.1).partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="labels among classes"):
        model.partial_fit(X, y + 1)
    with pytest.raises(ValueError, match="classes must be the same"):
        model.partial_fit(X, y, classes=[0, 1])


@pytest.mark.parametrize("classes", [[2, 0, 1], [1, 1, 2, 0, 0], np.array([0.0, 2.0, 1.0])])
def test_classes_of_a_stream_may_stand_in_any_order(classes):
    X, y = datasets.load_iris(return_X_y=True)
    one, other = (FrankWolfeClassifier(learning_rate=0.1, radius=2.0) for _ in range(2))
    for first in (True, False):
        one.partial_fit(X, y, classes=[0, 1, 2] if first else None)
        other.partial_fit(X, y, classes=classes)
    np.testing.assert_array_equal(other.classes_, [0, 1, 2])
    np.testing.assert_array_equal(other.coef_, one.coef_)
    for wrong in ([2, 0], [3, 2, 1, 0], [1, 2, 3]):
        with pytest.raises(ValueError, match="classes must be the same"):
            other.partial_fit(X, y, classes=wrong)


@pytest.mark.parametrize("how", ["fit", "partial_fit"])
def test_a_loss_given_as_an_object_is_the_same_as_its_name(how):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = rng.poisson(np.exp(X @ [0.3, -0.5, 0.2] + 0.7)).astype(float)
    named, given = (FrankWolfeRegressor(loss, radius=0.5) for loss in ("poisson", losses.Poisson()))
    for model in (named, given):
        getattr(model, how)(X, y)
        assert model.__sklearn_tags__().target_tags.positive_only
    np.testing.assert_array_equal(given.predict(X), named.predict(X))
    np.testing.assert_allclose(given.predict(X), np.exp(X @ given.coef_ + given.intercept_))
    assert not FrankWolfeRegressor(losses.Huber()).__sklearn_tags__().target_tags.positive_only
    labels = (y > y.mean()).astype(int)
    named, given = (
        getattr(FrankWolfeClassifier(loss, radius=0.5), how)(X, labels, *[[0, 1]] * (how != "fit"))
        for loss in ("logistic", losses.Logistic())
    )
    np.testing.assert_array_equal(given.predict_proba(X), named.predict_proba(X))
    assert not hasattr(FrankWolfeClassifier(losses.SquaredHinge()), "predict_proba")
    assert not hasattr(FrankWolfeClassifier("squared_hinge"), "predict_proba")


def test_a_penalty_is_matched_for_a_loss_given_as_an_object():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = X @ [1.0, -2.0, 0.5] + rng.normal(size=80)
    named = matching_penalty(X, y, 1.0, loss="squared")
    assert matching_penalty(X, y, 1.0, loss=losses.Squared()) == named


def test_short_and_python_names_mean_the_same():
    X, y = datasets.load_iris(return_X_y=True)
    settings = dict(radius=2.0, constraint_params={"k": 2})
    short = FrankWolfeClassifier("squared_hinge", constraint="ksparse", **settings).fit(X, y)
    long = FrankWolfeClassifier("SquaredHinge", constraint="KSparse", **settings).fit(X, y)
    np.testing.assert_array_equal(short.coef_, long.coef_)
    assert long.loss_ == losses.SquaredHinge()
    low, high = np.zeros(4), np.array([1.0, 2.0, 0.5, 0.0])
    box = FrankWolfeRegressor(constraint="box", constraint_params={"lower": low, "upper": high})
    box.fit(X, y)
    given = FrankWolfeRegressor(constraint=adafw.Box(low, high)).fit(X, y)
    np.testing.assert_array_equal(box.coef_, given.coef_)
    assert FrankWolfeRegressor("Poisson").__sklearn_tags__().target_tags.positive_only
    assert hasattr(FrankWolfeClassifier("Logistic"), "predict_proba")
    assert not hasattr(FrankWolfeClassifier("SmoothedHinge"), "predict_proba")


def test_jobs_change_nothing():
    X, y = datasets.load_digits(return_X_y=True)
    settings = dict(radius=1.0, multi_class="ovr")
    one, two = (FrankWolfeClassifier(n_jobs=n, **settings).fit(X, y) for n in (None, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.gap_, two.gap_)
    with pytest.raises(ValueError, match="n_jobs must be None or an integer other than 0"):
        FrankWolfeClassifier(n_jobs=0).fit(X, y)


def test_max_seconds_bounds_all_classes():
    X, y = datasets.load_iris(return_X_y=True)
    model = FrankWolfeClassifier(
        algorithm="CSFW", tol=0, max_epochs=1e12, max_seconds=0.2, radius=1.0
    )
    with pytest.warns(ConvergenceWarning) as seen:
        model.fit(X, y)
    assert model.status_ == ["max_seconds", "not started", "not started"]
    told = [str(w.message) for w in seen]
    assert "the time is up" in told[0]
    assert "2 of 3 classes were not started" in told[1]
    assert seen[0].filename == __file__
    assert model.predict(X).shape == y.shape
    with pytest.raises(ValueError, match="max_seconds must be a number that is finite and > 0"):
        FrankWolfeClassifier(max_seconds=-1).fit(X, y)


def test_verbose_shows_a_line(capsys):
    X, y = datasets.load_iris(return_X_y=True)
    settings = dict(algorithm="CSFW", tol=0, max_epochs=1e12, max_seconds=2.5, radius=1.0)
    for verbose in (0, 1):
        with pytest.warns(ConvergenceWarning):
            FrankWolfeClassifier(verbose=verbose, **settings).fit(X, y == 1)
        shown = capsys.readouterr().err
        assert bool(shown) == bool(verbose)
    assert shown.startswith("gap ")
    assert "epochs" in shown
