"""Planted slips: each is put into a copy of the source, and the tests that should see it are run.

    python -m torture.mutants [--only io] [--jobs 2] [--first 50]

`slips.json` lists them: file, line by its text, change, tests (`seen` is one known to fail);
`same` says why one changes nothing that can be seen. The table goes to out/mutants; what was done
is not done again. `--note` writes the tests that failed into the list.
"""

import argparse
import ast
import json
import os
import re
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from torture.planting import Garden, Verdict, planted

ROOT = Path(__file__).parents[1]
SLIPS = ROOT / "torture" / "slips.json"
_COPIED = (
    "src",
    "tests",
    "torture",
    "docs",
    "examples",
    "benchmarks",
    "tools",
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
)
#: Long files that see little which others do not.
_LATE = ("tests/paper", "tests/sklearn/test_checks.py", "tests/contracts/test_sets_at_random.py")

__all__ = ["copy_of_project", "key", "load", "main", "planted", "stages", "table"]


def load() -> list[dict]:
    """The list."""
    return json.loads(SLIPS.read_text())


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


def stages(slip: dict, tree: Path) -> list[list[str]]:
    """What to run, in order, until something fails: the test known to see it, the file that mirrors
    the source, of the list those that name what is changed, then the rest."""
    parts = Path(slip["file"]).relative_to("src/adafw").parts
    mirror = Path("tests", *parts[:-1], f"test_{parts[-1]}").as_posix()
    listed = [file for test in slip["tests"] for file in _files(test, tree)]
    words = names_around(tree / slip["file"], slip["line"])
    told = [test for test in listed if words & _words(tree / test.split("::")[0])]
    found: list[list[str]] = []
    known: set[str] = set()
    for stage in ([slip["seen"]] if "seen" in slip else [], [mirror], told, listed):
        there = [t for t in stage if t not in known and (tree / t.split("::")[0]).exists()]
        known |= set(there)
        if there:
            found.append(sorted(dict.fromkeys(there), key=lambda test: test.startswith(_LATE)))
    return found


def _files(test: str, tree: Path) -> list[str]:
    """The files of a folder of tests; a file or one of its tests is its own."""
    place = tree / test
    if not place.is_dir():
        return [test]
    return [file.relative_to(tree).as_posix() for file in sorted(place.rglob("test_*.py"))]


def _words(file: Path) -> set[str]:
    return set(re.findall(r"\w+", file.read_text())) if file.exists() else set()


def names_around(file: Path, line: str) -> set[str]:
    """Functions and classes that a line stands in."""
    text = file.read_text()
    numbers = [k for k, words in enumerate(text.splitlines(), 1) if words.strip() == line]
    return {
        node.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("__")
        for number in numbers
        if node.lineno <= number <= (node.end_lineno or number)
    }


def try_slip(slip: dict, garden: Garden) -> Verdict:
    """Runs its stages."""
    verdict = Verdict("stale")
    todo = stages(slip, garden.tree) if (garden.tree / slip["file"]).exists() else []
    with garden.plant(slip) as there:
        for tests in todo if there else []:
            verdict = garden.test(tests)
            if verdict.result != "passed":
                break
    return verdict


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


def parse() -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m torture.mutants", description=__doc__)
    parser.add_argument("--only", help="slips of files whose path has this in it")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--first", type=int, help="so many of them, spread over the list")
    parser.add_argument("--out", type=Path, default=Path("out/mutants"))
    parser.add_argument("--list", type=Path, default=SLIPS, help="another list of slips")
    parser.add_argument("--note", action="store_true", help="write `seen` into the list")
    return parser.parse_args()


def main() -> int:
    """Returns 1 if fewer than 95 % of those that change something were caught."""
    options = parse()
    every = json.loads(options.list.read_text())
    slips = [slip for slip in every if not options.only or options.only in slip["file"]]
    if options.first:
        slips = slips[:: max(1, len(slips) // options.first)][: options.first]
    # What is not known first, then what has to be compiled.
    slips.sort(key=lambda slip: ("same" in slip, "seen" in slip, "kernels" in slip["file"]))
    options.out.mkdir(parents=True, exist_ok=True)
    kept = options.out / "found.json"
    found: dict[str, str] = json.loads(kept.read_text()) if kept.is_file() else {}
    gardens: SimpleQueue[Garden] = SimpleQueue()
    made = [Garden(copy_of_project()) for _ in range(options.jobs)]
    for garden in made:
        gardens.put(garden)

    def work(slip: dict) -> None:
        garden, start = gardens.get(), time.monotonic()
        try:
            verdict = try_slip(slip, garden)
        finally:
            gardens.put(garden)
        found[key(slip)] = verdict.result
        if verdict.test:
            slip["seen"] = verdict.test
        kept.write_text(json.dumps(found, indent=1))
        took = f"{time.monotonic() - start:4.0f} s"
        print(f"{verdict.result:8} {took} {key(slip)}  [{verdict.test}]", flush=True)

    try:
        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(work, [slip for slip in slips if key(slip) not in found]))
    finally:
        for garden in made:
            garden.close()
            shutil.rmtree(garden.tree, ignore_errors=True)
    if options.note:
        options.list.write_text(json.dumps(every, indent=1) + "\n")
    (options.out / "table.md").write_text(table(slips, found))
    judged = [found[key(s)] for s in slips if found[key(s)] != "stale" and "same" not in s]
    share = sum(result != "passed" for result in judged) / max(1, len(judged))
    print(f"{share:.1%} of {len(judged)} caught; table in {options.out / 'table.md'}")
    return int(share < 0.95)


if __name__ == "__main__":
    sys.exit(main())
