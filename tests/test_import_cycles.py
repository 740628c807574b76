"""No module of adafw imports, directly or through others, itself: not inside functions either."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import adafw

ROOT = Path(adafw.__file__).parent


def module_name(path, root):
    parts = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path, name, modules):
    """The modules of the package that one imports, wherever in it the import stands.

    Importing a.b.c runs a and a.b, too; those are left out, as they are there already whenever a
    module below them asks.
    """
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            start = ".".join([*above, *filter(None, [node.module])]) if node.level else node.module
            for alias in node.names:
                inner = f"{start}.{alias.name}"
                found = inner if inner in modules else start
                if found in modules:
                    yield found


def graph(root):
    modules = {module_name(path, root): path for path in root.rglob("*.py")}
    return {name: set(imported(path, name, modules)) - {name} for name, path in modules.items()}


def cycle(root):
    """The modules of a cycle, [] if there is none."""
    try:
        TopologicalSorter(graph(root)).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_there_are_no_cycles():
    assert cycle(ROOT) == []


def test_the_modules_of_the_package_are_seen():
    found = graph(ROOT)
    assert "adafw.experiments.kinds" in found["adafw.experiments.plan"]
    assert "adafw.experiments.networks.run" in found["adafw.experiments.networks"]  # in a function
    assert "adafw.solver" in found["adafw.minimize"]  # from adafw import solver


@pytest.mark.parametrize(
    "back",
    [
        "import package.inner.a",
        "from package.inner import a",
        "from package.inner.a import thing",
        "from . import a",
        "from .a import thing",
        "from ..inner.a import thing",
        "def f():\n    from package.inner import a",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from package.inner import a",
    ],
)
def test_a_cycle_is_found(tmp_path, back):
    folder = tmp_path / "package" / "inner"
    folder.mkdir(parents=True)
    for file in (folder.parent / "__init__.py", folder / "__init__.py", folder / "b.py"):
        file.write_text("")
    (folder / "a.py").write_text("from package.inner import b\nthing = 1\n")
    assert cycle(tmp_path / "package") == []
    (folder / "b.py").write_text(back + "\n")
    assert {"package.inner.a", "package.inner.b"} <= set(cycle(tmp_path / "package"))
