"""What the commands print, write and refuse, beside what fits are."""

import io
import json
import sys
from types import SimpleNamespace

import click
import matplotlib
import numpy as np
import pytest
from scipy import sparse

from adafw.cli import main
from adafw.commands import fitting, reproduce
from adafw.commands.radius import COUNT, search_radius
from adafw.commands.report import Sample, _relative
from adafw.fitting import Deadline, LinearModelFile, Settings, Targets
from adafw.fitting.radii import Problem
from adafw.io.libsvm import write_libsvm
from adafw.tuning import Trial

matplotlib.use("Agg")


def run(capsys, *arguments):
    """(exit code, standard output, standard error)."""
    code = 0
    try:
        main([str(a) for a in arguments])
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def data(tmp_path):
    """Two classes, told apart by the first two of four features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) * (rng.random((60, 4)) < 0.6)
    y = np.where(X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=60) > 0, 1.0, -1.0)
    write_libsvm(tmp_path / "d.svm", X, y)
    return tmp_path / "d.svm"


@pytest.fixture
def model(data, capsys):
    assert run(capsys, "fit", data, "--radius", 3)[0] == 0
    return data.with_suffix(".model")


def test_score_in_words(data, model, capsys):
    code, out, _ = run(capsys, "score", model, data)
    names = [line.split()[0] for line in out.splitlines()]
    assert (code, names) == (0, ["rows", "accuracy", "mean_loss"])
    numbers = json.loads(run(capsys, "score", model, data, "--json")[1])
    for line in out.splitlines():
        name, number = line.split()
        assert number == f"{numbers[name]:.8g}"
        assert line.startswith(f"{name:<10} ")
    data.write_text("# nothing\n")
    code, _, err = run(capsys, "score", model, data)
    assert (code, "d.svm must hold at least one sample, got none." in err) == (2, True)


def test_probabilities_and_scores_exclude_one_another(data, model, capsys):
    code, _, err = run(capsys, "predict", model, data, "--proba", "--decision")
    assert (code, "--proba and --decision exclude one another." in err) == (2, True)


def test_versions_as_json(capsys):
    code, out, _ = run(capsys, "info", "--json")
    assert code == 0
    assert {"adafw", "python", "numpy", "scipy"} <= set(json.loads(out))


def test_files_of_labels_that_cannot_be_read(tmp_path, capsys):
    np.save(tmp_path / "X.npy", np.eye(3))
    (tmp_path / "y.npy").write_bytes(b"no array")
    words = ["fit", tmp_path / "X.npy", "--labels", tmp_path / "y.npy"]
    code, _, err = run(capsys, *words)
    assert (code, "y.npy must be a .npy file of targets" in err) == (2, True)
    (tmp_path / "y.npy").unlink()
    code, _, err = run(capsys, *words)
    assert (code, "No such file" in err) == (1, True)
    np.savez(tmp_path / "y.npz", y=np.ones(3))
    code, _, err = run(capsys, *words[:-1], tmp_path / "y.npz")
    assert (code, "y.npz must hold 3 targets, one a row." in err) == (2, True)


@pytest.mark.parametrize("classes", [2, 3, 12])
def test_a_plot_has_a_key_for_a_few_fits(tmp_path, monkeypatch, capsys, classes):
    from matplotlib import pyplot

    drawn = []
    monkeypatch.setattr(pyplot, "close", drawn.append)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5))
    np.save(tmp_path / "d.npy", np.column_stack([X, np.arange(120) % classes]))
    words = ["--multi-class", "ovr", "--radius", 1, "--plot", tmp_path / "p.svg"]
    assert run(capsys, "fit", tmp_path / "d.npy", *words)[0] == 0
    assert (tmp_path / "p.svg").read_text().startswith("<?xml")
    (figure,) = drawn
    left, right = figure.axes
    fits = 1 if classes == 2 else classes
    assert len(left.lines) == len(right.lines) == fits
    assert (left.get_yscale(), right.get_yscale()) == ("log", "linear")
    assert (left.get_ylabel(), right.get_ylabel()) == ("gap", "value")
    assert left.get_xlabel() == right.get_xlabel() == "epochs"
    key = left.get_legend()
    told = [] if key is None else [text.get_text() for text in key.get_texts()]
    assert told == ([f"fit {k + 1}" for k in range(fits)] if fits == 3 else [])
    run(capsys, "fit", tmp_path / "d.npy", *words[:-1], tmp_path / "plot")
    assert (tmp_path / "plot").read_bytes().startswith(b"\x89PNG")
    for figure in drawn:
        figure.clear()


def test_a_plot_needs_matplotlib_and_the_model_is_kept(data, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = run(capsys, "fit", data, "--radius", 3, "--plot", data.with_suffix(".png"))
    assert (code, "--plot needs matplotlib; install it with pip install" in err) == (2, True)
    assert data.with_suffix(".model").exists()


def test_pages_tell_of_sparse_data_and_of_the_sides_of_two_classes(data, tmp_path, capsys):
    page = tmp_path / "r.html"
    assert run(capsys, "fit", data, "--radius", 3, "--report", page)[0] == 0
    text = page.read_text(encoding="utf-8")
    stored = sum(line.count(":") for line in data.read_text().splitlines())
    assert f"{stored} ({100 * stored / 240:.3g} % of all)" in text
    assert "Positive coefficients speak for 1, negative ones for -1." in text
    assert "No coefficients of the set, with any intercept, have an objective" in text
    run(capsys, "fit", data, "--radius", 3, "--no-intercept", "--report", page)
    assert "No coefficients of the set have an objective" in page.read_text(encoding="utf-8")


def test_words_about_the_data():
    two = Targets.of_classes(np.array(["a", "b", "a"]))
    assert Sample((3, 1000), 3000, two).words() == {
        "rows": "3", "features": "1,000", "classes": "2 (a: 2, b: 1)",
    }  # fmt: skip
    assert Sample((3, 1000), 30, two).words()["stored values"] == "30 (1 % of all)"
    many = Targets.of_classes(np.arange(13))
    assert Sample((13, 1), 13, many).words()["classes"].endswith("11: 1, ...)")
    assert (
        Sample((12, 1), 12, Targets.of_classes(np.arange(12))).words()["classes"].endswith("11: 1)")
    )
    numbers = Targets.of_numbers(np.array([1.0, 2.0, 6.0]), float)
    told = Sample((3, 1), 3, numbers).words()["target"]
    assert told == "mean 3, standard deviation 2.16, from 1 to 6"


def test_a_gap_is_relative_to_the_value():
    assert _relative({"gap": 1.0, "value": -4.0}) == 0.25
    assert _relative({"gap": 1e-12, "value": 0.0}) == 1
    assert np.isnan(_relative({"gap": None, "value": 1.0}))
    assert np.isnan(_relative({"gap": 1.0, "value": None}))


def test_a_radius_is_chosen_by_stratified_folds_and_by_r2():
    """By the share of right labels, or by R^2 about the mean of the rows held out."""
    from sklearn.model_selection import KFold, StratifiedKFold

    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3))
    numbers = X[:, 0] + 0.3 * rng.normal(size=40)
    labels = np.where(numbers > 0.8, "yes", "no")
    for y, task, splitter in (
        (numbers, "regression", KFold), (labels, "classification", StratifiedKFold),
    ):  # fmt: skip
        classes = np.unique(y) if task == "classification" else None
        settings = Settings(tol=1e-3, seed=5)
        given = Problem(X, y, None, settings, task, classes)
        found = search_radius(given, 3, "best", Deadline(None))
        assert found.scores.scores.shape == (COUNT, 3)
        folds = list(splitter(3, shuffle=True, random_state=5).split(X, y))
        for k, (train, test) in enumerate(folds):
            design, targets = given.part(train)
            steps = fitting.Settings(tol=1e-3, seed=5, radius=float(found.scores.radii[20]))
            plan = targets.plan(steps, 3)
            one = fitting.fit_targets(design, targets, plan).predictor
            guess = one.predict(X[test])
            if classes is None:
                right = 1 - ((guess - y[test]) ** 2).sum() / ((y[test] - y[test].mean()) ** 2).sum()
                assert found.scores.scores[20, k] == pytest.approx(right, abs=0.01)
            else:
                assert found.scores.scores[20, k] == (guess == y[test]).mean()
        told = found.plain()
        assert (told["folds"], told["rule"], len(told["radii"])) == (3, "best", COUNT)
        assert told["mean_scores"] == found.scores.scores.mean(axis=1).tolist()
        assert told["standard_errors"] == found.scores.errors.tolist()
        assert found.radius == found.scores.radii[found.chosen]
    flat = Problem(X[:6], np.ones(6), None, Settings(), "regression", None)
    with pytest.raises(ValueError, match="no radius has a finite score"):
        search_radius(flat, 3, "best", Deadline(None))


def test_files_of_models_say_how_they_were_made(data, model, capsys):
    header = LinearModelFile.load(model).header
    certificate = header["certificate"][0]
    assert set(certificate) == {
        "value", "gap", "lower_bound", "violation", "status", "iterations", "epochs", "algorithm",
        "learning_rate", "nonzeros", "seconds",
    }  # fmt: skip
    assert certificate["lower_bound"] <= certificate["value"]
    assert certificate["value"] - certificate["gap"] <= certificate["lower_bound"] + 1e-12
    coef = LinearModelFile.load(model).coef
    assert certificate["nonzeros"] == np.count_nonzero(coef)
    assert header["data"]["file"] == "d.svm"
    assert header["data"]["X"]["shape"] == [60, 4]
    assert header["zero_based"] is False
    assert (header["features"], header["target"]) == (None, None)
    assert header["settings"]["dtype"] == "float64"
    assert header["settings"]["multi_class"] == "ovr"
    out = run(capsys, "info", model)[1]
    assert out.startswith(f"{model}: classification, logistic loss, l1 of radius 3, fitted to ")
    assert "classes      -1, 1\n" in out
    assert f"{certificate['nonzeros']} of 4 coefficients" in out


def test_an_experiment_that_is_stopped_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    def struck(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("adafw.experiments.reproduce", struck)
    code, _, err = run(capsys, "reproduce", "svm", "--out", tmp_path)
    assert code == 130
    assert err.split("\n")[0] == "Stopped; the same command goes on from here."
    assert err.endswith("Interrupted.\n")


def test_options_reach_the_experiment(tmp_path, monkeypatch, capsys):
    asked = []

    def called(name, out, **options):
        asked.append((name, out, options))
        raise ValueError("enough")

    monkeypatch.setattr("adafw.experiments.reproduce", called)
    words = ["--quick", "--seeds", "3,4", "--jobs", 2, "--fresh", "--tensorboard", tmp_path / "t"]
    assert run(capsys, "reproduce", "svm", "--out", tmp_path, *words)[0] == 2
    assert run(capsys, "reproduce", "svm", "--full")[0] == 2
    bar = asked[0][2].pop("bar")
    assert isinstance(bar, reproduce.Display)
    assert asked[0] == ("svm", tmp_path, {
        "quick": True, "full": False, "seeds": [3, 4], "workers": 2, "fresh": True,
        "tensorboard": tmp_path / "t",
    })  # fmt: skip
    asked[1][2].pop("bar")
    assert asked[1][1].as_posix() == "out"
    assert asked[1][2] == {
        "quick": False, "full": True, "seeds": None, "workers": None, "fresh": False,
        "tensorboard": None,
    }  # fmt: skip


def test_a_terminal_has_a_bar():
    from rich.console import Console

    shown = io.StringIO()
    with reproduce.Display() as display:
        display.console = Console(file=shown, force_terminal=True, width=100)
        display.start("svm", 4)
        for _ in range(3):
            display.advance()
        assert display.bar.tasks[0].completed == 3
        assert display.bar.tasks[0].total == 4
        assert display.bar.live.is_started
    assert not display.bar.live.is_started
    assert "svm" in shown.getvalue()


def test_conversions_are_told_in_words_and_json(data, tmp_path, capsys):
    entries = sum(line.count(":") for line in data.read_text().splitlines())
    parts = tmp_path / "parts"
    assert run(capsys, "convert", data, parts)[1] == (
        f"{parts}: 60 rows of 4 features, {entries} entries\n"
    )
    words = ["--n-features", 6, "--dtype", "float32", "--json", "--quiet"]
    told = json.loads(run(capsys, "convert", data, parts, *words)[1])
    assert told == {"parts": str(parts), "rows": 60, "features": 6, "entries": entries}
    assert np.load(parts / "data.npy").dtype == np.float32
    assert run(capsys, "convert", data, data)[0] == 2


def test_sparse_and_dense_files_are_fitted_alike(data, tmp_path, capsys):
    """The same rows as LIBSVM text and as npz, dense and sparse: one model."""
    from adafw.datasets import read_libsvm

    A, y = read_libsvm(data)
    np.savez(tmp_path / "dense.npz", X=A.toarray(), y=y)
    np.savez(
        tmp_path / "s.npz", data=A.data, indices=A.indices, indptr=A.indptr, shape=A.shape, y=y
    )
    found = []
    for path in (data, tmp_path / "dense.npz", tmp_path / "s.npz"):
        words = ["--radius", 3, "--tol", 1e-8, "-o", tmp_path / "m"]
        assert run(capsys, "fit", path, *words)[0] == 0
        found.append(LinearModelFile.load(tmp_path / "m").coef)
    np.testing.assert_allclose(found[1], found[0], atol=1e-5)
    np.testing.assert_allclose(found[2], found[0], atol=1e-5)
    assert sparse.issparse(A)


def test_options_reach_the_search_for_a_rate(monkeypatch, capsys):
    asked = []

    def called(spec, *rest, report):
        asked.append((spec.quick, *rest))
        report(Trial(2, 10.0, 0.5, 0.25, "max_epochs"))
        report(Trial(3, 31.0, 0.5, np.nan, "max_epochs"))
        return SimpleNamespace(learning_rate=0.1, __str__=lambda self: "table")

    monkeypatch.setattr("adafw.experiments.tuning.tune_method", called)
    code, out, err = run(capsys, "tune", "svm", "AdaCSFW")
    assert (code, out.splitlines()[-1]) == (0, "learning_rate = 0.1")
    assert err.splitlines() == ["i = 2: gap 2.500e-01", "i = 3: value 0.5"]
    words = [
        "--quick",
        "--problem",
        "p",
        "--max-iterations",
        9,
        "--max-cpu-seconds",
        2,
        "--seed",
        7,
    ]
    run(capsys, "tune", "svm", "AdaCSFW", *words, "--measure", "value")
    assert asked == [
        (False, "AdaCSFW", None, {"max_epochs": 20}, "gap", None),
        (True, "AdaCSFW", "p", {"max_iterations": 9, "max_cpu_seconds": 2.0}, "value", 7),
    ]


def test_scores_of_a_test_file_are_of_the_format_given(data, tmp_path, capsys):
    """Named without an ending that tells; the same as DATA's, which is CSV here."""
    (tmp_path / "rows").write_text("a,kind\n1,x\n2,y\n1.5,x\n3,y\n")
    words = ["--format", "csv", "--radius", 1, "-o", tmp_path / "m", "--test", tmp_path / "rows"]
    code, out, _ = run(capsys, "fit", tmp_path / "rows", *words)
    assert code == 0
    assert "on rows (4 rows): accuracy" in out
    (tmp_path / "p.svm").write_text("1 1:1\n-1 2:1\n")
    assert run(capsys, "convert", tmp_path / "p.svm", tmp_path / "parts", "--quiet")[0] == 0
    words = ["--radius", 1, "-o", tmp_path / "m", "--n-features", 5]
    code, out, _ = run(capsys, "fit", tmp_path / "parts", *words, "--test", tmp_path / "parts")
    assert code == 0
    assert LinearModelFile.load(tmp_path / "m").n_features == 5
    assert "on parts (2 rows)" in out


