"""adafw convert, and all that reads what it writes."""

import json

import numpy as np
import pytest

from adafw.cli import main
from adafw.datasets import load_parts, text_like
from adafw.fitting.model import LinearModelFile
from adafw.io.libsvm import write_libsvm


def run(capsys, *arguments):
    code = 0
    try:
        main([str(a) for a in arguments])
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("data")
    A, y = text_like(2000, 500, nonzeros=10, seed=0)
    write_libsvm(path / "text.svm", A, y)
    return path


@pytest.fixture
def little_memory(monkeypatch):
    """A machine on which these data are large."""
    monkeypatch.setattr("adafw.io.parts.machine_bytes", lambda: 100_000)


def test_parts_are_fitted_as_the_text_is(folder, capsys, little_memory):
    code, out, _ = run(capsys, "convert", folder / "text.svm", folder / "text.parts")
    assert (code, out) == (
        0,
        f"{folder / 'text.parts'}: 2000 rows of 500 features, 21993 entries\n",
    )
    for data in ("text.svm", "text.parts"):
        how = ("--radius", 20, "--tol", 1e-8, "-o", folder / f"{data}.model")
        code, out, err = run(capsys, "fit", folder / data, *how)
        assert code == 0, err
        assert "Corrective" in out
    models = [LinearModelFile.load(folder / f"{d}.model") for d in ("text.svm", "text.parts")]
    np.testing.assert_allclose(models[0].coef, models[1].coef, atol=1e-5)
    assert models[1].header["zero_based"] is False
    for command in (("score", "--json"), ("predict", "--proba")):
        said = [run(capsys, command[0], folder / "text.parts.model", folder / d, *command[1:])[1]
                for d in ("text.svm", "text.parts")]  # fmt: skip
        assert said[0] == said[1]


def test_cross_validation_needs_memory(folder, capsys, little_memory):
    run(capsys, "convert", folder / "text.svm", folder / "text.parts")
    code, _, err = run(capsys, "fit", folder / "text.parts", "--radius", "cv")
    assert code == 2
    assert "--radius cv must have data that fit into memory several times" in err


def test_shuffled_parts_and_json(folder, capsys, tmp_path):
    args = ("convert", folder / "text.svm", tmp_path / "mixed", "--shuffle", 1, "--json")
    code, out, _ = run(capsys, *args)
    assert code == 0
    assert json.loads(out)["rows"] == 2000
    manifest = json.loads((tmp_path / "mixed" / "manifest.json").read_text())
    assert manifest["shuffle"] == 1
    assert manifest["zero_based"] is False


def test_what_is_not_finite_is_refused(capsys, little_memory, tmp_path):
    (tmp_path / "bad.svm").write_text("1 1:nan 2:1\n-1 1:2\n" * 5000)
    run(capsys, "convert", tmp_path / "bad.svm", tmp_path / "bad")
    code, _, err = run(capsys, "fit", tmp_path / "bad", "-o", tmp_path / "m")
    assert code == 2
    assert "got nan" in err


@pytest.mark.parametrize("width", [400, 501])
def test_parts_of_another_width(folder, capsys, tmp_path, width):
    run(capsys, "convert", folder / "text.svm", tmp_path / "parts")
    assert load_parts(tmp_path / "parts")[0].shape[1] == 500
    (tmp_path / "few.svm").write_text(f"1 1:1 {width}:1\n-1 2:1\n")
    run(capsys, "fit", tmp_path / "few.svm", "-o", tmp_path / "m.model")
    code, out, err = run(capsys, "predict", tmp_path / "m.model", tmp_path / "parts")
    if width < 500:
        assert code == 2
        assert f"has 500 features, the model has {width}" in err
    else:
        assert code == 0
        assert len(out.splitlines()) == 2000


def test_zero_is_a_seed_too(folder, capsys, tmp_path):
    orders = []
    for words in ([], ["--shuffle", 0], ["--shuffle", 1]):
        run(capsys, "convert", folder / "text.svm", tmp_path / "parts", *words)
        orders.append(load_parts(tmp_path / "parts")[0].indices[:40].tolist())
    assert orders[0] != orders[1] != orders[2]
    assert json.loads((tmp_path / "parts" / "manifest.json").read_text())["shuffle"] == 1


def test_a_live_line_may_be_had_without(folder, capsys, tmp_path, monkeypatch):
    asked = []

    def called(data, parts, **options):
        asked.append(options["progress"])
        raise ValueError("enough")

    monkeypatch.setattr("adafw.io.parts.libsvm_to_parts", called)
    for words in ([], ["--quiet"]):
        assert run(capsys, "convert", folder / "text.svm", tmp_path / "p", *words)[0] == 2
    assert asked == [None, False]
