"""learning_rate="auto" beside the best of a half-decade search, in epochs.

    ADAFW_DATA=... python benchmarks/learning_rates.py [--seeds 1] [--gradient CSFW] [--rows m]
                                                       [--epochs 60] [name ...]

For every problem, with projected steps and with Template 3, both on CSFW's gradients or those of
another estimator: epochs to a relative suboptimality of 1e-2 and 1e-4, of the best fixed rate
10^(i/2) for each of the two, and of "auto" with all that it costs; and where both ended, the best
fixed one after so many epochs and "auto" after as many. All are looked at after the same
iterations, 3 % apart. The last lines also say what a rate half a decade off the best one costs, on
either side. --seeds: medians over so many index streams, of "auto" and of each rate that
came within four times the best with the first. --rows: of the first so many rows alone.
docs/learning_rate.md quotes the tables.
"""

import argparse
import math
from functools import partial

import numpy as np
from scipy import sparse

import adafw
from adafw import gradients, losses, paths, solver
from adafw.auto_rate import AutoRate
from adafw.random import as_source
from adafw.stopping import Limits

LEVELS = (1e-2, 1e-4)
RIVALS = "auto", "half a decade less", "half a decade more"
KINDS = {"Template 3": adafw.steps.AdaptiveStep, "projected": adafw.steps.ProjectedStep}


def dense(m, n, seed, scales=None, signs=True, k=None):
    """Gaussian columns, of sizes 10^scales if given; k of the true coefficients are not 0."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, n))
    if scales is not None:
        A = A * 10 ** rng.uniform(*scales, size=n)
    u = rng.normal(size=n) * (np.arange(n) < (k or n)) / np.abs(A).mean(0)
    return A, targets(A @ u, rng, signs)


def targets(z, rng, signs):
    """z with noise, or signs of it."""
    if not signs:
        return z + 0.3 * z.std() * rng.normal(size=z.size)
    return np.where(z + 0.5 * z.std() * rng.logistic(size=z.size) > 0, 1.0, -1.0)


def correlated(m, n, seed, signs):
    """Every column has a correlation of 0.9 with the last one."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, n))
    for j in range(1, n):
        A[:, j] = 0.9 * A[:, j - 1] + math.sqrt(0.19) * A[:, j]
    return A, targets(A @ (rng.normal(size=n) * (rng.random(n) < 0.3)), rng, signs)


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


def binary(m, n, seed):
    """Zeros and ones, some 5 % of them ones."""
    rng = np.random.default_rng(seed)
    A = sparse.csr_array((rng.random((m, n)) < 0.05 * rng.uniform(0.1, 3, n)).astype(float))
    z = A @ rng.normal(size=n)
    return A, np.where(z - np.median(z) + rng.logistic(size=m) > 0, 1.0, -1.0)


def mixture(m, n):
    """Targets from a mixture of the columns, as a simplex finds it."""
    A = np.random.default_rng(1).normal(size=(m, n))
    x = np.random.default_rng(5).dirichlet(np.full(n, 0.1))
    return A, A @ x + 0.1 * np.random.default_rng(6).normal(size=m)


def vectors(m, n, seed):
    A, y = adafw.datasets.support_vector(m, n, seed=seed)
    return A.toarray(), y


def real(load):
    data = load()
    return data.A, data.y


