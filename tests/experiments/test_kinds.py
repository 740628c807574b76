"""What tells the kinds of experiment apart stands in their folders, and nowhere else."""

import ast
import re
from pathlib import Path

import pytest

import adafw
from adafw.commands.reproduce import _all
from adafw.experiments import kinds, load_spec
from adafw.experiments.kind import Kind
from adafw.experiments.kinds import KINDS, kind_of, kind_of_tables
from adafw.experiments.spec import Case, Method

ROOT = Path(kinds.__file__).parent
SHARED = sorted(path for path in ROOT.glob("*.py") if path.name != "kinds.py")
OWN = {"convex": "convex", "series": "series", "zoo": "zoo", "networks": "network"}


@pytest.mark.parametrize("path", SHARED, ids=lambda path: path.name)
def test_shared_modules_know_no_kind(path):
    """No import of a kind's folder, no name of one in the code, no question for a type of one."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert not re.match(
                r"adafw\.experiments\.(convex|series|zoo|networks)", node.module or ""
            )
            assert not {alias.name for alias in node.names} & set(KINDS)
        if isinstance(node, ast.Compare):
            words = {n.value for n in ast.walk(node) if isinstance(n, ast.Constant)}
            assert not words & {*KINDS, *OWN.values()}
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "hasattr"
            if node.func.id == "isinstance":
                names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                assert not names & {"Case", "Method", "Kind"}


def test_kinds_have_names_and_folders_of_their_own():
    assert {path.name for path in ROOT.iterdir() if (path / "__init__.py").is_file()} == set(KINDS)
    for name, kind in KINDS.items():
        assert type(kind).__module__ == f"adafw.experiments.{name}"
        others = {type(other) for other in KINDS.values()} - {type(kind)}
        assert isinstance(kind, Kind)
        assert not others & set(type(kind).__mro__)  # no kind is made by changing another


@pytest.mark.parametrize("name", adafw.experiments.names())
def test_every_file_of_the_package_has_what_its_kind_asks_for(name):
    spec = load_spec(name)
    kind = kind_of(spec)
    assert set(spec.claims) <= set(kind.claims)
    for case in spec.cases:
        assert isinstance(case, Case)
        assert all(isinstance(method, Method) for method in case.methods)
    assert kind.is_long == (spec.kind == "networks")


def test_problems_of_two_kinds_are_refused():
    with pytest.raises(ValueError, match=r"must all have a network or none in mine\.toml"):
        kind_of_tables([{"network": "ImdbNet"}, {"loss": "Squared"}], "mine.toml")
    with pytest.raises(ValueError, match="must all have a series or none"):
        kind_of_tables([{"loss": "Squared"}, {"series": "l1"}], "mine.toml")


def test_all_leaves_out_what_takes_hours_and_says_so(capsys):
    chosen = _all()
    told = capsys.readouterr().err
    assert {"svm", "year", "rcv1", "sensitivity", "dear-sets"} <= set(chosen)
    left_out = set(adafw.experiments.names()) - set(chosen)
    assert {"imdb", "cifar10"} <= left_out
    assert all(name in told for name in left_out)
