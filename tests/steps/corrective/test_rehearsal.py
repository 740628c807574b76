"""Nothing is compiled while the clock runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_SCRIPT = """
import sys
import numpy as np
from numba.core.event import install_recorder
from scipy import sparse
import adafw

rng = np.random.default_rng(0)
A = sparse.random(300, 250, 0.1, format="csr", random_state=rng)
y = np.where(rng.random(300) < 0.5, 1.0, -1.0)
y[:20] = 1.0  # the first rows are of one kind
f = adafw.LinearModel(A, y, adafw.losses.Logistic())
if sys.argv[1] == "l1":  # the first rows have none of the first columns
    A[:20, :20] = 0.0
    A.eliminate_zeros()
    f = adafw.LinearModel(A, y, adafw.losses.Logistic())
sets = {
    "l1": adafw.L1Ball(8.0),
    "box": adafw.LInfBall(0.5),
    "groups": adafw.GroupBall(1.0, np.arange(250) // 5),
    "l2": adafw.L2Ball(1.0),
}
constraint, step, x = sets[sys.argv[1]], adafw.steps.CorrectiveStep(), np.zeros(250)
f.value_and_gradient(x)
f.rows.dot(x)
if sys.argv[2] == "prepared":
    step.prepare(f, constraint, x, {})
with install_recorder("numba:compile") as compiled:
    state = {}
    for t in range(1, 4):
        x, state = step.update(f, constraint, x, f.gradient(x), t, state)
print(len(compiled.buffer))
"""


def compiled(name: str, how: str, cache: Path) -> int:
    """How many kernels were compiled in the first steps."""
    there = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", _SCRIPT, name, how]
    return int(subprocess.run(command, env=there, capture_output=True, check=True).stdout)


@pytest.mark.parametrize(
    "name",
    [
        "box",
        "l1",
        pytest.param("groups", marks=pytest.mark.slow),
        pytest.param("l2", marks=pytest.mark.slow),
    ],
)
def test_kernels_are_compiled_before_the_first_step(name, tmp_path):
    assert compiled(name, "prepared", tmp_path) == 0


@pytest.mark.slow
def test_without_a_rehearsal_they_are_not(tmp_path):
    assert compiled("box", "unprepared", tmp_path) > 0
