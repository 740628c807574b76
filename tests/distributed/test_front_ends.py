"""Estimators on dask arrays, and `adafw fit` on workers: the same models as on one machine."""

import json
import sys

import numpy as np
import pytest

import adafw
from adafw.cli import main
from adafw.io.libsvm import write_libsvm
from adafw.sklearn import FrankWolfeClassifier, FrankWolfeClassifierCV, FrankWolfeRegressor

distributed = pytest.importorskip("distributed", reason="needs Dask: pip install 'adafw[dask]'")
da = pytest.importorskip("dask.array")


@pytest.fixture
def arrays(client, data):
    A, y, _ = data()
    A = A.toarray()
    with client.as_current():
        yield A, y, da.from_array(A, chunks=(50, 14)), da.from_array(y, chunks=50)


@pytest.mark.parametrize("intercept", [True, False])
def test_a_classifier_on_dask_arrays(arrays, intercept):
    A, y, X, _ = arrays
    how = dict(radius=3.0, tol=1e-8, fit_intercept=intercept)
    words = np.where(y > 0, "yes", "no")
    here = FrankWolfeClassifier(**how).fit(A, words)
    there = FrankWolfeClassifier(**how).fit(X, da.from_array(words, chunks=50))
    assert there.algorithm_ == here.algorithm_
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-6)
    np.testing.assert_allclose(there.intercept_, here.intercept_, atol=1e-6)
    assert there.gap_ <= 1e-8 * there.value_
    assert there.n_features_in_ == 14
    assert (there.predict(X) == here.predict(A)).all()
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(A), atol=1e-6)
    with pytest.raises(ValueError, match="X has 13 features, but the model needs 14"):
        there.predict(X[:, :13])
    with pytest.raises(ValueError, match="X has 13 features, but the model needs 14"):
        there.partial_fit(X[:, :13], da.from_array(words, chunks=50))


def test_the_automatic_choice_is_corrective_steps(client, data):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(90, 60))  # more features than small problems have
    y = A[:, 0] + 0.1 * rng.normal(size=90)
    with client.as_current():
        model = FrankWolfeRegressor(radius=1.0).fit(da.from_array(A, chunks=(30, 60)), y)
    assert model.algorithm_ == "Corrective"
    reference = FrankWolfeRegressor(radius=1.0).fit(A, y)
    assert model.value_ == pytest.approx(reference.value_, rel=1e-4)


@pytest.mark.parametrize(
    "how",
    [{"radius": 30.0}, {"radius": 30.0, "constraint": "nuclear"}, {"multi_class": "ovr"}],
    ids=["jointly", "nuclear", "one by one"],
)
def test_several_classes_on_dask_arrays(client, how):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(150, 60)) * (rng.random((150, 60)) < 0.4)
    y = np.argmax(A @ rng.normal(size=(60, 3)) + rng.normal(size=(150, 3)), axis=1)
    how = {"tol": 1e-6, "radius": 5.0, **how}
    here = FrankWolfeClassifier(**how).fit(A, y)
    with client.as_current():
        X = da.from_array(A, chunks=(70, 60))
        there = FrankWolfeClassifier(**how).fit(X, da.from_array(y, chunks=70))
        assert (there.predict(X) == here.predict(A)).all()
    assert there.algorithm_ == here.algorithm_
    assert np.shape(there.gap_) == np.shape(here.gap_)
    np.testing.assert_allclose(there.value_, here.value_, rtol=3e-6)


def test_several_targets_on_dask_arrays(arrays):
    A, y, X, _ = arrays
    several = np.column_stack([y, 2 * y + A[:, 0]])
    how = dict(radius=3.0, tol=1e-8)
    here = FrankWolfeRegressor(**how).fit(A, several)
    there = FrankWolfeRegressor(**how).fit(X, da.from_array(several, chunks=(50, 1)))
    assert there.coef_.shape == (2, 14)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-6)


