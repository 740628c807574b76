"""The keys of an experiment's file: which there are, and what they must hold."""

from collections.abc import Mapping
from typing import Any

from adafw.typing import Json, JsonTable

#: What the keys of a file must be, and that in words.
_TYPES: dict[str, tuple[Any, str]] = {
    **dict.fromkeys(("name", "title", "network", "series", "label", "note"), (str, "a text")),
    **dict.fromkeys(("notes", "claims"), ("texts", "a list of texts")),
    **dict.fromkeys(("seeds", "goals"), (list, "a list of numbers")),
    **dict.fromkeys(("algorithms", "problems"), ("tables", "a list of tables")),
    **dict.fromkeys(("budget", "search", "data"), (dict, "a table")),
    "shape": (list, "two integers such as [30, 20]"),
}


def check_types(table: JsonTable, source: str) -> None:
    """Refuses a value that is not of the kind its key asks for."""
    inside: dict[str, type] = {"texts": str, "tables": dict}
    for key, value in table.items():
        kind, words = _TYPES.get(key, (object, ""))
        if kind in inside:
            right = isinstance(value, list) and all(isinstance(v, inside[kind]) for v in value)
        else:
            right = isinstance(value, kind)
        if not right:
            raise ValueError(f"{key} must be {words} in {source}, got {value!r}.")


def only(table: Mapping[str, Json], known: tuple[str, ...], where: str) -> None:
    """Refuses a table with a key that has no meaning there."""
    unknown = sorted(set(table) - set(known))
    if unknown:
        raise ValueError(f"{where} must have the keys {', '.join(known)} only, got {unknown[0]!r}.")
