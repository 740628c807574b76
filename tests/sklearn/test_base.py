"""What models tell of their fits, where a wrong entry would look like a right one."""

import os
import signal
import threading
import warnings
from copy import deepcopy

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import adafw
from adafw.sklearn import (
    FrankWolfeClassifier,
    FrankWolfeRegressor,
    FrankWolfeRegressorCV,
    MatrixCompletion,
    radius_path,
)


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
        assert model.value_[k] - model.gap_[k] <= model.lower_bound_[k] < model.value_[k]
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


def test_ctrl_c_ends_searches_and_pipelines_too():
    """What was reached is not kept for them: the interrupt goes on."""
    X, y = data(m=300)
    model = FrankWolfeClassifier(algorithm="CSFW", tol=0, max_epochs=1e9, max_seconds=100)
    strike = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    strike.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    strike.join()
    assert not hasattr(model, "coef_")


def test_weights_of_zero_and_classes_of_one_kind_are_refused():
    X, y = data()
    with pytest.raises(ValueError, match=r"sample_weight must not be 0|at least one non-zero"):
        FrankWolfeRegressor().fit(X, y, sample_weight=np.zeros(len(y)))
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        FrankWolfeRegressor().fit(X, y, sample_weight=-np.ones(len(y)))
    with pytest.raises(ValueError, match=r"classes must hold at least two classes, got \[0\]"):
        FrankWolfeClassifier().partial_fit(X, 0 * y, classes=[0, 0])


def test_a_stream_on_a_set_without_projection_makes_frank_wolfe_steps():
    """Coefficients stay in the set; where it has one, steps are projected ones."""
    X, _ = data(m=200)
    ball = adafw.L2Ball(0.3)
    bare = adafw.UserSet(ball.lmo, lambda s, d: np.zeros(s, d), ball.contains)
    model = FrankWolfeRegressor(constraint=bare, learning_rate=0.5).partial_fit(X, X[:, 0])
    assert model.algorithm_.startswith("AdaSFW")
    assert 0 < np.linalg.norm(model.coef_) <= 0.3 * (1 + 1e-9)
    plain = FrankWolfeRegressor(constraint="l2", radius=0.3, learning_rate=0.5)
    assert plain.partial_fit(X, X[:, 0]).algorithm_.startswith("AdaGrad")

    class Round(adafw.L2Ball):
        projection = "euclidean"  # and in no other metric

    plain.set_params(constraint=Round(0.3))
    assert clone(plain).partial_fit(X, X[:, 0]).algorithm_.startswith("AdaSFW")


@pytest.mark.parametrize(("multi_class", "joint"), [("auto", True), ("ovr", False)])
def test_classes_of_a_stream_are_one_problem_where_those_of_a_fit_are(multi_class, joint):
    X, y = data()
    model = FrankWolfeClassifier(learning_rate=0.3, multi_class=multi_class)
    model.partial_fit(X, y, classes=[0, 1, 2])
    assert isinstance(model.loss_, adafw.losses.Softmax) == joint
    assert model.coef_.shape == (3, 4)
    fitted = FrankWolfeClassifier(radius=2.0, multi_class=multi_class).fit(X, y)
    assert type(fitted.loss_) is type(model.loss_)


def test_a_stream_goes_on_from_where_it_was_and_from_a_fit():
    """Nothing certified is left of the fit; its coefficients and intercepts are the start."""
    X, y = data(m=200)
    for target, kind in ((y, FrankWolfeClassifier), (X[:, 0] + 2, FrankWolfeRegressor)):
        fitted = kind(radius=0.5).fit(X, target).set_params(learning_rate=1e-9)
        coef, intercept = fitted.coef_.copy(), np.copy(fitted.intercept_)
        assert fitted.partial_fit(X, target).status_ == "streaming"
        np.testing.assert_allclose(fitted.coef_, coef, atol=1e-6)
        np.testing.assert_allclose(fitted.intercept_, intercept, atol=1e-6)
        assert np.isnan([fitted.gap_, fitted.value_, fitted.lower_bound_]).all()
        assert fitted.trace_ is None
        assert fitted.learning_rate_ == 1e-9
        assert fitted.violation_ <= 1e-9
        again = fitted.set_params(learning_rate="auto").fit(X, target)
        assert again.status_ == "converged"
        again.set_params(learning_rate=1.0)
        assert again.partial_fit(X, target).n_iter_ == 4  # a stream of its own, begun anew


def test_the_violation_of_a_stream_is_that_of_the_class_furthest_outside():
    """A fit is gone on from in a smaller set, which Frank-Wolfe steps only draw nearer to."""
    X, y = data(m=200)
    fitted = FrankWolfeClassifier(radius=2.0, multi_class="ovr").fit(X, y)
    norms = np.sort(np.linalg.norm(fitted.coef_, axis=1))
    assert norms[0] < 0.99 * norms[2]
    outside = []
    for radius in (0.5 * norms[0], norms[[0, 2]].mean(), 2 * norms[2]):
        ball = adafw.L2Ball(radius)
        bare = adafw.UserSet(ball.lmo, lambda s, d: np.zeros(s, d), ball.contains)
        model = deepcopy(fitted).set_params(constraint=bare, learning_rate=1e-9)
        assert model.partial_fit(X, y).algorithm_.startswith("AdaSFW")
        outside.append(sum(not ball.contains(row) for row in model.coef_))
        assert model.violation_ == (np.inf if outside[-1] else 0)
    assert 0 < outside[1] < outside[0] == 3
    assert outside[2] == 0


