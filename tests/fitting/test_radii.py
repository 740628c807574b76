"""Which radius is chosen from scores, and what a search may look at and use."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import adafw
from adafw.fitting import Deadline, Settings
from adafw.fitting.radii import (
    Problem,
    Scores,
    Tangent,
    _Walk,
    approximate,
    find_radii,
    score_radii,
    walk,
)
from adafw.sklearn import FrankWolfeRegressorCV


def chosen(scores, rule="best"):
    scores = np.array(scores)
    empty = np.zeros_like(scores)
    return Scores(np.arange(1.0, len(scores) + 1), scores, empty, empty).choose(rule)


def test_of_equal_means_the_smallest_radius_is_taken():
    assert chosen([[0.5, 0.7], [0.9, 0.9], [0.8, 1.0], [0.9, 0.9]]) == 1
    assert chosen([[0.9, 0.9], [0.8, 1.0]], "one_se") == 0


def test_the_error_is_that_of_the_best():
    """Another's spread, however wide, lets no worse radius in."""
    scores = [[0.0, 0.0, 1.5], [0.88, 0.88, 0.88], [0.9, 0.9, 0.91]]
    assert chosen(scores) == 2
    assert chosen(scores, "one_se") == 2
    assert chosen([*scores[:2], [0.8, 0.9, 1.0]], "one_se") == 1


def test_the_error_is_that_of_a_mean_with_unknown_variance():
    """(0.8, 0.9, 1): s = 0.1 with two degrees of freedom, s / sqrt(3) = 0.0577."""
    best = [0.8, 0.9, 1.0]
    assert chosen([[0.85] * 3, best], "one_se") == 0
    assert chosen([[0.84] * 3, best], "one_se") == 1


def test_a_single_fold_has_no_error():
    assert chosen([[0.9], [0.91], [0.5]], "one_se") == 1


def test_a_radius_that_missed_a_fold_does_not_count():
    assert chosen([[0.5, 0.5], [np.nan, 0.99], [0.6, 0.6]]) == 2
    with pytest.raises(ValueError, match="no radius has a finite score in every fold"):
        chosen([[np.nan, 1.0]])


def problem(weights):
    y = np.array(["a", "b", "c"] * 4)
    X = np.random.default_rng(0).normal(size=(12, 2))
    return Problem(X, y, weights, Settings(radius=1.0), "classification", np.unique(y))


def test_classes_without_weight_are_missing_classes():
    weights = np.where(np.arange(12) % 3 == 1, 0.0, 1.0)
    with pytest.raises(ValueError, match="positive weight, got none of class b"):
        problem(weights).part()
    with pytest.raises(ValueError, match="got a fold without class b"):
        problem(weights).part(np.arange(6))
    problem(None).part(np.arange(6))


def test_a_part_keeps_the_weights_of_its_rows():
    weights = np.arange(1.0, 13.0)
    design, targets = problem(weights).part(np.array([3, 1, 5, 0]))
    np.testing.assert_array_equal(design.weights, [4.0, 2.0, 6.0, 1.0])
    assert targets.labels.tolist() == [0, 1, 2, 0]


def test_a_search_leaves_time_for_the_fit(monkeypatch):
    """Its share of the time, here none, is all it may use."""
    monkeypatch.setattr("adafw.sklearn.search._SEARCH_SHARE", 0.0)
    rng = np.random.default_rng(0)
    model = FrankWolfeRegressorCV(radii=[0.1, 1.0], cv=2, max_seconds=1e6)
    with pytest.raises(ValueError, match="no radius has a finite score in every fold"):
        model.fit(rng.normal(size=(20, 2)), rng.normal(size=20))


def apart(multi_class="ovr", **changes):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3))
    y = np.array(["a", "b", "c"])[(X + 0.5 * rng.normal(size=X.shape)).argmax(axis=1)]
    settings = Settings(radius=1.0, multi_class=multi_class, **changes)
    return Problem(X, y, None, settings, "classification", np.unique(y))


