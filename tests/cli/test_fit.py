"""adafw fit, predict, score and info as a user runs them."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import adafw
from adafw.cli import main
from adafw.fitting.model import LinearModelFile
from adafw.io.libsvm import write_libsvm
from adafw.sklearn import FrankWolfeClassifier, FrankWolfeRegressor
from sklearn import datasets


def run(capsys, *arguments):
    """(exit code, standard output, standard error)."""
    code = 0
    try:
        main([str(a) for a in arguments])
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A binary LIBSVM file, a CSV of three classes, and a regression in npy."""
    path = tmp_path_factory.mktemp("data")
    X, y = datasets.load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    write_libsvm(path / "cancer.svm", X, 2.0 * y - 1)
    X, y = datasets.load_iris(return_X_y=True)
    rows = (",".join([*map(str, row), f"kind{k}"]) for row, k in zip(X, y, strict=True))
    (path / "iris.csv").write_text("a,b,c,d,kind\n" + "\n".join(rows) + "\n")
    X, y = datasets.load_diabetes(return_X_y=True)
    np.save(path / "diabetes.npy", np.column_stack([X, y]))
    # A long fit: stochastic, many short iterations, no tolerance it could reach.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 30))
    labels = (X[:, :3].argmax(axis=1)).astype(float)
    np.save(path / "long.npy", np.column_stack([X, labels]))
    return path


def test_fit_equals_the_estimators(folder, tmp_path, capsys):
    out = tmp_path / "m"
    words = ["--radius", 5, "--tol", 1e-9, "-o", out]
    code, text, _ = run(capsys, "fit", folder / "cancer.svm", *words)
    assert code == 0
    assert "converged" in text
    X, y = datasets.load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    reference = FrankWolfeClassifier(radius=5.0, tol=1e-9).fit(X, y)
    model = LinearModelFile.load(out)
    np.testing.assert_allclose(model.coef, reference.coef_, atol=1e-5)
    code, text, _ = run(
        capsys, "fit", folder / "diabetes.npy", "--radius", 900, "-o", out, "--json"
    )
    shown = json.loads(text)
    X, y = datasets.load_diabetes(return_X_y=True)
    reference = FrankWolfeRegressor(radius=900.0).fit(X, y)
    assert shown["settings"]["task"] == "regression"
    assert shown["certificate"][0]["value"] == pytest.approx(reference.value_, rel=1e-9)
    assert shown["certificate"][0]["gap"] <= 1e-4 * shown["certificate"][0]["value"]
    assert shown["data"]["X"]["shape"] == [442, 10]


def test_predict_score_info(folder, tmp_path, capsys):
    model, csv = tmp_path / "m", folder / "iris.csv"
    how = ["--radius", 20, "--multi-class", "ovr"]
    assert run(capsys, "fit", csv, *how, "-o", model)[0] == 0
    code, out, _ = run(capsys, "predict", model, csv)
    X, y = datasets.load_iris(return_X_y=True)
    reference = FrankWolfeClassifier(radius=20.0, multi_class="ovr").fit(X, y)
    assert code == 0
    assert out.split() == [f"kind{k}" for k in reference.predict(X)]
    assert run(capsys, "predict", model, csv, "-o", tmp_path / "p")[1] == ""
    assert (tmp_path / "p").read_text() == out
    proba = np.loadtxt(run(capsys, "predict", model, csv, "--proba")[1].splitlines(), delimiter=",")
    np.testing.assert_allclose(proba, reference.predict_proba(X), atol=1e-9)
    scores = np.loadtxt(
        run(capsys, "predict", model, csv, "--decision")[1].splitlines(), delimiter=","
    )
    np.testing.assert_allclose(scores, reference.decision_function(X), atol=1e-9)
    score = json.loads(run(capsys, "score", model, csv, "--json")[1])
    assert score["accuracy"] == reference.score(X, y)
    assert score["mean_loss"] == pytest.approx(np.sum(reference.value_))
    assert "class kind2: converged" in run(capsys, "info", model)[1]
    assert json.loads(run(capsys, "info", model, "--json")[1])["n_features"] == 4
    assert f"adafw          {adafw.__version__}" in run(capsys, "info")[1]
    shuffled = tmp_path / "other.csv"
    shuffled.write_text("d,kind,c,b,a\n0.2,kind0,1.4,3.5,5.1\n")
    assert run(capsys, "predict", model, shuffled)[1] == "kind0\n"


