"""Measures what the library promises about speed, and writes docs/benchmarks/targets.json.

    python benchmarks/targets.py [name ...]

Each row is a function below rows/: a ratio of two sides that take turns in one process, or a
number. The table says what must be reached and what would be better still; the two rows that need
the peers come from versus/run.py.
"""

import json
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import machine
from data import rcv1

from rows import gaps, iterations, overheads

OUT = Path(__file__).parents[1] / "docs" / "benchmarks" / "targets.json"

#: row -> (must, stretch, whether larger is better); None where nothing was promised
TARGETS = {
    iterations.inner_steps: (1.3, 1.15, False),
    iterations.adaptive: (1.5, 1.3, False),
    iterations.million: (60, 100, True),
    iterations.lazy: (3.5, 3.0, False),
    iterations.dense: (2.0, 1.5, False),
    iterations.generic: (1.2, 1.0, False),
    gaps.gap_svm: (1 / 10, 1 / 20, False),
    gaps.gap_text: (1 / 4, 1 / 10, False),
    overheads.reader: (5, None, True),
    overheads.importing: (0.3, 0.2, False),
    overheads.wheel: (1.0, None, False),
    overheads.small: (20, None, False),
    overheads.cores: (None, None, True),
}


def verdict(value: float, must: float | None, stretch: float | None, more: bool) -> str:
    sign = -1 if more else 1
    if stretch is not None and sign * value <= sign * stretch:
        return "stretch"
    if must is None:
        return "-"
    return "reached" if sign * value <= sign * must else "missed"


def main(names: list[str]) -> None:
    known = [measure.__name__ for measure in TARGETS]
    if unknown := set(names) - set(known):
        sys.exit(f"rows are {', '.join(known)}; got {', '.join(sorted(unknown))}.")
    rows = json.loads(OUT.read_text())["rows"] if names and OUT.is_file() else {}
    for measure, (must, stretch, more) in TARGETS.items():
        if names and measure.__name__ not in names:
            continue
        began = time.perf_counter()
        row = measure()
        result = verdict(row["ratio"], must, stretch, more)
        what = (measure.__doc__ or "").rstrip(".")
        rows[measure.__name__] = {
            "what": what, "must": must, "stretch": stretch, "result": result, **row
        }  # fmt: skip
        took = time.perf_counter() - began
        print(f"{row['ratio']:10.4g}  {result:8s} {what} [{took:.0f} s]", flush=True)
        found = {"machine": machine.describe(), "text data": rcv1()[0], "rows": rows}
        OUT.parent.mkdir(parents=True, exist_ok=True)
        OUT.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
