"""What sliding, boosting and Lu and Freund's estimate are good for, counted in gradients.

    python benchmarks/few_gradients.py

prints the two tables of docs/which_algorithm.md and keeps their numbers in
docs/benchmarks/few_gradients.csv. Generated data, no times: the counts are the same anywhere.
"""

import csv
from pathlib import Path

import numpy as np

import adafw
from adafw import gradients, losses, schedules, steps

KEPT = Path(__file__).parent.parent / "docs" / "benchmarks" / "few_gradients.csv"
LEVELS = (1e-2, 1e-4, 1e-6)  # of f(x_0) - min f
MOST = 3000  # exact gradients
EPOCHS = (10, 60)


def problems():
    A, y = adafw.datasets.support_vector(4000, 200, seed=0)
    T, topics = adafw.datasets.text_like(m=2000, n=4000, seed=0)
    rng = np.random.default_rng(0)
    B = rng.standard_normal((3000, 90)) * np.logspace(0, -1, 90)
    targets = B @ rng.standard_normal(90) + rng.standard_normal(3000)
    squares = adafw.LinearModel(B, targets, losses.Squared())
    hinge = adafw.LinearModel(A, y, losses.SquaredHinge())
    return {
        "support vectors, linf 1": (hinge, adafw.LInfBall(1.0)),
        "generated text, l1 50": (
            adafw.LinearModel(T, topics, losses.Logistic()),
            adafw.L1Ball(50),
        ),
        "least squares, l1 10": (squares, adafw.L1Ball(10.0)),
        "least squares, l2 3": (squares, adafw.L2Ball(3.0)),
    }


EXACT = {
    "`FW()`": adafw.FW(),
    "`FW(LineSearch())`": adafw.FW(steps.LineSearch()),
    "`BPCG()`": adafw.BPCG(),
    "`CGS()`": adafw.CGS(),
    "`BoostFW()`": adafw.BoostFW(),
    "`BoostFW(LineSearch())`": adafw.BoostFW(steps.LineSearch()),
    "`Corrective()`": adafw.Corrective(),
}


def other_steps(m):
    made = gradients.LuFreund()
    third = adafw.Algorithm(made, steps.AdaptiveStep("auto"))
    return {
        "`LuFreundFW()`": adafw.LuFreundFW(),
        "`LuFreundFW(LuFreundStep(m / b))`": adafw.LuFreundFW(
            schedules.LuFreundStep(m / max(1, m // 100))
        ),
        "`LuFreundFW(OpenLoop(1, 1))`": adafw.LuFreundFW(schedules.OpenLoop(1, 1)),
        "`LuFreundFW(LogOpenLoop())`": adafw.LuFreundFW(schedules.LogOpenLoop()),
        "`LuFreundFW(0.01)`": adafw.LuFreundFW(0.01),
        # Steps of another size are refused; that they differ from t = 3 on only is not seen.
        "estimate with 2 / (t + 2), steps of 0.01: refused": adafw.Algorithm(
            made, steps.FrankWolfeStep(lambda t: 2 / (t + 2) if t < 3 else 0.01)
        ),
        "estimate with adaptive steps": third,
        "estimate with boosted steps": adafw.Algorithm(made, steps.BoostedStep()),
        "estimate with sliding steps": adafw.Algorithm(made, steps.SlidingStep()),
        "`CSFW()`": adafw.CSFW(),
    }


def counted(f, ball, algorithm, low, first):
    """`gradients (LMO calls)` to every level, by a record an iteration."""
    r = adafw.minimize(f, ball, algorithm, max_iterations=MOST, record_every=1)
    left = (np.array(r.trace["value"]) - low) / first
    spent, calls = r.trace["gradient_evaluations"], r.trace["lmo_calls"]
    found = [int(np.argmax(left <= level)) if (left <= level).any() else None for level in LEVELS]
    return ["-" if k is None else f"{round(spent[k] / f.n_terms)} ({int(calls[k])})" for k in found]


def left_over(f, ball, algorithm, low, first):
    ends = (adafw.minimize(f, ball, algorithm, max_epochs=e, seed=0).value for e in EPOCHS)
    return [f"{(value - low) / first:.1e}" for value in ends]


def main():
    rows, tables = [], {"exact": {}, "LuFreund": {}}
    for problem, (f, ball) in problems().items():
        best = adafw.minimize(f, ball, adafw.Corrective(), gap_tolerance=1e-11, max_iterations=60)
        first = f.value(ball.start(f.shape)) - best.value
        for table, algorithms, measure in (
            ("exact", EXACT, counted),
            ("LuFreund", other_steps(f.n_terms), left_over),
        ):
            for name, algorithm in algorithms.items():
                cells = measure(f, ball, algorithm, best.value, first)
                rows.append((table, problem, name, *cells))
                tables[table].setdefault(name, []).append("; ".join(cells))
    head = "| | " + " | ".join(problems()) + " |\n| --- |" + " --- |" * 4
    for cells in tables.values():
        print(head, *(f"| {name} | " + " | ".join(c) + " |" for name, c in cells.items()), sep="\n")
        print()
    with KEPT.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
