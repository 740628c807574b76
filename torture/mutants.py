"""Planted slips: each is put into a copy of the source, and the tests that should see it are run.

    python -m torture.mutants [--only io] [--jobs 2] [--first 50]

`slips.json` lists them: file, line by its text, change, tests; `same` says why one changes nothing
that can be seen. The table goes to out/mutants; what was done is not done again.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parents[1]
SLIPS = ROOT / "torture" / "slips.json"
#: Seconds after which a slip counts as seen: it made a test hang.
_PATIENCE = 1200
_COPIED = (
    "src",
    "tests",
    "torture",
    "docs",
    "examples",
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
)


def load() -> list[dict]:
    """The list."""
    return json.loads(SLIPS.read_text())


def planted(text: str, slip: dict) -> str | None:
    """The file with the slip in it; None if its line is not there once."""
    lines = text.splitlines(keepends=True)
    places = [k for k, line in enumerate(lines) if line.strip() == slip["line"]]
    if len(places) != 1:
        return None
    k = places[0]
    lines[k] = lines[k].replace(slip["line"], slip["change"])
    return "".join(lines)


def copy_of_project() -> Path:
    """A tree to plant slips in; compiled kernels come along, as they are still right."""
    tree = Path(tempfile.mkdtemp(prefix="mutants-"))
    for name in _COPIED:
        place = ROOT / name
        if place.is_dir():
            shutil.copytree(place, tree / name, ignore=shutil.ignore_patterns(".hypothesis"))
        elif place.exists():
            shutil.copy2(place, tree / name)
    return tree


def try_slip(slip: dict, tree: Path) -> str:
    """ "caught", "passed", "timeout" or "stale"."""
    path = tree / slip["file"]
    whole = path.read_text() if path.exists() else ""
    changed = planted(whole, slip)
    if changed is None:
        return "stale"
    compiled = "kernels" in slip["file"]
    path.write_text(changed)
    if compiled:
        _forget_kernels(tree)
    tests = [test for test in slip["tests"] if (tree / test).exists()]
    quiet = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command = [sys.executable, "-m", "pytest", *quiet, "-m", "not slow", *tests]
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True,
                              timeout=_PATIENCE)  # fmt: skip
    except subprocess.TimeoutExpired:
        return "timeout"
    finally:
        path.write_text(whole)
        if compiled:
            _forget_kernels(tree)
    if done.returncode in (0, 5):
        return "passed"
    return "caught"


def _forget_kernels(tree: Path) -> None:
    for file in (tree / "src").rglob("*.nb[ic]"):
        file.unlink()


def table(slips: list[dict], found: dict[str, str]) -> str:
    """What became of each, those that passed first."""
    order = {"passed": 0, "stale": 1, "timeout": 2, "caught": 3}
    rows = sorted(
        ((found[key(s)], s) for s in slips if key(s) in found), key=lambda row: order[row[0]]
    )
    count = {name: sum(result == name for result, _ in rows) for name in order}
    same = sum(result == "passed" and "same" in slip for result, slip in rows)
    lines = [
        f"{len(rows)} slips: {count['caught']} caught, {count['timeout']} by a hang, "
        f"{count['passed']} passed ({same} of them change nothing), {count['stale']} stale.", "",
        "| result | file | line | change |", "| --- | --- | --- | --- |",
    ]  # fmt: skip
    for result, slip in rows:
        words = [slip[k].replace("|", "\\|") for k in ("file", "line", "change")]
        note = f" ({slip['same']})" if "same" in slip else ""
        lines.append(f"| {result}{note} | {words[0]} | `{words[1]}` | `{words[2]}` |")
    return "\n".join(lines) + "\n"


def key(slip: dict) -> str:
    """What tells one slip from another."""
    return f"{slip['file']}: {slip['line']} -> {slip['change']}"


def main() -> int:
    """Returns 1 if fewer than 95 % of those that change something were caught."""
    parser = argparse.ArgumentParser(prog="python -m torture.mutants", description=__doc__)
    parser.add_argument("--only", help="slips of files whose path has this in it")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--first", type=int, help="so many of them, spread over the list")
    parser.add_argument("--out", type=Path, default=Path("out/mutants"))
    options = parser.parse_args()
    slips = [slip for slip in load() if not options.only or options.only in slip["file"]]
    if options.first:
        slips = slips[:: max(1, len(slips) // options.first)][: options.first]
    options.out.mkdir(parents=True, exist_ok=True)
    kept = options.out / "found.json"
    found: dict[str, str] = json.loads(kept.read_text()) if kept.is_file() else {}
    trees: SimpleQueue[Path] = SimpleQueue()
    made = [copy_of_project() for _ in range(options.jobs)]
    for tree in made:
        trees.put(tree)

    def work(slip: dict) -> None:
        tree = trees.get()
        try:
            found[key(slip)] = result = try_slip(slip, tree)
        finally:
            trees.put(tree)
        kept.write_text(json.dumps(found, indent=1))
        print(f"{result:8} {key(slip)}", flush=True)

    try:
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(work, [slip for slip in slips if key(slip) not in found]))
    finally:
        for tree in made:
            shutil.rmtree(tree, ignore_errors=True)
    (options.out / "table.md").write_text(table(slips, found))
    judged = [found[key(s)] for s in slips if found[key(s)] != "stale" and "same" not in s]
    share = sum(result != "passed" for result in judged) / max(1, len(judged))
    print(f"{share:.1%} of {len(judged)} caught; table in {options.out / 'table.md'}")
    return int(share < 0.95)


if __name__ == "__main__":
    sys.exit(main())