@pytest.mark.parametrize("constraint", ["l1", "group"])
def test_multinomial_libsvm_file(constraint, tmp_path, capsys):
    """Fit, predict, score and report of one joint problem, from a file of several labels."""
    X, y = datasets.load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    write_libsvm(tmp_path / "wine.svm", X, y + 3.0)
    data, model = tmp_path / "wine.svm", tmp_path / "m"
    words = ["--multi-class", "multinomial", "--constraint", constraint, "--radius", 2, "-o", model]
    code, out, _ = run(capsys, "fit", data, *words, "--report", tmp_path / "r.html")
    assert code == 0
    assert out.count("converged") == 1
    reference = FrankWolfeClassifier(constraint=constraint, radius=2.0).fit(X, y)
    proba = run(capsys, "predict", model, data, "--proba")[1].splitlines()
    proba = np.loadtxt(proba, delimiter=",")
    np.testing.assert_allclose(proba, reference.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)
    labels = np.array(run(capsys, "predict", model, data)[1].split(), dtype=float)
    np.testing.assert_array_equal(labels, reference.predict(X) + 3)
    score = json.loads(run(capsys, "score", model, data, "--json")[1])
    assert score["mean_loss"] == pytest.approx(reference.value_, rel=1e-6)
    one = json.loads(run(capsys, "info", model, "--json")[1])
    assert len(one["certificate"]) == 1


def test_regression_scores_in_pieces(folder, tmp_path, capsys, monkeypatch):
    from adafw.io import tables

    monkeypatch.setattr(tables, "PIECE_ROWS", 50)
    model = tmp_path / "m"
    run(capsys, "fit", folder / "diabetes.npy", "-o", model, "--loss", "huber", "--radius", 2000,
        "--delta", 50)  # fmt: skip
    score = json.loads(run(capsys, "score", model, folder / "diabetes.npy", "--json")[1])
    X, y = datasets.load_diabetes(return_X_y=True)
    reference = FrankWolfeRegressor("huber", delta=50.0, radius=2000.0).fit(X, y)
    assert score["r2"] == pytest.approx(reference.score(X, y), abs=1e-4)
    assert score["mean_loss"] == pytest.approx(reference.value_, rel=1e-4)


def test_options_reach_the_fit(folder, tmp_path, capsys):
    out = tmp_path / "m"
    code, text, _ = run(
        capsys, "fit", folder / "cancer.svm", "-o", out, "--json", "--loss", "squared_hinge",
        "--constraint", "linf", "--radius", 0.2, "--algorithm", "AdaCSFW", "--learning-rate", 0.1,
        "--no-intercept", "--class-weight", "balanced", "--tol", 0.01, "--dtype", "float32",
        "--plot", tmp_path / "p.png", "--seed", 3, "--max-epochs", 20,
    )  # fmt: skip
    assert code == 0
    shown = json.loads(text)
    assert shown["certificate"][0]["algorithm"] == "AdaCSFW"
    model = LinearModelFile.load(out)
    assert model.coef.dtype == np.float32
    assert model.intercept.tolist() == [0.0]
    assert np.abs(model.coef).max() <= 0.2 * (1 + 1e-6)
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("jobs", [1, 3])
def test_python_names_and_jobs_change_nothing(jobs, folder, tmp_path, capsys):
    short = ["--loss", "logistic", "--constraint", "ksparse", "-p", "k=2"]
    long = ["--loss", "Logistic", "--constraint", "KSparse", "-p", "k=2", "--n-jobs", jobs]
    for name, words in (("short", short), ("long", long)):
        out = ["-o", tmp_path / name, "--radius", 2]
        assert run(capsys, "fit", folder / "iris.csv", *out, *words)[0] == 0
    one, two = (LinearModelFile.load(tmp_path / name) for name in ("short", "long"))
    np.testing.assert_array_equal(one.coef, two.coef)
    assert one.header["settings"] == {**two.header["settings"], "n_jobs": None}
    assert two.header["settings"]["constraint"] == "ksparse"
    assert two.header["settings"]["constraint_params"] == {"k": 2}


