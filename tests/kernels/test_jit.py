import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import adafw

#: Numba's own: the kernels are then the plain Python they are written in.
SWITCH = "NUMBA_DISABLE_JIT"

DOT = """
import numpy as np
from scipy import sparse
from adafw.rows import as_rows
A = sparse.csr_array(np.arange(12.0).reshape(4, 3))
print(as_rows(A).dot(np.ones(3), np.array([1, 1, 3])).tolist())
"""
ANSWER = "[12.0, 12.0, 30.0]\n"

RUNS = """
import json
import numpy as np
from scipy import sparse
import adafw
rng = np.random.default_rng(0)
A = rng.standard_normal((30, 20)) * (rng.random((30, 20)) < 0.3)
y = np.where(A.sum(axis=1) > 0, 1.0, -1.0)
found = []
for data in (sparse.csr_array(A), A):
    f = adafw.LinearModel(data, y, adafw.losses.Logistic())
    projected = adafw.AdaGrad(0.1, gradient=adafw.gradients.CSFW())
    for algorithm in (adafw.CSFW(), adafw.AdaCSFW(1.0), adafw.AdaSVRF(1.0), projected):
        for constraint in (adafw.L1Ball(3.0), adafw.LInfBall(0.5)):
            for path in ("generic", "fused"):
                r = adafw.minimize(f, constraint, algorithm, max_iterations=20, path=path)
                found.append(r.x.tolist())
f = adafw.LinearModel(sparse.csr_array(A), y, adafw.losses.Logistic())
r = adafw.minimize(f, adafw.L1Ball(3.0), adafw.AdaCSFW(1.0), max_iterations=20, path="lazy")
print(json.dumps([*found, r.x.tolist()]))
"""


def run(code, source=Path(adafw.__file__).parents[1], folder=None, **changes):
    own = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", SWITCH)
    env = {k: v for k, v in os.environ.items() if k not in own}
    env |= {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"} | changes
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=True)


def test_importing_the_library_imports_nothing_heavy():
    heavy = "{'numba', 'sklearn', 'torch', 'matplotlib', 'pandas'}"
    done = run(f"import sys, adafw; print(sorted({heavy} & set(sys.modules)))")
    assert done.stdout == "[]\n"


def test_kernels_switched_off_change_nothing_but_time():
    compiled, plain = (json.loads(run(RUNS, **off).stdout) for off in ({}, {SWITCH: "1"}))
    assert len(compiled) == 33
    np.testing.assert_allclose(plain, compiled, rtol=0, atol=1e-12)


@pytest.fixture
def sealed(tmp_path):
    """A copy of the library in which no compiled code can be kept."""
    target = tmp_path / "src" / "adafw"
    shutil.copytree(
        Path(adafw.__file__).parent, target, ignore=shutil.ignore_patterns("__pycache__")
    )
    (target / "kernels" / "__pycache__").write_text("in the way")
    return target.parent


