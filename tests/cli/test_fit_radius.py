"""adafw fit --radius cv and --radius-path."""

import csv
import json

import numpy as np
import pytest
from sklearn.model_selection import KFold

from adafw.cli import main
from adafw.fitting import LinearModelFile
from adafw.sklearn import FrankWolfeRegressor, FrankWolfeRegressorCV
from sklearn import datasets


def run(capsys, *arguments):
    code = 0
    try:
        main([str(a) for a in arguments])
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def data(tmp_path):
    X, y = datasets.load_diabetes(return_X_y=True)
    np.save(tmp_path / "d.npy", np.column_stack([X, y]))
    return tmp_path / "d.npy"


def test_cv_equals_the_estimator_and_is_written_down(data, tmp_path, capsys):
    X, y = datasets.load_diabetes(return_X_y=True)
    files = ["-o", tmp_path / "m", "--radius-path", tmp_path / "p.csv", "--report", tmp_path / "r"]
    words = ["--radius", "cv", "--folds", 3, "--tol", 1e-6]
    code, text, _ = run(capsys, "fit", data, *files, *words, "--json")
    assert code == 0
    shown = json.loads(text)
    same = FrankWolfeRegressorCV(cv=KFold(3, shuffle=True, random_state=0), tol=1e-6).fit(X, y)
    assert shown["settings"]["radius"] == pytest.approx(same.radius_)
    np.testing.assert_allclose(shown["search"]["radii"], same.radii_)
    np.testing.assert_allclose(shown["search"]["mean_scores"], same.scores_.mean(axis=1), atol=1e-4)
    np.testing.assert_allclose(LinearModelFile.load(tmp_path / "m").coef[0], same.coef_, atol=0.5)
    with open(tmp_path / "p.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["radius"]) for row in rows] == pytest.approx(same.radii_)
    (chosen,) = (row for row in rows if row["chosen"] == "1")
    assert float(chosen["radius"]) == pytest.approx(same.radius_)
    assert float(chosen["objective"]) == pytest.approx(same.value_, rel=1e-4)
    assert "Choice of the radius" in (tmp_path / "r").read_text()
    assert "chosen by 3 folds (rule best)" in run(capsys, "info", tmp_path / "m")[1]


def test_path_alone(data, tmp_path, capsys):
    X, y = datasets.load_diabetes(return_X_y=True)
    code, _, _ = run(
        capsys, "fit", data, "--radius", 50, "-o", tmp_path / "m", "--radius-path", tmp_path / "p"
    )
    assert code == 0
    with open(tmp_path / "p", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["radius", "objective", "gap", "nonzeros"]
    assert len(rows) == 30
    for row in (rows[3], rows[20]):
        single = FrankWolfeRegressor(radius=float(row["radius"])).fit(X, y)
        assert float(row["objective"]) == pytest.approx(single.value_, rel=1e-3)
        assert float(row["gap"]) <= 1e-4 * float(row["objective"])
    assert LinearModelFile.load(tmp_path / "m").header["settings"]["radius"] == 50


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--radius", "small"], "--radius must be a number > 0 or cv, got 'small'"),
        (["--radius", "cv", "--folds", 1], "folds"),
        (["--radius", "cv", "--constraint", "box", "-p", "lower=0", "-p", "upper=1"],
         "constraint must be the name of a set with a radius"),
        (["--radius", "0"], "radius must be a number that is finite and > 0"),
    ],
)  # fmt: skip
def test_refusals(words, message, data, tmp_path, capsys):
    code, _, err = run(capsys, "fit", data, "-o", tmp_path / "m", *words)
    assert code == 2
    assert message in err
    assert not (tmp_path / "m").exists()
