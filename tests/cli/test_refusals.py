"""What the command line refuses before it harms: its own files, huge ids, odd numbers."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from adafw.cli import main
from adafw.fitting.storage import read_arrays, write_arrays

KIND = "adafw linear model"


def run(capsys, *words):
    try:
        main([str(word) for word in words])
        code = 0
    except SystemExit as end:
        code = end.code
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    path = tmp_path / "d.npy"
    np.save(path, np.column_stack([X, np.sign(X[:, 0])]))
    return path


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "d.npy"], "--output must be another file than DATA"),
        (["-o", "link.npy"], "--output must be another file than DATA"),
        (["--checkpoint", "d.npy"], "--checkpoint must be another file than DATA"),
        (["-o", "m", "--checkpoint", "m"], "--checkpoint must be another file than --output"),
        (["-o", "m", "--plot", "m"], "--plot must be another file than --output"),
        (["-o", "y.npy", "--labels", "y.npy"], "--output must be another file than --labels"),
        (
            ["-o", "m", "--checkpoint-every", "nan"],
            "--checkpoint-every must be a number >= 0, got nan",
        ),
        (
            ["-o", "m", "--checkpoint-every", "-1"],
            "--checkpoint-every must be a number >= 0, got -1",
        ),
        (
            ["-o", "m", "--checkpoint-every", "inf"],
            "--checkpoint-every must be a number >= 0, got inf",
        ),
    ],
)
def test_fit_never_writes_over_what_it_reads(data, capsys, monkeypatch, options, message):
    monkeypatch.chdir(data.parent)
    os.symlink("d.npy", "link.npy")
    before = data.read_bytes()
    code, out, err = run(capsys, "fit", "d.npy", "--radius", 1, *options)
    assert code == 2
    assert out == ""
    assert message in err
    assert data.read_bytes() == before
    assert sorted(p.name for p in data.parent.iterdir()) == ["d.npy", "link.npy"]


def test_predict_never_writes_over_what_it_reads(data, tmp_path, capsys):
    assert run(capsys, "fit", data, "-o", tmp_path / "m", "--radius", 1)[0] == 0
    for path in (data, tmp_path / "m"):
        before = path.read_bytes()
        code, _, err = run(capsys, "predict", tmp_path / "m", data, "-o", path)
        assert code == 2
        assert "--output must be another file than" in err
        assert path.read_bytes() == before


def test_a_huge_id_ends_in_one_sentence(tmp_path, capsys):
    (tmp_path / "d.svm").write_text("1 1:1\n-1 2:1\n1 3:1 10000000000000:1\n")
    code, _, err = run(capsys, "fit", tmp_path / "d.svm", "-o", tmp_path / "m")
    assert code == 2
    assert "d.svm, line 3: feature id 10000000000000 asks for" in err
    assert len(err.splitlines()) == 1


def test_too_little_memory_ends_in_one_sentence(tmp_path):
    """A vector of 2e8 numbers, in a process that may take only half of one more."""
    (tmp_path / "d.svm").write_text("1 1:1\n-1 200000000:1\n")
    script = (
        "import resource, sys\nfrom adafw.cli import main\nimport adafw.commands.fitting\n"
        "import adafw.kernels.libsvm\n"
        "used = int(open('/proc/self/statm').read().split()[5]) * 4096\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (used + 800_000_000, -1))\n"
        f"main(['fit', {str(tmp_path / 'd.svm')!r}, '-o', {str(tmp_path / 'm')!r}])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: the memory is not enough: Unable to allocate 1.49 GiB")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "m").exists()


def test_fit_works_where_no_cache_can_be_written(data, tmp_path):
    """Neither numba's nor a user's cache directory: kernels are compiled anew, nothing else."""
    nowhere = "/proc/none/cache"
    environment = {
        **os.environ, "HOME": "/proc/none", "XDG_CACHE_HOME": nowhere, "NUMBA_CACHE_DIR": nowhere,
        "MPLCONFIGDIR": str(tmp_path),
    }  # fmt: skip
    words = ["fit", str(data), "-o", str(tmp_path / "m"), "--radius", "1", "--algorithm", "CSFW"]
    command = [sys.executable, "-m", "adafw", *words, "--max-epochs", "3"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "m").is_file()


def damage(arrays, header):
    """(what, arrays, header) of models that no fit writes."""
    coef, intercept, classes = arrays["coef"], arrays["intercept"], arrays["classes"]
    nan = np.full_like(coef, np.nan)
    yield "no coef", {**arrays, "coef": np.empty(0)}, header
    yield "nan", {**arrays, "coef": nan}, header
    yield "integers", {**arrays, "coef": coef.astype(int)}, header
    yield "long intercept", {**arrays, "intercept": np.append(intercept, 1.0)}, header
    yield "nan classes", {**arrays, "classes": np.array([np.nan, 1.0])}, header
    yield "equal classes", {**arrays, "classes": classes * 0}, header
    yield "one class", {**arrays, "classes": classes[:1]}, header
    for key in header:
        yield f"no {key}", arrays, {k: v for k, v in header.items() if k != key}
    for part in ("settings", "data"):
        for key in header[part]:
            if key in ("loss", "task", "constraint", "X", "file"):
                left = {k: v for k, v in header[part].items() if k != key}
                yield f"no {part}.{key}", arrays, {**header, part: left}
    yield "odd loss", arrays, {**header, "settings": {**header["settings"], "loss": "wish"}}
    yield "odd radius", arrays, {**header, "settings": {**header["settings"], "radius": "x"}}
    yield "odd names", arrays, {**header, "features": ["a"]}
    for key in ("value", "status", "iterations"):
        entry = {k: v for k, v in header["certificate"][0].items() if k != key}
        yield f"no {key}", arrays, {**header, "certificate": [entry]}


def test_damaged_models_are_refused_in_one_sentence(data, tmp_path, capsys):
    model = tmp_path / "m"
    assert run(capsys, "fit", data, "-o", model, "--radius", 1)[0] == 0
    header, arrays = read_arrays(model, KIND, 1, known=".*")
    tried = 0
    for what, changed, head in damage(arrays, header):
        write_arrays(tmp_path / "bad", KIND, 1, head, changed)
        if what in ("no adafw",):
            continue  # only told to people
        for words in (["info", tmp_path / "bad"], ["predict", tmp_path / "bad", data]):
            code, out, err = run(capsys, *words)
            assert code == 2, what
            assert out == ""
            assert "bad must be a whole model file of adafw, got a damaged one" in err, what
            assert len(err.splitlines()) == 1
        tried += 1
    assert tried > 18
    write_arrays(tmp_path / "bad", KIND, 1, header, arrays)
    assert run(capsys, "info", tmp_path / "bad")[0] == 0


def test_damaged_checkpoints_are_refused_in_one_sentence(data, tmp_path, capsys):
    point, model = tmp_path / "c", tmp_path / "m"
    words = ["fit", data, "-o", model, "--checkpoint", point, "--radius", 1]
    assert run(capsys, *words, "--max-epochs", 3, "--tol", 0)[0] == 0
    whole = point.read_bytes()
    header, arrays = read_arrays(point, "adafw checkpoint", 2, known=".*")
    for change in (
        lambda h, a: (h, {k: v for k, v in a.items() if not k.endswith("coef")}),
        lambda h, a: (h, {k: v[:, :3] if k.endswith("records") else v for k, v in a.items()}),
        lambda h, a: (h, {k: v * np.nan if k.endswith("coef") else v for k, v in a.items()}),
        lambda h, a: ({k: v for k, v in h.items() if k != "fits"}, a),
        lambda h, a: ({**h, "fits": []}, a),
        lambda h, a: ({**h, "fits": {"x": {}}}, a),
        lambda h, a: ({**h, "current": {"0": {}}}, a),
        lambda h, a: (json.loads(json.dumps(h).replace('"gap"', '"cap"')), a),
    ):
        head, changed = change(header, arrays)
        write_arrays(point, "adafw checkpoint", 2, head, changed)
        code, out, err = run(capsys, *words, "--resume", "--max-epochs", 3, "--tol", 0)
        assert (code, out) == (2, "")
        assert "c must be a whole checkpoint of adafw, got a damaged one" in err
        assert len(err.splitlines()) == 1
    point.write_bytes(whole)
    assert run(capsys, *words, "--resume", "--max-epochs", 3, "--tol", 0)[0] == 0


def test_labels_that_are_no_numbers_of_a_file_of_their_own(data, tmp_path, capsys):
    labels = tmp_path / "y.npy"
    for bad in (np.nan, np.inf):
        np.save(labels, np.r_[np.ones(59), bad])
        code, _, err = run(capsys, "fit", data, "--labels", labels, "-o", tmp_path / "m")
        assert (code, f"{labels} must have finite targets, got NaN or infinity" in err) == (2, True)
    np.save(labels, np.where(np.load(data)[:, 0] > 0, "yes", "no"))
    assert run(capsys, "fit", data, "--labels", labels, "-o", tmp_path / "m")[0] == 0


def test_what_is_read_from_a_stream_needs_a_name_for_its_model(data, tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    for name in ("/dev/stdin", "/proc/self/fd/0", tmp_path / "pipe"):
        code, _, err = run(capsys, "fit", name, "--radius", 1)
        assert (code, f"-o must name a file for the model, as {name} is none" in err) == (2, True)


def test_models_go_into_pipes_and_devices(data, tmp_path, capsys):
    """Which stay what they are: no file takes their place."""
    pipe, whole = tmp_path / "pipe", tmp_path / "m"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_bytes)
        assert run(capsys, "fit", data, "--radius", 1, "-o", pipe)[0] == 0
        whole.write_bytes(read.result(timeout=60))
    assert pipe.is_fifo()
    assert run(capsys, "predict", whole, data, "-o", os.devnull)[0] == 0
    assert Path(os.devnull).is_char_device()
