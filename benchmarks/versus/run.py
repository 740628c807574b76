"""All solvers on one problem in one process; writes docs/benchmarks/versus.json.

pip install copt celer skglm
ADAFW_DATA=... python benchmarks/versus/run.py [radius]
"""

import json
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import numpy as np  # noqa: E402
from datasets.text import load  # noqa: E402
from objective import Problem  # noqa: E402
from solvers import copt_csfw, frank_wolfe, peers  # noqa: E402
from targets import Side  # noqa: E402
from timing import interleaved  # noqa: E402

import adafw  # noqa: E402

LEVELS = (1e-1, 1e-2, 1e-3, 1e-4)
REPEATS = 5
OUT = HERE.parents[1] / "docs" / "benchmarks" / "versus.json"


def first_below(curve, level):
    return next((seconds for seconds, value in curve if value <= level), float("inf"))


def peer_curve(problem, name):
    solver, budgets, penalised = peers.PEERS[name]
    curve = []
    for budget in budgets:
        began = time.process_time()
        w = peers.quiet(solver, problem, budget)
        curve.append((time.process_time() - began, problem.suboptimality(w, penalised)))
    return curve


def main(radius: float) -> None:
    name, A, y = load()
    problem = Problem(name, A, y, radius)
    r, _, _ = problem.reference, problem.columns, problem.smoothness  # not timed
    print(f"{name}, radius {radius:g}: f* = {r.value:.10f}, certified to {r.gap:.1e}", flush=True)
    curves = {k: lambda k=k: frank_wolfe.curve(problem, k, 2.0) for k in frank_wolfe.ALGORITHMS}
    curves |= {k: lambda k=k: peer_curve(problem, k) for k in peers.PEERS}
    times = {k: {level: [] for level in LEVELS} for k in curves}
    for repeat in range(REPEATS + 1):  # the first compiles what has to be
        for k, measure in curves.items():
            curve = measure()
            for level in LEVELS:
                if repeat:
                    times[k][level].append(first_below(curve, level))
    table = {
        k: {f"{v:g}": float(np.median(t)) * 1e3 for v, t in row.items()} for k, row in times.items()
    }
    for k, row in table.items():
        print(f"{k:30s}", *(f"{ms:10.1f}" for ms in row.values()), "ms", flush=True)
    sides = {
        "copt CSFW": copt_csfw.epoch(problem),
        "adafw AdaCSFW": Side(problem.f, adafw.L1Ball(radius), adafw.AdaCSFW(100.0, 5)),
    }
    iteration = interleaved(sides)
    print(iteration, iteration["copt CSFW"] / iteration["adafw AdaCSFW"])
    result = {
        "problem": name, "radius": radius, "optimum": r.value, "certified": r.gap,
        "milliseconds to relative suboptimality": table, "microseconds an iteration": iteration,
    }  # fmt: skip
    OUT.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 100.0)
