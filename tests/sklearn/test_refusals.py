"""Bad data are refused in one sentence that says what to do."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from adafw.sklearn import (
    ConvergenceDisplay,
    FrankWolfeClassifier,
    FrankWolfeClassifierCV,
    MatrixCompletion,
    radius_path,
)
from adafw.sklearn.refusals import in_one_sentence


@pytest.mark.parametrize("make", [FrankWolfeClassifier, FrankWolfeClassifierCV])
def test_bad_rows(make):
    X, y = load_iris(return_X_y=True)
    missing = X.copy()
    missing[3, 1] = np.nan
    for bad, message in (
        (missing, r"^Input X contains NaN; fill them in \(sklearn.impute\) or drop such rows\.$"),
        (
            X[:, 0],
            r"^Expected 2D array, got 1D array; Reshape your data to one row a sample, .*\.$",
        ),
        (X + 1j, r"^Complex data not supported; give real numbers\.$"),
    ):
        with pytest.raises(ValueError, match=message):
            make().fit(bad, y)
    model = FrankWolfeClassifier(radius=1.0).fit(X, y)
    with pytest.raises(ValueError, match=r"^Input X contains NaN; fill them in"):
        model.predict(missing)


def test_what_else_was_not_one_sentence_of_ours():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"^shape must be a pair of at least \(1, 1\), got 3\.$"):
        MatrixCompletion(1.0, shape=3).fit([[0, 0]], [1.0])
    for radii in (["a"], [-5.0, 2.0]):
        for eps in (None, 0.1):
            with pytest.raises(ValueError, match=r"^radii must be numbers > 0"):
                radius_path(X, y, radii=radii, eps=eps)
    with pytest.raises(TypeError, match=r"^result must be what minimize returns"):
        ConvergenceDisplay.from_result(3)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Input X contains NaN.\nPages", "Input X contains NaN; fill them in (sklearn.impute) or"),
        ("Input X contains NaN.", "Input X contains NaN."),  # short enough
        ("Something else.\nPages", "Something else.\nPages"),  # nothing better is known
    ],
)
def test_only_what_is_long_and_known_is_said_otherwise(said, kept):
    with pytest.raises(ValueError, match=r"Something|Input") as told, in_one_sentence():
        raise ValueError(said)
    assert str(told.value).startswith(kept)
    assert ("\n" in str(told.value)) == ("\n" in kept)
