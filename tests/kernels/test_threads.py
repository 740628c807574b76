import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

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


def in_two(monkeypatch, work):
    """Two parts on two threads, each of which has one: work(whether it is the other thread)."""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    both = threading.Barrier(2, timeout=30)

    def part(_):
        both.wait()
        work(threading.current_thread() is not threading.main_thread())

    threads.share(part, 2)


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("other", [True, False])
def test_no_failure_of_any_thread_is_lost(monkeypatch, failure, other):
    def work(is_other):
        if is_other is other:
            raise failure("planted")

    with pytest.raises(failure, match="planted"):
        in_two(monkeypatch, work)


def test_all_parts_are_done_when_the_call_returns(monkeypatch):
    done = []

    def work(is_other):
        if is_other:
            time.sleep(0.05)
        done.append(is_other)

    in_two(monkeypatch, work)
    assert done == [False, True]


def test_where_a_system_has_no_affinity_all_its_cores_count(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    for told, count in ((6, 6), (None, 1)):
        monkeypatch.setattr(os, "cpu_count", lambda told=told: told)
        assert threads.cores() == count


def test_ranges_cover_everything_once():
    for n in (0, 1, 5, 12):
        for parts in (1, 3, 7):
            ranges = threads.bounds(n, parts)
            assert [k for first, last in ranges for k in range(first, last)] == list(range(n))
            lengths = [last - first for first, last in ranges]
            assert max(lengths) - min(lengths) <= 1


def test_cores_follow_the_environment(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads.cores() == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "4,2")  # one number for each level of nesting
    assert threads.cores() == 4


def results():
    """Runs, sums over all rows and numbers from a file, on data large enough to be shared out."""
    rng = np.random.default_rng(0)
    A = sparse.random_array((3000, 40), density=0.3, rng=rng, format="csr")
    f = adafw.LinearModel(A, rng.choice([-1.0, 1.0], 3000), adafw.losses.Logistic())
    x = rng.standard_normal(40)
    found = [f.gradient(x), f.rows.dot(x), *f.rows.curve(np.abs(f.y), x)]
    for algorithm in (adafw.FW(), adafw.AdaCSFW(1.0), adafw.SVRF(), adafw.Corrective()):
        r = adafw.minimize(f, adafw.L1Ball(3.0), algorithm, seed=3, max_iterations=12)
        found += [r.x, np.array([r.value, r.gap, r.lower_bound])]
    return b"".join(part.tobytes() for part in found)


def test_no_bit_depends_on_the_number_of_threads(monkeypatch, tmp_path):
    monkeypatch.setattr("adafw.rows.csr._LARGE", 100)
    monkeypatch.setattr("adafw.io.libsvm_text._WORTH_THREADS", 100)
    rng = np.random.default_rng(1)
    A = sparse.random_array((500, 9), density=0.5, rng=rng, format="csr")
    adafw.datasets.write_libsvm(tmp_path / "a.svm", A, rng.standard_normal(500))
    seen = set()
    for cores in ("1", "2", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", cores)
        B, y = adafw.datasets.read_libsvm(tmp_path / "a.svm")
        seen.add(results() + B.data.tobytes() + B.indices.tobytes() + y.tobytes())
    assert len(seen) == 1


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


def test_the_number_of_threads_that_is_asked_for(monkeypatch):
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    for asked, count in (("3", 3), ("4,2", 4), ("0", allowed), ("many", allowed), ("", allowed)):
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
        assert threads.cores() == count
