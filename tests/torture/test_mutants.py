"""The list of planted slips: long, over all packages, and still about lines that are there."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from torture import mutants, propose  # noqa: E402


def test_the_list_covers_all_packages():
    slips = mutants.load()
    packages = {slip["file"].split("/")[2] for slip in slips}
    assert len(slips) >= 200
    assert packages >= {
        "commands", "constraints", "datasets", "experiments", "fitting", "fused", "gradients", "io",
        "kernels", "metrics", "objectives", "rows", "sklearn", "steps", "theory", "torch",
    }  # fmt: skip
    assert len({mutants.key(slip) for slip in slips}) == len(slips)
    for slip in slips:
        assert slip["line"] != slip["change"]
        assert any((ROOT / test.split("::")[0]).exists() for test in slip["tests"]), slip


def test_at_least_two_hundred_lines_are_where_the_list_says():
    """Code moves; `python -m torture.propose` makes new candidates when too many are stale."""
    fresh = 0
    for slip in mutants.load():
        path = ROOT / slip["file"]
        changed = mutants.planted(path.read_text(), slip) if path.exists() else None
        if changed is not None:
            fresh += 1
            compile(changed, slip["file"], "exec")
    assert fresh >= 200


def test_a_slip_is_planted_once_and_in_its_place():
    slip = {"line": "return x", "change": "return -x"}
    assert mutants.planted("def f(x):\n    return x\n", slip) == "def f(x):\n    return -x\n"
    assert mutants.planted("return x\nreturn x\n", slip) is None
    assert mutants.planted("return y\n", slip) is None


def test_tests_that_name_what_is_changed_run_first(tmp_path):
    """The test known to see it, the file that mirrors the source, those that name it, the rest."""
    files = {
        "src/adafw/io/a.py": "class One:\n    def two(self):\n        return 1\ndef other(): ...\n",
        "tests/io/test_a.py": "",
        "tests/io/test_b.py": "other()",
        "tests/io/test_c.py": "One().two()",
        "tests/paper/test_d.py": "One()",
        "tests/paper/test_e.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    slip = {"file": "src/adafw/io/a.py", "line": "return 1", "tests": ["tests/paper", "tests/io"]}
    assert mutants.names_around(tmp_path / slip["file"], "return 1") == {"One", "two"}
    first, *rest = mutants.stages({**slip, "seen": "tests/io/test_b.py::test_x"}, tmp_path)
    assert first == ["tests/io/test_b.py::test_x"]
    assert rest == mutants.stages(slip, tmp_path)
    assert rest == [
        ["tests/io/test_a.py"],
        ["tests/io/test_c.py", "tests/paper/test_d.py"],
        ["tests/io/test_b.py", "tests/paper/test_e.py"],
    ]


def test_slips_leave_out_swap_and_turn_around(tmp_path):
    file = tmp_path / "module.py"
    file.write_text(
        "def f(a, b, c=None):\n"
        '    """Text - 1."""\n'
        "    g(a)\n"
        "    x = min(a, b) - 1\n"
        "    x += h(a, b, key=c)\n"
        "    return x if a is None else -x\n"
    )
    found = {(at, new.strip()) for at, _, new in propose.slips(file)}
    assert found >= {
        (3, "pass"),
        (4, "x = a - 1"), (4, "x = max(a, b) - 1"), (4, "x = min(a, b)"), (4, "x = min(a, b) + 1"),
        (5, "x = h(a, b, key=c)"), (5, "x -= h(a, b, key=c)"), (5, "x += h(a, b)"),
        (6, "return x"), (6, "return x if a is not None else -x"),
        (6, "return x if a is None else x"),
    }  # fmt: skip
    assert not any(at == 2 for at, _ in found)
    lines = file.read_text().splitlines()
    for at, old, new in propose.slips(file):
        assert lines[at - 1] == old != new
        compile("\n".join([*lines[: at - 1], new, *lines[at:]]), "module", "exec")
