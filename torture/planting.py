"""A copy of the project in which slips are planted, and a process that runs its tests.

The process has imported all that is slow to import but adafw itself, and forks for every call of
pytest: a slip that a quick test sees takes a second, not ten.
"""

import ast
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: Seconds in which no test ended, after which a slip counts as seen: it made one hang.
PATIENCE = 240
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?\.py(?:::\w+)*)", re.MULTILINE)


@dataclass(frozen=True)
class Verdict:
    """ "caught" (by `test`), "passed", "timeout" or "stale"."""

    result: str
    test: str = ""


def planted(text: str, slip: dict) -> str | None:
    """The file with the slip in it; None if its line is not there once."""
    lines = text.splitlines(keepends=True)
    places = [k for k, line in enumerate(lines) if line.strip() == slip["line"]]
    if len(places) != 1:
        return None
    k = places[0]
    lines[k] = lines[k].replace(slip["line"], slip["change"])
    return "".join(lines)


class Garden:
    """One tree, one slip at a time."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self._planted = 0
        self._process: subprocess.Popen | None = None

    @contextlib.contextmanager
    def plant(self, slip: dict) -> Iterator[bool]:
        """The slip is in the tree inside; False if its line is not there."""
        path = self.tree / slip["file"]
        whole = path.read_bytes() if path.exists() else b""
        changed = planted(whole.decode(), slip)
        if changed is None:
            yield False
            return
        times = path.stat()
        stale = self._compiled_with(path) if "kernels" in slip["file"] else []
        with tempfile.TemporaryDirectory() as aside:
            for k, file in enumerate(stale):
                shutil.move(file, f"{aside}/{k}")
            path.write_text(changed)
            # A time of its own, so that no byte code of another slip in this file is taken for it.
            self._planted += 1
            os.utime(path, (times.st_mtime, times.st_mtime + self._planted))
            try:
                yield True
            finally:
                path.write_bytes(whole)
                # Numba knows by the time of the file that what it keeps is still right.
                os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
                for file in self._compiled_with(path) if stale else []:
                    file.unlink()
                for k, file in enumerate(stale):
                    shutil.move(f"{aside}/{k}", file)

    def _compiled_with(self, path: Path) -> list[Path]:
        """Kept code of the kernels that use a file, of which numba looks at its own alone."""
        uses = {
            file: {
                node.module.rpartition(".")[2]
                for node in ast.walk(ast.parse(file.read_text()))
                if isinstance(node, ast.ImportFrom) and node.module
            }
            | {
                alias.name
                for node in ast.walk(ast.parse(file.read_text()))
                if isinstance(node, ast.ImportFrom)
                for alias in node.names
            }
            for file in (self.tree / "src").rglob("*.py")
        }
        names, before = {path.stem}, 0
        while before != len(names):
            before = len(names)
            names |= {
                f.stem for f, used in uses.items() if used & names and "kernels" in f.as_posix()
            }
        users = names | {f.stem for f, used in uses.items() if used & names}
        kept = (self.tree / "src").rglob("*.nb[ic]")
        return [file for file in kept if file.name.split(".")[0] in users]

    def test(self, tests: list[str]) -> Verdict:
        """Runs them up to the first failure."""
        process = self._server()
        process.stdin.write(json.dumps(tests) + "\n")
        process.stdin.flush()
        code, output = json.loads(process.stdout.readline())
        if code is None:
            return Verdict("timeout", tests[0] if len(tests) == 1 else "")
        if code in (0, 5):
            return Verdict("passed")
        failed = _FAILED.search(output)
        return Verdict("caught", failed[1] if failed else "")

    def _server(self) -> subprocess.Popen:
        if self._process is None:
            paths = os.pathsep.join([str(self.tree / "src"), str(self.tree)])
            environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
            command = [sys.executable, "-m", "torture.planting"]
            self._process = subprocess.Popen(
                command, cwd=self.tree, env=environment, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )  # fmt: skip
        return self._process

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.stdin.close()
            self._process.wait()


def _run(tests: list[str], output: Path) -> int | None:
    """The exit code of pytest in a fork; None if it was not done in time."""
    import pytest

    child = os.fork()
    if child == 0:
        os.setsid()
        # A shell starts what runs in the background deaf to Ctrl-C; tests of it need to hear.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for number in (1, 2):
            os.dup2(file, number)
        quiet = ["-x", "-q", "-rfE", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist"]
        # Hypothesis, which is imported already, has nothing that needs rewriting.
        quiet += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        code = 1
        try:
            code = int(pytest.main([*quiet, "-m", "not slow", *tests]))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    end, said, code = time.monotonic() + PATIENCE, 0, None
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            break
        time.sleep(0.05)
        size = output.stat().st_size if output.exists() else 0
        if size != said:  # a dot for every test
            end, said = time.monotonic() + PATIENCE, size
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    if code is None:
        os.waitpid(child, 0)
    return code


def serve() -> None:
    """Runs what is asked for on standard input, one JSON list of tests a line."""
    import hypothesis.strategies  # noqa: F401
    import numba  # noqa: F401
    import pytest  # noqa: F401
    import scipy.optimize
    import scipy.sparse.linalg
    import scipy.special  # noqa: F401
    import sklearn.base
    import sklearn.utils  # noqa: F401

    with contextlib.suppress(ImportError):
        import torch  # noqa: F401
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "output"
        for line in sys.stdin:
            code = _run(json.loads(line), output)
            said = output.read_text(errors="replace")[-20000:]
            sys.stdout.write(json.dumps([code, said]) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    serve()