@pytest.mark.parametrize("several", [False, True])
def test_blocks_of_columns(arrays, several):
    """Rows are put together, to fit and to predict."""
    A, y, X, target = arrays
    if several:
        y = np.where(A[:, 0] > 0, 3.0, y)
        target = da.from_array(y, chunks=50)
    pieces = X.rechunk((50, 5))
    assert pieces.numblocks == (3, 3)
    how = dict(radius=3.0, tol=1e-8)
    here = FrankWolfeClassifier(**how).fit(A, y)
    there = FrankWolfeClassifier(**how).fit(pieces, target)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-4)
    scores = there.decision_function(pieces)
    assert scores.shape == ((120, 3) if several else (120,))
    expected = (A @ there.coef_.T + there.intercept_).reshape(scores.shape)
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)
    assert (there.predict(pieces) == there.predict(A)).all()


def test_scores_are_the_same_however_the_array_is_cut(arrays):
    A, y, X, _ = arrays
    one = FrankWolfeClassifier(radius=3.0).fit(A, y)
    several = FrankWolfeRegressor(radius=3.0).fit(A, np.column_stack([y, A[:, 0], A[:, 1]]))
    close = dict(rtol=1e-12, atol=1e-12)
    for size in ((120, 5), (120, 14), (50, 5)):
        cut = X.rechunk(size)
        np.testing.assert_allclose(one.decision_function(cut), one.decision_function(A), **close)
        np.testing.assert_allclose(several.predict(cut), several.predict(A), **close)


def test_blocks_that_a_filter_has_emptied(arrays):
    """Of sizes that no one knows before they are made, some 0."""
    A, y, X, target = arrays
    wanted = np.arange(120) >= 60
    mask = da.from_array(wanted, chunks=50)
    how = dict(radius=3.0, tol=1e-8)
    here = FrankWolfeClassifier(**how).fit(A[wanted], y[wanted])
    there = FrankWolfeClassifier(**how).fit(X[mask], target[mask])
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-6)
    with pytest.raises(ValueError, match="some part must have a row"):
        FrankWolfeClassifier(**how).fit(X[mask & ~mask], target[mask & ~mask])


def test_folds_need_rows_here(arrays):
    _, _, X, y = arrays
    with pytest.raises(TypeError, match="X must be on this machine to be cut into folds"):
        FrankWolfeClassifierCV(radii=3).fit(X, y)


def run(*words):
    try:
        return main([str(word) for word in words]) or 0
    except SystemExit as end:
        return end.code or 0


@pytest.fixture
def parts_of_text(tmp_path, data):
    A, y, _ = data()
    names = [tmp_path / f"part-{k}.svm" for k in range(3)]
    for name, (a, b) in zip(names, [(0, 40), (40, 41), (41, 120)], strict=True):
        write_libsvm(name, A[a:b], y[a:b])
    write_libsvm(tmp_path / "whole.svm", A, y)
    return names, tmp_path / "whole.svm"


def test_fit_on_a_running_cluster(client, parts_of_text, tmp_path, capsys):
    names, whole = parts_of_text
    assert run("fit", whole, "--radius", 3, "--tol", 1e-8, "-o", tmp_path / "here", "--json") == 0
    here = json.loads(capsys.readouterr().out)
    address = client.scheduler.address
    options = ("--radius", 3, "--tol", 1e-8, "--scheduler", address, "--json")
    assert run("fit", *names, *options) == 0
    there = json.loads(capsys.readouterr().out)
    assert there["model"] == str(tmp_path / "part.model")
    assert there["data"]["file"] == "part"
    assert there["data"]["X"]["shape"] == [120, 14]
    assert (there["features"], there["zero_based"]) == (None, False)
    assert (here["features"], here["zero_based"]) == (None, False)
    for model in (here, there):
        assert model["certificate"][0]["status"] == "converged"
    ours, theirs = (m["certificate"][0]["value"] for m in (there, here))
    assert ours == pytest.approx(theirs, rel=1e-7)
    assert run("predict", tmp_path / "part.model", whole) == 0
    assert len(capsys.readouterr().out.split()) == 120


def test_columns_of_parts_keep_their_names(client, tmp_path, capsys):
    """The target is left out wherever it stands; numbers are of the precision asked for."""
    rng = np.random.default_rng(0)
    for k in range(2):
        rows = [f"{a:.6f},{a - b > 0:d},{b:.6f}" for a, b in rng.normal(size=(15, 2))]
        (tmp_path / f"part-{k}.csv").write_text("\n".join(["long,kind,wide", *rows]) + "\n")
    names = [tmp_path / f"part-{k}.csv" for k in range(2)]
    options = ("--scheduler", client.scheduler.address, "--radius", 3, "--dtype", "float32")
    assert run("fit", *names, *options, "--target", "kind", "--json") == 0
    there = json.loads(capsys.readouterr().out)
    assert (there["features"], there["target"]) == (["long", "wide"], "kind")
    assert there["classes"] == [0, 1]
    assert there["settings"]["dtype"] == "float32"


