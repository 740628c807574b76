"""The list of planted slips: long, over all packages, and still about lines that are there."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from torture import mutants  # noqa: E402


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
