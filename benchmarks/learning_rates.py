"""learning_rate="auto" beside the best of a half-decade search, in epochs.

    ADAFW_DATA=... python benchmarks/learning_rates.py [name ...]

For every problem, with projected steps and with Template 3, both on CSFW's gradients: epochs to a
relative suboptimality of 1e-2 and 1e-4, of the best fixed rate 10^(i/2) for each of the two, and of
"auto" with all that it costs. docs/learning_rate.md quotes the table.
"""

import math
import sys

import numpy as np
from scipy import sparse

import adafw
from adafw import gradients, losses, steps

EPOCHS, LEVELS = 60, (1e-2, 1e-4)


def dense(m, n, seed, scales=None, signs=True, k=None):
    """Gaussian columns, of sizes 10^scales if given; k of the true coefficients are not 0."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, n))
    if scales is not None:
        A = A * 10 ** rng.uniform(*scales, size=n)
    u = rng.normal(size=n) * (np.arange(n) < (k or n)) / np.abs(A).mean(0)
    z = A @ u
    if not signs:
        return A, z + 0.3 * z.std() * rng.normal(size=m)
    return A, np.where(z + 0.5 * z.std() * rng.logistic(size=m) > 0, 1.0, -1.0)


def one_hot(m, seed=0):
    """13 categories of 2 to 40 kinds each, one non-zero a category."""
    rng = np.random.default_rng(seed)
    sizes = [8, 16, 7, 14, 6, 5, 2, 40, 5, 5, 3, 2, 10]
    starts = np.cumsum([0, *sizes])
    kinds = [rng.choice(s, m, p=rng.dirichlet(np.full(s, 0.5))) for s in sizes]
    index = np.stack(kinds, axis=1) + starts[:-1]
    ends = np.arange(0, index.size + 1, len(sizes))
    shape = (m, int(starts[-1]))
    A = sparse.csr_array((np.ones(index.size), index.reshape(-1), ends), shape=shape)
    z = A @ rng.normal(size=shape[1])
    return A, np.where(z - np.median(z) + 1.5 * rng.logistic(size=m) > 0, 1.0, -1.0)


def mixture(m, n):
    """Targets from a mixture of the columns, as a simplex finds it."""
    A = np.random.default_rng(1).normal(size=(m, n))
    x = np.random.default_rng(5).dirichlet(np.full(n, 0.1))
    return A, A @ x + 0.1 * np.random.default_rng(6).normal(size=m)


def problems():
    """name -> (objective, set), made when asked for."""

    def support_vectors():
        A, y = adafw.datasets.support_vector(10_000, 300, seed=0)
        return A.toarray(), y

    def rcv1():
        data = adafw.datasets.rcv1()
        return data.A, data.y

    log, square, huber = losses.Logistic(), losses.Squared(), losses.Huber(1.0)
    of_30, of_20 = np.repeat(np.arange(30), 3), np.repeat(np.arange(20), 3)
    table = [
        ("support vectors, linf 1", support_vectors, losses.SquaredHinge(), adafw.LInfBall(1.0)),
        ("RCV1, l1 100", rcv1, log, adafw.L1Ball(100.0)),
        ("RCV1, l1 1000", rcv1, log, adafw.L1Ball(1000.0)),
        ("one-hot, l1 30", lambda: one_hot(10_000), log, adafw.L1Ball(30.0)),
        ("badly scaled, l1 20", lambda: dense(5000, 60, 0, (-2, 1)), log, adafw.L1Ball(20.0)),
        ("least squares, l1 10", lambda: dense(5000, 100, 0, signs=False, k=20), square,
         adafw.L1Ball(10.0)),
        ("least squares, linf 0.7", lambda: dense(5000, 50, 3, signs=False), square,
         adafw.LInfBall(0.7)),
        ("mixture, simplex 1", lambda: mixture(4000, 80), square, adafw.Simplex(1.0)),
        ("logistic, simplex 5", lambda: dense(4000, 80, 2), log, adafw.Simplex(5.0)),
        ("logistic, groups 6", lambda: dense(4000, 90, 4, k=30), log, adafw.GroupBall(6.0, of_30)),
        ("Huber, badly scaled, groups 20", lambda: dense(4000, 60, 7, (-1, 1), signs=False), huber,
         adafw.GroupBall(20.0, of_20)),
    ]  # fmt: skip
    return {name: rest for name, *rest in table}


def minimum(f, constraint):
    """min f, to far below 1e-4."""
    if f.shape[0] <= 500:
        newton = adafw.Algorithm(gradients.Full(), steps.NewtonStep())
        r = adafw.minimize(f, constraint, newton, max_iterations=100, gap_tolerance=1e-10)
    else:
        projected = adafw.AdaGrad(5.0, gradient=gradients.CSFW())
        r = adafw.minimize(f, constraint, projected, max_epochs=400, gap_tolerance=1e-9)
    return r.value


def epochs(f, constraint, algorithm, best):
    """Epochs to each of the levels; inf if there were not enough."""
    levels = [best + level * abs(best) for level in LEVELS]
    r = adafw.minimize(f, constraint, algorithm, max_epochs=EPOCHS,
                       callbacks=lambda state, record: record.value <= levels[-1])  # fmt: skip
    found = []
    for level in levels:
        below = np.flatnonzero(r.trace["value"] <= level)
        found.append(float(r.trace["epoch"][below[0]]) if below.size else math.inf)
    return found


def main(names):
    known = problems()
    kinds = {
        "projected": lambda eta: adafw.AdaGrad(eta, gradient=gradients.CSFW()),
        "Template 3": adafw.AdaCSFW,
    }
    for name in names or known:
        make, loss, constraint = known[name]
        f = adafw.LinearModel(*make(), loss)
        best = minimum(f, constraint)
        for kind, preset in kinds.items():
            fixed = [epochs(f, constraint, preset(10.0 ** (i / 2)), best) for i in range(-6, 7)]
            auto = epochs(f, constraint, preset("auto"), best)
            cells = [
                f"{min(run[k] for run in fixed):.3g} | {auto[k]:.3g}" for k in range(len(LEVELS))
            ]
            print(f"| {name} | {kind} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