def test_certificates_count_the_coefficients_of_one_class(tmp_path, capsys):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "d.npy", np.column_stack([rng.normal(size=(30, 5)), np.arange(30) % 3]))
    for words, size in ((["--multi-class", "ovr"], 5), ([], 15)):
        out = run(capsys, "fit", tmp_path / "d.npy", "--radius", 1, "-o", tmp_path / "m", *words)[1]
        assert f" of {size} coefficients" in out


def test_live_lines_are_closed_and_told_the_fits(data, monkeypatch, capsys):
    made = []

    class Line:
        def __init__(self, tol, n_fits, show, status):
            made.append((tol, n_fits, show))

        def __call__(self, k, record):
            made.append("record")

        def close(self):
            made.append("closed")

    monkeypatch.setattr(fitting, "Live", Line)
    for words, show in (([], True), (["--quiet"], False)):
        made.clear()
        run(capsys, "fit", data, "--radius", 3, "--tol", 0.01, *words)
        assert made[0] == (0.01, 1, show)
        assert set(made[1:-1]) == {"record"}
        assert made[-1] == "closed"


def test_a_page_counts_features_gaps_and_seconds_of_all_classes(tmp_path):
    from adafw.commands.report import _tiles

    def part(gap, seconds):
        return {"status": "converged", "gap": gap, "value": 2.0, "seconds": seconds}

    coef = np.array([[0.0, 1.0, 0.0, 2.0], [0.0, 0.0, 3.0, 1.0]])
    header = {"certificate": [part(0.5, 1.5), part(1.0, 2.0)]}
    model = LinearModelFile(coef, np.zeros(2), None, header)
    text = _tiles(model, None)
    tile = '<small>{}</small><span class="key">{}</span>'
    for name, value in (
        ("certified to the tolerance", "yes"), ("largest gap / objective", "0.5"),
        ("features used", "3 of 4"), ("seconds", "3.5"),
    ):  # fmt: skip
        assert tile.format(name, value) in text
    header["certificate"][1]["status"] = "stalled"
    assert tile.format("certified to the tolerance", "1 of 2") in _tiles(model, None)
    test = {"file": "t", "rows": 1234, "r2": 0.98765, "mse": 1.0}
    assert tile.format("R² on t (1,234 rows)", "0.9877") in _tiles(model, test)
    test = {"file": "t", "rows": 12, "accuracy": 0.5}
    assert tile.format("accuracy on t (12 rows)", "0.5") in _tiles(model, test)


