"""adafw fit --radius cv and --radius-path."""

import csv
import json

import numpy as np
import pytest
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from adafw.cli import main
from adafw.fitting import LinearModelFile
from adafw.sklearn import (
    FrankWolfeClassifier,
    FrankWolfeClassifierCV,
    FrankWolfeRegressor,
    FrankWolfeRegressorCV,
)
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
    means, errors = same.scores_.mean(axis=1), same.scores_.std(axis=1, ddof=1) / np.sqrt(3)
    for column, expected in (("mean_score", means), ("standard_error", errors)):
        np.testing.assert_allclose([float(row[column]) for row in rows], expected, atol=1e-4)
    assert "Choice of the radius" in (tmp_path / "r").read_text()
    assert "chosen by 3 folds (rule best)" in run(capsys, "info", tmp_path / "m")[1]


def test_classes_have_their_weights_in_every_fold_and_along_the_path(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = (X[:, 0] + rng.normal(size=120) > 1.2).astype(int)  # one in six or so
    np.save(tmp_path / "d.npy", np.column_stack([X, y]))
    words = ["--radius", "cv", "--folds", 3, "--seed", 7, "--class-weight", "balanced", "--json"]
    files = ["-o", tmp_path / "m", "--radius-path", tmp_path / "p.csv"]
    code, text, _ = run(capsys, "fit", tmp_path / "d.npy", *files, *words, "--tol", 1e-8)
    assert code == 0
    shown = json.loads(text)
    folds = StratifiedKFold(3, shuffle=True, random_state=7)
    same = FrankWolfeClassifierCV(cv=folds, class_weight="balanced", tol=1e-8).fit(X, y)
    assert shown["settings"]["radius"] == pytest.approx(same.radius_)
    np.testing.assert_allclose(shown["search"]["radii"], same.radii_)
    np.testing.assert_allclose(shown["search"]["mean_scores"], same.scores_.mean(axis=1))
    with open(tmp_path / "p.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    (chosen,) = (row for row in rows if row["chosen"] == "1")
    assert float(chosen["objective"]) == pytest.approx(same.value_, rel=1e-6)
    assert float(chosen["objective"]) == pytest.approx(shown["certificate"][0]["value"], rel=1e-6)


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
        assert int(row["nonzeros"]) == np.count_nonzero(single.coef_)
    assert LinearModelFile.load(tmp_path / "m").header["settings"]["radius"] == 50


@pytest.mark.parametrize("way", ["multinomial", "ovr"])
def test_a_path_of_several_classes(way, tmp_path, capsys):
    """Objectives and gaps are sums over the classes; a feature that several use is one."""
    X, y = datasets.load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    X[:, 4] = 0.0  # the one that no class uses
    np.save(tmp_path / "d.npy", np.column_stack([X, y]))
    files = ["-o", tmp_path / "m", "--radius-path", tmp_path / "p"]
    words = ["--constraint", "l2", "--multi-class", way, "--radius", 1]
    assert run(capsys, "fit", tmp_path / "d.npy", *files, *words)[0] == 0
    with open(tmp_path / "p", newline="") as file:
        rows = list(csv.DictReader(file))
    plain = FrankWolfeClassifier(constraint="l2", multi_class=way)
    for row in (rows[2], rows[12]):
        model = plain.set_params(radius=float(row["radius"])).fit(X, y)
        assert np.count_nonzero(np.abs(model.coef_) > 1e-15 * model.radius) == 3 * 12
        assert int(row["nonzeros"]) == 12
        value = float(row["objective"])
        assert value == pytest.approx(np.sum(model.value_), rel=3e-4)
        assert 0 <= float(row["gap"]) <= 1e-4 * value * (1 + 1e-9)


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
