"""What models tell of their fits, where a wrong entry would look like a right one."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from adafw.sklearn import FrankWolfeClassifier, FrankWolfeRegressor, FrankWolfeRegressorCV


def data(m=90, n=4, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    return X, (X[:, :classes] + 0.7 * rng.normal(size=(m, classes))).argmax(axis=1)


def told(fit):
    """Categories of all warnings."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        fit()
    return [warning.category for warning in seen]


def test_a_radius_without_effect_is_no_failure_to_converge():
    X, y = data()
    assert told(lambda: FrankWolfeClassifier(radius=1e4).fit(X, y)) == [UserWarning]
    late = FrankWolfeClassifier(radius=0.5, tol=1e-12, max_epochs=1, multi_class="ovr")
    assert told(lambda: late.fit(X, y)) == [ConvergenceWarning]


def test_every_class_has_its_own_numbers():
    """One against the rest, of classes that differ in size: in the order of the classes."""
    X, y = data()
    model = FrankWolfeClassifier(multi_class="ovr", radius=2.0, tol=1e-6).fit(X, y)
    for k in range(3):
        one = FrankWolfeClassifier(radius=2.0, tol=1e-6).fit(X, y == k)
        np.testing.assert_allclose(model.coef_[k], one.coef_[0], rtol=1e-9)
        assert model.intercept_[k] == pytest.approx(one.intercept_[0], rel=1e-9)
        for name in ("value_", "gap_", "lower_bound_", "violation_", "n_iter_"):
            assert getattr(model, name)[k] == pytest.approx(getattr(one, name), rel=1e-9), name
        assert model.status_[k] == one.status_ == "converged"
        assert model.trace_[k][-1].value == pytest.approx(one.trace_[-1].value)
    assert len(set(model.value_.round(6))) == 3


@pytest.mark.filterwarnings("ignore:the fit stopped")
def test_a_warm_start_is_where_the_last_fit_ended():
    X, y = data()

    def begun(y, **changes):
        """Non-zeros where each class begins, after a fit to classes 0, 1 and 2."""
        model = FrankWolfeClassifier(radius=2.0, max_epochs=1e-9, multi_class="ovr", **changes)
        model.coef_, model.classes_ = np.arange(12.0).reshape(3, 4) / 50, np.arange(3)
        return [trace[0].nonzeros for trace in model.fit(X, y).trace_]

    assert begun(y, warm_start=True) == [3, 4, 4]
    assert begun(y) == [0, 0, 0]
    # Of classes that have another meaning nothing is taken over.
    assert begun(np.array(["a", "b", "c"])[y], warm_start=True) == [0, 0, 0]


def test_a_stream_has_one_intercept_and_one_step_count():
    X, _ = data(m=200)
    model = FrankWolfeRegressor(radius=1.0, learning_rate=0.1)
    for calls in (1, 2):
        model.partial_fit(X, X[:, 0])
        assert model.n_iter_ == 4 * calls  # 200 rows are four batches of at most 64
    fixed = FrankWolfeRegressor(radius=1.0, learning_rate=0.1, fit_intercept=False)
    assert fixed.partial_fit(X, X[:, 0] + 3).intercept_ == 0


def test_weights_of_classes_count_in_a_stream_as_those_of_samples():
    X, y = data(m=150, classes=2)
    given = dict(radius=1.0, learning_rate=0.1)

    def coef(class_weight=None, sample_weight=None):
        model = FrankWolfeClassifier(class_weight=class_weight, **given)
        return model.partial_fit(X, y, classes=[0, 1], sample_weight=sample_weight).coef_

    weighed = coef({0: 1.0, 1: 5.0})
    np.testing.assert_allclose(weighed, coef(sample_weight=np.where(y == 1, 5.0, 1.0)), rtol=1e-12)
    assert np.abs(weighed - coef()).max() > 1e-3


def test_a_seed_is_a_number_a_generator_or_none():
    X, y = data()
    given = dict(algorithm="SFW", max_epochs=2, radius=2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, same, other = (
            FrankWolfeClassifier(**given, random_state=s).fit(X, y).coef_
            for s in (5, np.random.RandomState(5), 6)
        )
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
    # The same on every platform, also where a long has 32 bits.
    for seed in range(8):
        wanted = np.random.RandomState(seed).randint(2**31 - 1)
        assert FrankWolfeClassifier(random_state=seed)._settings().seed == wanted


def test_what_a_search_leaves_over_has_all_of_its_settings():
    X, _ = data()
    model = FrankWolfeRegressorCV(
        "huber", delta=0.3, radii=[0.1, 1.0], cv=3, constraint="l2", tol=1e-3, random_state=4
    ).fit(X, X[:, 0])
    plain = model.without_search()
    assert (plain.loss, plain.delta, plain.constraint) == ("huber", 0.3, "l2")
    assert (plain.tol, plain.random_state) == (1e-3, 4)
    assert plain.radius == model.radius_
    np.testing.assert_allclose(plain.fit(X, X[:, 0]).coef_, model.coef_, rtol=1e-9)
