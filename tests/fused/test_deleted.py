"""The library without its fast paths: the folder is really gone, in an interpreter of its own."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest
from fused_problems import linear_model

import adafw

CODE = """
import inspect, json, sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from fused_problems import linear_model
import adafw

found = {}
for name, make in vars(adafw.algorithms).items():
    if name not in adafw.__all__ or not callable(make) or isinstance(make, type):
        continue
    rated = "learning_rate" in inspect.signature(make).parameters
    algorithm = make(learning_rate=0.5) if rated else make()
    # All four pairs of data and set are compared, without a new process, in test_linear.py.
    for kind, ball in (("csr", adafw.L1Ball(3.0)), ("dense", adafw.LInfBall(0.4))):
        f = linear_model(60, 25, seed=1, kind=kind)
        r = adafw.minimize(f, ball, algorithm, max_iterations=25)
        found[f"{name} {kind} {ball}"] = [r.x.tolist(), r.value, r.gap, r.path]
errors = []
for path in ("fused", "lazy"):
    try:
        adafw.minimize(f, ball, adafw.CSFW(), path=path)
    except ValueError as error:
        errors.append(str(error))
f = linear_model(60, 90, seed=1, density=0.08)
state = adafw.State.load(sys.argv[2])
ball, algorithm = adafw.L1Ball(3.0), adafw.AdaCSFW(1.0, batch_size=5)
rest = adafw.minimize(f, ball, algorithm, state=state, max_iterations=40)
print(json.dumps([found, errors, rest.x.tolist()]))
"""


def lazy_problem():
    """That of the state in CODE."""
    f = linear_model(60, 90, seed=1, density=0.08)
    return f, adafw.L1Ball(3.0), adafw.AdaCSFW(1.0, batch_size=5)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What CODE finds with the whole library, and with one that has no fused/."""
    folder = tmp_path_factory.mktemp("without")
    source = Path(adafw.__file__).parent
    # With what is compiled already, which numba knows again by the text of the sources.
    shutil.copytree(source, folder / "adafw", ignore=shutil.ignore_patterns("fused", "*.pyc"))
    f, ball, algorithm = lazy_problem()
    half = adafw.minimize(f, ball, algorithm, max_iterations=20, path="lazy")
    half.state.save(folder / "state.npz")
    outcomes = []
    for place in (source.parent, folder):
        env = os.environ | {"PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-c", CODE, str(Path(__file__).parent), folder / "state.npz"]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        outcomes.append(json.loads(done.stdout))
    return outcomes


def test_every_preset_gives_the_same_iterates(results):
    (whole, _, rest), (without, _, rest_without) = results
    presets = {
        name for name, part in vars(adafw.algorithms).items()
        if name in adafw.__all__ and isinstance(part, FunctionType)
    }  # fmt: skip
    assert {key.split()[0] for key in without} == presets
    assert {path for *_, path in whole.values()} == {"generic", "fused"}
    assert {path for *_, path in without.values()} == {"generic"}
    for key, (x, value, gap, _) in whole.items():
        np.testing.assert_allclose(without[key][0], x, rtol=0, atol=1e-9)
        np.testing.assert_allclose(without[key][1:3], [value, gap], rtol=0, atol=1e-9)
    # Whoever goes on from the fast path's state must find there what the one loop leaves.
    f, ball, algorithm = lazy_problem()
    straight = adafw.minimize(f, ball, algorithm, max_iterations=40, path="generic")
    for x in (rest, rest_without):
        np.testing.assert_allclose(x, straight.x, rtol=0, atol=1e-9)


def test_asking_for_a_fast_path_says_that_there_is_none(results):
    _, (_, errors, _) = results
    assert errors == [
        f"there is no {path} path, as adafw.fused cannot be imported; leave path out, or give "
        "path='generic'."
        for path in ("fused", "lazy")
    ]