def test_a_tangent_is_the_sum_of_those_of_all_classes():
    """At coefficients that differ by class, by hand: the mean logistic loss and its gradient."""
    given = apart(fit_intercept=False)
    design, targets = given.part()
    coef = np.random.default_rng(1).normal(size=(3, 3)) / 4
    at = Tangent.at(design, targets, given.settings, coef)
    value = inner = steepness = 0.0
    for y, x in zip(targets.vectors, coef, strict=True):
        margins = y * (given.X @ x)
        g = given.X.T @ (-y / (1 + np.exp(margins))) / len(y)
        value += np.log1p(np.exp(-margins)).mean()
        inner += g @ x
        steepness += np.abs(g).max()
    np.testing.assert_allclose([at.value, at.inner, at.steepness], [value, inner, steepness])
    assert at.least == 0
    assert at.gap(0.7) == pytest.approx(inner + 0.7 * steepness)
    assert at.size == pytest.approx(value)


def test_a_walk_begins_on_the_line_through_the_last_two():
    """Entries that are 0, or would change their sign, are 0; too far ahead, the last one counts."""
    steps = _Walk(*apart().part(), apart().settings, Deadline(None))
    ball = adafw.L1Ball(3.0)
    assert steps._starts(1.0, ball) is None
    first, second = [np.array([1.0, 0.5, 0.0, -2.0])], [np.array([2.0, 0.2, 0.0, -1.0])]
    steps.known = [(1.0, first)]
    assert steps._starts(2.0, ball) is first
    steps.known = [(1.0, first), (2.0, second)]
    np.testing.assert_allclose(steps._starts(3.0, ball)[0], [3.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(steps._starts(2.5, ball)[0], [2.5, 0.05, 0.0, -0.5])
    assert steps._starts(4.1, ball) is second
    assert steps._starts(2.0, ball) is second
    free = adafw.UserSet(ball.lmo, lambda s, d: np.zeros(s, d), ball.contains)
    assert steps._starts(3.0, free) is second


def test_a_walk_ends_with_the_time_and_goes_through_all_radii():
    given = apart()
    design, targets = given.part()
    found = list(walk(design, targets, given.settings, [0.1, 0.4, 2.0], Deadline(None)))
    assert [radius for radius, _ in found] == [0.1, 0.4, 2.0]
    for radius, fitted in found:
        norms = np.abs(fitted.predictor.coef).sum(axis=1)
        np.testing.assert_allclose(norms, radius, rtol=1e-6)
    assert list(walk(design, targets, given.settings, [0.1], Deadline(0.0))) == []


def test_one_class_that_time_has_cut_short_is_enough_to_end_a_walk(monkeypatch):
    given = apart()
    design, targets = given.part()
    steps = _Walk(design, targets, given.settings, Deadline(None))
    whole = steps.to(0.5, 1e-4)
    cut = replace(whole, fits=(replace(whole.fits[0], status="max_seconds"), *whole.fits[1:]))
    monkeypatch.setattr("adafw.fitting.radii.fit_targets", lambda *a, **k: cut)
    assert steps.to(0.6, 1e-4) is None
    struck = replace(whole, interrupted=True)
    monkeypatch.setattr("adafw.fitting.radii.fit_targets", lambda *a, **k: struck)
    with pytest.raises(KeyboardInterrupt):
        steps.to(0.6, 1e-4)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failure_in_one_fold_ends_the_others(jobs):
    given, deadline = apart(), Deadline(None)
    halves = [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))]

    def score(model, rows):
        raise ZeroDivisionError("no score")

    with pytest.raises(ZeroDivisionError, match="no score"):
        score_radii(given, np.array([0.5, 1.0]), halves, score, deadline, jobs)
    assert jobs == 1 or deadline.left == 0


def test_a_gap_is_never_below_zero():
    assert Tangent(1.0, -2.0, 1.0, 0.0).gap(1.0) == 0
    assert Tangent(1.0, -2.0, 1.0, 0.0).gap(3.0) == 1
    assert Tangent(-3.0, 0.0, 1.0, -math.inf).size == 3


def numbers(X, y, **changes):
    settings = Settings(loss="squared", radius=1.0, fit_intercept=False, **changes)
    return Problem(X, y, None, settings, "regression")


