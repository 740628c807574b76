"""What blocks of neighbouring rows do to convergence, on shuffled rows and on rows in an order.

python benchmarks/block_batches.py [--out docs/benchmarks/block_batches.csv]

Text-like rows in random order, and sorted by label: the worst order a file can have. Batches of
m / 100 rows (SFW: growing), i.i.d. or in blocks; f(x) - min f after some epochs, median of seeds.
"""

import argparse
import csv
import statistics

import numpy as np

import adafw
from adafw.datasets import text_like

M, N, RADIUS, EPOCHS, SEEDS = 100_000, 20_000, 200.0, (2, 10), range(3)
ALGORITHMS = {
    "SFW": adafw.SFW(),
    "CSFW": adafw.CSFW(),
    "AdaCSFW": adafw.AdaCSFW(learning_rate=100.0),
}
SOURCES = {
    "i.i.d.": lambda seed: seed,
    "blocks of 10": lambda seed: adafw.Blocks(seed, 10),
    "blocks of 100": lambda seed: adafw.Blocks(seed, 100),
    "blocks of 1000": lambda seed: adafw.Blocks(seed, 1000),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="docs/benchmarks/block_batches.csv")
    A, y = text_like(M, N, nonzeros=40, seed=0)
    ball, rows = adafw.L1Ball(RADIUS), []
    for order, chosen in (("shuffled", np.arange(M)), ("sorted by label", np.argsort(y))):
        f = adafw.LinearModel(A[chosen], y[chosen], adafw.losses.Logistic())
        best = adafw.minimize(f, ball, adafw.Corrective(), gap_tolerance=1e-9, progress=False)
        for name, algorithm in ALGORITHMS.items():
            for source, make in SOURCES.items():
                off = [_off(f, ball, algorithm, make, seed, best.value) for seed in SEEDS]
                medians = [statistics.median(values) for values in zip(*off, strict=True)]
                rows.append([order, name, source, *(f"{value:.3g}" for value in medians)])
                print(*rows[-1], sep=", ", flush=True)
    with open(parser.parse_args().out, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["order", "algorithm", "batches", *(f"epochs {n}" for n in EPOCHS)])
        writer.writerows(rows)


def _off(f, ball, algorithm, make, seed, best):
    """f(x) - min f after each number of epochs, in one run."""
    found, state = [], None
    for epochs in EPOCHS:
        how = {"seed": make(seed)} if state is None else {"state": state}
        r = adafw.minimize(
            f, ball, algorithm, max_epochs=epochs, record_every=10**9, progress=False, **how
        )
        state = r.state
        found.append(r.value - best)
    return found


if __name__ == "__main__":
    main()
