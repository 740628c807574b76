import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import adafw
from adafw.kernels import threads


@pytest.mark.parametrize("cores", ["1", "2", "5"])
def test_every_part_is_done_once(monkeypatch, cores):
    monkeypatch.setenv("OMP_NUM_THREADS", cores)
    done, lock = [], threading.Lock()

    def work(part):
        with lock:
            done.append(part)

    threads.share(work, 7)
    assert sorted(done) == list(range(7))


def test_a_failure_is_passed_on(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")

    def work(part):
        if part == 2:
            raise ZeroDivisionError("part 2")

    with pytest.raises(ZeroDivisionError, match="part 2"):
        threads.share(work, 4)


def test_ranges_cover_everything_once():
    for n in (0, 1, 5, 12):
        for parts in (1, 3, 7):
            ranges = threads.bounds(n, parts)
            assert [k for first, last in ranges for k in range(first, last)] == list(range(n))


def test_cores_follow_the_environment(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads.cores() == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "4,2")  # one number for each level of nesting
    assert threads.cores() == 4


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
def test_cores_are_those_the_process_may_run_on():
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "from adafw.kernels import threads; print(threads.cores())"
    )
    env = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
    env["PYTHONPATH"] = str(Path(adafw.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout == "1\n", done.stderr