def test_radii_where_no_feature_says_anything():
    """One radius, whatever it is, and no model of a proven path: 0 is as good as any."""
    rng = np.random.default_rng(0)
    for X, y in ((np.zeros((5, 2)), rng.normal(size=5)), (rng.normal(size=(5, 2)), np.zeros(5))):
        given = numbers(X, y)
        assert find_radii(given, 7, Deadline(None)).tolist() == [1.0]
    nothing = approximate(numbers(np.zeros((5, 2)), np.ones(5)), 0.1, 0.0, math.inf, Deadline(None))
    assert nothing == ([], pytest.approx(0.1))


def test_radii_of_one_feature_by_hand():
    """f(x) = mean (x - 1)^2: from where x gains 2 % to where twice the radius gains 1 %."""
    given = numbers(np.ones((4, 1)), np.ones(4), tol=1e-9)
    radii = find_radii(given, 5, Deadline(None))
    # At 0 the value is 1 and the slope -2; radii grow by half, and at x = 1 - d the gap over twice
    # the radius is 2 d (1 - d), while d^2 of the value is left: up to d^2 = 2 %, by the chord.
    assert radii[0] == pytest.approx(0.02 / 2)
    np.testing.assert_allclose(np.diff(np.log(radii)), np.log(radii[1] / radii[0]))
    steps = 0.01 * 1.5 ** np.arange(1, 20)
    ended = next(r for r in steps if (1 - r) ** 2 <= 0.02 or r >= 1)
    before = ended / 1.5
    last, now = (1 - before) ** 2, max(1 - ended, 0.0) ** 2
    wanted = ended if ended >= 1 else before + (last - 0.02) / (last - now) * (ended - before)
    assert radii[-1] == pytest.approx(wanted, rel=1e-6)
    assert find_radii(given, 1, Deadline(None)).tolist() == [radii[-1]]
    # Without time nothing is known but the smallest one.
    np.testing.assert_allclose(find_radii(given, 3, Deadline(0.0)), [0.01] * 3)


def test_a_proven_path_of_one_feature_by_hand():
    """The gap of x = r at r' is 2 (1 - r) (r' - r): it meets the bound eps at the next radius."""
    given = numbers(np.ones((4, 1)), np.ones(4))
    knots, bound = approximate(given, 0.1, 0.0, 0.5, Deadline(None))
    assert bound == pytest.approx(0.1)
    assert knots[0].radius == pytest.approx(0.1 / 2)
    for knot, after in pairwise(knots):
        assert knot.upper == after.radius
        x = float(knot.fitted.predictor.coef[0, 0])
        slope = 2 * (1 - x)
        assert knot.upper == pytest.approx(x + bound / slope, rel=1e-9)
        # Half of the bound is for the fit, the other half for the way.
        assert slope * (knot.radius - x) <= bound / 2 * (1 + 1e-9)
    assert knots[-1].radius <= 0.5 <= knots[-1].upper
    first, _ = approximate(given, 0.1, 0.2, 0.5, Deadline(None))
    assert first[0].radius == 0.2
    assert approximate(given, 0.1, 0.0, 0.5, Deadline(0.0))[0] == []


def test_a_path_ends_where_a_limit_comes_before_the_tolerance(monkeypatch):
    given = apart(algorithm="FW", max_epochs=1e-9)
    assert approximate(given, 0.01, 1.0, 5.0, Deadline(None))[0] == []
    whole, _ = approximate(apart(), 0.5, 0.5, 5.0, Deadline(None))
    struck = replace(whole[0].fitted, interrupted=True)
    monkeypatch.setattr("adafw.fitting.radii.fit_targets", lambda *a, **k: struck)
    with pytest.raises(KeyboardInterrupt):
        approximate(apart(), 0.5, 0.5, 5.0, Deadline(None))


