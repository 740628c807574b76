import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import adafw
from adafw.experiments import load_spec, reproduce, workers
from adafw.experiments.plan import about_file, parts_of, prepare, runs_of
from adafw.experiments.reproduce import _perform
from adafw.experiments.work import Stopped, digest, listen_to, source
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


def names(text, folder):
    """The names of the files of all runs, by role, label and seed."""
    path = folder / "small.toml"
    path.write_text(text)
    spec = load_spec(path)
    parts = {case.name: parts_of(case, folder) for case in spec.cases}
    found = runs_of(spec, parts, folder)
    assert len({item.file for item in found}) == len(found)
    assert len({item.state_file for item in found}) == len(found)
    return [((item.role, item.method.label, item.seed), item.file.name) for item in found]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("seed = 4", "seed = 5"),
        ('"SquaredHinge"', '"Logistic"'),
        ("radius = 1.0", "radius = 2.0"),
        ('loss = "SquaredHinge"', 'loss = "SquaredHinge"\nshape = [4, 3]'),
    ],
)
def test_whatever_changes_an_outcome_changes_the_name_of_its_file(toml, tmp_path, old, new):
    text = toml.read_text()
    assert old in text
    first, other = (dict(names(some, tmp_path)) for some in (text, text.replace(old, new)))
    assert first == dict(names(text, tmp_path))
    assert first.keys() == other.keys()
    assert not set(first.values()) & set(other.values())


def test_the_name_of_a_run_s_file_tells_the_method_its_label_and_the_version(
    toml, tmp_path, monkeypatch
):
    text = toml.read_text()
    first = dict(names(text, tmp_path))

    def same(changed):
        return {key for key, name in names(changed, tmp_path) if first.get(key) == name}

    rate = same(text.replace('"10^-1/2"', '"10^-1"'))
    assert {label for _, label, _ in first.keys() - rate} == {"AdaCSFW"}
    renamed = text.replace('name = "CSFW"\n', 'name = "CSFW"\nlabel = "C"\n', 1)
    assert not set(dict(names(renamed, tmp_path)).values()) & {
        name for (_, label, _), name in first.items() if label == "CSFW"
    }
    monkeypatch.setattr(adafw, "__version__", "0.0.0")
    assert not same(text)


def test_repeats_have_files_of_their_own_and_extras_the_first_seed(toml, tmp_path):
    text = toml.read_text().replace("seeds = [1, 2, 3]", "seeds = [7, 2]\nrepeats = 2")
    found = [key for key, _ in names(text, tmp_path)]
    labels = ["CSFW", "AdaCSFW", "AdaGrad + CSFW", "direct"]
    runs = [("run", label, seed) for seed in (7, 2) for label in labels]
    assert found == [*runs, *runs, ("audit", "AdaCSFW", 7), ("reference", "reference", 7)]
    other = dict(names(text.replace("[7, 2]", "[2, 7]"), tmp_path))
    extras = {name for key, name in names(text, tmp_path) if key[0] != "run"}
    assert not extras & set(other.values())


def test_the_order_of_keys_makes_no_other_thing():
    assert digest({"a": 1, "b": [2, 3]}) == digest({"b": [2, 3], "a": 1})
    assert digest({"b": [3, 2]}) != digest({"b": [2, 3]})


def test_the_mark_of_the_source_is_that_of_all_its_files(tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    marks = set()
    for outer, inner in ((1, 1), (2, 1), (2, 2)):
        (tmp_path / "__init__.py").write_text(f"a = {outer}")
        (tmp_path / "inner" / "b.py").write_text(f"b = {inner}")
        monkeypatch.setattr(adafw, "__file__", str(tmp_path / "__init__.py"))
        marks.add(source.__wrapped__())
    assert len(marks) == 3
    (tmp_path / "inner" / "note.txt").write_text("c")
    assert source.__wrapped__() in marks


def test_data_are_made_unless_they_and_what_they_are_are_there(toml, tmp_path):
    spec = load_spec(toml, quick=True)
    (case,) = spec.cases
    parts = parts_of(case, tmp_path)
    prepare(spec, case, parts)
    whole, about = sorted(parts.iterdir()), about_file(parts).read_text()
    about_file(parts).unlink()
    prepare(spec, case, parts)
    assert about_file(parts).read_text() == about
    shutil.rmtree(parts)
    prepare(spec, case, parts)
    assert sorted(parts.iterdir()) == whole
    before = parts.stat().st_ino
    prepare(spec, case, parts)
    assert parts.stat().st_ino == before


class Counting:
    """A bar that counts."""

    def __init__(self):
        self.done = 0

    def advance(self):
        self.done += 1


def test_what_is_left_of_the_work_is_done_on_data_made_for_it(toml, tmp_path):
    spec = load_spec(toml, quick=True)
    (case,) = spec.cases
    parts = {case.name: parts_of(case, tmp_path)}
    prepare(spec, case, parts[case.name])
    first, second = runs_of(spec, parts, tmp_path)[:2]
    workers.perform(first)
    shutil.rmtree(parts[case.name])
    bar = Counting()
    _perform([first, second], 1, bar, spec, parts)
    assert bar.done == 2
    assert second.file.is_file()


def test_seeds_and_workers_that_cannot_be_are_refused(toml, tmp_path):
    with pytest.raises(ValueError, match="seeds must be different"):
        reproduce(toml, tmp_path, seeds=[1, 1])
    with pytest.raises(ValueError, match="workers must be an integer >= 1"):
        reproduce(toml, tmp_path, workers=0)
    assert not list(tmp_path.iterdir())


def test_what_fails_in_a_worker_is_told(toml, tmp_path):
    spec = load_spec(toml)
    (case,) = spec.cases
    item = runs_of(spec, {case.name: tmp_path / "none.parts"}, tmp_path)[0]
    bar = Counting()
    with pytest.raises((OSError, ValueError), match=r"none\.parts"):
        workers.perform_all([item], 1, bar.advance)
    assert bar.done == 0


def test_a_worker_leaves_ctrl_c_to_the_process_that_started_it():
    before = signal.getsignal(signal.SIGINT)
    try:
        workers.start_worker(None)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
        listen_to(None)


def test_threads_are_as_before_once_the_workers_are_done(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    before = dict(os.environ)
    with workers._one_thread_each():
        changed = {name: value for name, value in os.environ.items() if before.get(name) != value}
    assert set(changed.values()) == {"1"}
    assert len(changed) == 4
    assert dict(os.environ) == before


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
