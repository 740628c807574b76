"""Every python block of the README and the docs runs, and prints what the text says it prints.

Blocks of one file share their names, top to bottom. A block fenced as `python no-run` is only
compiled, one of >>> lines is a doctest.
"""

import contextlib
import doctest
import inspect
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import adafw

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page):
    """(code, expected output or None, whether to run) of each python block."""
    found = [
        (m[1], m[2].strip(), m[3], m.start(), m.end()) for m in FENCE.finditer(page.read_text())
    ]
    text = page.read_text()
    for this, after in zip(found, [*found[1:], None], strict=False):
        if this[0] != "python":
            continue
        follows = after and after[0] == "text" and not text[this[4] : after[3]].strip()
        yield this[2], after[2] if follows else None, this[1] != "no-run"


NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")


def same(printed, expected):
    """Same words, numbers within 10 %: rounding differs between machines, times between runs."""
    texts = [
        re.sub(r"^( *seconds +).*$", r"\1...", text.strip(), flags=re.MULTILINE)
        for text in (printed, expected)
    ]
    words = [NUMBER.sub("#", text).split() for text in texts]
    numbers = [[float(n) for n in NUMBER.findall(text)] for text in texts]
    return words[0] == words[1] and np.allclose(*numbers, rtol=0.1, atol=1e-12)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_code_in_the_docs_runs_and_prints_what_it_says(page, monkeypatch, tmp_path):
    if page.name == "distributed.md":
        pytest.importorskip("distributed", reason="needs Dask: pip install 'adafw[dask]'")
    if page.name == "constraint_or_penalty.md":
        pytest.importorskip("sklearn", "1.8", reason="its l1 penalty is asked for as from 1.8 on")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "docs"}
    for code, expected, run in blocks(page):
        if code.startswith(">>>"):
            example = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), 0)
            assert doctest.DocTestRunner().run(example, clear_globs=False).failed == 0
            names = example.globs
            continue
        compiled = compile(code, str(page), "exec")
        if not run:
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compiled, names)
        if expected is not None:
            assert same(printed.getvalue(), expected), printed.getvalue()


def test_notation_names_exist():
    """Every name of the table is a parameter or an attribute somewhere in the public interface."""
    known = set()
    for module in (
        adafw,
        adafw.gradients,
        adafw.metrics,
        adafw.steps,
        adafw.losses,
        adafw.schedules,
    ):
        for thing in (getattr(module, name) for name in dir(module)):
            if inspect.isclass(thing) or inspect.isfunction(thing):
                known |= set(inspect.signature(thing).parameters) if callable(thing) else set()
                known |= set(dir(thing))
    known |= set(adafw.Trace.columns) | {"gradient", "metric"}
    table = (ROOT / "docs" / "notation.md").read_text()
    for row in re.findall(r"^\| .*? \| (.*?) \|", table, re.MULTILINE):
        for name in re.findall(r"`(\w+)`", row):
            assert name in known, f"{name} of docs/notation.md is no public name"


def test_new_set_from_the_docs_keeps_its_contract():
    names = {"__name__": "docs"}
    code, _, _ = next(blocks(ROOT / "docs" / "add_a_constraint.md"))
    exec(code, names)
    rng = np.random.default_rng(0)
    axes = rng.uniform(0.1, 3, 6)
    ellipsoid = names["Ellipsoid"](axes)
    points = rng.normal(size=(20_000, 6))
    points *= axes / np.linalg.norm(points, axis=1)[:, None]
    for _ in range(20):
        g = rng.normal(size=6)
        v = ellipsoid.lmo(g)
        assert ellipsoid.contains(v)
        assert g @ v <= (points @ g).min() + 1e-12
    for p in (1, 1.5, 2, np.inf):
        widest = 2 * np.linalg.norm(points, p, axis=1).max()
        assert widest <= ellipsoid.diameter(6, p) * (1 + 1e-12)
        assert widest >= 0.9 * ellipsoid.diameter(6, p)


def test_new_loss_from_the_docs_keeps_its_contract():
    names = {"__name__": "docs"}
    code, _, _ = next(blocks(ROOT / "docs" / "add_a_loss.md"))
    exec(code, names)
    loss = names["LogCosh"]()
    assert loss.has_second
    z, y, h = np.linspace(-30, 30, 401), np.full(401, 0.3), 1e-5
    assert loss.value(np.array([1e300]), np.zeros(1)) == 1e300
    for function, derivative in ((loss.value, loss.slope), (loss.slope, loss.second)):
        difference = (function(z + h, y) - function(z - h, y)) / (2 * h)
        np.testing.assert_allclose(derivative(z, y), difference, atol=1e-9)
        assert derivative(z.astype(np.float32), y.astype(np.float32)).dtype == np.float32
    assert loss.second(z, y).max() <= loss.curvature
    assert (loss.value(z, y) >= loss.least(y)).all()
    assert loss.value(y, y).max() <= 1e-15


#: page -> the file it makes, the registry, the contract, and the options of its tests.
RECIPES = {
    "add_a_constraint.md": (
        "src/adafw/constraints/ellipsoid.py", "src/adafw/constraints/exports.py",
        "tests/contracts/test_sets.py",
        ["-k", "Ellipsoid or held_to_it or has_a_name or has_an_example",
         "tests/paper/test_feasibility.py::test_every_set_has_an_example"],
    ),
    "add_a_loss.md": (
        "src/adafw/losses/log_cosh.py", "src/adafw/losses/__init__.py",
        "tests/contracts/test_losses.py", ["-k", "LogCosh or held_to_it or has_a_name"],
    ),
}  # fmt: skip
CASE = re.compile(r"^ *(?:Case\(|\(losses\.).*,$", re.MULTILINE)
IMPORT = re.compile(r"^ *from adafw\.\S+ import (\w+) as \1$", re.MULTILINE)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_one_file_one_line_of_a_registry_and_one_of_a_contract(name, tmp_path):
    """Followed in a copy of the library, whose tests then hold the new thing to its contract."""
    file, registry, contract, options = RECIPES[name]
    page = ROOT / "docs" / name
    for folder in ("src", "tests/contracts", "tests/paper"):
        leave = shutil.ignore_patterns("*.nb[ic]", "*.pyc")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=leave)
    for kept in ("tests/__init__.py", "tests/conftest.py", "tests/test_names.py", "pyproject.toml"):
        shutil.copy(ROOT / kept, tmp_path / kept)
    code, _, _ = next(blocks(page))
    (tmp_path / file).write_text(code)
    line = IMPORT.search(page.read_text())[0].strip()
    add(tmp_path / registry, "\nfrom adafw.later import public\n", f"\n{line}")
    tried = CASE.search(page.read_text())[0].strip()
    add(tmp_path / contract, "\n]", f"\n    {tried.replace('AXES', '[3.0, 0.5, 0.1, 1.0]')}")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", contract,
         "tests/test_names.py", *options],
        cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": f"{tmp_path / 'src'}{os.pathsep}{tmp_path}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 10


def add(path, before, line):
    """Puts a line before a mark, of which the first one counts."""
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, f"{line}{before}", 1))


# Files that the recipes make.
NEW = {"src/adafw/gradients/momentum.py", *(made for made, *_ in RECIPES.values())}


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("add_a_*.md")), ids=lambda p: p.name)
def test_files_named_in_recipes_exist(page):
    named = set(re.findall(r"`((?:src|tests)/[\w/]+\.py)`", page.read_text()))
    assert named
    for name in named - NEW:
        assert (ROOT / name).exists(), f"{page.name} names {name}, which does not exist"