def test_scores_of_folds_are_those_of_rows_held_out():
    """Values and gaps are sums over the classes; what missed its tolerance is told."""
    given = apart(algorithm="FW", max_epochs=3, tol=1e-12)
    halves = [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))]
    asked = []

    def score(model, rows):
        asked.append(rows)
        return float((model.predict(given.X[rows]) == given.y[rows]).mean())

    found = score_radii(given, np.array([0.5, 1.0]), halves, score, Deadline(None))
    assert [rows is halves[k // 2][1] for k, rows in enumerate(asked)] == [True] * 4
    for k, (train, _) in enumerate(halves):
        design, targets = given.part(train)
        steps = walk(design, targets, given.settings, [0.5, 1.0], Deadline(None))
        for i, (_, fitted) in enumerate(steps):
            assert found.values[i, k] == pytest.approx(sum(f.value for f in fitted.fits))
            assert found.gaps[i, k] == pytest.approx(sum(f.gap for f in fitted.fits))
    assert len(found.unfinished) == 4
    assert "stopped before its tolerance" in found.unfinished[0]
    none = score_radii(given, np.array([0.5]), halves, score, Deadline(0.0))
    assert np.isnan(none.scores).all()
    assert np.isnan(none.gaps).all()


def test_a_path_whose_fits_are_too_coarse_ends_and_does_not_creep():
    """Steps between radii are a tenth of the bound at least: what a limit leaves is no path."""

    class Fits(Deadline):
        """So many looks at the time, of which each fit makes one at least."""

        looks = 3000

        @property
        def left(self):
            self.looks -= 1
            return float(max(0, self.looks))

    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4))
    y = (X[:, :3] + 0.7 * rng.normal(size=(90, 3))).argmax(axis=1).astype(float)
    given = Settings(loss="squared", algorithm="FW", max_epochs=2)
    deadline = Fits()
    problem = Problem(X, y, None, given, "regression")
    knots, bound = approximate(problem, 0.05, 0.0, math.inf, deadline)
    assert deadline.looks > 0
    assert 0 < len(knots) < 100
    for knot in knots:
        assert (knot.upper - knot.radius) * knot.tangent.steepness >= 0.1 * bound


def test_without_time_no_fit_is_begun(monkeypatch):
    given = apart()
    steps = _Walk(*given.part(), given.settings, Deadline(0.0))
    monkeypatch.setattr("adafw.fitting.radii.fit_targets", None)
    assert steps.to(0.5, 1e-4) is None


def test_folds_are_fitted_on_threads_of_their_own_alone(monkeypatch):
    """Classes of a fold do not make more of them."""
    asked = []

    def walked(design, targets, settings, radii, deadline):
        asked.append(settings.n_jobs)
        return iter([])

    monkeypatch.setattr("adafw.fitting.radii.walk", walked)
    halves = [(np.arange(30), np.arange(30, 60))]
    score_radii(apart(n_jobs=4), np.ones(1), halves, lambda *_: 0.0, Deadline(None), 4)
    assert asked == [None]


def test_fits_along_a_path_begin_where_the_last_ended_and_sharpen_where_nothing_binds(monkeypatch):
    """A hundred times each time that the solution is inside the set."""
    from adafw.fitting import radii

    asked, found, real = [], [], radii.fit_targets

    def fitted(design, targets, plan, *, starts, deadline):
        asked.append((plan.settings.radius, plan.settings.tol, starts))
        found.append(real(design, targets, plan, starts=starts, deadline=deadline))
        return found[-1]

    monkeypatch.setattr(radii, "fit_targets", fitted)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = X @ [1.0, -0.5] + rng.normal(size=40)
    given = Settings(loss="squared", algorithm="FW", fit_intercept=False, max_epochs=300)
    _, bound = approximate(
        Problem(X, y, None, given, "regression"), 0.1, 0.0, math.inf, Deadline(None)
    )
    assert asked[0][2] == [None]
    values = [np.mean(y**2)]
    sharper, coef = 1.0, None
    for (radius, tol, starts), now in zip(asked, found, strict=True):
        assert tol == pytest.approx(sharper * bound / 2 / values[-1], rel=1e-6)
        if len(values) > 1:
            np.testing.assert_array_equal(starts[0], coef)
        coef = now.predictor.coef[0]
        values.append(np.mean((X @ coef - y) ** 2))
        if 1.01 * np.abs(coef).sum() <= radius:
            sharper *= 0.01
    assert sharper < 1