def test_checkpoints_may_be_written_at_every_record(data, tmp_path, capsys):
    words = ["fit", data, "--radius", 3, "--checkpoint", tmp_path / "c", "--checkpoint-every"]
    assert run(capsys, *words, 0)[0] == 0
    assert (tmp_path / "c").exists()
    for wrong in ("-1", "inf", "nan"):
        code, _, err = run(capsys, *words, wrong)
        assert (code, "--checkpoint-every must be a number >= 0, got" in err) == (2, True)


def test_a_checkpoint_of_other_data_is_not_gone_on_from(data, tmp_path, capsys):
    words = ["fit", data, "--radius", 3, "--checkpoint", tmp_path / "c"]
    assert run(capsys, *words)[0] == 0
    assert run(capsys, *words, "--resume")[0] == 0
    whole = data.read_text()
    first, rest = whole.split(" ", 1)
    data.write_text(f"{-int(first)} {rest}")  # another target
    code, _, err = run(capsys, *words, "--resume")
    assert (code, "belongs to another fit: data differ" in err) == (2, True)
    data.write_text(whole.replace(":0.", ":0.1", 1).replace(":-0.", ":-0.1", 1))
    code, _, err = run(capsys, *words, "--resume")
    assert (code, "belongs to another fit: data differ" in err) == (2, True)


