"""Slips of one's own, each tried on the tests that reach its line.

    python -m torture.tried --list slips.json --out out/tried

The list holds {"file", "line", "change"}; see `torture.draw`, which draws them at random.
"""

import argparse
import json
import sys
from pathlib import Path

from torture.draw import ROOT, try_all
from torture.reach import Reach


def main() -> int:
    """Returns 1 if a slip was not seen."""
    parser = argparse.ArgumentParser(prog="python -m torture.tried", description=__doc__)
    parser.add_argument("--list", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("out/tried"))
    options = parser.parse_args()
    slips = json.loads(options.list.read_text())
    for slip in slips:
        lines = (ROOT / slip["file"]).read_text().splitlines()
        slip["at"] = 1 + next(k for k, line in enumerate(lines) if line.strip() == slip["line"])
    return try_all(Reach(), slips, options.out, "tried")


if __name__ == "__main__":
    sys.exit(main())
