"""All solvers on one problem in one process, in turns; writes docs/benchmarks/versus.json.

    pip install copt celer skglm
    ADAFW_DATA=... python benchmarks/versus/run.py [radius]

A solver is one file below solvers/; one whose package is not installed is left out, and said so.
"""

import importlib
import json
import math
import os
import sys
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import machine  # noqa: E402
import numpy as np  # noqa: E402
from data import rcv1  # noqa: E402
from objective import Problem  # noqa: E402
from targets import verdict  # noqa: E402
from timing import Side, interleaved  # noqa: E402

import adafw  # noqa: E402

LEVELS = (1e-1, 1e-2, 1e-3, 1e-4)
REPEATS = 5
#: Seconds after which a solver's budgets grow no further in one repeat.
ENOUGH = 6.0
OUT = HERE.parents[1] / "docs" / "benchmarks" / "versus.json"
FILES = ("adafw_methods", "skglm_newton", "celer_newton", "liblinear", "saga", "fista")


def load(name):
    """A file of solvers/, or None if it needs a package that is not there."""
    try:
        return importlib.import_module(f"solvers.{name}")
    except ModuleNotFoundError as missing:
        print(f"left out: {name}, which needs {missing.name}", flush=True)
        return None


def curve(problem, solver):
    """[(seconds, seconds of the whole call, relative suboptimality)] for growing budgets."""
    points, spent = [], 0.0
    for budget in solver.budgets:
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that they have not converged is the point
            answer = solver.solve(problem, budget)
        whole = time.process_time() - began
        w, seconds = answer if isinstance(answer, tuple) else (answer, whole)
        points.append((seconds, whole, problem.suboptimality(w, solver.penalised)))
        spent += whole
        if points[-1][2] <= LEVELS[-1] or spent > ENOUGH:
            break
    return points


def first_below(points, level, clock):
    """Milliseconds to that level on that clock (0: the solver's, 1: the whole call)."""
    return next((1e3 * p[clock] for p in points if p[2] <= level), math.inf)


def compare(problem, solvers):
    """(table of each solver's clock, table of whole calls): name -> level -> median ms."""
    runs = {solver.name: [] for solver in solvers}
    for repeat in range(REPEATS + 1):  # the first compiles what has to be
        for solver in solvers:
            points = curve(problem, solver)
            if repeat:
                runs[solver.name].append(points)
    return (
        {
            name: {
                f"{v:g}": float(np.median([first_below(points, v, clock) for points in all_points]))
                for v in LEVELS
            }
            for name, all_points in runs.items()
        }
        for clock in (0, 1)
    )


def promises(solvers, table, whole, iteration):
    """The rows of the table of targets that need the peers.

    A peer's time is that of its whole call; ours is that of the trace, and in a row of its own,
    which no promise is judged by, that of the whole call.
    """
    rows = {}
    if "copt CSFW" in iteration:
        value = iteration["copt CSFW"] / iteration["adafw AdaCSFW"]
        what = "copt's CSFW over AdaCSFW K = 5, one iteration, b = m/100, l1 radius 100"
        rows["copt"] = {"what": what, "must": 12, "stretch": 20, "ratio": value}
    level = f"{LEVELS[0]:g}"
    ours = [s.name for s in solvers if s.ours and not s.tuned]
    peers = [s.name for s in solvers if not s.ours]
    best = min(ours, key=lambda name: table[name][level])
    peer = min(peers, key=lambda name: table[name][level])
    value = table[peer][level] / table[best][level]
    what = (
        f"Time to relative suboptimality {level}, best peer ({peer}, whole call) over best of ours "
        f"({best}, the trace's clock)"
    )
    rows["low_accuracy"] = {"what": what, "must": 4, "stretch": 10, "ratio": value}
    value = table[peer][level] / min(whole[name][level] for name in ours)
    what = f"The same with whole calls of ours: data hashed, two exact gaps measured ({level})"
    rows["whole_call"] = {"what": what, "must": None, "stretch": None, "ratio": value}
    for row in rows.values():
        row["result"] = verdict(row["ratio"], row["must"], row["stretch"], True)
    return rows


def main(radius: float) -> None:
    name, A, y = rcv1()
    problem = Problem(name, A, y, radius)
    r, _, _ = problem.reference, problem.columns, problem.smoothness  # not timed
    print(f"{name}, radius {radius:g}: f* = {r.value:.10f}, certified to {r.gap:.1e}", flush=True)
    solvers = [s for file in FILES if (module := load(file)) for s in module.SOLVERS]
    table, whole = compare(problem, solvers)
    for k, row in table.items():
        print(f"{k:40s}", *(f"{ms:9.1f}" for ms in row.values()), "ms", flush=True)
    sides = {"adafw AdaCSFW": Side(problem.f, adafw.L1Ball(radius), adafw.AdaCSFW(100.0, 5))}
    if copt := load("copt_csfw"):
        sides["copt CSFW"] = copt.epochs(problem)
    iteration = interleaved(sides)
    rows = promises(solvers, table, whole, iteration)
    for row in rows.values():
        print(f"{row['ratio']:10.4g}  {row['result']:8s} {row['what']}", flush=True)
    result = {
        "machine": machine.describe(), "problem": name, "radius": radius, "optimum": r.value,
        "certified": r.gap, "rows": rows, "microseconds an iteration": iteration,
        "milliseconds to relative suboptimality": table,
        "milliseconds of whole calls": {s.name: whole[s.name] for s in solvers if s.ours},
    }  # fmt: skip
    OUT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 100.0)
