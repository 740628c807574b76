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


CERTIFICATE = {
    "value": 1.0, "gap": None, "status": "converged", "algorithm": "FW", "iterations": 3,
    "nonzeros": 2, "seconds": 0.5,
}  # fmt: skip


def lacking(table, key):
    return {k: v for k, v in table.items() if k != key}


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"settings": []}, "the header has no settings"),
        ({"certificate": {}}, "the header has no certificate"),
        ({"data": None}, "the header has no data"),
        ({"settings": lacking(HEADER["settings"], "task")}, "settings has no task"),
        ({"settings": lacking(HEADER["settings"], "loss")}, "settings has no loss"),
        ({"settings": lacking(HEADER["settings"], "constraint")}, "settings has no constraint"),
        ({"settings": {**HEADER["settings"], "loss": "none"}}, "its loss is unknown"),
        ({"settings": {**HEADER["settings"], "radius": "1"}}, "its radius is no number"),
        ({"certificate": [CERTIFICATE, 5]}, "a certificate is no table"),
        *[
            ({"certificate": [lacking(CERTIFICATE, key)]}, f"a certificate has no {key}")
            for key in CERTIFICATE
        ],
        ({"certificate": [{**CERTIFICATE, "status": None}]}, "a certificate has no status"),
        ({"certificate": [{**CERTIFICATE, "value": "1"}]}, "a certificate has no value"),
        ({"features": ["a"] * 4}, "features are not one name a column"),
        ({"features": [1, 2, 3, 4, 5]}, "features are not one name a column"),
        ({"features": "abcde"}, "features are not one name a column"),
        ({"data": {"X": {"shape": [9, 5], "name": "dense"}}}, "data has no file"),
    ],
)
def test_headers_that_lack_something_are_refused(model, tmp_path, change, wrong):
    arrays = {"coef": model.coef, "intercept": model.intercept, "classes": model.classes}
    write_arrays(tmp_path / "m", "adafw linear model", 1, {**HEADER, **change}, arrays)
    with pytest.raises(ValueError, match=f"got a damaged one: {wrong}"):
        LinearModelFile.load(tmp_path / "m")


@pytest.mark.parametrize("key", ["target", "zero_based", "features"])
def test_entries_that_may_be_null_must_be_there(model, tmp_path, key):
    arrays = {"coef": model.coef, "intercept": model.intercept, "classes": model.classes}
    write_arrays(tmp_path / "m", "adafw linear model", 1, lacking(HEADER, key), arrays)
    with pytest.raises(ValueError, match=r"target and zero_based are missing|features are not"):
        LinearModelFile.load(tmp_path / "m")


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"coef": np.ones((3, 5), int)}, "coef is not an array of finite numbers"),
        ({"coef": np.full((3, 5), np.nan)}, "coef is not an array of finite numbers"),
        ({"intercept": np.array([1, 2, np.inf])}, "intercept is not an array of finite numbers"),
        ({"intercept": np.ones(2)}, r"intercept has shape \(2,\)"),
        ({"coef": np.ones((3, 5, 1))}, r"coef has shape \(3, 5, 1\)"),
        ({"coef": np.ones((3, 0))}, r"coef has shape \(3, 0\)"),
        ({"classes": np.array(["a", "b"])}, "classes are not 3 labels"),
        ({"classes": np.array([1j, 2, 3])}, "classes are not 3 labels"),
        ({"classes": np.array(["a", "b", "b"])}, "classes are not different labels"),
        ({"classes": np.array([1.0, 2.0, np.nan])}, "classes are not different labels"),
        (
            {"coef": np.ones((1, 5)), "intercept": np.ones(1)},
            "classes are not 2 labels",
        ),
    ],
)
def test_arrays_that_are_no_model_are_refused(model, tmp_path, change, wrong):
    arrays = {"coef": model.coef, "intercept": model.intercept, "classes": model.classes}
    write_arrays(tmp_path / "m", "adafw linear model", 1, HEADER, arrays)
    LinearModelFile.load(tmp_path / "m")
    write_arrays(tmp_path / "m", "adafw linear model", 1, HEADER, {**arrays, **change})
    with pytest.raises(ValueError, match=f"got a damaged one: {wrong}"):
        LinearModelFile.load(tmp_path / "m")


def test_a_model_predicts_by_its_loss_in_float64(model):
    """Probabilities of scores that were fitted jointly are softmax; delta reaches the loss."""
    X = np.random.default_rng(1).normal(size=(4, 5))
    small = LinearModelFile(
        model.coef.astype(np.float32), model.intercept, model.classes,
        {**HEADER, "settings": {**HEADER["settings"], "multi_class": "multinomial"}},
    )  # fmt: skip
    scores = small.predictor.decision(X)
    assert scores.dtype == np.float64
    np.testing.assert_allclose(scores, X @ small.coef.T.astype(float) + model.intercept)
    p = np.exp(scores)
    np.testing.assert_allclose(small.predictor.predict_proba(X), p / p.sum(1, keepdims=True))
    apart = 1 / (1 + np.exp(-model.predictor.decision(X)))
    np.testing.assert_allclose(
        model.predictor.predict_proba(X), apart / apart.sum(1, keepdims=True)
    )
    settings = {"task": "regression", "loss": "huber", "constraint": "l1", "delta": 0.25}
    one = LinearModelFile(np.ones((1, 2)), np.zeros(1), None, {**HEADER, "settings": settings})
    losses = one.predictor.losses(np.array([[0.1, 0.1], [1.0, 1.0]]), np.zeros(2))
    np.testing.assert_allclose(losses, [0.2**2, 2 * 0.25 * 2 - 0.25**2])
    assert one.n_features == 2


def test_two_classes_have_one_score_however_they_were_to_be_fitted():
    settings = {**HEADER["settings"], "multi_class": "multinomial"}
    header = {**HEADER, "settings": settings}
    two = LinearModelFile(np.array([[1.0, -2.0]]), np.array([0.5]), np.array(["a", "b"]), header)
    X = np.array([[1.0, 0.0], [0.0, 1.0]])
    larger = 1 / (1 + np.exp([-1.5, 1.5]))
    np.testing.assert_allclose(two.predictor.predict_proba(X)[:, 1], larger)
    assert two.predictor.predict(X).tolist() == ["b", "a"]


def test_a_file_that_swells_is_told_as_such(tmp_path):
    """Nothing is unpacked that is larger than the file itself."""
    np.savez_compressed(tmp_path / "m.npz", header=np.zeros(10**6, np.uint8))
    with pytest.raises(ValueError, match=r"m\.npz must unpack to at most .*, got 1 MB"):
        LinearModelFile.load(tmp_path / "m.npz")