def test_targets_are_left_out_where_the_model_knows_their_place(tmp_path, capsys):
    """By number, as in the file that it was fitted to; a file of features alone is fine, too."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    y = X @ [1.0, -2.0, 0.5]
    np.save(tmp_path / "d.npy", np.column_stack([y, X]))
    np.save(tmp_path / "X.npy", X)
    words = ["--target", 0, "--radius", 9, "-o", tmp_path / "m", "--tol", 1e-9]
    assert run(capsys, "fit", tmp_path / "d.npy", *words)[0] == 0
    out = [run(capsys, "predict", tmp_path / "m", tmp_path / n)[1] for n in ("d.npy", "X.npy")]
    assert out[0] == out[1]
    np.testing.assert_allclose(np.array(out[0].split(), float), y, atol=1e-3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"output": "b.svm"}, "--output must be another file than b.svm, got b.svm for both"),
        ({"choose": True}, "--radius cv cannot be used on a cluster's workers"),
        ({"labels": "y.npy"}, "--labels cannot be used on a cluster's workers"),
        ({"scheduler": "here"}, "--scheduler with --workers cannot be used"),
        ({"workers": None}, "DATA must be one file, got 2: several are parts for"),
    ],
)
def test_what_cannot_be_done_on_workers_is_refused(tmp_path, monkeypatch, changes, message):
    monkeypatch.chdir(tmp_path)
    given = dict(
        data="a.svm", parts=("a.svm", "b.svm"), output="m", format_=None, target=None, labels=None,
        n_features=None, dtype="float64", task="auto", choose=False, folds=5, rule="best",
        radius_path=None, checkpoint=None, checkpoint_every=1.0, resume=False, plot=None,
        test=None, report=None, quiet=True, workers=2,
    )  # fmt: skip
    fitting.Files(**given)
    with pytest.raises(click.UsageError, match=message):
        fitting.Files(**{**given, **changes})


def test_a_fit_that_was_interrupted_ends_with_130(data, model, monkeypatch, capsys):
    kept = LinearModelFile.load(model)
    for interrupted, code in ((True, 130), (False, 0)):
        fitted = SimpleNamespace(interrupted=interrupted)
        done = SimpleNamespace(model=kept, fitted=fitted, test=None)
        monkeypatch.setattr(fitting, "fit_file", lambda *_, done=done: done)
        found = run(capsys, "fit", data, "--radius", 3, "--json")
        assert found[0] == code
        assert json.loads(found[1])["classes"] == [-1, 1]  # what there is, is told


def test_checkpoints_are_written_as_often_as_asked_for(data, tmp_path, monkeypatch, capsys):
    asked = []

    class Kept(fitting.Checkpoint):
        def __init__(self, *rest):
            asked.append(rest)
            super().__init__(*rest)

    monkeypatch.setattr(fitting, "Checkpoint", Kept)
    words = ["fit", data, "--radius", 3, "--checkpoint", tmp_path / "c"]
    run(capsys, *words, "--checkpoint-every", 2.5)
    run(capsys, *words)
    assert [rest[2] for rest in asked] == [2.5, 10.0]
    assert [rest[0] for rest in asked] == [str(tmp_path / "c")] * 2


def test_the_task_asked_for_is_done(tmp_path, capsys):
    """Whole numbers of two kinds are classes, unless it is said that they are numbers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    np.save(tmp_path / "d.npy", np.column_stack([X, X[:, 0] > 0]))
    found = {}
    for task in ("auto", "classification", "regression"):
        words = ["--task", task, "--radius", 1, "-o", tmp_path / "m", "--json"]
        shown = json.loads(run(capsys, "fit", tmp_path / "d.npy", *words)[1])
        found[task] = (shown["settings"]["task"], shown["settings"]["loss"], shown["classes"])
    assert found["auto"] == found["classification"] == ("classification", "logistic", [0, 1])
    assert found["regression"] == ("regression", "squared", None)


