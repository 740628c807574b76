"""scikit-learn's own checks of what an estimator must do."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from adafw.sklearn import (
    FrankWolfeClassifier,
    FrankWolfeClassifierCV,
    FrankWolfeRegressor,
    FrankWolfeRegressorCV,
)

pytestmark = [
    # The checks fit noise and constants: a limit may come first, a radius may have no effect.
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:the radius:UserWarning"),
    # Reading metadata of another package's estimators while checks are collected.
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
]


@parametrize_with_checks(
    [
        FrankWolfeClassifier(),
        FrankWolfeClassifier(loss="squared_hinge", constraint="l2"),
        FrankWolfeClassifier(loss="smoothed_hinge", constraint="linf"),
        FrankWolfeRegressor(),
        FrankWolfeRegressor(loss="huber", constraint="l2"),
        FrankWolfeRegressor(loss="poisson", constraint="linf"),
        # Radii that are given: to find them takes ten fits, and has tests of its own.
        FrankWolfeClassifierCV(radii=[0.5, 2.0], cv=2),
        FrankWolfeRegressorCV(radii=[0.5, 2.0], cv=2),
    ]
)
def test_every_check_passes(estimator, check):
    check(estimator)
