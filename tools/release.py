"""Whether package, CITATION.cff and changelog speak of the version that a tag names.

python tools/release.py v0.1.0      (make release-check TAG=v0.1.0)
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def named() -> dict[str, str]:
    """File -> the version it names."""
    patterns = {
        "src/adafw/__init__.py": r'^__version__ = "([^"]+)"',
        "CITATION.cff": r"^version: (\S+)",
        "CHANGELOG.md": r"^## (\d\S*)",
    }
    found = {}
    for file, pattern in patterns.items():
        match = re.search(pattern, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
        found[file] = match[1] if match else "no version"
    return found


def waiting() -> bool:
    """Whether changes still stand under Unreleased, where readers of a release do not look."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    match = re.search(r"^## Unreleased\n(.*?)(?=^## )", text, re.MULTILINE | re.DOTALL)
    return bool(match and match[1].strip())


def main() -> None:
    """Ends with a sentence if one of them differs, or a change is under no version."""
    wanted = sys.argv[1].removeprefix("v") if len(sys.argv) > 1 else ""
    for file, version in named().items():
        if version != wanted:
            sys.exit(f"the tag must name the version of {file}, {version}; got v{wanted}.")
    if waiting():
        sys.exit(f"CHANGELOG.md must have its Unreleased changes under {wanted} before a release.")
    print(f"all name {wanted}")


if __name__ == "__main__":
    main()