@pytest.mark.parametrize("option", ["--max-seconds", "--time-limit"])
def test_seconds_count_from_the_reading_of_the_file_on(option, folder, tmp_path, capsys, clock):
    """A file that takes longer to read than there is time leaves none for the fit."""
    from adafw.commands import fitting

    def slowly(*arguments):
        clock.sleep(0.5)
        return read(*arguments)

    read = fitting.read_table
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "read_table", slowly)
        code, out, err = run(
            capsys, "fit", folder / "iris.csv", "-o", tmp_path / "m", option, 0.25, "--json",
            "--multi-class", "ovr",
        )  # fmt: skip
    assert code == 0
    shown = json.loads(out)["certificate"]
    assert [c["status"] for c in shown] == ["max_seconds", "not started", "not started"]
    assert [c["iterations"] for c in shown] == [0, 0, 0]
    assert "(the time is up)" in err
    assert "2 of 3 classes were not started" in err
    assert run(capsys, "predict", tmp_path / "m", folder / "iris.csv")[0] == 0


def test_bad_names_are_refused_before_the_file_is_read(tmp_path, capsys):
    for words, message in (
        (["--constraint", "l7"], "constraint must be a set or one of"),
        (["--loss", "hinge"], "loss must be one of"),
        (["--algorithm", "Adam"], "algorithm must be"),
        (["--constraint", "lp"], "--constraint lp needs p: give -p p=VALUE."),
        (["-p", "q=3"], "no -p is taken for --constraint l1, got 'q'."),
    ):
        code, _, err = run(capsys, "fit", tmp_path / "missing.svm", *words)
        assert (code, message in err) == (2, True), err


def test_labels_of_their_own(folder, tmp_path, capsys):
    both = np.load(folder / "diabetes.npy")
    np.save(tmp_path / "X.npy", both[:, :-1])
    np.save(tmp_path / "y.npy", both[:, -1])
    for data, labels in ((folder / "diabetes.npy", None), (tmp_path / "X.npy", tmp_path / "y.npy")):
        extra = [] if labels is None else ["--labels", labels]
        assert run(capsys, "fit", data, *extra, "-o", tmp_path / data.stem, "--radius", 99)[0] == 0
    one, two = (LinearModelFile.load(tmp_path / name) for name in ("diabetes", "X"))
    np.testing.assert_array_equal(one.coef, two.coef)
    assert run(capsys, "predict", tmp_path / "X", tmp_path / "X.npy")[1].count("\n") == 442
    np.save(tmp_path / "y.npy", both[:5, -1])
    code, _, err = run(capsys, "fit", tmp_path / "X.npy", "--labels", tmp_path / "y.npy")
    assert code == 2
    assert "must hold 442 targets" in err


def test_a_fit_that_stops_early_says_so(folder, tmp_path, capsys):
    code, _, err = run(
        capsys, "fit", folder / "cancer.svm", "-o", tmp_path / "m", "--algorithm", "CSFW",
        "--max-epochs", 3, "--tol", 1e-9,
    )  # fmt: skip
    assert code == 0
    assert "Warning: the fit stopped before its tolerance (max_epochs=3 is used up): gap" in err


def test_a_radius_without_effect_is_named(folder, tmp_path, capsys):
    code, _, err = run(
        capsys, "fit", folder / "diabetes.npy", "-o", tmp_path / "m", "--radius", 1e5
    )
    assert code == 0
    assert "Warning: the radius 100000 has no effect" in err


