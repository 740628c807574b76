"""The public names are frozen: a change of one is seen, said in the changelog and taken over.

make api      # writes tests/public_api.txt anew; look at the difference before committing it
"""

import importlib.util
import re
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