def test_docstrings_say_what_every_option_is():
    words = " ".join(FrankWolfeClassifier.__doc__.split())
    for said in (
        'loss : "logistic", ', "; or one of `adafw.losses`. constraint : the set of the",
        '"l1", ', "tol : stop when gap <= tol * max(|objective|, 1e-12).",
        "random_state : seed of the batches.", "verbose : above 0, show a live line",
        'class_weight : None, "balanced" (by rarity) or {class: weight}.',
        "warm_start : start from the coefficients of the last fit.",
        "groups for group; shape for nuclear;", "k (10 if left out) for ksparse",
    ):  # fmt: skip
        assert said in words, said
    assert '"squared", ' in FrankWolfeRegressor.__doc__
    assert '"squared", ' not in FrankWolfeClassifier.__doc__
    assert "    rule : " in FrankWolfeRegressorCV.__doc__


def test_warnings_point_at_the_line_that_fits():
    X, y = data()
    triples = np.column_stack([np.arange(90) % 9, np.arange(90) // 9, X[:, 0]])
    late = dict(algorithm="FW", max_epochs=2, tol=1e-12)
    for fit in (
        lambda: FrankWolfeClassifier(multi_class="ovr", **late).fit(X, y),
        lambda: FrankWolfeRegressor(radius=1e5).fit(X, y),
        lambda: FrankWolfeRegressorCV(radii=[0.1], cv=2, **late).fit(X, y),
        lambda: MatrixCompletion(3.0, tol=1e-12, max_iter=1).fit(triples),
        lambda: radius_path(X, y, eps=0.05, estimator=FrankWolfeRegressor(**late)),
    ):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            fit()
        assert seen
        assert {warning.filename for warning in seen} == {__file__}


def test_a_search_has_seven_tenths_of_the_time(monkeypatch, clock):
    from adafw.sklearn import completion, search

    X, _ = data()
    asked = []

    def told(problem, count, deadline):
        asked.append((count, deadline.left))
        raise ZeroDivisionError

    monkeypatch.setattr(search, "find_radii", told)
    for limit in (100.0, None):
        with pytest.raises(ZeroDivisionError):
            FrankWolfeRegressorCV(radii=7, cv=2, max_seconds=limit).fit(X, X[:, 0])
    assert asked == [(7, pytest.approx(70.0)), (7, np.inf)]

    def walked(*given):
        asked.append(given[-2].left)
        raise ZeroDivisionError

    monkeypatch.setattr(completion, "walk", walked)
    triples = np.column_stack([np.arange(90) % 9, np.arange(90) // 9, X[:, 0]])
    with pytest.raises(ZeroDivisionError):
        MatrixCompletion(max_seconds=100.0).fit(triples)
    assert asked[2] == pytest.approx(80.0)


def test_a_line_is_shown_if_asked_for(monkeypatch):
    """From verbose=1 on, with the tolerance and the number of fits; it is wiped in the end."""
    from adafw.sklearn import base

    made = []

    class Line:
        def __init__(self, tol, n_fits, show, status):
            made.append((tol, n_fits, show, status()))

        def __call__(self, k, record):
            made.append("record")

        def close(self):
            made.append("closed")

    monkeypatch.setattr(base, "Live", Line)
    X, y = data()
    for verbose in (0, 1):
        made.clear()
        FrankWolfeClassifier(verbose=verbose, multi_class="ovr", tol=1e-3, radius=1.0).fit(X, y)
        assert made[0] == (1e-3, 3, verbose == 1, "")
        assert set(made[1:-1]) == {"record"}
        assert made[-1] == "closed"


def test_dtypes_are_kept_and_sparse_rows_are_taken():
    X, y = data()
    for kind, target in ((FrankWolfeClassifier, y), (FrankWolfeRegressor, X[:, 0])):
        small = kind(radius=1.0).fit(X.astype(np.float32), target)
        assert small.coef_.dtype == np.asarray(small.intercept_).dtype == np.float32
        assert kind(radius=1.0).fit(X, target).coef_.dtype == np.float64
        whole = (10 * X).astype(int)
        assert kind(radius=0.01).fit(whole, target).coef_.dtype == np.float64
        assert kind().__sklearn_tags__().input_tags.sparse
        stream = kind(radius=1.0, learning_rate=0.1)
        first = {"classes": [0, 1, 2]} if kind is FrankWolfeClassifier else {}
        stream.partial_fit(X, target, **first)
        with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4"):
            stream.partial_fit(X[:, :3], target)


def test_logarithms_of_probabilities_may_be_minus_infinity():
    model = FrankWolfeClassifier(radius=3.0).fit([[-1.0], [1.0]] * 5, [0, 1] * 5)
    far = model.predict_log_proba([[-1e5], [0.5]])
    assert far[0].tolist() == [0.0, -np.inf]
    np.testing.assert_allclose(far[1], np.log(model.predict_proba([[0.5]])[0]))
