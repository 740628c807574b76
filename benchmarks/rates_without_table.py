"""learning_rate="auto" without a table beside the best of a half-decade search, in epochs.

    ADAFW_DATA=... python benchmarks/rates_without_table.py [--auto] [--gradients SPIDER ...]
                                                            [--held-out | --chosen] [name ...]

Fifteen small problems, seven estimates, both steps. What fixed rates reach and what "auto" does
goes to docs/benchmarks/learning_rates.json, cell by cell; all that is there is printed as the table
that docs/learning_rate.md quotes, with the runs that ended above where they began. --auto: fixed
rates as they stand in the file, as a change of the rule does not move them. Some 8 minutes in all,
1 with --auto. learning_rates.py says how epochs are counted.
"""

import argparse
import json
import math
from functools import partial
from pathlib import Path

import numpy as np
from learning_rates import (
    KINDS,
    binary,
    correlated,
    dense,
    groups,
    measure,
    minimum,
    mixture,
    one_hot,
    real,
    vectors,
)  # fmt: skip

import adafw
from adafw import gradients, losses

OUT = Path(__file__).parents[1] / "docs" / "benchmarks" / "learning_rates.json"
ESTIMATES = ("SAGA", "SPIDER", "PAGE", "ORGFW", "SVRF", "LSVRG", "Minibatch")
RATES = [10.0 ** (i / 2) for i in range(-8, 7)]
#: Epochs of every run.
MOST = 30.0
#: A miss is more than so many times the best: in epochs to 1e-2 and 1e-4, and in the end.
BARS = (2.0, 2.0, 1.1)


def no_signal(m, n, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, n)), rng.choice([-1.0, 1.0], m)


def problems():
    """name -> (whether it is held out, data, loss, set)."""
    log, square, hinge = losses.Logistic(), losses.Squared(), losses.SquaredHinge()
    text, year = adafw.datasets.text_like, partial(real, adafw.datasets.year_prediction)
    l1, linf, simplex = adafw.L1Ball, adafw.LInfBall, adafw.Simplex
    chosen = [
        ("support vectors, linf 1", lambda: vectors(3000, 100, 0), hinge, linf(1.0)),
        ("one-hot, l1 30", lambda: one_hot(3000), log, l1(30.0)),
        ("badly scaled, l1 20", lambda: dense(2000, 40, 0, (-2, 1)), log, l1(20.0)),
        ("least squares, l1 10", lambda: dense(2000, 60, 0, None, False, 20), square, l1(10.0)),
        ("mixture, simplex 1", lambda: mixture(2000, 50), square, simplex(1.0)),
        ("generated text, l1 100", lambda: text(m=2000, n=2000, seed=0), log, l1(100.0)),
        ("no signal, l1 5", lambda: no_signal(2000, 50, 0), log, l1(5.0)),
        ("song years, linf 0.5", year, square, linf(0.5)),
    ]
    held_out = [
        ("support vectors 2, linf 0.3", lambda: vectors(4000, 60, 11), log, linf(0.3)),
        ("one-hot 2, l1 10", lambda: one_hot(2500, 15), hinge, l1(10.0)),
        ("badly scaled 2, l1 10", lambda: dense(2500, 50, 19, (-1, 1)), log, l1(10.0)),
        ("correlated squares, l1 5", lambda: correlated(2000, 60, 12, False), square, l1(5.0)),
        ("logistic, groups 6", lambda: dense(2000, 60, 24, k=20), log,
         adafw.GroupBall(6.0, groups(60, 3))),
        ("sparse binary, l1 40", lambda: binary(2000, 150, 11), log, l1(40.0)),
        ("song years, l1 100", year, square, l1(100.0)),
    ]  # fmt: skip
    parts = {False: chosen, True: held_out}
    return {name: (held, *rest) for held, part in parts.items() for name, *rest in part}


def fill(cells, name, estimates, again):
    """Measures the cells of a problem; `again`: "auto" alone, where fixed rates are known."""
    held, make, loss, constraint = problems()[name]
    f = adafw.LinearModel(*make(), loss)
    best = minimum(f, constraint)
    at_start = (f.value(constraint.start(f.shape)) - best) / abs(best)
    for estimate in estimates:
        for kind, step in KINDS.items():
            run = partial(measure, f, constraint, getattr(gradients, estimate), step, best)
            key = f"{name} | {estimate} | {kind}"
            known = cells.get(key, {}).get("best") if again else None
            if known is None:
                fixed = [run(rate, MOST, 0) for rate in RATES]
                known = [written(min(each[k] for each in fixed)) for k in range(3)]
            auto = [written(number) for number in run("auto", MOST, 0)]
            cells[key] = {"held out": held, "best": known, "auto": auto, "start": written(at_start)}
            print(f"{key}: {known} {auto}", flush=True)


def written(number):
    """As JSON has it: three digits, None for never."""
    return float(f"{number:.3g}") if math.isfinite(number) else None


def ratios(cells, level):
    """Of "auto" over the best; where the best gets there, and in the end where not to 1e-4."""
    found = []
    for cell in cells:
        best, auto = cell["best"][level], cell["auto"][level]
        if best is None or (level == 2 and cell["best"][1] is not None):
            continue
        found.append(math.inf if auto is None else auto / best)
    return np.sort(found)


def summary(cells, level):
    found = ratios(cells, level)
    if not found.size:
        return "-"
    middle, worst = ("never" if math.isinf(number) else f"{number:.2f}"
                     for number in (found[(found.size - 1) // 2], found[-1]))  # fmt: skip
    return f"{middle}, {worst}, {(found > BARS[level]).sum()} of {found.size}"


def report(cells):
    """The table of docs/learning_rate.md."""
    print("| estimate | step | 1e-2 | 1e-4 | the end | held out: 1e-2 | 1e-4 | the end |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for estimate in ESTIMATES:
        for kind in KINDS:
            mine = [cell for key, cell in cells.items() if key.endswith(f"| {estimate} | {kind}")]
            columns = [summary([cell for cell in mine if cell["held out"] == held], level)
                       for held in (False, True) for level in range(3)]  # fmt: skip
            print(f"| {estimate} | {kind} | {' | '.join(columns)} |")
    for level, what in enumerate(("1e-2", "1e-4", "the end")):
        found = ratios(cells.values(), level)
        print(f"{what}: {(found <= BARS[level]).sum()} of {found.size} within {BARS[level]:g}, "
              f"{(found <= 2).sum()} within 2")  # fmt: skip
    above = [key for key, cell in cells.items()
             if cell["auto"][2] is None or cell["auto"][2] > cell["start"]]  # fmt: skip
    print(f"ended above f(x0): {len(above)} of {len(cells)}", *above, sep="\n* ")


def main(names, estimates, again, parts):
    cells = json.loads(OUT.read_text()) if OUT.is_file() else {}
    for name, (held, *_) in problems().items():
        if name in names or (not names and held in parts):
            fill(cells, name, estimates, again)
            OUT.write_text(json.dumps(cells, indent=0) + "\n")
    report(cells)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", choices=[*problems(), []])
    parser.add_argument("--gradients", nargs="+", default=ESTIMATES, choices=ESTIMATES)
    parser.add_argument("--auto", action="store_true", help="fixed rates as the file has them")
    part = parser.add_mutually_exclusive_group()
    part.add_argument("--held-out", dest="parts", action="store_const", const=(True,))
    part.add_argument("--chosen", dest="parts", action="store_const", const=(False,))
    given = parser.parse_args()
    main(given.names, given.gradients, given.auto, given.parts or (False, True))
