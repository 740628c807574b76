"""Checks what `python -m build` made, then tries the wheel out in an empty environment.

    python tools/dist.py dist        (make dist does all of it)

Looked at: names and versions, metadata, what must and must not be inside, the size. Then the wheel
goes into a new virtual environment with nothing but its dependencies, and there a program imports
it, fits a file, redoes a small experiment from a packaged TOML file, and mypy reads its types.
"""

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path
from typing import NoReturn

from packaging.metadata import Metadata

ROOT = Path(__file__).resolve().parents[1]
LARGEST_WHEEL = 1_000_000
PATIENCE = 3600  # seconds for one command: installing on a busy machine takes long
IN_WHEEL = (
    "adafw/__init__.py", "adafw/py.typed", "adafw/experiments/specs/svm.toml", "adafw/cli.py",
)  # fmt: skip
IN_SDIST = (
    "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "Makefile", "constraints.txt",
    ".github/workflows/ci.yml",
    "tests/conftest.py", "docs/conf.py", "examples/plot_01_first_fit.py", "tools/dist.py",
)  # fmt: skip
NEVER = (".nbi", ".nbc", ".pyc", "_build", ".venv", ".git/")
EXPERIMENT = """
title = "Smoke"
loss = "logistic"
set = { name = "l1", radius = 5.0 }
seeds = [1]
budget = { max_iterations = 20 }
data = { name = "support_vector", m = 200, n = 10, seed = 0 }
algorithms = [{ name = "AdaCSFW", learning_rate = 0.1 }, { name = "CSFW" }]
"""
TYPED = "import adafw\nreveal_type(adafw.L1Ball(1.0).radius)\nadafw.L1Ball('wide')\n"


def fail(reason: str) -> NoReturn:
    """Ends with one sentence."""
    sys.exit(f"dist: {reason}")


def check_wheel(wheel: Path, version: str) -> None:
    """Contents, metadata and size of the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        info = f"adafw-{version}.dist-info"
        text = archive.read(f"{info}/METADATA").decode()
    for name in (*IN_WHEEL, f"{info}/licenses/LICENSE", f"{info}/entry_points.txt"):
        if name not in names:
            fail(f"{wheel.name} lacks {name}.")
    wrong = [n for n in names if not n.startswith(("adafw/", info)) or n.endswith(NEVER)]
    if wrong:
        fail(f"{wheel.name} holds {wrong[0]}, which does not belong there.")
    specs = {p.name for p in (ROOT / "src/adafw/experiments/specs").glob("*.toml")}
    if missing := specs - {Path(n).name for n in names}:
        fail(f"{wheel.name} lacks the experiment {missing.pop()}.")
    if (size := wheel.stat().st_size) >= LARGEST_WHEEL:
        fail(f"{wheel.name} has {size} bytes, at most {LARGEST_WHEEL} are allowed.")
    check_metadata(text, version)
    print(f"{wheel.name}: {len(names)} files, {size / 1e3:.0f} kB")


def check_metadata(text: str, version: str) -> None:
    """Fields that an index shows, validated by the standard's own parser."""
    found = Metadata.from_email(text, validate=True)
    if (found.name, str(found.version)) != ("adafw", version):
        fail(f"the metadata are of {found.name} {found.version}, not of adafw {version}.")
    for field in ("summary", "description", "license_expression", "requires_python", "classifiers"):
        if not getattr(found, field):
            fail(f"the metadata lack {field}.")
    if found.description_content_type != "text/markdown":
        fail(f"the description is {found.description_content_type}, not text/markdown.")


def check_sdist(sdist: Path, version: str) -> None:
    """Whether a stranger could test and build from it."""
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
    for name in IN_SDIST:
        if f"adafw-{version}/{name}" not in names:
            fail(f"{sdist.name} lacks {name}.")
    wrong = [n for n in names if any(part in n for part in NEVER)]
    if wrong:
        fail(f"{sdist.name} holds {wrong[0]}, which does not belong there.")
    print(f"{sdist.name}: {len(names)} files, {sdist.stat().st_size / 1e6:.1f} MB")


def smoke(wheel: Path, version: str) -> None:
    """The wheel in an environment of its own, far from the sources."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "env", with_pip=True)
        bin_ = folder / "env" / ("Scripts" if os.name == "nt" else "bin")

        def run(*words: object, check: bool = True) -> str:
            line = " ".join(map(str, words))
            try:
                done = subprocess.run(
                    [str(w) for w in words], cwd=folder, text=True, capture_output=True,
                    timeout=PATIENCE,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                fail(f"{line} did not end within {PATIENCE} s.")
            if check and done.returncode:
                fail(f"{line} ended with\n{done.stdout}{done.stderr}")
            return done.stdout + done.stderr

        pip = (bin_ / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check")
        run(*pip, "-c", ROOT / "constraints.txt", f"{wheel}[plot]", "mypy")
        where = run(bin_ / "python", "-c", "import adafw; print(adafw.__file__)")
        if str(folder) not in where:
            fail(f"the smoke test saw {where.strip()}, not the installed wheel.")
        if run(bin_ / "adafw", "--version").strip() != f"adafw {version}":
            fail("adafw --version says something else.")
        rows = "".join(f"{1 if i % 3 else -1} 1:{i % 7} 2:{i % 3}\n" for i in range(60))
        (folder / "data.svm").write_text(rows)
        if "converged" not in run(
            bin_ / "adafw", "fit", "data.svm", "--radius", 2, "-o", "m.model"
        ):
            fail("adafw fit did not converge.")
        run(bin_ / "adafw", "score", "m.model", "data.svm")
        (folder / "small.toml").write_text(EXPERIMENT)
        run(bin_ / "adafw", "reproduce", "small.toml", "--out", "out", "--jobs", 1)
        if not (folder / "out" / "small" / "report.html").is_file():
            fail("adafw reproduce wrote no report.")
        code = "from adafw import experiments as e; print(e.load_spec('svm').title)"
        if "Support vector" not in run(bin_ / "python", "-c", code):
            fail("the packaged experiment svm cannot be read.")
        (folder / "typed.py").write_text(TYPED)
        said = run(bin_ / "python", "-m", "mypy", "typed.py", check=False)
        if not re.search(r'Revealed type is "(builtins\.)?float"', said) or '"str"' not in said:
            fail(f"mypy does not see the types of the wheel:\n{said}")
    print("wheel in an empty environment: import, fit, score, reproduce, types")


def main() -> None:
    """All checks on the files of one folder."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "dist").resolve()
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    version = wheel.name.split("-")[1]
    check_wheel(wheel, version)
    check_sdist(sdist, version)
    smoke(wheel, version)


if __name__ == "__main__":
    main()
