"""The company models keep: frames with names, sparse formats, pipelines, searches, ensembles."""

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import VotingClassifier, VotingRegressor
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from adafw.sklearn import FrankWolfeClassifier, FrankWolfeRegressor, matching_penalty, radius_path
from sklearn import config_context, datasets


@pytest.fixture(scope="module")
def cancer():
    """A data frame of standardised features, and text labels as a Series."""
    data = datasets.load_breast_cancer(as_frame=True)
    X = (data.data - data.data.mean()) / data.data.std()
    return X, data.target.map({0: "malignant", 1: "benign"})


def polars_frame(frame):
    polars = pytest.importorskip("polars")
    return polars.DataFrame({name: frame[name].to_numpy() for name in frame})


@pytest.mark.parametrize("convert", [lambda frame: frame, polars_frame], ids=["pandas", "polars"])
def test_frames_of_either_kind_are_one_model(cancer, convert):
    X, y = cancer
    frame = convert(X)
    plain = FrankWolfeClassifier(radius=3.0).fit(X.to_numpy(), y.to_numpy())
    model = FrankWolfeClassifier(radius=3.0).fit(frame, y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert list(model.feature_names_in_) == list(X.columns)
    assert not hasattr(plain, "feature_names_in_")
    np.testing.assert_array_equal(model.predict(frame), plain.predict(X.to_numpy()))
    turned = convert(X[X.columns[::-1]])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(turned)
    path = radius_path(frame, y, radii=[1.0, 3.0])
    assert list(path.models[0].feature_names_in_) == list(X.columns)
    assert matching_penalty(frame, y, 3.0) == matching_penalty(X.to_numpy(), y, 3.0)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_set_output_brings_names_to_the_model(cancer, kind):
    pytest.importorskip(kind)
    X, y = cancer
    pipe = make_pipeline(
        StandardScaler(), SelectFromModel(FrankWolfeClassifier(radius=3.0)),
        FrankWolfeClassifier(radius=2.0),
    ).set_output(transform=kind)  # fmt: skip
    pipe.fit(X, y)
    kept = [X.columns[j] for j in np.flatnonzero(pipe[1].estimator_.coef_[0])]
    assert list(pipe[-1].feature_names_in_) == kept
    assert list(pipe[:-1].get_feature_names_out()) == kept


def test_names_of_categories(cancer):
    import pandas

    X, y = cancer
    table = pandas.DataFrame(
        {"size": pandas.qcut(X["mean area"], 3, labels=["s", "m", "l"]), "t": X["mean texture"]}
    )
    encode = make_column_transformer((OneHotEncoder(), ["size"]), remainder="passthrough")
    pipe = make_pipeline(encode, FrankWolfeClassifier(radius=5.0)).fit(table, y)
    names = pipe[:-1].get_feature_names_out()
    assert len(names) == pipe[-1].coef_.shape[1] == 4
    # Classes are in the order of the alphabet: a large one speaks for malignant.
    assert names[pipe[-1].coef_[0].argmax()] == "onehotencoder__size_l"


FORMATS = ("csr", "csc", "coo", "lil", "dok", "bsr")


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("as_array", [True, False])
def test_every_sparse_format(cancer, kind, as_array):
    X, y = cancer
    X = np.where(np.abs(X.to_numpy()) > 0.5, X.to_numpy(), 0)
    given = getattr(sparse, f"{kind}_{'array' if as_array else 'matrix'}")(X)
    model = FrankWolfeClassifier(radius=2.0).fit(given, y)
    same = FrankWolfeClassifier(radius=2.0).fit(sparse.csr_array(X), y)
    np.testing.assert_array_equal(model.coef_, same.coef_)
    np.testing.assert_array_equal(model.predict(given), same.predict(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("algorithm", ["auto", "AdaCSFW", "CSFW"])
def test_indices_of_either_width(kind, algorithm):
    rng = np.random.default_rng(0)
    X = sparse.random_array((200, 800), density=0.05, rng=rng, format="csr")
    y = X @ rng.normal(size=800) > 0
    X.indices, X.indptr = X.indices.astype(kind), X.indptr.astype(kind)
    settings = dict(radius=20.0, algorithm=algorithm, tol=1e-2, max_epochs=20)
    if algorithm == "AdaCSFW":
        settings["learning_rate"] = 0.1
    model = FrankWolfeClassifier(**settings).fit(X, y)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    np.testing.assert_array_equal(model.coef_, FrankWolfeClassifier(**settings).fit(X, y).coef_)


def test_search_in_processes(cancer):
    X, y = cancer
    pipe = Pipeline([("scale", StandardScaler()), ("model", FrankWolfeClassifier())])
    grid = {"model__radius": [0.5, 4.0], "model__constraint": ["l1", "l2"]}
    search = GridSearchCV(pipe, grid, cv=2, scoring="neg_log_loss")
    alone = search.fit(X, y).cv_results_["mean_test_score"]
    with joblib.parallel_config("loky", n_jobs=2):
        together = search.fit(X, y).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(alone, together)


def test_voting_and_calibration(cancer):
    X, y = cancer
    soft = VotingClassifier(
        [("a", FrankWolfeClassifier(radius=2.0)), ("b", LogisticRegression())], voting="soft"
    ).fit(X[::2], y[::2])
    parts = [m.predict_proba(X[1::2]) for m in soft.estimators_]
    np.testing.assert_allclose(soft.predict_proba(X[1::2]), np.mean(parts, axis=0))
    # A small radius is shy; the calibrated model says what the data say.
    shy = FrankWolfeClassifier(radius=0.3).fit(X[::2], y[::2])
    sure = CalibratedClassifierCV(FrankWolfeClassifier(radius=0.3), cv=3).fit(X[::2], y[::2])
    before, after = (log_loss(y[1::2], m.predict_proba(X[1::2])) for m in (shy, sure))
    assert after < 0.8 * before
    hinge = CalibratedClassifierCV(FrankWolfeClassifier("squared_hinge", radius=2.0), cv=3)
    p = hinge.fit(X[::2], y[::2]).predict_proba(X[1::2])
    np.testing.assert_allclose(p.sum(axis=1), 1)


def test_voting_of_regressors():
    X, y = datasets.load_diabetes(return_X_y=True, as_frame=True)
    both = VotingRegressor(
        [("a", FrankWolfeRegressor(radius=500.0)), ("b", LinearRegression())]
    ).fit(X, y)
    mean = np.mean([m.predict(X) for m in both.estimators_], axis=0)
    np.testing.assert_allclose(both.predict(X), mean)


@pytest.mark.parametrize("make", [FrankWolfeClassifier, FrankWolfeRegressor])
def test_weights_are_routed_through_searches_to_fit_and_score(cancer, make):
    X, y = cancer
    target = (y == "benign").to_numpy().astype(float)
    weight = np.random.default_rng(0).random(len(y)) + 0.1
    with config_context(enable_metadata_routing=True):
        model = make(radius=1.0).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        found = cross_validate(
            model, X, target, cv=2, params={"sample_weight": weight}, return_estimator=True,
            return_indices=True,
        )  # fmt: skip
    for k in range(2):
        train, test = found["indices"]["train"][k], found["indices"]["test"][k]
        alone = make(radius=1.0)
        alone.fit(X.iloc[train], target[train], sample_weight=weight[train])
        np.testing.assert_array_equal(found["estimator"][k].coef_, alone.coef_)
        score = alone.score(X.iloc[test], target[test], sample_weight=weight[test])
        assert found["test_score"][k] == score
