"""Twenty seconds of `make torture`, and that it would notice: each engine is shown a slip."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from torture.attack import Attack, engines, once  # noqa: E402
from torture.engine import Failure, file_test, rng_of, smallest  # noqa: E402
from torture.mutate import damaged  # noqa: E402
from torture.readers import READERS, judge  # noqa: E402

#: Cases of each engine that make up a slice of about twenty seconds.
CASES = {
    "libsvm": 60, "csv": 40, "npy": 40, "npz": 40, "parquet": 20, "state": 25, "model": 15,
    "checkpoint": 15, "parts": 20, "toml": 20, "runs": 60, "torch": 15, "full-disk": 15,
    "no-place": 10, "changing": 4, "cut-parts": 1, "kill-save": 1, "kill-parts": 1,
}  # fmt: skip


@pytest.mark.parametrize("engine", CASES)
def test_a_slice(engine, tmp_path):
    for number in range(CASES[engine]):
        folder = tmp_path / str(number)
        folder.mkdir()
        once(engine, number, 2026, folder)


def test_every_engine_has_its_slice():
    left = set(engines()) - set(CASES)
    assert left == {"kill-fit", "kill-reproduce"}, "these take minutes and are for make torture"


def test_cases_are_the_same_on_every_machine():
    rng = rng_of("libsvm", 3, 0)
    assert rng.integers(0, 1000, 4).tolist() == rng_of("libsvm", 3, 0).integers(0, 1000, 4).tolist()
    assert rng_of("libsvm", 4, 0).integers(1 << 62) != rng_of("libsvm", 3, 0).integers(1 << 62)


def test_failures_are_made_small():
    assert smallest(b"hello x world", lambda b: b"x" in b) == b"x"
    assert smallest(b"abc" * 100, lambda b: b.count(b"b") >= 3) == b"bbb"


def test_a_slip_in_a_reader_is_found_and_written_as_a_test(tmp_path, monkeypatch):
    """float() rounds to even; a reader that cuts off is told from it, on a small file."""
    from adafw.datasets import read_libsvm

    def cut_off(path):
        A, y = read_libsvm(path)
        y[:] = [float(f"{v:.12g}") for v in y]
        return A, y

    reader = READERS["libsvm"]
    slipped = type(reader)(reader.name, reader.file, reader.make, cut_off, reader.agrees)
    path = tmp_path / "d.svm"
    path.write_text("0.1234567890123456 1:2\n")
    with pytest.raises(Failure, match="scikit-learn reads other numbers"):
        judge(slipped, path)
    source = file_test("libsvm", "d.svm", path.read_bytes(), "libsvm: other numbers")
    scope: dict = {}
    exec(compile(source, "case.py", "exec"), scope)
    test = next(value for name, value in scope.items() if name.startswith("test_"))
    test(tmp_path)  # passes with the real reader


def test_anything_but_one_sentence_is_a_failure(tmp_path):
    def bad(error):
        def read(path):
            raise error

        return type(READERS["csv"])("csv", "d.csv", READERS["csv"].make, read)

    (tmp_path / "d").write_text("x")
    for error in (KeyError("k"), ValueError("two\nlines"), ValueError(""), MemoryError()):
        with pytest.raises(Failure):
            judge(bad(error), tmp_path / "d")
    assert judge(bad(ValueError("one line.")), tmp_path / "d") == "refused"


def test_damage_is_damage():
    rng = rng_of("x", 0, 0)
    assert sum(damaged(b"1 1:2 3:4\n" * 5, rng) != b"1 1:2 3:4\n" * 5 for _ in range(50)) > 40


def test_an_attack_keeps_count_and_goes_on(tmp_path, monkeypatch, capsys):
    """Two calls make one attack; crashes of a worker are failures with a test."""
    monkeypatch.chdir(ROOT)
    attack = Attack.taken_up(tmp_path, 1, ("no-place",), cheap=True)
    assert attack.run(0.02) == 0
    first = json.loads((tmp_path / "progress.json").read_text())
    again = Attack.taken_up(tmp_path, 1, ("no-place",), cheap=True)
    again.run(0.02)
    second = json.loads((tmp_path / "progress.json").read_text())
    cases = [kept["scores"]["no-place"]["cases"] for kept in (first, second)]
    assert cases[1] > cases[0] > 0
    assert "| no-place |" in (tmp_path / "summary.md").read_text()
    again._note({"engine": "no-place", "number": 99, "failed": "the process died with -11: x"})
    source = (tmp_path / "failures" / "test_no_place_99.py").read_text()
    assert "once('no-place', 99, 1, tmp_path)" in source
