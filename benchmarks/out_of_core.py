"""Data larger than memory, end to end, against what people use for that.

python benchmarks/large_text.py big.svm --gigabytes 10 --vw big.vw
python benchmarks/large_text.py test.svm --gigabytes 0.5 --first 100000
python benchmarks/out_of_core.py convert big.svm big.parts --cap 1500
python benchmarks/out_of_core.py fit big.parts --cap 4500
python benchmarks/out_of_core.py fit big.parts --cap 3500 --algorithm AdaCSFW --rate 1000 --epochs 5
python benchmarks/out_of_core.py sgd big.parts --penalty 3.44e-5 --epochs 2
python benchmarks/out_of_core.py vw big.vw                       # needs pip install vowpalwabbit
python benchmarks/out_of_core.py predict test.svm --cap 400
python benchmarks/out_of_core.py judge big.parts test.svm        # docs/benchmarks/out_of_core.json

`--cap` puts the process into a control group of so many megabytes below its own (Linux, root).
Every step writes NAME.json (times, memory) and NAME.npy (coefficients) to --work; `judge` measures
all of them alike: mean logistic loss on all rows, plus penalty * l1 norm with the multiplier of the
ball at our solution, which that solution minimises; loss and accuracy on the test file.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe

RADIUS, TERMS = 3000.0, 1_000_000


def enter_group(megabytes: int) -> Path:
    """A control group of version 1 with that limit, which this process is in from now on."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, place = line.split(":", 2)
        if controllers == "memory":
            folder = Path(f"/sys/fs/cgroup/memory{place}") / f"adafw-{os.getpid()}"
            folder.mkdir()
            (folder / "memory.limit_in_bytes").write_text(str(megabytes << 20))
            (folder / "cgroup.procs").write_text(str(os.getpid()))
            return folder
    raise SystemExit("no control group of version 1 with a memory controller is here")


class Log:
    """What happened when: wall and CPU seconds from the start, memory."""

    def __init__(self, given: argparse.Namespace, name: str) -> None:
        self.path, self.records = Path(given.work) / name, []
        self.group = enter_group(given.cap) if given.cap else None
        self.start = time.perf_counter()
        self.weights: list[Any] = []

    def note(self, **facts: Any) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        seconds = time.perf_counter() - self.start
        self.records.append({"wall": seconds, "cpu": time.process_time(), "rss_mb": peak, **facts})
        print(json.dumps(self.records[-1]), flush=True)

    def close(self, **facts: Any) -> None:
        if self.group is not None:
            facts["group_mb"] = int((self.group / "memory.max_usage_in_bytes").read_text()) >> 20
        if self.weights:
            np.save(f"{self.path}.npy", np.array(self.weights))
        Path(f"{self.path}.json").write_text(json.dumps({**facts, "records": self.records}))


def convert(given: argparse.Namespace) -> None:
    from adafw.datasets import libsvm_to_parts

    log = Log(given, "convert")
    A, _ = libsvm_to_parts(given.data, given.out, shuffle=0, progress=True)
    log.note(rows=A.shape[0], entries=int(A.nnz))
    log.close()


def fit(given: argparse.Namespace) -> None:
    from adafw.fitting import Design, Settings, fit_linear
    from adafw.io.tables import read_table

    log = Log(given, given.algorithm)
    rate = {} if given.rate is None else {"learning_rate": given.rate, "max_epochs": given.epochs}
    settings = Settings(
        radius=RADIUS, tol=1e-4, fit_intercept=False, algorithm=given.algorithm, **rate
    )
    table = read_table(given.data)
    design = Design(table.X, None, finite=True)

    def watch(record: Any, now: Any) -> None:
        log.note(value=record.value, gap=record.gap, nonzeros=record.nonzeros)
        log.weights.append(now.state.x.copy())

    done = fit_linear(design, table.y, settings.plan("classification"), watch=watch)
    log.close(status=done.status, algorithm=done.algorithm, gap=done.gap)


