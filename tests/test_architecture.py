"""Imports go to lower layers only, and nothing heavy is imported at the top."""

import ast
from pathlib import Path

import pytest

import adafw

ROOT = Path(adafw.__file__).parent

# From low to high; a module may import its own layer and those below it.
LAYERS = [
    {"typing", "checks", "arrays", "lanczos", "schedules", "describe", "random", "kernels"},
    {"charts", "page"},
    {"constraints", "losses", "rows"},
    {"io"},
    {"objectives"},
    {"gradients", "metrics"},
    {"steps"},
    {"algorithms"},
    {"names"},
    {"solver"},
    {"integrity"},
    {"recorder", "fused"},
    {"paths"},
    {"progress", "stopping", "tensorboard"},
    {"result", "auto_rate"},
    {"minimize"},
    {"datasets", "theory", "tuning", "torch"},
    {"fitting"},
    {"sklearn"},
    {"experiments"},
    {"commands"},
    {"cli", "__init__", "__main__"},
]
HEAVY = {
    "numba",
    "torch",
    "sklearn",
    "matplotlib",
    "pandas",
    "rich",
    "click",
    "pooch",
    "pyarrow",
    "tensorboard",
}
# Parts that are themselves imported only when asked for, and what they may import at their top.
MAY = {
    "kernels": {"numba"},
    "torch": {"torch", "numba"},
    "sklearn": {"sklearn"},
    "cli": {"click"},
    "commands": {"click"},
}
# Modules imported only where networks are trained.
TRAINED = {f"experiments/networks/{name}.py" for name in ("batches", "lessons", "loop", "models")}
# Names kept importable, in the layer where they were, of what has moved up to the experiments.
MOVED_UP = {f"torch/{name}.py" for name in ("batches", "networks", "training")}
MODULES = sorted(ROOT.rglob("*.py"))


def part(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def level(name):
    return next((i for i, layer in enumerate(LAYERS) if name in layer), None)


def imports(path, top_only):
    tree = ast.parse(path.read_text())
    for node in tree.body if top_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "adafw":
                yield from (f"adafw.{alias.name}" for alias in node.names)
            else:
                yield node.module


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_down(path):
    own = level(part(path))
    assert own is not None, f"{part(path)} stands in no layer"
    if part(path) == "__init__" or path.relative_to(ROOT).as_posix() in MOVED_UP:
        return
    for name in imports(path, top_only=False):
        if name.startswith("adafw.") and not name.startswith("adafw.__"):
            other = name.split(".")[1]
            assert level(other) is not None, f"{other} stands in no layer"
            assert level(other) <= own, f"{path.name} imports {other}, which stands above it"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_nothing_heavy_at_the_top(path):
    heavy = {name.split(".")[0] for name in imports(path, top_only=True)} & HEAVY
    trained = path.relative_to(ROOT).as_posix() in TRAINED
    assert heavy <= ({"torch"} if trained else MAY.get(part(path), set()))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_stay_readable(path):
    assert len(path.read_text().splitlines()) <= 450


def loops_over_estimates(text):
    """Functions that ask a gradient estimator again and again, whatever they call it.

    A gradient estimator's `update` is the one that takes (f, x, t, state, rng).
    """
    found = []
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef):
            continue
        repeats = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp)
        inside = [
            n for loop in ast.walk(function) if isinstance(loop, repeats) for n in ast.walk(loop)
        ]
        if any(
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr == "update"
            and len(call.args) + len(call.keywords) == 5
            for call in inside
        ):
            found.append(function.name)
    return found


def test_there_is_one_loop():
    """Only the solver's run goes from estimate to estimate; fast paths do it inside kernels."""
    loops = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in MODULES
        for name in loops_over_estimates(path.read_text())
    ]
    assert loops == ["solver.py: run"]


def test_a_second_loop_would_be_seen():
    other = """
def solve(problem, est, mover, z):
    t = 0
    while t < 10:
        v, memory = est.update(problem, z, t, memory, rng=source)
        z, rest = mover.update(problem, ball, z, v, t, rest)
"""
    assert loops_over_estimates(other) == ["solve"]
    assert loops_over_estimates(other.replace("while t < 10", "if t < 10")) == []