BAD = {
    "empty.svm": ("", "at least one sample"),
    "cut.svm": ("1 1:2\n-1 2:", "line 2, column 6: expected a number after ':'"),
    "nan.svm": ("1 1:nan\n-1 1:1\n", "finite features"),
    "one.svm": ("1 1:1\n1 1:2\n", "at least two classes"),
    "mixed.csv": ("1,2,0\n1,2\n", "line 2: expected 3 columns, got 2"),
    "word.csv": ("1,2,0\nx,2,1\n", "line 2, column 1: expected a finite number, got 'x'"),
    "bad.npz": ("PK", "must be a whole .npz file"),
    "bad.npy": ("x", "must be a whole .npy file"),
    "bad.parquet": ("x", "must be a whole Parquet file"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_data_end_with_2_and_one_sentence(name, tmp_path, capsys):
    content, message = BAD[name]
    path, out = tmp_path / name, tmp_path / "m"
    path.write_text(content)
    out.write_text("old")
    code, text, err = run(capsys, "fit", path, "-o", out)
    assert code == 2
    assert text == ""
    assert message in err
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert out.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([name, "m"])


def test_bad_settings_end_with_2(folder, tmp_path, capsys):
    base = ["fit", folder / "cancer.svm", "-o", tmp_path / "m"]
    for extra, message in (
        (["--loss", "hinge"], "loss must be one of logistic"),
        (["--loss", "logistic", "--task", "regression"], "does not fit the task"),
        (["--radius", -1], "radius must be"),
        (["--constraint", "l7"], "constraint must be a set or one of"),
        (["--constraint", "group"], "--constraint group needs groups: give -p groups=VALUE."),
        (["--algorithm", "Adam"], "algorithm must be"),
        (["--learning-rate", "fast"], "--learning-rate must be auto or a number"),
        (["--resume"], "--resume needs --checkpoint"),
        (["--time-limit", 0], "--max-seconds must be a number that is finite and > 0"),
        (["--max-seconds", -1], "--max-seconds must be"),
        (["--n-jobs", 0], "--n-jobs must be"),
        (["--param", "k"], "--param must be key=value"),
        (["-o", tmp_path / "no" / "m"], "must lie in a directory that exists"),
    ):
        code, _, err = run(capsys, *base, *extra)
        assert (code, message in err) == (2, True), err
    poisson = ["fit", folder / "cancer.svm", "-o", tmp_path / "m", "--loss", "poisson"]
    code, _, err = run(capsys, *poisson)
    assert code == 2
    assert "Poisson takes targets y >= 0" in err
    assert run(capsys, "fit", tmp_path / "missing.svm")[0] == 1
    assert list(tmp_path.iterdir()) == []


def test_bad_models_end_with_2(folder, tmp_path, capsys):
    model = tmp_path / "m"
    run(capsys, "fit", folder / "iris.csv", "-o", model)
    code, _, err = run(capsys, "predict", model, folder / "diabetes.npy")
    assert code == 2
    assert "has 11 columns, the model needs 4 features" in err
    model.write_bytes(model.read_bytes()[:700])
    for command in (["predict", model, folder / "iris.csv"], ["score", model, folder / "iris.csv"],
                    ["info", model]):  # fmt: skip
        code, _, err = run(capsys, *command)
        assert code == 2
        assert "must be an adafw linear model file" in err


def test_predictions_are_written_whole_or_not_at_all(folder, tmp_path, capsys):
    model, data, out = tmp_path / "m", tmp_path / "late.csv", tmp_path / "p"
    run(capsys, "fit", folder / "iris.csv", "-o", model, "--radius", 2)
    data.write_text("a,b,c,d\n" + "1,2,3,4\n" * 20_000 + "1,2,oops,4\n")
    out.write_text("old")
    code, _, err = run(capsys, "predict", model, data, "-o", out)
    assert code == 2
    assert "late.csv, line 20002, column 3: expected a finite number, got 'oops'" in err
    assert out.read_text() == "old"


def spawn(folder, *arguments, **options):
    command = [sys.executable, "-m", "adafw", *[str(a) for a in arguments]]
    source = Path(adafw.__file__).parent.parent
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, **options,
    )  # fmt: skip


LONG = ["--algorithm", "AdaCSFW", "--learning-rate", 1, "--radius", 3, "--tol", 0]


def test_killed_at_any_time_and_resumed_has_the_same_bits(folder, tmp_path):
    """kill -9 again and again until a run gets through: the model is that of one quiet run."""
    data = folder / "long.npy"
    fit = ["fit", data, *LONG, "--max-epochs", 20, "--quiet"]
    quiet = spawn(folder, *fit, "-o", tmp_path / "quiet")
    again = [*fit, "-o", tmp_path / "killed", "--checkpoint", tmp_path / "c",
             "--checkpoint-every", 0, "--resume"]  # fmt: skip
    draw, kills = random.Random(5), 0
    for _ in range(20):
        process = spawn(folder, *again)
        if kills < 2:
            seen = time.monotonic()
            before = (tmp_path / "c").stat().st_mtime_ns if (tmp_path / "c").exists() else 0
            # Let it get somewhere, then kill at a random moment, perhaps amid a write.
            while time.monotonic() - seen < 30 and process.poll() is None:
                now = (tmp_path / "c").stat().st_mtime_ns if (tmp_path / "c").exists() else 0
                if now > before:
                    break
                time.sleep(0.005)
            time.sleep(draw.uniform(0, 0.3))
            if process.poll() is None:
                process.kill()
                kills += 1
        process.communicate(timeout=120)
        if process.returncode == 0:
            break
    assert process.returncode == 0
    assert kills >= 1
    assert quiet.wait(timeout=120) == 0
    quiet.communicate()
    one, two = (LinearModelFile.load(tmp_path / name) for name in ("quiet", "killed"))
    np.testing.assert_array_equal(one.coef, two.coef)
    np.testing.assert_array_equal(one.intercept, two.intercept)
    assert [c["gap"] for c in one.header["certificate"]] == [
        c["gap"] for c in two.header["certificate"]
    ]


def test_ctrl_c_keeps_what_there_is_and_resumes(folder, tmp_path):
    arguments = ["fit", folder / "long.npy", *LONG, "--max-epochs", 100_000, "-o", tmp_path / "m",
                 "--checkpoint", tmp_path / "c", "--checkpoint-every", 0]  # fmt: skip
    process = spawn(folder, *arguments)
    deadline = time.monotonic() + 60
    while not (tmp_path / "c").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    model = LinearModelFile.load(tmp_path / "m")
    statuses = [c["status"] for c in model.header["certificate"]]
    assert statuses[0] == "interrupted"
    assert model.coef.shape == (3, 30)
    assert "Warning" in err
    process = spawn(folder, *arguments, "--resume", "--time-limit", 0.5, "--json")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    shown = json.loads(out)["certificate"][0]
    assert shown["status"] == "max_seconds"
    assert shown["iterations"] >= model.header["certificate"][0]["iterations"]


def test_another_problem_is_not_resumed(folder, tmp_path, capsys):
    base = ["fit", folder / "cancer.svm", "-o", tmp_path / "m", "--checkpoint", tmp_path / "c"]
    assert run(capsys, *base, "--radius", 2)[0] == 0
    code, _, err = run(capsys, *base, "--radius", 3, "--resume")
    assert code == 2
    assert "belongs to another fit: constraint differ" in err
    assert run(capsys, *base, "--radius", 2, "--resume")[0] == 0


def test_predict_needs_little_memory(tmp_path, capsys):
    """A file of 60 MB is predicted with a heap that may grow by 30 MB at most."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 50))
    np.save(tmp_path / "small.npy", np.column_stack([X, np.sign(X[:, 0])]))
    assert run(capsys, "fit", tmp_path / "small.npy", "-o", tmp_path / "m", "--radius", 1)[0] == 0
    np.save(tmp_path / "big.npy", np.tile(X, (500, 1)))
    script = (
        "import resource\nfrom adafw.cli import main\n"
        "import numpy, scipy.sparse, adafw.io.tables, adafw.fitting.model\n"
        "numpy.ones((200, 200)) @ numpy.ones((200, 200))  # BLAS takes its buffers now\n"
        "used = int(open('/proc/self/statm').read().split()[5]) * 4096\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (used + 30_000_000, -1))\n"
        f"main(['predict', {str(tmp_path / 'm')!r}, {str(tmp_path / 'big.npy')!r}, '-o', "
        f"{str(tmp_path / 'p')!r}])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "p").read_text().split()) == 150_000


def test_full_disk_says_so_and_keeps_the_old_model(folder, tmp_path):
    model = tmp_path / "m"
    model.write_text("old")
    script = (
        "import resource, signal\nfrom adafw.cli import main\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (500, -1))\n"
        f"main(['fit', {str(folder / 'diabetes.npy')!r}, '-o', {str(model)!r}])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1
    # NumPy before 2.2 leaves its archive open, of which Python complains when all is over.
    said = done.stderr.split("Exception ignored in")[0]
    assert said.splitlines()[-1].startswith("Error: ")
    assert "Traceback" not in said
    assert model.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["m"]