def test_a_fit_that_lost_its_cluster_goes_on(client, parts_of_text, tmp_path, capsys, monkeypatch):
    from adafw.distributed import ClusterLost
    from adafw.distributed.engine import Engine

    names, kept = parts_of_text[0], tmp_path / "kept"
    options = ("--radius", 3, "--max-epochs", 40, "--algorithm", "FW", "--scheduler",
               client.scheduler.address, "--json")  # fmt: skip
    assert run("fit", *names, *options, "-o", tmp_path / "whole") == 0
    whole = json.loads(capsys.readouterr().out)["certificate"][0]
    ask, left = Engine.ask, [0]

    def flaky(*words, **how):
        left[0] -= 1
        if left[0] < 0:
            raise ClusterLost("the cluster is gone")
        return ask(*words, **how)

    monkeypatch.setattr(Engine, "ask", flaky)
    for more, said in (
        ((), "the cluster is gone; run it again, with --checkpoint FILE if it is to go on"),
        (("--checkpoint", kept), f"the cluster is gone; run it again with --resume: {kept} is"),
    ):
        left[0] = 30
        assert run("fit", *names, *options, *more) == 1
        assert said in capsys.readouterr().err
    left[0] = 10**9
    assert run("fit", *names, *options, "--checkpoint", kept, "--resume") == 0
    certificate = json.loads(capsys.readouterr().out)["certificate"][0]
    assert certificate["value"] == pytest.approx(whole["value"], rel=1e-12)
    assert certificate["iterations"] == whole["iterations"]


def test_what_cannot_be_done_on_workers_is_refused(parts_of_text, tmp_path, capsys):
    names, whole = parts_of_text
    for words, said in (
        ((*names,), "DATA must be one file, got 3"),
        ((*names, "--workers", 2, "--radius", "cv"), "--radius cv cannot be used"),
        ((*names, "--workers", 2, "--labels", whole), "--labels cannot be used"),
        ((*names, "--workers", 2, "--scheduler", "tcp://127.0.0.1:1"), "--scheduler with --work"),
    ):
        assert run("fit", *words) == 2
        assert said in capsys.readouterr().err
    assert not list(tmp_path.glob("*.model"))


def test_without_dask_the_extra_is_named(parts_of_text, capsys, monkeypatch):
    for name in [n for n in sys.modules if n.split(".")[:2] == ["adafw", "distributed"]]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert run("fit", *parts_of_text[0], "--workers", 2) == 2
    assert "pip install 'adafw[dask]'" in capsys.readouterr().err
    from adafw import distributed as package

    with pytest.raises(ModuleNotFoundError, match=r"pip install 'adafw\[dask\]'"):
        package.local_client()


def test_the_live_line_tells_of_workers(model, capsys):
    adafw.minimize(
        model, adafw.L1Ball(4.0), adafw.AdaCSFW(learning_rate=0.3), max_seconds=1.5, progress=True
    )
    said = capsys.readouterr().err
    assert "2 workers, " in said
    assert " rows/s, " in said
    assert " MB/s" in said


@pytest.mark.slow
def test_fit_on_processes_of_this_machine(parts_of_text, tmp_path):
    """In a process of its own, as users start it: the live line goes to standard error."""
    import subprocess

    names, _ = parts_of_text
    done = subprocess.run(
        [sys.executable, "-m", "adafw", "fit", *names, "--workers", "2", "--radius", "3",
         "-o", tmp_path / "m"],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "converged" in done.stdout
    assert (tmp_path / "m").exists()
    names[1].write_text("1 2:x\n")
    done = subprocess.run(
        [sys.executable, "-m", "adafw", "fit", *names, "--workers", "2", "-o", tmp_path / "n"],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 2
    assert "part-1.svm, line 1" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "n").exists()
