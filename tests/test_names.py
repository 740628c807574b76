"""One table of names: complete, each thing under two names, one sentence for what is missing."""

import importlib
import inspect
import subprocess
import sys

import pytest

import adafw
from adafw import algorithms, losses
from adafw.names import (
    ALGORITHMS,
    LOSSES,
    NEEDED,
    SETS,
    VECTOR_SETS,
    loss_class,
    losses_for,
    takes_rate,
)

#: Packages whose names are imported when first asked for.
LAZY = {"constraints", "gradients", "metrics", "objectives", "steps"}
#: Sets that plain parameters cannot describe.
WITHOUT_NAME = {"Columns", "Constraint", "Product", "UserSet"}
#: Sets for the layers of networks, which `adafw.torch` names by its recipes.
WITHOUT_NAME |= {"ColumnBall", "RMSBall", "RowBall"}


def public(module, kind):
    return {
        name for name in dir(module)
        if inspect.isclass(thing := getattr(module, name))
        and issubclass(thing, kind) and not inspect.isabstract(thing)
    }  # fmt: skip


def test_every_set_loss_and_preset_has_a_name():
    """A new one without its line in adafw/names.py fails here."""
    assert public(adafw, adafw.Constraint) - WITHOUT_NAME == {e.long_name for e in SETS}
    assert public(losses, losses.Loss) == {e.long_name for e in LOSSES}
    presets = {
        name for name in adafw.__all__
        if inspect.isfunction(thing := getattr(adafw, name))
        and thing.__module__ == algorithms.__name__
    }  # fmt: skip
    assert presets == {e.long_name for e in ALGORITHMS}


@pytest.mark.parametrize("registry", [SETS, LOSSES, ALGORITHMS], ids=lambda r: r.kind)
def test_two_names_mean_one_thing(registry):
    for entry in registry:
        assert registry.find(entry.name) is registry.find(entry.long_name) is entry
        assert entry.name in str(registry)
        assert entry.help
        given = inspect.signature(entry.make).parameters
        assert set(entry.parameters) <= set(given)
        needed = {n for n, p in given.items() if p.default is p.empty} - {"radius"}
        assert needed <= set(entry.parameters)
        if registry is SETS:
            assert entry.sized == ("radius" in given)
    assert len({e.name for e in registry} | {e.long_name for e in registry}) == len(
        [*registry]
    ) + sum(e.name != e.long_name for e in registry)


def test_made_by_name():
    assert SETS.make("l1", radius=2.0) == SETS.make("L1Ball", radius=2.0) == adafw.L1Ball(2.0)
    assert LOSSES.make("huber", delta=3.0) == LOSSES.make("Huber", delta=3.0) == losses.Huber(3.0)
    assert ALGORITHMS.make("AdaCSFW", learning_rate=0.1) == adafw.AdaCSFW(0.1)
    assert SETS.find("ksparse").parameters == {"k": 10}
    assert SETS.find("lp").parameters == {"p": NEEDED}


@pytest.mark.parametrize("registry", [SETS, LOSSES], ids=lambda r: r.kind)
def test_a_default_by_name_is_that_of_the_class(registry):
    """Where the class has one itself."""
    for entry in registry:
        for name, parameter in inspect.signature(entry.make).parameters.items():
            told = entry.parameters.get(name, parameter.default)
            if parameter.default is not parameter.empty and told is not NEEDED:
                assert told == parameter.default


def test_what_names_know():
    asking = {entry.name for entry in ALGORITHMS if takes_rate(entry.make)}
    assert asking == {"AdaFW", "AdaSFW", "AdaSVRF", "AdaSPIDERFW", "AdaORGFW", "AdaCSFW", "AdamSFW",
                      "AdaGrad", "AMSGrad"}  # fmt: skip
    assert loss_class("huber") is loss_class("Huber") is loss_class(losses.Huber(2.0))
    assert {e.name for e in SETS} - {e.name for e in VECTOR_SETS} == {"birkhoff"}
    assert VECTOR_SETS.kind == SETS.kind == "constraint"
    assert ("l1" in SETS, "L1Ball" in SETS, "l3" in SETS, 3 in SETS) == (True, True, False, False)
    assert [] not in SETS, "what has no hash is no name"


def test_tasks():
    assert str(losses_for("classification")) == "logistic, squared_hinge, smoothed_hinge"
    assert str(losses_for("regression")) == "squared, huber, poisson"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SETS.make("l3", radius=1.0), r"constraint must be one of l1, l2, .*, got 'l3'\."),
        (lambda: SETS.called("set").find(3), r"set must be one of l1, l2, .*, got 3\."),
        (lambda: SETS.make("l1"), "constraint l1 cannot be made: missing .* 'radius'"),
        (lambda: SETS.make("l1", radius=1.0, k=3), "constraint l1 cannot be made: .* 'k'"),
        (lambda: SETS.make("l1", radius=-1.0), "radius must be"),
        (lambda: LOSSES.find("hinge"), "loss must be one of logistic, .*, got 'hinge'"),
        (lambda: ALGORITHMS.find("Adam"), "algorithm must be one of FW, SFW, .*, got 'Adam'"),
    ],
)
def test_bad_names_and_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


PACKAGES = ["adafw", *(f"adafw.{name}" for name in sorted(LAZY))]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_there_when_asked_for_first(package):
    """Names are imported when asked for: in any order, each by itself, and starred."""
    names = list(importlib.import_module(package).__all__)
    assert len(set(names)) == len(names)
    code = (
        "import importlib, sys\n"
        "for name in sys.argv[2:]:\n"
        "    for loaded in [m for m in sys.modules if m.split('.')[0] == 'adafw']:\n"
        "        del sys.modules[loaded]\n"
        "    package = importlib.import_module(sys.argv[1])\n"
        "    assert name in dir(package), name\n"
        "    assert getattr(package, name) is getattr(package, name), name\n"
        "    exec(f'from {sys.argv[1]} import {name}')\n"
        "exec(f'from {sys.argv[1]} import *')\n"
        "assert all(name in globals() for name in sys.argv[2:])\n"
        "assert not hasattr(package, 'no_such_name')\n"
    )
    some = names[:: max(1, len(names) // 3)]  # each loads the package anew
    done = subprocess.run([sys.executable, "-c", code, package, *some], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("entry", [*LOSSES, *SETS], ids=lambda entry: entry.name)
def test_defaults_that_are_told_are_those_of_the_constructors(entry):
    taken = inspect.signature(entry.make).parameters
    for key, told in entry.parameters.items():
        assert key in taken
        default = taken[key].default
        if told is not NEEDED and default is not inspect.Parameter.empty:
            assert default == told


@pytest.mark.parametrize("preset", [entry.make for entry in ALGORITHMS])
def test_presets_explain_their_arguments(preset):
    """Each in the section that the site shows, none that it does not take."""
    taken = list(inspect.signature(preset).parameters)
    doc = inspect.getdoc(preset)
    section = doc.partition("Parameters\n----------\n")[2]
    told = [line.partition(" : ")[0] for line in section.splitlines() if " : " in line]
    assert told == taken
