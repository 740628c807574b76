"""Data that need no check: told at once, and fitted as by way of scikit-learn's checks."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets

import adafw.sklearn.base as base
from adafw.sklearn import FrankWolfeClassifier, FrankWolfeRegressor
from adafw.sklearn.plain import are_labels, is_plain

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 5))
Y = np.where(X @ RNG.normal(size=5) + RNG.normal(size=60) > 0, 1, -1)

FORMS = {
    "dense": X,
    "single": X.astype(np.float32),
    "by columns": np.asfortranarray(X),
    "every other row": np.repeat(X, 2, axis=0)[::2],
    "csr_array": sparse.csr_array(X),
    "csr_matrix": sparse.csr_matrix(X),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("model", "y"), [(FrankWolfeClassifier, Y), (FrankWolfeClassifier, Y > 0),
                         (FrankWolfeClassifier, Y.astype(str)), (FrankWolfeRegressor, 0.3 * Y),
                         (FrankWolfeRegressor, Y)])  # fmt: skip
def test_the_short_way_leads_to_the_same(form, model, y, monkeypatch):
    assert is_plain(FORMS[form], y)
    short = model(radius=0.1).fit(FORMS[form], y)
    monkeypatch.setattr(base, "is_plain", lambda X, y: False)
    long = model(radius=0.1).fit(FORMS[form], y)
    assert short.coef_.dtype == long.coef_.dtype
    np.testing.assert_array_equal(short.coef_, long.coef_)
    assert short.n_features_in_ == long.n_features_in_ == 5
    assert short.gap_ == long.gap_


def bad(change, at=X, dtype=None):
    found = at.copy() if dtype is None else at.astype(dtype)
    found[3, 2] = change
    return found


@pytest.mark.parametrize(
    ("rows", "y"),
    [
        (bad(np.nan), Y), (bad(np.inf), Y), (bad(-np.inf), Y), (bad(np.nan, dtype=np.float32), Y),
        (sparse.csr_array(bad(np.nan)), Y), (X.astype(int), Y), (X[0], Y[:5]), (X[None], Y[:1]),
        (X, Y[:-1]), (X, Y[:, None]), (X, Y.astype(object)), (X, Y.astype(bytes)),
        (X, Y.tolist()), (X.tolist(), Y), (X[:0], Y[:0]), (X[:, :0], Y), (X + 0j, Y), (X, Y + 0j),
        (X, np.where(Y > 0, np.nan, 1.0)), (X, np.where(Y > 0, np.inf, 1.0)),
        (X.astype(">f8"), Y), (sparse.csc_array(X), Y), (sparse.csr_array(X.astype(int)), Y),
        (np.full((2, 2), 1e308), np.array([0, 1])), (X.astype(np.float16), Y), (None, Y), (X, None),
        (np.ma.masked_array(X), Y),
    ],
)  # fmt: skip
def test_whatever_is_not_known_to_be_fine_is_checked(rows, y):
    assert not is_plain(rows, y)


def test_names_of_an_earlier_fit_are_forgotten():
    pandas = pytest.importorskip("pandas")
    model = FrankWolfeClassifier().fit(pandas.DataFrame(X, columns=list("abcde")), Y)
    assert list(model.feature_names_in_) == list("abcde")
    model.fit(X[:, :4].copy(), Y)
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 4
    with pytest.raises(ValueError, match="5 features"):
        model.predict(X)


@pytest.mark.parametrize("y", [
    Y, Y > 0, Y.astype(str), Y.astype(float), np.arange(60) % 7, (np.arange(60) % 30).astype(float),
    np.uint8(Y > 0), Y.astype(np.float32), Y.astype(np.float16),
])  # fmt: skip
def test_labels_beyond_doubt_are_labels(y):
    assert are_labels(y, np.unique(y))
    check_classification_targets(y)


@pytest.mark.parametrize("y", [
    Y + 0.5, np.where(np.arange(60) == 7, 0.1, 1.0), np.linspace(0, 1, 60), Y.astype(bytes),
    np.arange(60), np.where(Y > 0, 2.0**60, 0.0), np.where(Y > 0, np.nan, 1.0), np.array([1, 2]),
    np.stack([Y, Y], axis=1), Y + 0j,
])  # fmt: skip
def test_others_are_left_to_scikit_learn(y):
    assert not are_labels(y, np.unique(y))


def test_a_continuous_target_is_refused():
    with pytest.raises(ValueError, match="continuous"):
        FrankWolfeClassifier().fit(X, X[:, 0])
