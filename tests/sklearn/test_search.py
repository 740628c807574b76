"""A radius chosen by folds: equal to doing it by hand, and found where radii matter."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from adafw.fitting import Deadline
from adafw.fitting.radii import _Walk
from adafw.sklearn import (
    FrankWolfeClassifier,
    FrankWolfeClassifierCV,
    FrankWolfeRegressor,
    FrankWolfeRegressorCV,
    RadiusPathDisplay,
)
from sklearn import datasets

pytestmark = pytest.mark.filterwarnings("ignore:the radius:UserWarning")


@pytest.fixture(scope="module")
def cancer():
    X, y = datasets.load_breast_cancer(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), np.where(y == 1, "benign", "malignant")


@pytest.fixture(scope="module")
def diabetes():
    return datasets.load_diabetes(return_X_y=True)


def test_scores_are_those_of_single_fits(diabetes):
    X, y = diabetes
    radii, folds = [300.0, 30.0, 1500.0], KFold(4, shuffle=True, random_state=1)
    model = FrankWolfeRegressorCV(radii=radii, cv=folds, tol=1e-8).fit(X, y)
    np.testing.assert_array_equal(model.radii_, np.sort(radii))
    assert model.scores_.shape == model.values_.shape == model.gaps_.shape == (3, 4)
    for k, radius in enumerate(model.radii_):
        alone = cross_val_score(FrankWolfeRegressor(radius=radius, tol=1e-8), X, y, cv=folds)
        np.testing.assert_allclose(model.scores_[k], alone, atol=1e-5)
    assert model.radius_ == model.radii_[model.scores_.mean(axis=1).argmax()]
    assert (model.gaps_ <= 1e-8 * model.values_).all()  # certified at every radius
    last = FrankWolfeRegressor(radius=model.radius_, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, last.coef_, atol=1e-2)
    assert model.status_ == "converged"
    assert model.predict(X).shape == y.shape


@pytest.mark.parametrize("constraint", ["l1", "l2", "linf", "simplex"])
def test_radii_reach_from_no_effect_to_no_more(cancer, constraint):
    """Brute force at both ends: the least radius hardly helps, and twice the largest neither."""
    X, y = cancer
    rng = np.random.default_rng(0)
    y = np.where(rng.random(len(y)) < 0.1, y[rng.permutation(len(y))], y)  # not separable
    model = FrankWolfeClassifierCV(constraint=constraint, radii=6, cv=2, tol=1e-3).fit(X, y)
    share = np.mean(y == "benign")
    zero = -share * np.log(share) - (1 - share) * np.log(1 - share)
    least, last, more = (
        FrankWolfeClassifier(constraint=constraint, radius=r).fit(X, y).value_
        for r in (model.radii_[0], model.radii_[-1], 2 * model.radii_[-1])
    )
    assert zero - least <= 0.02 * zero
    assert last - more <= 0.01 * zero
    if constraint != "simplex":
        assert zero - last > 0.3 * zero
    np.testing.assert_allclose(np.diff(np.log(model.radii_), 2), 0, atol=1e-9)


def test_separable_data_end_where_two_percent_are_left(cancer):
    X, y = cancer
    X = np.hstack([X, np.where(y == "benign", 1.0, -1.0)[:, None]])
    model = FrankWolfeClassifierCV(radii=4, cv=2, tol=1e-3).fit(X, y)
    share = np.mean(y == "benign")
    zero = -share * np.log(share) - (1 - share) * np.log(1 - share)
    last, before = (
        FrankWolfeClassifier(radius=r).fit(X, y).value_
        for r in (model.radii_[-1], model.radii_[-1] / 1.6)
    )
    assert last <= 0.0201 * zero < before


@pytest.mark.parametrize(("constraint", "share"), [("l1", 0.2), ("l2", 0.2), ("linf", 1.0)])
def test_a_walk_starts_where_the_path_leads(cancer, constraint, share):
    X, y = cancer
    model = FrankWolfeClassifier(constraint=constraint)
    problem = model._problem(X, y, None)
    design, targets = problem.part()
    steps = _Walk(design, targets, problem.settings, Deadline(None))
    for radius in (1.0, 1.2):
        steps.to(radius, 1e-6)
    plan = targets.plan(replace(problem.settings, radius=1.44), design.rows.shape[1])
    f = design.risk(targets.vectors[0], plan.loss, True).f
    (start,), (plain,) = steps._starts(1.44, plan.constraint), steps.known[-1][1]
    assert not start[plain == 0].any()
    start = plan.constraint.project(start)
    best = f.value(FrankWolfeClassifier(constraint=constraint, radius=1.44).fit(X, y).coef_[0])
    assert f.value(start) - best < share * (f.value(plain) - best)


def test_one_standard_error(cancer):
    X, y = cancer
    settings = dict(radii=5, cv=3, tol=1e-3)
    best = FrankWolfeClassifierCV(**settings).fit(X, y)
    small = FrankWolfeClassifierCV(**settings, rule="one_se").fit(X, y)
    np.testing.assert_array_equal(best.scores_, small.scores_)
    mean = best.scores_.mean(axis=1)
    limit = mean.max() - best.scores_[mean.argmax()].std(ddof=1) / np.sqrt(3)
    assert best.radius_ == best.radii_[mean.argmax()]
    assert small.radius_ == small.radii_[mean >= limit].min()
    assert small.radius_ <= best.radius_


def test_jobs_weights_and_sparse_rows_change_what_they_should(cancer):
    X, y = cancer
    weight = np.random.default_rng(0).integers(1, 3, len(y)).astype(float)
    settings = dict(radii=[0.5, 5.0], cv=StratifiedKFold(3), scoring="neg_log_loss")
    one = FrankWolfeClassifierCV(**settings).fit(X, y, sample_weight=weight)
    two = FrankWolfeClassifierCV(**settings, n_jobs=2).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(one.scores_, two.scores_)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    rows = FrankWolfeClassifierCV(**settings).fit(sparse.csr_array(X), y, sample_weight=weight)
    np.testing.assert_allclose(rows.scores_, one.scores_, atol=1e-3)
    plain = FrankWolfeClassifierCV(**settings).fit(X, y)
    assert not np.allclose(plain.scores_, one.scores_, atol=1e-6)
    train, test = next(StratifiedKFold(3).split(X, y))
    alone = FrankWolfeClassifier(radius=5.0).fit(X[train], y[train], sample_weight=weight[train])
    p = alone.predict_proba(X[test])[np.arange(len(test)), (y[test] == "malignant").astype(int)]
    by_hand = np.average(np.log(p), weights=weight[test])
    assert one.scores_[1, 0] == pytest.approx(by_hand, abs=1e-4)


def test_a_function_may_score(diabetes):
    X, y = diabetes
    scoring = make_scorer(mean_absolute_error, greater_is_better=False)
    model = FrankWolfeRegressorCV(radii=[10.0, 1000.0], cv=2, scoring=scoring).fit(X, y)
    assert (model.scores_ < 0).all()
    assert model.radius_ == 1000.0


def test_weights_count_in_scores_by_name_and_are_kept_from_functions(diabetes):
    """A function of the user takes a model, rows and targets, and nothing else."""
    X, y = diabetes
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    train, test = next(KFold(2).split(X))

    def score(model, X, y):
        return -float(np.abs(model.predict(X) - y).mean())

    found = {}
    for scoring in (score, make_scorer(mean_absolute_error, greater_is_better=False),
                    "neg_mean_absolute_error"):  # fmt: skip
        model = FrankWolfeRegressorCV(radii=[10.0, 1000.0], cv=2, scoring=scoring)
        found[scoring] = model.fit(X, y, sample_weight=weight).scores_
    plain, made, named = found.values()
    np.testing.assert_allclose(made, plain, rtol=1e-12)
    alone = FrankWolfeRegressor(radius=1000.0).fit(X[train], y[train], sample_weight=weight[train])
    errors = np.abs(alone.predict(X[test]) - y[test])
    assert plain[1, 0] == pytest.approx(-errors.mean(), rel=1e-3)
    assert named[1, 0] == pytest.approx(-np.average(errors, weights=weight[test]), rel=1e-3)
    assert abs(named[1, 0] - plain[1, 0]) > 1e-2 * errors.mean()


def test_several_classes():
    X, y = datasets.load_iris(return_X_y=True)
    model = FrankWolfeClassifierCV(radii=5, cv=3, tol=1e-3).fit(X, y)
    assert model.coef_.shape == (3, 4)
    assert model.scores_.mean(axis=1).max() > 0.9
    assert model.score(X, y) > 0.9
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_time_is_shared_between_search_and_fit(cancer):
    X, y = cancer
    model = FrankWolfeClassifierCV(radii=[0.1, 1.0], cv=2, max_seconds=1e-6)
    with pytest.raises(ValueError, match="no radius has a finite score in every fold"):
        model.fit(X, y)
    long = FrankWolfeClassifierCV("squared_hinge", radii=[0.1, 1.0], cv=2, tol=0, max_epochs=1)
    with pytest.warns(ConvergenceWarning, match="the fit stopped before its tolerance") as seen:
        long.fit(X, y)
    assert "of 4 fits of the search: the fit stopped" in str(seen[0].message)
    assert np.isfinite(long.scores_).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rule": "worst"}, "rule must be 'best' or 'one_se', got 'worst'"),
        ({"radii": 0}, "radii must be an integer >= 1, got 0"),
        ({"radii": [1.0, 0.0]}, "radii must be a number of radii, or numbers > 0"),
        ({"radii": [1.0, np.inf]}, "radii must be a number of radii, or numbers > 0"),
        ({"radii": []}, "radii must be a number of radii, or numbers > 0"),
        ({"constraint": "box", "constraint_params": {"lower": 0, "upper": 1}},
         "constraint must be the name of a set with a radius"),
        ({"scoring": "beauty"}, "beauty"),
    ],
)  # fmt: skip
def test_bad_settings_are_named(cancer, settings, message):
    with pytest.raises(ValueError, match=message):
        FrankWolfeClassifierCV(**settings).fit(*cancer)


def test_a_fold_without_a_class_is_named(cancer):
    X, y = cancer
    order = np.argsort(y)
    with pytest.raises(ValueError, match="a fold without class"):
        FrankWolfeClassifierCV(radii=[1.0], cv=KFold(2)).fit(X[order][150:500], y[order][150:500])


def test_display_marks_the_choice(diabetes):
    import matplotlib
    from matplotlib import pyplot

    matplotlib.use("Agg")
    X, y = diabetes
    model = FrankWolfeRegressorCV(radii=4, cv=3, tol=1e-3).fit(X, y)
    shown = RadiusPathDisplay.from_estimator(model, X, y)
    np.testing.assert_array_equal(shown.radii, model.radii_)
    np.testing.assert_allclose(shown.scores, model.scores_.mean(axis=1))
    spread = [np.std(row, ddof=1) / np.sqrt(3) for row in model.scores_]
    np.testing.assert_allclose(shown.errors, spread)
    assert shown.ax_.lines[-1].get_xdata()[0] == model.radius_
    assert shown.coefs.shape == (4, 10)
    pyplot.close("all")
    with pytest.raises(
        TypeError, match="must be a FrankWolfeClassifierCV or FrankWolfeRegressorCV"
    ):
        RadiusPathDisplay.from_estimator(FrankWolfeRegressor(radius=50.0).fit(X, y), X, y)


def test_display_of_a_search_at_the_end_of_a_pipeline(diabetes):
    import matplotlib
    from matplotlib import pyplot

    matplotlib.use("Agg")
    X, y = diabetes
    search = FrankWolfeRegressorCV(radii=[10.0, 50.0], cv=3, tol=1e-3)
    pipeline = make_pipeline(StandardScaler(), search).fit(100 * X, y)
    shown = RadiusPathDisplay.from_estimator(pipeline, 100 * X, y)
    plain = RadiusPathDisplay.from_estimator(search, pipeline[:-1].transform(100 * X), y)
    np.testing.assert_array_equal(shown.coefs, plain.coefs)
    np.testing.assert_array_equal(shown.scores, search.scores_.mean(axis=1))
    assert shown.chosen == search.radius_
    pyplot.close("all")


def test_weights_of_classes_count_in_fits_and_not_in_scores(cancer):
    X, y = cancer
    weighted = dict(class_weight={"benign": 1.0, "malignant": 30.0}, tol=1e-6)
    model = FrankWolfeClassifierCV(radii=[0.2], cv=3, **weighted).fit(X, y)
    plain = FrankWolfeClassifier(radius=0.2, **weighted)
    wanted = cross_val_score(plain, X, y, cv=StratifiedKFold(3))
    np.testing.assert_allclose(model.scores_[0], wanted)


def test_a_number_of_radii_may_be_numpys(diabetes):
    X, y = diabetes
    model = FrankWolfeRegressorCV(radii=np.int64(3), cv=2, tol=1e-2).fit(X, y)
    assert (len(model.radii_), model.scores_.shape) == (3, (3, 2))


def test_a_second_search_begins_anew(diabetes):
    X, y = diabetes
    fit = FrankWolfeRegressorCV(radii=[10.0, 100.0], cv=3).fit(X, y)
    first, n_iter = fit.coef_.copy(), fit.n_iter_
    fit.fit(X, y)
    np.testing.assert_array_equal(fit.coef_, first)
    assert fit.n_iter_ == n_iter > 0
