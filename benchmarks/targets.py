"""Measures what the library promises about speed, and writes docs/benchmarks/targets.json.

    python benchmarks/targets.py [name ...]

Each row is a ratio of two sides that take turns in one process, in CPU time of one thread; the
table says which ratio must be reached and which one would be better still.
"""

import json
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from data import rcv1, text_like
from plain import PlainAdaCSFW
from timing import interleaved

import adafw
from adafw import fused, losses, solver
from adafw.random import as_source

OUT = Path(__file__).parents[1] / "docs" / "benchmarks" / "targets.json"
NAME, A, Y = rcv1()
BATCH = A.shape[0] // 100


class Side:
    """A run that goes on, so many iterations a call."""

    def __init__(self, f, constraint, algorithm, path="auto", each=100, first=200):
        self.problem = f, constraint, algorithm
        self.run = fused.find(*self.problem, path) or solver.run
        self.state = solver.start(*self.problem, constraint.start(f.shape, f.dtype), as_source(0))
        self.each = each
        self.run(*self.problem, self.state, first)

    def __call__(self):
        self.run(*self.problem, self.state, self.each)
        return self.each


def ratio(over: str, under: str, sides: dict[str, Callable[[], int]], repeats: int = 9) -> dict:
    times = interleaved(sides, repeats)
    return {"ratio": times[over] / times[under], "microseconds": times}


def text_model():
    return adafw.LinearModel(A, Y, losses.Logistic()), adafw.L1Ball(100.0)


def inner_steps():
    """AdaCSFW, K = 5 over K = 1, l1 ball."""
    f, ball = text_model()
    sides = {f"K = {k}": Side(f, ball, adafw.AdaCSFW(100.0, k)) for k in (1, 5)}
    return ratio("K = 5", "K = 1", sides)


def adaptive():
    """AdaCSFW K = 5 over CSFW, same path."""
    f, ball = text_model()
    sides = {
        "AdaCSFW": Side(f, ball, adafw.AdaCSFW(100.0, 5), "fused"),
        "CSFW": Side(f, ball, adafw.CSFW(), "fused"),
    }
    return ratio("AdaCSFW", "CSFW", sides)


def million():
    """NumPy over adafw, n = 1 M, K = 5."""
    wide, y = text_like(20_000, 1_000_000, 75)
    f, ball = adafw.LinearModel(wide, y, losses.Logistic()), adafw.L1Ball(100.0)
    sides = {
        "NumPy": lambda plain=PlainAdaCSFW(wide, y, 100.0, 100.0, 5, 200): plain.run(3),
        "adafw": Side(f, ball, adafw.AdaCSFW(100.0, 5, batch_size=200)),
    }
    return ratio("NumPy", "adafw", sides, 5)


def lazy():
    """Lazy path, n = 10 M over n = 47 k, same non-zeros in a batch."""
    sides = {}
    for name, n in (("47 k", 47_236), ("10 M", 10_000_000)):
        wide, y = text_like(20_000, n, 75)
        per_row = wide.nnz / 20_000
        f = adafw.LinearModel(wide, y, losses.Logistic())
        algorithm = adafw.AdaCSFW(100.0, 5, batch_size=round(15_000 / per_row))
        sides[name] = Side(f, adafw.L1Ball(100.0), algorithm, "lazy")
    return ratio("10 M", "47 k", sides)


def dense():
    """AdaCSFW K = 5 on the linf ball, n = 1000, b = 200, over reading the rows once."""
    rng = np.random.default_rng(0)
    D = rng.standard_normal((20_000, 1000))
    f = adafw.LinearModel(
        D, np.sign(D[:, 0] + 0.3 * rng.standard_normal(20_000)), losses.Logistic()
    )
    from adafw.kernels.rows import dot

    x, out, rows = np.ones(1000), np.empty(200), f.rows.arrays
    x.flags.writeable = False

    def read():
        for _ in range(50):
            batch = rng.integers(0, 20_000, 200).view(np.uint64)
            batch.flags.writeable = False
            dot(rows, batch, 0, 200, x, out)
        return 50

    sides = {"adafw": Side(f, adafw.LInfBall(0.1), adafw.AdaCSFW(0.1, 5), each=50), "read": read}
    return ratio("adafw", "read", sides, 15)


def generic():
    """Generic path over plain NumPy code, n = 47 k, K = 5 (CSFW: see microseconds)."""
    f, ball = text_model()
    sides = {
        "generic": Side(f, ball, adafw.AdaCSFW(100.0, 5), "generic", 20, 20),
        "NumPy": lambda plain=PlainAdaCSFW(A, Y, 100.0, 100.0, 5, BATCH): plain.run(20),
        "generic CSFW": Side(f, ball, adafw.CSFW(), "generic", 40, 20),
        "NumPy CSFW": lambda plain=PlainAdaCSFW(A, Y, 100.0, 0.0, 0, BATCH): plain.run(40),
    }
    return ratio("generic", "NumPy", sides)


def gap(f, constraint, algorithm) -> dict:
    """Median over 3 seeds of the exact gap after 1000 epochs, AdaCSFW over CSFW (1/(t+1))."""
    plain = adafw.CSFW(adafw.schedules.OpenLoop(1.0, 1.0))
    gaps = {
        name: [
            adafw.minimize(f, constraint, a, max_epochs=1000, seed=s, record_every=10**9).gap
            for s in range(3)
        ]
        for name, a in (("AdaCSFW", algorithm), ("CSFW", plain))
    }
    medians = {name: float(np.median(g)) for name, g in gaps.items()}
    return {"ratio": medians["AdaCSFW"] / medians["CSFW"], "gaps": gaps}


def gap_svm():
    """Gap of AdaCSFW (K = 2, eta = 0.1) over CSFW, the paper's SVM, 1000 epochs."""
    X, y = adafw.datasets.support_vector()
    f = adafw.LinearModel(X, y, losses.SquaredHinge())
    return gap(f, adafw.LInfBall(1.0), adafw.AdaCSFW(0.1, 2))


def gap_text():
    """Gap of AdaCSFW (K = 5, eta = 100) over CSFW, RCV1, 1000 epochs."""
    return gap(*text_model(), adafw.AdaCSFW(100.0, 5))


#: row -> (must, stretch, whether larger is better)
TARGETS = {
    inner_steps: (1.3, 1.15, False),
    adaptive: (1.5, 1.3, False),
    million: (60, 100, True),
    lazy: (3.5, 3.0, False),
    dense: (2.0, 1.5, False),
    generic: (1.2, 1.0, False),
    gap_svm: (1 / 10, 1 / 20, False),
    gap_text: (1 / 4, 1 / 10, False),
}


def verdict(value: float, must: float, stretch: float, more: bool) -> str:
    sign = -1 if more else 1
    if sign * value <= sign * stretch:
        return "stretch"
    return "reached" if sign * value <= sign * must else "missed"


def main(names: list[str]) -> None:
    rows = json.loads(OUT.read_text())["rows"] if OUT.is_file() else {}
    for measure, (must, stretch, more) in TARGETS.items():
        if names and measure.__name__ not in names:
            continue
        row = measure()
        result = verdict(row["ratio"], must, stretch, more)
        what = (measure.__doc__ or "").rstrip(".")
        rows[measure.__name__] = {
            "what": what, "must": must, "stretch": stretch, "result": result, **row
        }  # fmt: skip
        print(f"{row['ratio']:10.4g}  must {must:<8.4g} {result:8s} {what}", flush=True)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps({"machine": machine, "text data": NAME, "rows": rows}, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
