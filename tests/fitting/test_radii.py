"""Which radius is chosen from scores, and what a search may look at and use."""

import numpy as np
import pytest

from adafw.fitting import Settings
from adafw.fitting.radii import Problem, Scores
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
