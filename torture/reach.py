"""Which tests reach which line of the source: what `torture.draw` runs for a slip.

    python -m pytest -n auto -m "not slow" -p torture.reach     # writes out/reach, wants `coverage`

Lines of compiled kernels are not seen there; a kernel's tests are those that reach a call of it.
"""

import ast
import json
import os
import re
from functools import cache, cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
REACH = ROOT / "out" / "reach"


class Tracer:
    """A pytest plugin: the lines of each test, and the seconds it takes."""

    def __init__(self) -> None:
        import coverage

        REACH.mkdir(parents=True, exist_ok=True)
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        self._seconds: dict[str, float] = {}
        self._times = REACH / f"seconds-{worker}.json"
        self._coverage = coverage.Coverage(
            data_file=REACH / f"lines-{worker}", source=["adafw"], config_file=False
        )
        self._coverage.erase()
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        """Names the lines that follow by the test."""
        self._coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self._coverage.switch_context("")

    def pytest_runtest_logreport(self, report) -> None:
        """Adds up the parts of a test."""
        self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0.0) + report.duration

    def pytest_sessionfinish(self) -> None:
        """Writes both down."""
        self._coverage.stop()
        self._coverage.save()
        self._times.write_text(json.dumps(self._seconds))


def pytest_configure(config) -> None:
    """Workers of xdist trace; the process that leads them runs no test."""
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        config.pluginmanager.register(Tracer(), "reach")


class Reach:
    """What was written down, to be asked for the tests of a line."""

    def __init__(self, folder: Path = REACH) -> None:
        from coverage import CoverageData

        self.seconds: dict[str, float] = {}
        for file in sorted(folder.glob("seconds-*.json")):
            self.seconds |= json.loads(file.read_text())
        self._data = []
        for file in sorted(folder.glob("lines-*")):
            data = CoverageData(basename=str(file))
            data.read()
            self._data.append(data)
        if not self._data:
            raise SystemExit(f"nothing in {folder}: run pytest with -p torture.reach first")

    @cache  # noqa: B019
    def lines(self, file: str) -> dict[int, set[str]]:
        """The tests of every line of a source file."""
        found: dict[int, set[str]] = {}
        for data in self._data:
            for name in data.measured_files():
                if name.endswith("/" + file):
                    for line, tests in data.contexts_by_lineno(name).items():
                        found.setdefault(line, set()).update(t for t in tests if t)
        return found

    @cached_property
    def breadth(self) -> dict[str, int]:
        """In how many files a test has lines."""
        counts: dict[str, int] = {}
        for data in self._data:
            for name in data.measured_files():
                for tests in {
                    test for found in data.contexts_by_lineno(name).values() for test in found
                }:
                    counts[tests] = counts.get(tests, 0) + 1
        return counts

    def tests(self, file: str, line: int) -> set[str]:
        """The tests that reach a line: what runs while a module is imported is reached by all that
        use the module, a line of a kernel by all that call it."""
        text = (ROOT / file).read_text()
        inside = [
            node
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef)
            and node.body[0].lineno <= line <= (node.end_lineno or line)
        ]
        lines = self.lines(file)
        compiled = [n for n in inside if any("jit" in ast.unparse(d) for d in n.decorator_list)]
        if compiled:
            return self._callers(compiled[0].name)
        if inside:
            return lines.get(line, set())
        starts = {n.lineno for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)}
        return set().union(*(tests for at, tests in lines.items() if at not in starts))

    def _callers(self, kernel: str) -> set[str]:
        """The tests that reach a line with one of the callers of a kernel."""
        names, before = {kernel}, 0
        found: set[str] = set()
        while before != len(names):
            before = len(names)
            word = re.compile(rf"\b({'|'.join(names)})\b")
            for path in sorted((ROOT / "src").rglob("*.py")):
                text = path.read_text()
                if "kernels" not in f"{path} {text}" or not word.search(text):
                    continue
                compiled = [
                    node
                    for node in ast.walk(ast.parse(text))
                    if isinstance(node, ast.FunctionDef)
                    and any("jit" in ast.unparse(d) for d in node.decorator_list)
                ]
                file = path.relative_to(ROOT).as_posix()
                for number, words in enumerate(text.splitlines(), 1):
                    if not word.search(words):
                        continue
                    around = [n for n in compiled if n.lineno <= number <= (n.end_lineno or 0)]
                    names |= {node.name for node in around}
                    found |= self.lines(file).get(number, set()) if not around else set()
        tests = ROOT / "tests"
        word = re.compile(rf"\b({'|'.join(names)})\b")
        direct = {p.relative_to(ROOT).as_posix() for p in tests.rglob("test_*.py")
                  if word.search(p.read_text()) and "kernels" in p.read_text()}  # fmt: skip
        return found | {test for test in self.seconds if test.split("::")[0] in direct}
