"""Model files: the same numbers back, and one sentence for every bad file."""

import resource
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from adafw.fitting.model import LinearModelFile
from adafw.fitting.storage import write_arrays

HEADER = {
    "settings": {"task": "classification", "loss": "logistic", "constraint": "l1", "radius": 1.0},
    "certificate": [], "data": {"file": "d", "X": {"shape": [9, 5], "name": "dense"}},
    "features": None, "target": None, "zero_based": None,
}  # fmt: skip


@pytest.fixture
def model():
    rng = np.random.default_rng(0)
    return LinearModelFile(rng.normal(size=(3, 5)), rng.normal(size=3),
                           np.array(["a", "b", "c"]), HEADER)  # fmt: skip


def test_round_trip(model, tmp_path):
    model.save(tmp_path / "m")
    back = LinearModelFile.load(tmp_path / "m")
    np.testing.assert_array_equal(back.coef, model.coef)
    np.testing.assert_array_equal(back.intercept, model.intercept)
    assert back.header == HEADER
    X = np.random.default_rng(1).normal(size=(4, 5))
    assert back.predictor.predict(X).tolist() == model.predictor.predict(X).tolist()
    np.testing.assert_allclose(back.predictor.predict_proba(X).sum(axis=1), 1)
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_labels_of_any_kind(tmp_path):
    for classes in (np.array([1, 2]), np.array([0.5, 1.5]), np.array(["x", "y"], dtype=object),
                    np.array([False, True])):  # fmt: skip
        LinearModelFile(np.ones((1, 2)), np.zeros(1), classes, HEADER).save(tmp_path / "m")
        assert LinearModelFile.load(tmp_path / "m").classes.tolist() == classes.tolist()


def test_truncated_at_any_length(model, tmp_path):
    path = tmp_path / "m"
    model.save(path)
    content = path.read_bytes()
    for length in range(0, len(content), 37):
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match=r"must be an? .*adafw|damaged"):
            LinearModelFile.load(path)


def test_flipped_bytes_never_crash(model, tmp_path):
    path = tmp_path / "m"
    model.save(path)
    content = bytearray(path.read_bytes())
    for at in range(0, len(content), 53):
        changed = content.copy()
        changed[at] ^= 0xFF
        path.write_bytes(changed)
        try:
            LinearModelFile.load(path)
        except ValueError as error:
            assert str(path) in str(error)  # noqa: PT017


def test_not_ours_or_newer(tmp_path):
    path = tmp_path / "m"
    np.savez(path.with_suffix(".npz"), a=np.ones(3))
    with pytest.raises(ValueError, match="must be an adafw linear model file"):
        LinearModelFile.load(path.with_suffix(".npz"))
    write_arrays(path, "adafw linear model", 2, HEADER, {"coef": np.ones((1, 1))})
    with pytest.raises(ValueError, match="has format 2, this version of adafw reads up to 1; upg"):
        LinearModelFile.load(path)
    write_arrays(path, "adafw checkpoint", 1, {}, {})
    with pytest.raises(ValueError, match="got an adafw checkpoint file"):
        LinearModelFile.load(path)
    write_arrays(path, "adafw linear model", 1, HEADER, {"coef": np.ones(3)})
    with pytest.raises(ValueError, match="damaged"):
        LinearModelFile.load(path)
    with pytest.raises(FileNotFoundError):
        LinearModelFile.load(tmp_path / "missing")
    with pytest.raises(ValueError, match="must be a file, got a directory"):
        LinearModelFile.load(tmp_path)
    np.save(path.with_suffix(".npy"), np.array([{}]), allow_pickle=True)
    with pytest.raises(ValueError, match="must be an adafw linear model file"):
        LinearModelFile.load(path.with_suffix(".npy"))


@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        ({"file": "d", "X": {"shape": [9, 5]}}, "data are not described"),
        ({"file": "d", "X": {"name": "dense"}}, "data are not described"),
        ({"file": "d", "X": {"name": "dense", "shape": 9}}, "data are not described"),
        ({"file": "d"}, "data has no X"),
    ],
)
def test_data_are_described_by_shape_and_name(data, wrong, model, tmp_path):
    arrays = {"coef": model.coef, "intercept": model.intercept, "classes": model.classes}
    write_arrays(tmp_path / "m", "adafw linear model", 1, {**HEADER, "data": data}, arrays)
    with pytest.raises(ValueError, match=wrong):
        LinearModelFile.load(tmp_path / "m")


def test_full_disk_leaves_the_old_file(model, tmp_path):
    path = tmp_path / "m"
    model.save(path)
    before = path.read_bytes()
    script = textwrap.dedent(f"""
        import resource, signal, numpy as np
        from adafw.fitting.model import LinearModelFile
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, {resource.RLIM_INFINITY}))
        big = LinearModelFile(np.ones((3, 50_000)), np.ones(3), None, {HEADER!r})
        try:
            big.save({str(path)!r})
        except OSError as error:
            print("refused", error.errno)
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.startswith("refused"), done.stderr
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_a_file_of_adafw_0_1_still_predicts():
    """Its header as that version wrote it, parameters of the set as a list of texts."""
    settings = {
        "task": "regression", "loss": "poisson", "delta": 1.0, "constraint": "ksparse",
        "radius": 1.0, "constraint_params": ["k=3"], "algorithm": "auto", "learning_rate": "auto",
        "fit_intercept": True, "class_weight": None, "tol": 1e-4, "max_epochs": 1000.0, "seed": 0,
        "dtype": "float32",
    }  # fmt: skip
    header = {**HEADER, "settings": settings}
    model = LinearModelFile(np.ones((1, 2), np.float32), np.array([0.5]), None, header)
    X = np.array([[1.0, 2.0], [0.0, -1.0]])
    np.testing.assert_allclose(model.predictor.predict(X), np.exp([3.5, -0.5]))
    huber = {**HEADER, "settings": {**settings, "loss": "huber", "delta": 3.0}}
    assert LinearModelFile(model.coef, model.intercept, None, huber).predictor.loss.delta == 3.0
