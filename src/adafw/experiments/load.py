"""An experiment from its small TOML file, checked before any work."""

import os
import re
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path

from adafw import checks
from adafw.experiments.keys import check_types, only
from adafw.experiments.kind import AnyKind
from adafw.experiments.kinds import KINDS, kind_of_tables
from adafw.experiments.spec import Case, Method, Spec
from adafw.experiments.values import SEARCHED
from adafw.tuning import TUNING_SEED
from adafw.typing import Json, JsonTable

_KEYS = ("name", "title", "budget", "seeds", "repeats", "notes", "claims", "goals", "search")
#: Keys of a problem's table, which stand in the file itself where there is one problem.
_CASE_KEYS = tuple(
    dict.fromkeys(k for kind in KINDS.values() for k in (*kind.needed, *kind.optional))
)


def names() -> list[str]:
    """The experiments that come with the package."""
    folder = resources.files("adafw.experiments") / "specs"
    return sorted(p.name.removesuffix(".toml") for p in folder.iterdir() if p.name[-5:] == ".toml")


def load_spec(source: str | os.PathLike[str], quick: bool = False, full: bool = False) -> Spec:
    """The experiment of this name, or of this TOML file; `quick` applies its [quick] table.

    A file with a [full] table is a reduced form of a dearer experiment; `full` applies that table.
    """
    if quick and full:
        raise ValueError("an experiment runs in its quick form or in its full one, got both.")
    text, folder = _text(source)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{source} must be a TOML file: {error}.") from None
    forms = {name: document.pop(name, {}) for name in ("quick", "full")}
    reduced = bool(forms["full"]) and not full
    if quick or full:
        document = _merged(document, forms["quick" if quick else "full"])
    return replace(_spec(document, str(source), folder), quick=quick, reduced=reduced)


def _text(source: str | os.PathLike[str]) -> tuple[str, str]:
    if str(source) in names():
        path = resources.files("adafw.experiments") / "specs" / f"{source}.toml"
        return path.read_text(encoding="utf-8"), "."
    file = Path(source)
    if not file.is_file():
        raise ValueError(
            f"experiment must be one of {', '.join(names())} or a TOML file, got {str(source)!r}."
        )
    return file.read_text(encoding="utf-8"), str(file.parent)


def _merged(document: JsonTable, overrides: JsonTable) -> JsonTable:
    """The document with the quick table laid over it; data.<problem> where there are several."""
    merged = dict(document)
    for key, value in overrides.items():
        if key == "data" and "problems" in document:
            merged["problems"] = [
                {**problem, "data": {**problem["data"], **value.get(problem["name"], {})}}
                for problem in document["problems"]
            ]
        elif key == "data":
            merged[key] = {**document.get(key, {}), **value}
        else:
            merged[key] = value
    return merged


def _spec(document: JsonTable, source: str, folder: str) -> Spec:
    only(document, (*_KEYS, "problems", *(k for k in _CASE_KEYS if k != "name")), source)
    check_types(document, source)
    name: str = document.get("name", Path(source).stem)
    tables = document.get("problems")
    if tables is None:
        # One problem, whose keys stand in the file itself: from here on there is one form.
        tables = [{**{k: document[k] for k in _CASE_KEYS if k in document}, "name": name}]
    _check_name("name", name, source)
    kind = kind_of_tables(tables, source)
    cases = tuple(_case(kind, table, source, folder) for table in tables)
    if len({case.name for case in cases}) < len(cases):
        raise ValueError(f"names of problems must differ in {source}.")
    spec = Spec(
        name=name,
        title=document.get("title", name),
        kind=kind.name,
        cases=cases,
        budget=kind.budget(document.get("budget"), source),
        seeds=check_seeds(document.get("seeds", (1, 2, 3, 4, 5))),
        repeats=checks.integer(document.get("repeats", 1), "repeats", 1),
        notes=tuple(document.get("notes", ())),
        claims=tuple(document.get("claims", ())),
        goals=tuple(checks.real(goal, "goals", 0, 1, above=True) for goal in
                    document.get("goals", ())),
        search=_search_budget(kind, document.get("search", {}), cases, source),
    )  # fmt: skip
    # What no key tells alone, as a claim about methods that are not there.
    kind.check(spec, source)
    return spec


def _case(kind: AnyKind, table: JsonTable, source: str, folder: str) -> Case[Method]:
    check_types(table, source)
    only(table, (*kind.needed, *kind.optional), source)
    for key in kind.needed:
        if not table.get(key):
            raise ValueError(f"{key} must be given in {source}.")
    _check_name("the name of a problem", table["name"], source)
    return kind.case(table, source, folder)


def check_seeds(seeds: Sequence[Json]) -> tuple[int, ...]:
    """Seeds to judge by: different ones, and not the one that learning rates are tuned on."""
    found = tuple(checks.integer(seed, "seeds", 0) for seed in seeds)
    if not found or len(set(found)) < len(found) or TUNING_SEED in found:
        raise ValueError(
            f"seeds must be different, at least one, and not {TUNING_SEED}, by which learning "
            f"rates are tuned, got {list(found)}."
        )
    return found


def _check_name(what: str, name: str, source: str) -> None:
    """Names become names of files."""
    if not re.fullmatch(r"[\w.-]*\w[\w.-]*", name):
        raise ValueError(
            f"{what} must be letters, digits, '.', '_' and '-' in {source}, got {name!r}."
        )


def _search_budget(
    kind: AnyKind, table: Json, cases: Sequence[Case[Method]], source: str
) -> JsonTable:
    wanted = any(method.searched for case in cases for method in case.methods)
    if wanted != bool(table):
        raise ValueError(
            f'learning_rate = "{SEARCHED}" and a budget for each run of the search, such as search '
            f"= {{ max_epochs = 20 }}, must come together in {source}."
        )
    return kind.search_budget(table, source) if wanted else {}