def test_a_read_only_install_keeps_its_cache_with_the_user(sealed, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    assert run(DOT, sealed, HOME=str(home)).stdout == ANSWER
    assert list(home.rglob("*.nbi"))


def test_without_any_place_to_write_it_still_runs(sealed, tmp_path):
    nowhere = tmp_path / "nowhere"
    nowhere.write_text("a file, no directory")
    assert run(DOT, sealed, HOME=str(nowhere)).stdout == ANSWER


READ = """
import adafw
from pathlib import Path
Path("data.svm").write_text("1 1:2.5 7:-3e5\\n")
print(adafw.datasets.read_libsvm("data.svm")[0].toarray().tolist())
"""
STEP = """
import torch, adafw
from adafw.torch import AdamSFW
p = torch.nn.Parameter(torch.ones(4, dtype=torch.float64))
optimizer = AdamSFW([{"params": [p], "constraint": adafw.LInfBall(1.0)}], lr=0.1)
p.grad = torch.ones_like(p)
optimizer.step()
print(bool((p < 1).all()))
"""
#: Every place that compiles: what to run, the module of its kernels, what it prints.
PLACES = {
    "rows": (DOT, "adafw.kernels.rows", ANSWER),
    "libsvm": (READ, "adafw.kernels.libsvm", "[[2.5, 0.0, 0.0, 0.0, 0.0, 0.0, -300000.0]]\n"),
    "torch": (STEP, "adafw.torch.kernels", "True\n"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_cache_directory_that_cannot_be_made_is_done_without(sealed, tmp_path, place):
    """Numba then finds no place at all, and says so when a kernel is defined."""
    nowhere = tmp_path / "nowhere"
    nowhere.write_text("a file, no directory")
    for folder in ("io", "torch"):
        (sealed / "adafw" / folder / "__pycache__").write_text("in the way")
    code, _, answer = PLACES[place]
    done = run(
        code, sealed, tmp_path, HOME=str(nowhere), NUMBA_CACHE_DIR=str(nowhere / "below" / "it")
    )
    assert done.stdout == answer


@pytest.mark.parametrize("place", PLACES)
def test_a_cache_directory_that_fails_later_is_done_without(tmp_path, place):
    """Writable when a kernel is defined, gone when its code is to be kept: a full or lost disk."""
    cache = tmp_path / "cache"
    code, module, answer = PLACES[place]
    lose = f"import {module}, pathlib, shutil; shutil.rmtree({str(cache)!r})\n"
    lose += f"pathlib.Path({str(cache)!r}).write_text('in the way')\n"
    assert run(lose + code, folder=tmp_path, NUMBA_CACHE_DIR=str(cache)).stdout == answer
    assert cache.read_text() == "in the way"


def test_nothing_is_compiled_but_by_jit():
    root = Path(adafw.__file__).parent
    users = [
        p
        for p in root.rglob("*.py")
        if re.search(r"\b(njit|vectorize|numba\.jit)\b", p.read_text())
    ]
    assert [p.relative_to(root).as_posix() for p in users] == ["kernels/jit.py"]


def test_a_first_call_that_compiles_says_so_once_and_later_ones_do_not(tmp_path):
    code = "import logging; logging.basicConfig(level=logging.INFO)" + DOT
    first = run(code, NUMBA_CACHE_DIR=str(tmp_path))
    assert first.stdout == ANSWER
    assert first.stderr.count("INFO:adafw:compiling for this kind of data") == 1
    assert run(code, NUMBA_CACHE_DIR=str(tmp_path)).stderr == ""


@pytest.mark.parametrize(("wanted", "lines"), [("1", 1), ("0", 0)])
def test_the_note_goes_to_a_terminal_unless_progress_is_off(tmp_path, wanted, lines):
    ours, theirs = pty.openpty()
    env = os.environ | {
        "PYTHONPATH": str(Path(adafw.__file__).parents[1]),
        "NUMBA_CACHE_DIR": str(tmp_path),
        "ADAFW_PROGRESS": wanted,
        SWITCH: "0",
    }
    subprocess.run([sys.executable, "-c", DOT], env=env, stderr=theirs, check=True)
    os.write(theirs, b"end\n")
    assert os.read(ours, 4096).count(b"adafw: compiling") == lines


def test_a_change_to_what_a_kernel_calls_is_compiled(tmp_path):
    """In another file: numba alone looks at that of the kernel."""
    package = tmp_path / "adafw"
    own = Path(adafw.__file__).parent
    shutil.copytree(own, package, ignore=shutil.ignore_patterns("__pycache__"))
    kernels = package / "kernels"
    head = "from adafw.kernels.jit import jit\n"
    twice = "@jit\ndef twice(x):\n    return 2 * near(x)\n"
    (kernels / "caller.py").write_text(f"from adafw.kernels.far import near\n{head}\n\n{twice}")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}
    ask = "from adafw.kernels.caller import twice; print(twice(1.0), twice.stats.cache_hits)"

    def answer(step):
        (kernels / "far.py").write_text(f"{head}\n\n@jit\ndef near(x):\n    return x + {step}\n")
        return [
            subprocess.check_output([sys.executable, "-B", "-c", ask], env=environment, text=True)
            for _ in range(2)
        ][1]

    for step, found in ((1, "4.0"), (10, "22.0"), (1.5, "5.0")):
        value, *hits = answer(step).split()
        assert value == found
        assert "1}" in hits[-1]  # kept where nothing has changed


def test_what_kernels_call_is_known_through_files_between():
    from adafw.kernels import jit, l1

    names = {Path(file).name for file in jit._sources(l1.__file__)}
    assert {"l1.py", "estimates.py", "losses.py", "jit.py"} <= names  # losses by way of estimates
    assert "libsvm.py" not in names
