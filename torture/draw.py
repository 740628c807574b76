"""New slips at random, each tried on the tests that reach its line.

    python -m pytest -n auto -m "not slow" -p torture.reach     # once: which tests reach what
    python -m torture.draw --parts steps metrics --count 40 --seed 7 --out out/draw

Those that no test sees are printed at the end: a test is missing, or the slip changes nothing.
"""

import argparse
import json
import random
import shutil
import sys
import time
from pathlib import Path

from torture.mutants import copy_of_project, key, load
from torture.planting import Garden, Verdict
from torture.propose import ROOT, SKIPPED, SOURCE
from torture.propose import slips as slips_of
from torture.reach import Reach

#: Seconds of tests and number of tests that one slip may take.
_SECONDS, _TESTS = 60.0, 300


def drawn(parts: list[str], count: int, seed: int) -> list[dict]:
    """Slips of a part of the package: files by their lengths, lines evenly, one slip a line."""
    draw = random.Random(seed)
    known = {key(slip) for slip in load()}
    pool = []
    for path in sorted(SOURCE.rglob("*.py")):
        inside = path.relative_to(SOURCE).as_posix()
        part = inside.split("/")[0].removesuffix(".py")
        top = "/" not in inside and "top" in parts
        if path.name in SKIPPED or (parts and not top and part not in parts):
            continue
        by_line: dict[int, list] = {}
        for at, line, changed in slips_of(path):
            by_line.setdefault(at, []).append((line, changed))
        for at, found in by_line.items():
            line, changed = draw.choice(found)
            slip = {"file": path.relative_to(ROOT).as_posix(), "at": at,
                    "line": line.strip(), "change": changed.strip()}  # fmt: skip
            if key(slip) not in known:
                pool.append(slip)
    draw.shuffle(pool)
    return pool[:count]


def chosen(reach: Reach, slip: dict) -> list[str]:
    """Tests of a slip: first those that reach little else, then some at random."""
    tests = sorted(reach.tests(slip["file"], slip["at"]))
    own = Path(slip["file"]).stem
    tests.sort(key=lambda test: (
        own not in test.split("::")[0],
        reach.breadth.get(test, 0) + 20 * reach.seconds.get(test, 0.0)))  # fmt: skip
    rest = tests[_TESTS // 2 :]
    random.Random(0).shuffle(rest)
    found, spent = [], 0.0
    for test in tests[: _TESTS // 2] + rest:
        spent += reach.seconds.get(test, 0.0)
        if found and (spent > _SECONDS or len(found) >= _TESTS):
            break
        found.append(test)
    return found


def try_all(reach: Reach, slips: list[dict], out: Path, name: str) -> int:
    """Tries each, writes what became of it to out/slips-NAME.json; 1 if one was not seen."""
    out.mkdir(parents=True, exist_ok=True)
    kept = out / f"slips-{name}.json"
    garden = Garden(copy_of_project())
    try:
        for k, slip in enumerate(slips):
            start, tests = time.monotonic(), chosen(reach, slip)
            verdict = Verdict("unreached")
            with garden.plant(slip) as there:
                # A few first: most slips fall at once.
                for some in (tests[:12], tests[12:]) if there else ():
                    if some and verdict.result in ("unreached", "passed"):
                        verdict = garden.test(some)
            slip |= {"result": verdict.result, "seen": verdict.test, "tests": len(tests)}
            kept.write_text(json.dumps(slips[: k + 1], indent=1) + "\n")
            took = f"{time.monotonic() - start:4.0f} s"
            print(f"{verdict.result:9} {took} {key(slip)}  [{verdict.test}]", flush=True)
    finally:
        garden.close()
        shutil.rmtree(garden.tree, ignore_errors=True)
    left = [slip for slip in slips if slip["result"] in ("passed", "unreached")]
    print(f"\n{len(slips) - len(left)} of {len(slips)} seen; not seen:")
    for slip in left:
        print(f"{slip['file']}:{slip['at']}  {slip['line']}  ->  {slip['change']}"
              f"  ({slip['result']}, {slip['tests']} tests)")  # fmt: skip
    return int(bool(left))


def main() -> int:
    """Returns 1 if a slip was not seen."""
    parser = argparse.ArgumentParser(prog="python -m torture.draw", description=__doc__)
    parser.add_argument("--parts", nargs="*", default=[], help="packages; 'top': single modules")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/draw"))
    options = parser.parse_args()
    slips = drawn(options.parts, options.count, options.seed)
    return try_all(Reach(), slips, options.out, str(options.seed))


if __name__ == "__main__":
    sys.exit(main())