def sgd(given: argparse.Namespace) -> None:
    from sklearn.linear_model import SGDClassifier

    from adafw.datasets import load_parts
    from adafw.rows import as_rows

    log = Log(given, "sgd")
    A, y = load_parts(given.data, stream=True)
    rows, y, marks, seen = as_rows(A, finite=True), np.array(y), [0.03, 0.1, 0.3, 1, 2, 3, 5], 0
    model = SGDClassifier(
        loss="log_loss", penalty="l1", alpha=given.penalty, fit_intercept=False, random_state=0
    )
    for _ in range(int(given.epochs)):
        for part, piece in rows.pieces():
            model.partial_fit(piece.matrix, y[part], classes=[-1, 1])
            seen += part.stop - part.start
            if seen >= marks[0] * len(y) - 1:
                log.note(epochs=marks.pop(0))
                log.weights.append(model.coef_.ravel().copy())
    log.close()


def vw(given: argparse.Namespace) -> None:
    from vowpalwabbit import Workspace

    log = Log(given, "vw")
    model = Workspace(f"--data {given.data} --loss_function logistic --noconstant -b 20")
    # Its ids count from 1 and are not hashed.
    log.weights.append(np.array([model.get_weight(j + 1) for j in range(TERMS)]))
    log.note(epochs=1)
    log.close()


def predict(given: argparse.Namespace) -> None:
    """`adafw predict`, with our coefficients in the file of a model of the first rows."""
    work = Path(given.work)
    head, file, out = work / "head.svm", work / "head.model", work / "labels.txt"
    with open(given.data, "rb") as rows:
        head.write_bytes(b"".join(islice(rows, 1000)))
    how = ["--radius", "1", "--no-intercept", "--n-features", str(TERMS), "-o", str(file)]
    subprocess.run([sys.executable, "-m", "adafw", "fit", str(head), *how], check=True)
    log = Log(given, "predict")
    from adafw.cli import main
    from adafw.fitting.model import LinearModelFile

    replace(LinearModelFile.load(file), coef=np.load(work / "auto.npy")[-1:]).save(file)
    main(["predict", str(file), given.data, "-o", str(out)])
    log.note(rows=out.read_bytes().count(b"\n"))
    log.close()


def judge(given: argparse.Namespace) -> None:
    import adafw
    from adafw.datasets import load_parts, read_libsvm

    work, loss = Path(given.work), adafw.losses.Logistic()
    names = [n for n in ("auto", "AdaCSFW", "sgd", "vw") if (work / f"{n}.npy").is_file()]
    found = {n: json.loads((work / f"{n}.json").read_text()) for n in names}
    points = np.concatenate([np.load(work / f"{n}.npy").reshape(-1, TERMS) for n in names])
    A, y = load_parts(given.data, stream=True)
    f = adafw.LinearModel(A, y, loss)
    ours = points[len(found["auto"]["records"]) - 1]
    penalty = float(np.abs(f.gradient(ours)).max())
    values = np.zeros(len(points))
    for part, piece in f.rows.pieces():
        scores = piece.matrix @ points.T
        values += loss.value(scores, f.y[part][:, None]).sum(axis=0) / f.n_terms
    X, labels = read_libsvm(given.out, n_features=TERMS)
    scores = X @ points.T
    test = loss.value(scores, labels[:, None]).mean(axis=0)
    right = (np.sign(scores) == labels[:, None]).mean(axis=0)
    records = [record for name in names for record in found[name]["records"]]
    for k, record in enumerate(records):
        record["loss"] = values[k]
        record["l1"] = float(np.abs(points[k]).sum())
        record["objective"] = values[k] + penalty * record["l1"]
        record["test_loss"], record["test_accuracy"] = float(test[k]), float(right[k])
    for name in ("convert", "predict"):
        if (work / f"{name}.json").is_file():
            found[name] = json.loads((work / f"{name}.json").read_text())
    Path("docs/benchmarks/out_of_core.json").write_text(
        json.dumps({"machine": describe(), "penalty": penalty, **found}, indent=1) + "\n"
    )


STEPS = {
    "convert": convert, "fit": fit, "sgd": sgd, "vw": vw, "predict": predict, "judge": judge
}  # fmt: skip

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("step", choices=list(STEPS))
    parser.add_argument("data")
    parser.add_argument("out", nargs="?")
    parser.add_argument("--work", default="out")
    parser.add_argument("--cap", type=int, default=0)
    parser.add_argument("--algorithm", default="auto")
    parser.add_argument("--rate", type=float)
    parser.add_argument("--epochs", type=float, default=2)
    parser.add_argument("--penalty", type=float, default=3.44e-5)
    given = parser.parse_args()
    STEPS[given.step](given)
