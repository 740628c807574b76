"""learning_rate="auto" beside the best of a half-decade search, on sparse data of many columns.

    python benchmarks/rates_sparse_data.py [--seeds 3] [--gradient CSFW] [name ...]

Rows of some ten to forty entries anywhere, so that most terms have nothing to do with what a few
steps move: there few terms can say what a rate meets. Some 3 minutes. learning_rates.py says how
epochs are counted; the last lines tell how far above min f three streams of "auto" end.
"""

import argparse
from functools import partial

import numpy as np
from learning_rates import KINDS, compare, epochs, minimum, summary
from scipy import sparse

import adafw
from adafw import gradients, losses

DRAWS = {
    "lognormal": lambda rng, size: rng.lognormal(0, 1, size),
    "normal": lambda rng, size: rng.standard_normal(size),
    "ones": lambda rng, size: np.ones(size),
}


def scattered(m, n, density, kind, seed, signs, share=0.02):
    rng = np.random.default_rng(seed)
    A = sparse.csr_array(sparse.random_array(
        (m, n), density=density, rng=rng, format="csr", data_sampler=partial(DRAWS[kind], rng)
    ))  # fmt: skip
    z = A @ (rng.normal(size=n) * (rng.random(n) < share))
    if not signs:
        return A, z + 0.3 * z.std() * rng.normal(size=m)
    return A, np.where(z - np.median(z) + 0.3 * z.std() * rng.logistic(size=m) > 0, 1.0, -1.0)


def problems():
    log, square, hinge = losses.Logistic(), losses.Squared(), losses.SquaredHinge()
    l1, linf, simplex = adafw.L1Ball, adafw.LInfBall, adafw.Simplex
    table = [
        ("lognormal squares, l1 60", (6000, 9000, 0.004, "lognormal", 12, False), square, l1(60.0)),
        ("normal squares, l1 40", (5000, 6000, 0.004, "normal", 3, False), square, l1(40.0)),
        ("lognormal squares, l1 20", (6000, 2000, 0.004, "lognormal", 5, False), square, l1(20.0)),
        ("lognormal hinge, l1 30", (6000, 9000, 0.004, "lognormal", 7, True), hinge, l1(30.0)),
        ("ones logistic, l1 100", (6000, 9000, 0.004, "ones", 8, True), log, l1(100.0)),
        ("normal hinge, l1 60", (10_000, 10_000, 0.003, "normal", 9, True), hinge, l1(60.0)),
        ("normal squares, linf 0.1", (5000, 6000, 0.004, "normal", 10, False, 0.5), square,
         linf(0.1)),
        ("ones squares, simplex 5", (4000, 1000, 0.01, "ones", 11, False), square, simplex(5.0)),
    ]  # fmt: skip
    return {name: (partial(scattered, *data), loss, ball) for name, data, loss, ball in table}


def ends(wanted, seeds, estimator, most=60.0):
    """(name, step, (f(x_0) - min f) / |min f|, the same after so many epochs of each stream)."""
    for name, (make, loss, ball) in wanted.items():
        f = adafw.LinearModel(*make(), loss)
        best = minimum(f, ball)
        begun = (f.value(ball.start(f.shape)) - best) / abs(best)
        for kind, step in KINDS.items():
            auto = adafw.Algorithm(estimator(), step("auto"))
            yield name, kind, begun, [epochs(f, ball, auto, best, most, s)[-1] for s in seeds]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--gradient", default="CSFW", type=lambda name: getattr(gradients, name))
    given = parser.parse_args()
    known = problems()
    wanted = {name: rest for name, rest in known.items() if name in (given.names or known)}
    summary([*compare(wanted, given.seeds, given.gradient)])
    for name, kind, begun, found in ends(wanted, range(given.seeds), given.gradient):
        print(f"| {name} | {kind} | {begun:.2g} | {' '.join(f'{end:.2g}' for end in found)} |")
