import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import adafw
from adafw.experiments import load_spec, reproduce, workers
from adafw.experiments.plan import parts_of, prepare, runs_of
from adafw.experiments.work import Stopped
from adafw.recorder import Trace

TIMES = ("cpu_seconds", "wall_seconds")


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def without_times(path):
    """The rows of a trace without what the clock says."""
    return [{k: v for k, v in row.items() if k not in TIMES} for row in rows(path)]


def items(toml, folder):
    spec = load_spec(toml)
    folder.mkdir(exist_ok=True)
    (case,) = spec.cases
    parts = parts_of(case, folder)
    prepare(spec, case, parts)
    return runs_of(spec, {case.name: parts}, folder)


def test_files_and_columns(finished):
    _, folder = finished
    names = {"trace.csv", "summary.json", "figure.svg", "figure.png", "report.html"}
    assert names <= {path.name for path in folder.iterdir()}
    table = rows(folder / "trace.csv")
    assert list(table[0]) == ["algorithm", "setting", "seed", *Trace.columns]
    pairs = {(row["algorithm"], row["seed"]) for row in table}
    assert len(pairs) == 4 * 3
    assert not list(folder.glob("work/*.parts"))  # the data are not left lying about
    assert {row["setting"] for row in table if row["algorithm"] == "AdaCSFW"} == {
        "learning_rate=10^-1/2, inner_steps=2"
    }


def test_summary_agrees_with_the_trace(finished):
    _, folder = finished
    summary = json.loads((folder / "summary.json").read_text())
    table = rows(folder / "trace.csv")
    for line in summary["algorithms"]:
        last = {
            row["seed"]: float(row["gap"]) for row in table if row["algorithm"] == line["algorithm"]
        }
        assert line["final"]["gap"]["median"] == np.median(list(last.values()))
        assert set(line["status"].values()) == {"max_iterations"}
    assert summary["environment"]["threads_per_process"] == 1
    best = max(float(row["lower_bound"]) for row in table)
    least = min(float(row["value"]) for row in table)
    bound, doubt = summary["lower_bound"]["small"], summary["minimum_above_it_by_at_most"]["small"]
    assert best < bound <= least
    assert 0 <= doubt < 1e-11  # the reference run, whatever the compared ones do in 60 iterations


def test_runs_are_interleaved_and_audited(toml, tmp_path):
    order = [(item.seed, item.method.label, item.role) for item in items(toml, tmp_path)]
    labels = ["CSFW", "AdaCSFW", "AdaGrad + CSFW", "direct"]
    assert order == [(seed, label, "run") for seed in (1, 2, 3) for label in labels] + [
        (1, "AdaCSFW", "audit"),
        (1, "reference", "reference"),
    ]


def test_same_numbers_whatever_the_number_of_processes(toml, finished, tmp_path):
    _, folder = finished
    reproduce(toml, tmp_path, workers=2)
    assert without_times(tmp_path / "small" / "trace.csv") == without_times(folder / "trace.csv")


def test_finished_runs_are_not_run_again(toml, finished):
    _, folder = finished
    files = {path: path.stat().st_mtime_ns for path in (folder / "work").glob("run*.json")}
    before = (folder / "trace.csv").read_text()
    reproduce(toml, folder.parent, workers=1)
    assert {path: path.stat().st_mtime_ns for path in files} == files
    assert (folder / "trace.csv").read_text() == before


def test_a_stopped_run_goes_on_bit_for_bit(toml, tmp_path, listen_to):
    whole = items(toml, tmp_path / "whole")[1]
    workers.perform(whole)
    item = items(toml, tmp_path / "stopped")[1]
    listen_to(9)
    with pytest.raises(Stopped):
        workers.perform(item)
    assert item.state_file.is_file()
    assert not item.file.is_file()
    listen_to(None)
    workers.perform(item)
    assert not item.state_file.exists()

    def numbers(item):
        records = json.loads(item.file.read_text())["records"]
        keep = [i for i, name in enumerate(Trace.columns) if name not in TIMES]
        return [[record[i] for i in keep] for record in records]

    assert numbers(item) == numbers(whole)


