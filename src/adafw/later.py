"""Names of a package that are imported when the first of them is asked for.

Most of what `import adafw` would cost is the making of some hundred small classes, of which a
program uses a few. A package therefore keeps its names in a module `exports`, and its `__init__`
hands them out; type checkers see the plain imports.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any


def later(exports: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose names stand in the module `exports`."""
    package = exports.rpartition(".")[0]

    def get(name: str) -> Any:
        # `from package import module` asks here, too, before it imports a module. To import all
        # names for it would be a cycle: `pickle` may have asked for that module first of all.
        path = import_module(package).__path__
        if PathFinder.find_spec(f"{package}.{name}", path):
            raise AttributeError(f"{package}.{name} is a module that has not been imported")
        # Dunders are asked for by the import system itself, often before anything else is there.
        if name == "__all__" or not name.startswith("__"):
            # Not `from package import exports`, which would ask this function for `exports`.
            found = vars(import_module(exports))
            # Half of it is there while it is being imported, and asked for by what it imports.
            if name in found and (name == "__all__" or name in found.get("__all__", found)):
                vars(import_module(package))[name] = found[name]  # asked for here once only
                return found[name]
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names() -> list[str]:
        return sorted(import_module(exports).__all__)

    return get, names


def public(names: Mapping[str, object], but: tuple[str, ...] = ()) -> list[str]:
    """`__all__` of a module with these names: all but modules and those with an underscore.

    Type checkers go by `import X as X`, so that no name need be written a second time.
    """
    return [
        name for name, thing in names.items()
        if not (name.startswith("_") or name in but or isinstance(thing, ModuleType))
    ]  # fmt: skip
