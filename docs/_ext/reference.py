"""The API reference: a page for every public name, grouped, made when the site is built.

Names come from tools/public_api.py, as the test that freezes them; a new public name has its page
without a line here. `GROUPS` only says under which heading it stands.
"""

import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docstrings
import public_api
from sphinx.application import Sphinx

DOCS = Path(__file__).parents[1]
PAGES = DOCS / "api"


def _is_set(thing: Any) -> bool:
    from adafw.constraints import Constraint

    return inspect.isclass(thing) and issubclass(thing, Constraint)


def _from(*modules: str) -> Callable[[Any], bool]:
    return lambda thing: (getattr(thing, "__module__", "") or "").startswith(modules)


#: File, title, module, which of its names, and a sentence on what they are for.
GROUPS: list[tuple[str, str, str, Callable[[Any], bool], str]] = [
    ("sets", "Sets", "adafw", _is_set,
     "Where the variable may lie. One object serves numpy arrays and torch tensors."),
    ("algorithms", "Algorithms", "adafw", _from("adafw.algorithms"),
     "Pairs of a gradient estimator and a step, by the names of the literature."),
    ("objectives", "Objectives", "adafw", _from("adafw.objectives"),
     "What is minimised: a mean over terms."),
    ("running", "Running and measuring", "adafw", lambda thing: True,
     "The call that does it, what it returns, and what can be asked of that."),
    ("losses", "adafw.losses", "adafw.losses", lambda thing: True,
     "Losses of a prediction and a target, without any factor 1/2."),
    ("gradients", "adafw.gradients", "adafw.gradients", lambda thing: True,
     "Gradient estimators: line 2 of both templates."),
    ("metrics", "adafw.metrics", "adafw.metrics", lambda thing: True,
     "Diagonal metrics H of adaptive gradients."),
    ("steps", "adafw.steps", "adafw.steps", lambda thing: True,
     "What is done with a gradient estimate, and step-size rules."),
    ("more_objectives", "adafw.objectives", "adafw.objectives", lambda thing: True,
     "Objectives beside those at the top level, and their protocol."),
    ("schedules", "adafw.schedules", "adafw.schedules", lambda thing: True,
     "Functions of the iteration; a plain number is accepted wherever one is."),
    ("sklearn", "adafw.sklearn", "adafw.sklearn", lambda thing: True,
     "Estimators, paths and pictures for scikit-learn."),
    ("torch", "adafw.torch", "adafw.torch", lambda thing: True,
     "Optimizers for networks whose layers lie in sets."),
    ("datasets", "adafw.datasets", "adafw.datasets", lambda thing: True,
     "Readers, writers, generators, and the data of the paper."),
    ("theory", "adafw.theory", "adafw.theory", lambda thing: True,
     "Constants, schedules and bounds of the theorems."),
    ("experiments", "adafw.experiments", "adafw.experiments", lambda thing: True,
     "Experiments from TOML files."),
    ("tensorboard", "adafw.tensorboard", "adafw.tensorboard", lambda thing: True,
     "Traces as scalars that TensorBoard shows."),
]  # fmt: skip


def grouped() -> list[tuple[str, str, str, str, dict[str, Any]]]:
    """Groups with their names, each public name in the first group that takes it."""
    out, taken = [], set()
    for file, title, module, takes, about in GROUPS:
        names = {
            name: thing
            for name, thing in public_api.public_names(module).items()
            if f"{module}.{name}" not in taken and takes(thing)
        }
        taken |= {f"{module}.{name}" for name in names}
        if names:
            out.append((file, title, module, about, names))
    return out


def first_line(thing: Any) -> str:
    """The summary of a docstring, ready for a table."""
    text = inspect.getdoc(thing) if callable(thing) else ""
    return docstrings.inline(" ".join((text or "").split("\n\n")[0].split())) or "..."


def page_of(module: str, name: str, thing: Any) -> str:
    """One public name: signature, docstring, members, source."""
    full = f"{module}.{name}"
    head = f"{name}\n{'=' * len(name)}\n\n"
    if not inspect.isclass(thing):
        kind = "autofunction" if callable(thing) else "autodata"
        return f"{head}.. {kind}:: {full}\n"
    members = ", ".join(public_api.members(thing))
    body = f"{head}.. autoclass:: {full}\n"
    return body + (f"   :members: {members}\n   :member-order: bysource\n" if members else "")


def write(path: Path, text: str) -> None:
    """Writes what is new only: Sphinx reads again what has another time."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def generate(app: Sphinx) -> None:
    """Writes docs/api: an index, a page for each group and one for each name."""
    PAGES.mkdir(exist_ok=True)
    groups = grouped()
    for _, _, module, _, names in groups:
        for name in names:
            full = f"{module}.{name}"
            docstrings.TARGETS.setdefault(name, full)
            docstrings.TARGETS[full] = full
            docstrings.TARGETS[full.removeprefix("adafw.")] = full
    wanted = {"index.rst"}
    for file, title, module, about, names in groups:
        docstrings.NEAR[-1] = module
        rows = [f"   * - :py:obj:`{n} <{module}.{n}>`\n     - {first_line(t)}\n"
                for n, t in names.items()]  # fmt: skip
        text = f"{title}\n{'=' * len(title)}\n\n{about}\n\n.. list-table::\n   :widths: 30 70\n"
        text += "   :class: names\n\n" + "".join(rows) + "\n.. toctree::\n   :hidden:\n\n"
        text += "".join(f"   {n} <{module}.{n}>\n" for n in names)
        write(PAGES / f"{file}.rst", text)
        wanted.add(f"{file}.rst")
        for name, thing in names.items():
            write(PAGES / f"{module}.{name}.rst", page_of(module, name, thing))
            wanted.add(f"{module}.{name}.rst")
    rows = [
        f"   * - :doc:`{title} <{file}>`\n     - {about}\n" for file, title, _, about, _ in groups
    ]
    text = "API\n===\n\nEvery public name, from its docstring, with a link to its source.\n\n"
    text += ".. list-table::\n   :widths: 30 70\n   :class: names\n\n" + "".join(rows)
    text += "\n.. toctree::\n   :hidden:\n\n" + "".join(f"   {file}\n" for file, *_ in groups)
    write(PAGES / "index.rst", text)
    for old in PAGES.glob("*.rst"):
        if old.name not in wanted:
            old.unlink()


def setup(app: Sphinx) -> dict[str, bool]:
    """Writes the pages before Sphinx looks for them."""
    for module in public_api.MODULES:
        importlib.import_module(module)
    app.connect("config-inited", lambda app, config: generate(app))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