def test_state_is_saved_while_a_run_goes_on(toml, tmp_path, clock, listen_to):
    item = items(toml, tmp_path)[1]
    saved = []

    class Look:
        """An event that is never set, and counts the records saved when it is looked at."""

        def is_set(self):
            there = item.state_file.exists()
            saved.append(len(adafw.State.load(item.state_file).records) if there else 0)
            clock.sleep(8.0)  # a few seconds are all that a kill may cost
            return False

    listen_to(Look())
    workers.perform(item)
    assert len(saved) > 5
    assert saved == [0, *range(2, len(saved) + 1)]


def test_a_killed_run_goes_on(toml, finished, tmp_path):
    """kill -9 in the middle: no file is half-written, and the results are those of one run."""
    command = [sys.executable, "-m", "adafw", "reproduce", str(toml), "--out", str(tmp_path)]
    command += ["--jobs", "1"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 100
    while not list((tmp_path / "small" / "work").glob("run*.json")) and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = list((tmp_path / "small" / "work").glob("run*.json"))
    assert done
    for path in done:
        json.loads(path.read_text())
    reproduce(toml, tmp_path, workers=1)
    _, folder = finished
    assert without_times(tmp_path / "small" / "trace.csv") == without_times(folder / "trace.csv")
    assert not list(Path(tmp_path).rglob("*.part"))


class LeaveAPart:
    """A bar that leaves, at the first run done, what a worker leaves that dies while it writes."""

    def __init__(self, work):
        self.part = work / ".run.json.0badcafe.part"

    def start(self, name, total):
        pass

    def advance(self):
        self.part.touch()


def test_what_workers_of_a_killed_run_leave_meanwhile_is_removed(toml, tmp_path):
    bar = LeaveAPart(tmp_path / "small" / "work")
    reproduce(toml, tmp_path, workers=1, bar=bar)
    assert not list(tmp_path.rglob("*.part"))


def test_workers_end_when_the_process_that_started_them_is_killed():
    """Seen from the pipe that a worker holds: it closes only when the worker is gone, too."""
    script = (
        "import multiprocessing as m, time\n"
        "from adafw.experiments.workers import start_worker\n"
        "def work(stop):\n"
        "    start_worker(stop)\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(600)\n"
        "if __name__ == '__main__':\n"
        "    c = m.get_context('fork')\n"
        "    c.Process(target=work, args=(c.Event(),)).start()\n"
        "    time.sleep(600)\n"
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.kill()
        assert process.stdout.read() == ""  # up to the end of the pipe, which the worker holds too


def test_an_interrupted_run_says_so_and_ends_with_130(toml, tmp_path):
    long = tmp_path / "long.toml"
    long.write_text(toml.read_text().replace("max_iterations = 60", "max_iterations = 5000"))
    command = [sys.executable, "-m", "adafw", "reproduce", str(long), "--out", str(tmp_path)]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        # A background shell may have taught us to ignore the signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    deadline = time.monotonic() + 100
    while not list((tmp_path / "long" / "work").glob("run*.json")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=100)
    assert process.returncode == 130
    assert "the same command goes on from here" in err
    assert "Traceback" not in err
    work = tmp_path / "long" / "work"
    assert list(work.glob("*.state.npz"))  # the run under way has saved itself
    assert not (tmp_path / "long" / "trace.csv").exists()


def test_a_change_of_settings_runs_again(toml, tmp_path):
    first = items(toml, tmp_path)
    other = tmp_path / "small.toml"
    other.write_text(toml.read_text().replace("max_iterations = 60", "max_iterations = 50"))
    common = {item.file for item in first} & {item.file for item in items(other, tmp_path)}
    assert all(file.name.startswith("reference") for file in common)  # it has its own budget


def test_workers_compute_on_one_thread():
    before = os.environ.get("OMP_NUM_THREADS")
    with workers._one_thread_each():
        assert os.environ["OMP_NUM_THREADS"] == os.environ["NUMBA_NUM_THREADS"] == "1"
    assert os.environ.get("OMP_NUM_THREADS") == before


def test_labels_that_do_not_fit_the_loss_are_refused_before_any_run(toml, tmp_path):
    bad = tmp_path / "bad.toml"
    text = toml.read_text().replace(
        '"support_vector", m = 300, n = 12, seed = 4', '"correlated_regression", m = 30, n = 4'
    )
    bad.write_text(text)
    with pytest.raises(ValueError, match="SquaredHinge takes labels"):
        reproduce(bad, tmp_path)
