"""Writes docs/licences.md: what adafw needs, what its extras need, and under which licences.

    python tools/licences.py       (make licences)

Names come from pyproject.toml, licences from the metadata of what is installed.
"""

import re
import tomllib
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "licences.md"
#: Extras that a user of the library may install; those of developers are not listed.
EXTRAS = ("io", "plot", "tensorboard", "torch", "dask")
HEAD = """# Licences

adafw itself is under the BSD 3-clause licence.
It contains no code of other projects.
These are the packages that it imports, written by `make licences` from their metadata.
"""


def direct() -> dict[str, list[str]]:
    """Heading -> names of packages, as pyproject.toml has them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = {"Needed": project["dependencies"]}
    wanted |= {f"Extra `{name}`": extras[name] for name in EXTRAS if name in extras}
    return {head: [re.match(r"[\w-]+", line)[0] for line in lines]  # type: ignore[index]
            for head, lines in wanted.items()}  # fmt: skip


def licence(name: str) -> str:
    """In a few words, from the field that has them."""
    try:
        found = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return "not installed here"
    text = found.get("License-Expression") or ""
    if not text:
        kinds = [
            c.split(" :: ")[-1] for c in found.get_all("Classifier") or () if "License ::" in c
        ]
        text = "; ".join(kinds) or (found.get("License") or "unknown").splitlines()[0]
    return text


def page() -> str:
    """The whole page."""
    out = [HEAD]
    for head, names in direct().items():
        rows = [f"| {name} | {licence(name)} |" for name in names]
        out.append("\n".join([f"## {head}\n", "| package | licence |", "| --- | --- |", *rows, ""]))
    return "\n".join(out)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