def test_labels_are_one_column_and_the_features_of_the_format_given(tmp_path, capsys):
    X = np.random.default_rng(0).normal(size=(12, 3))
    with open(tmp_path / "rows", "wb") as file:
        np.save(file, X)
    words = ["fit", tmp_path / "rows", "--format", "npy", "--radius", 1, "-o", tmp_path / "m"]
    np.save(tmp_path / "y.npy", X[:, 0])
    assert run(capsys, *words, "--labels", tmp_path / "y.npy")[0] == 0
    assert LinearModelFile.load(tmp_path / "m").n_features == 3
    np.save(tmp_path / "y.npy", X[:, :1])
    code, _, err = run(capsys, *words, "--labels", tmp_path / "y.npy")
    assert (code, "y.npy must hold 12 targets, one a row." in err) == (2, True)


def test_a_path_over_a_set_without_a_radius_is_refused_before_the_file_is_read(tmp_path, capsys):
    words = ["--constraint", "box", "-p", "lower=0", "-p", "upper=1"]
    for more in (["--radius-path", tmp_path / "p"], ["--radius", "cv"]):
        code, _, err = run(capsys, "fit", tmp_path / "none.svm", *words, *more)
        assert (code, "must be the name of a set with a radius" in err) == (2, True), err
    assert run(capsys, "fit", tmp_path / "none.svm", *words)[0] == 1


def test_scores_are_of_the_format_given(tmp_path, capsys):
    (tmp_path / "rows").write_text("a,kind\n1,x\n2,y\n1.5,x\n3,y\n")
    words = ["--format", "csv"]
    assert (
        run(capsys, "fit", tmp_path / "rows", *words, "--radius", 9, "-o", tmp_path / "m")[0] == 0
    )
    code, out, _ = run(capsys, "score", tmp_path / "m", tmp_path / "rows", *words, "--json")
    assert (code, json.loads(out)["rows"]) == (0, 4)
    code, out, _ = run(capsys, "predict", tmp_path / "m", tmp_path / "rows", *words)
    assert (code, len(out.splitlines())) == (0, 4)
