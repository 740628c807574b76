"""The public names are frozen: a change of one is seen, said in the changelog and taken over.

make api      # writes tests/public_api.txt anew; look at the difference before committing it
"""

import importlib.util
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

import adafw

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def tool():
    pytest.importorskip("torch")  # names of adafw.torch are listed, too
    pytest.importorskip("tensorboard")
    spec = importlib.util.spec_from_file_location("api", ROOT / "tools" / "public_api.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_names_and_signatures_are_those_listed(tool):
    frozen, now = tool.FROZEN.read_text().splitlines(), list(tool.lines())
    gone, new = [x for x in frozen if x not in now], [x for x in now if x not in frozen]
    assert (gone, new) == ([], []), "the public interface has changed: run `make api`"


def test_every_public_name_has_a_docstring(tool):
    assert tool.undocumented() == []


def test_a_changed_default_is_seen(tool):
    def before(x, *, radius=1.0): ...
    def after(x, *, radius=2.0): ...

    assert tool.signature(before) == "(x, *, radius=1.0)" != tool.signature(after)


def test_versions_are_shown(capsys):
    adafw.show_versions()
    shown = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert shown["adafw"] == adafw.__version__
    assert re.match(r"\d+\.\d+", shown["numpy"])
    assert {"python", "system", "scipy", "numba", "torch"} <= set(shown)


def test_every_module_can_be_the_first_that_is_imported():
    """As `pickle` does it, in a process that knows nothing of adafw yet."""
    lost = """
import importlib, pkgutil, sys
import adafw
packages = ("constraints", "gradients", "losses", "metrics", "objectives", "rows", "steps")
found = [
    m.name for p in packages
    for m in pkgutil.iter_modules(importlib.import_module(f"adafw.{p}").__path__, f"adafw.{p}.")
]
assert len(found) > 80
for name in found:
    for known in [k for k in sys.modules if k.partition(".")[0] == "adafw"]:
        del sys.modules[known]
    importlib.import_module(name)
"""
    subprocess.run([sys.executable, "-c", lost], check=True)


def test_a_set_is_unpickled_by_a_process_that_has_imported_nothing():
    held = pickle.dumps(adafw.Simplex(2.0))
    script = f"import pickle; print(pickle.loads({held!r}))"
    told = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
    assert told.stdout.decode().strip() == repr(adafw.Simplex(2.0))
