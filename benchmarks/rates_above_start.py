"""How many runs with learning_rate="auto" end above f(x0), on small data made to mislead it.

    python benchmarks/rates_above_start.py [estimate ...]

300 x 40, so that batches have three terms: columns of sizes from 1 to 100, and labels that have
nothing to do with the columns. Two losses, three sets, three seeds, 10 and 30 epochs: 36 runs a
number. docs/learning_rate.md quotes the table. Some 30 seconds.
"""

import argparse
from itertools import product

import numpy as np
from learning_rates import KINDS, dense

import adafw
from adafw import gradients, losses

ESTIMATES = ("CSFW", "SPIDER", "PAGE", "ORGFW", "SVRF", "LSVRG", "Minibatch")
LOSSES = (losses.Logistic(), losses.SquaredHinge())
SETS = (adafw.L1Ball(5.0), adafw.LInfBall(1.0), adafw.L1Ball(50.0))


def unscaled(seed):
    return dense(300, 40, seed, (0, 2))


def no_signal(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(300, 40)), rng.choice([-1.0, 1.0], 300)


def ends(make, estimate, step):
    """f at the end over f(x0), of all runs."""
    found = []
    for seed, loss, constraint, epochs in product(range(3), LOSSES, SETS, (10, 30)):
        f = adafw.LinearModel(*make(seed), loss)
        algorithm = adafw.Algorithm(getattr(gradients, estimate)(), step("auto"))
        r = adafw.minimize(f, constraint, algorithm, max_epochs=epochs, seed=seed,
                           record_every=10**9)  # fmt: skip
        found.append(r.value / r.trace[0].value)
    return np.array(found)


def main(estimates):
    print("| estimate | step | columns of all sizes | labels without a signal |")
    print("| --- | --- | --- | --- |")
    for estimate, (kind, step) in product(estimates, KINDS.items()):
        cells = []
        for make in (unscaled, no_signal):
            found = ends(make, estimate, step)
            above = (found > 1).sum()
            cells.append(f"{above}, up to {found.max():.2f}" if above else "0")
        print(f"| {estimate} | {kind} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("estimates", nargs="*", metavar="estimate", default=ESTIMATES)
    main(parser.parse_args().estimates)
