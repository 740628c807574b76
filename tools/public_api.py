"""Every public name of adafw with its signature: for the reference pages, and frozen by a test.

python tools/public_api.py           # what changed against tests/public_api.txt
python tools/public_api.py --write   # take it over (also: make api)
"""

import difflib
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, get_origin

FROZEN = Path(__file__).parents[1] / "tests" / "public_api.txt"
#: Modules whose names are public. A name that adafw itself exports is listed there alone.
MODULES = (
    "adafw",
    "adafw.gradients",
    "adafw.metrics",
    "adafw.steps",
    "adafw.losses",
    "adafw.objectives",
    "adafw.schedules",
    "adafw.datasets",
    "adafw.sklearn",
    "adafw.torch",
    "adafw.distributed",
    "adafw.theory",
    "adafw.experiments",
    "adafw.tensorboard",
)


def public_names(module: str) -> dict[str, Any]:
    """Name -> object of a module: what its __all__ lists, else what it defines."""
    found = importlib.import_module(module)
    listed = getattr(found, "__all__", None) or [
        name
        for name, thing in vars(found).items()
        if not name.startswith("_") and getattr(thing, "__module__", None) == module
    ]
    things = {name: getattr(found, name) for name in listed}
    if module != "adafw":
        top = [thing for thing in public_names("adafw").values() if not inspect.ismodule(thing)]
        things = {n: t for n, t in things.items() if not any(t is other for other in top)}
    # Modules have pages of their own, and names of types are for type checkers.
    return {
        n: t
        for n, t in sorted(things.items())
        if not isinstance(t, ModuleType) and get_origin(t) is None
    }


def members(cls: type) -> dict[str, Any]:
    """Public methods and properties that a class has from adafw, not from other packages."""
    found = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("adafw"):
            found.update(
                (name, thing)
                for name, thing in vars(base).items()
                if not name.startswith("_")
                and (inspect.isfunction(_plain(thing)) or isinstance(thing, property))
            )
    return {name: inspect.getattr_static(cls, name) for name in sorted(found)}


def _plain(thing: Any) -> Any:
    return getattr(thing, "__func__", thing)


def signature(thing: Any) -> str:
    """Names, kinds and defaults of the parameters; types belong to mypy."""
    try:
        given = inspect.signature(thing)
    except (ValueError, TypeError):
        return ""
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in given.parameters.values()]
    text = str(given.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    # Where an object lives in memory is no part of an interface.
    return re.sub(r" at 0x[0-9a-f]+", "", re.sub(r"<class '([\w.]+)'>", r"\1", text))


def own_members(cls: type, known: dict[type, dict[str, str]]) -> dict[str, str]:
    """Member -> signature, without what is the same in a public base class."""
    found = {
        name: "" if isinstance(thing, property) else signature(_plain(thing))
        for name, thing in members(cls).items()
    }
    bases = [known[base] for base in cls.__mro__[1:] if base in known]
    return {n: s for n, s in found.items() if all(base.get(n) != s for base in bases)}


def lines() -> Iterator[str]:
    """One line a name, then the methods and properties that its public bases do not have."""
    classes = {t for m in MODULES for t in public_names(m).values() if inspect.isclass(t)}
    known = {cls: own_members(cls, {}) for cls in classes}
    for module in MODULES:
        for name, thing in public_names(module).items():
            called = signature(thing) if callable(thing) else f" = {type(thing).__name__}"
            yield f"{module}.{name}{called}"
            if inspect.isclass(thing):
                for member, text in own_members(thing, known).items():
                    yield f"    .{member}{text}"


def undocumented() -> list[str]:
    """Public names, methods and properties without a docstring of their own or of a base."""
    found = []
    for module in MODULES:
        for name, thing in public_names(module).items():
            inside = members(thing) if inspect.isclass(thing) else ()
            things = {f"{module}.{name}": thing} if callable(thing) else {}
            things |= {f"{module}.{name}.{member}": getattr(thing, member) for member in inside}
            found += [full for full, thing in things.items() if not inspect.getdoc(thing)]
    return found


def main() -> None:
    """Shows or takes over the difference."""
    text = "\n".join(lines()) + "\n"
    if "--write" in sys.argv[1:]:
        FROZEN.write_text(text, encoding="utf-8")
        return
    old = FROZEN.read_text(encoding="utf-8") if FROZEN.is_file() else ""
    sys.stdout.writelines(
        difflib.unified_diff(old.splitlines(True), text.splitlines(True), "frozen", "now", n=0)
    )


if __name__ == "__main__":
    main()