def groups(n, size):
    return np.repeat(np.arange(n // size), size)


def problems():
    """name -> (data, loss, set), the data made when asked for."""
    log, square, hinge = losses.Logistic(), losses.Squared(), losses.SquaredHinge()
    rcv1, year = (partial(real, load) for load in
                  (adafw.datasets.rcv1, adafw.datasets.year_prediction))  # fmt: skip
    text = adafw.datasets.text_like
    l1, linf, simplex = adafw.L1Ball, adafw.LInfBall, adafw.Simplex
    table = [
        # Those that the numbers of the rule were chosen on.
        ("support vectors, linf 1", lambda: vectors(10_000, 300, 0), hinge, linf(1.0)),
        ("RCV1, l1 100", rcv1, log, l1(100.0)),
        ("RCV1, l1 1000", rcv1, log, l1(1000.0)),
        ("one-hot, l1 30", lambda: one_hot(10_000), log, l1(30.0)),
        ("badly scaled, l1 20", lambda: dense(5000, 60, 0, (-2, 1)), log, l1(20.0)),
        ("least squares, l1 10", lambda: dense(5000, 100, 0, signs=False, k=20), square, l1(10.0)),
        ("least squares, linf 0.7", lambda: dense(5000, 50, 3, signs=False), square, linf(0.7)),
        ("mixture, simplex 1", lambda: mixture(4000, 80), square, simplex(1.0)),
        # Those that it is tested on.
        ("support vectors 2, linf 0.3", lambda: vectors(6_000, 500, 7), hinge, linf(0.3)),
        ("support vectors 3, logistic, linf 2", lambda: vectors(8_000, 200, 3), log, linf(2.0)),
        ("RCV1, squared hinge, l1 30", rcv1, hinge, l1(30.0)),
        ("RCV1, l1 300", rcv1, log, l1(300.0)),
        ("one-hot 2, squared hinge, l1 10", lambda: one_hot(8_000, 5), hinge, l1(10.0)),
        ("sparse binary, l1 40", lambda: binary(6000, 300, 1), log, l1(40.0)),
        ("generated text, l1 300", lambda: text(m=8000, n=20_000, seed=0), log, l1(300.0)),
        ("generated text 2, hinge, l1 50", lambda: text(m=5000, n=8_000, seed=3), hinge, l1(50.0)),
        ("correlated squares, l1 5", lambda: correlated(5000, 100, 2, False), square, l1(5.0)),
        ("correlated logistic, linf 0.1", lambda: correlated(5000, 100, 4, True), log, linf(0.1)),
        ("logistic, simplex 5", lambda: dense(4000, 80, 2), log, simplex(5.0)),
        ("squared hinge, simplex 2", lambda: dense(5000, 60, 12, k=20), hinge, simplex(2.0)),
        ("logistic, groups 6", lambda: dense(4000, 90, 4, k=30), log,
         adafw.GroupBall(6.0, groups(90, 3))),
        ("least squares, groups 8", lambda: dense(4000, 100, 14, signs=False, k=25), square,
         adafw.GroupBall(8.0, groups(100, 5))),
        ("badly scaled 2, l1 10", lambda: dense(4000, 60, 9, (-1, 1)), log, l1(10.0)),
        ("logistic, l2 2", lambda: dense(4000, 80, 21), log, adafw.L2Ball(2.0)),
        ("song years, l1 100", year, square, l1(100.0)),
        ("song years, linf 0.5", year, square, linf(0.5)),
    ]  # fmt: skip
    return {name: rest for name, *rest in table}


def minimum(f, constraint):
    """min f, to far below 1e-4."""
    tolerance = 1e-7 * abs(f.value(constraint.start(f.shape)))
    r = adafw.minimize(f, constraint, adafw.Corrective(), max_iterations=400,
                       gap_tolerance=tolerance)  # fmt: skip
    return r.value


def epochs(f, constraint, algorithm, best, most, seed):
    """Epochs to each of the levels, inf if there were not enough; and the error at the end."""
    s = solver.start(f, constraint, algorithm, constraint.start(f.shape), as_source(seed))
    return follow(f, constraint, algorithm, s, best, most)


def path_of(f, constraint, algorithm, most):
    """What runs the algorithm, its search included, for so many epochs."""
    find = partial(paths.find, f, constraint)
    if isinstance(algorithm.step.learning_rate, str):
        limits = Limits(math.inf, most, math.inf, math.inf, math.inf)
        return AutoRate(f, constraint, algorithm, limits, find, constraint.start(f.shape).shape)
    return find(algorithm)


def follow(f, constraint, algorithm, s, best, most):
    """The same from a state on, with what it has cost so far."""
    path, found = path_of(f, constraint, algorithm, most), [math.inf] * len(LEVELS)
    path.prepare(f, constraint, algorithm, s)
    goal = math.ceil(1.03 * s.t) + 1
    while s.gradient_evaluations < most * f.n_terms and math.isinf(found[-1]):
        try:
            path.run(f, constraint, algorithm, s, goal - s.t, lambda: False)
        except solver.Diverged:
            break
        if s.t >= goal:
            goal = max(goal + 1, math.ceil(1.03 * goal))
            error = (f.value(s.x) - best) / abs(best)
            found = [min(known, s.gradient_evaluations / f.n_terms if error <= level else math.inf)
                     for known, level in zip(found, LEVELS, strict=True)]  # fmt: skip
    return *found, (f.value(s.x) - best) / abs(best)


def compare(problems, seeds, estimator, rows=None, most=60.0):
    """Prints the table, and yields (step, [times the best to each of the levels]) row by row.

    Of "auto", and of the fixed rates half a decade below the best and half a decade above it.
    """
    for name, (make, loss, constraint) in problems.items():
        f = adafw.LinearModel(*(part[:rows] for part in make()), loss)
        best = minimum(f, constraint)
        for kind, step in KINDS.items():
            run = partial(measure, f, constraint, estimator, step, best)
            rates = [10.0 ** (i / 2) for i in range(-8, 7)]
            first = [run(rate, most, 0) for rate in rates]
            least = [4 * min(each[k] for each in first) for k in range(len(LEVELS))]
            fixed = [
                medians([each, *(run(rate, most, seed) for seed in range(1, seeds))])
                if any(each[k] <= least[k] < math.inf for k in range(len(LEVELS))) else each
                for rate, each in zip(rates, first, strict=True)
            ]  # fmt: skip
            auto = medians([run("auto", 2 * most, seed) for seed in range(seeds)])
            ends = [min(each[-1] for each in fixed), run("auto", most, 0)[-1]]
            cells, times = [], []
            for k in range(len(LEVELS)):
                reached = [math.inf, *(each[k] for each in fixed), math.inf]
                least = min(reached)
                at = reached.index(least)
                beside = (reached[at - 1], reached[at + 1]) if least < math.inf else (math.inf,) * 2
                times.append([value / least for value in (auto[k], *beside)])
                cells += [f"{least:.3g}", f"{auto[k]:.3g}", f"{auto[k] / least:.2f}"]
            cells += [f"{end:.1e}" for end in ends]
            print(f"| {name} | {kind} | {' | '.join(cells)} |", flush=True)
            yield kind, times


def summary(rows):
    """Geometric means, none counted as more than 6, and misses, by step and level."""
    for kind in KINDS:
        for k, level in enumerate(LEVELS):
            found = np.array([each[k] for step, each in rows if step == kind])
            found = found[found[:, 0] > 0] if found.size else found  # the best arrives at all
            for who, times in zip(RIVALS, np.minimum(found, 6.0).T, strict=False):
                mean = np.exp(np.log(times).mean())
                print(f"{kind}, {level:g}, {who}: {mean:.2f} times the best, "
                      f"{(times > 2).sum()} of {times.size} more than 2")  # fmt: skip


def medians(runs):
    """Of each entry; the upper one of two, as never may be one of them."""
    return [sorted(values)[len(values) // 2] for values in zip(*runs, strict=True)]


def measure(f, constraint, estimator, step, best, rate, most, seed):
    algorithm = adafw.Algorithm(estimator(), step(rate))
    return epochs(f, constraint, algorithm, best, most, seed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--gradient", default="CSFW", type=lambda name: getattr(gradients, name))
    parser.add_argument("--rows", type=int)
    parser.add_argument("--epochs", type=float, default=60)
    given = parser.parse_args()
    wanted = {name: problems()[name] for name in given.names} or problems()
    summary([*compare(wanted, given.seeds, given.gradient, given.rows, given.epochs)])
