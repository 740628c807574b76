"""learning_rate="auto" beside the best of a half-decade search, on small data.

    python benchmarks/rates_small_data.py [--seeds 3] [--gradient CSFW] [name ...]

Data sets that come with scikit-learn and data of its generators; and data made to mislead. They
have 178 to 3 000 rows, so that batches of m / 100 terms have 1 to 30. Some 2 minutes.
learning_rates.py says how epochs are counted.
"""

import argparse
from functools import partial

import numpy as np
from learning_rates import compare, correlated, dense, groups, summary
from rates_without_table import no_signal
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import adafw
from adafw import gradients, losses
from sklearn import datasets


def bundled(load, scale, labels=True):
    A, y = load(return_X_y=True)
    A = scale().fit_transform(A)
    if labels:
        return A, np.where(y > np.median(y) if len(set(y)) > 2 else y == 1, 1.0, -1.0)
    return A, (y - y.mean()) / y.std()


def classes(m, n, seed, **more):
    A, y = datasets.make_classification(m, n, n_informative=n // 3, random_state=seed, **more)
    return A, 2.0 * y - 1.0


def regression(m, n, seed):
    A, y = datasets.make_regression(m, n, n_informative=n // 4, noise=20.0, random_state=seed)
    return A, y / y.std()


def friedman(m, seed):
    A, y = datasets.make_friedman1(m, 20, noise=1.0, random_state=seed)
    return A - A.mean(0), (y - y.mean()) / y.std()


def off_centre(m, n, seed):
    A, y = dense(m, n, seed)
    return A + np.random.default_rng(seed).uniform(-3, 3, n), y


def problems():
    log, square, hinge = losses.Logistic(), losses.Squared(), losses.SquaredHinge()
    l1, linf, simplex, l2 = adafw.L1Ball, adafw.LInfBall, adafw.Simplex, adafw.L2Ball
    cancer, digits, wine, diabetes = (datasets.load_breast_cancer, datasets.load_digits,
                                      datasets.load_wine, datasets.load_diabetes)  # fmt: skip
    plain = [
        ("cancer, l1 5", lambda: bundled(cancer, StandardScaler), log, l1(5.0)),
        ("cancer, linf 0.5", lambda: bundled(cancer, StandardScaler), log, linf(0.5)),
        ("cancer min-max, l1 20", lambda: bundled(cancer, MinMaxScaler), hinge, l1(20.0)),
        ("digits, l1 10", lambda: bundled(digits, MinMaxScaler), log, l1(10.0)),
        ("digits, linf 0.3", lambda: bundled(digits, StandardScaler), log, linf(0.3)),
        ("wine, l1 3", lambda: bundled(wine, StandardScaler), log, l1(3.0)),
        ("diabetes, l1 1", lambda: bundled(diabetes, StandardScaler, False), square, l1(1.0)),
        ("diabetes, simplex 1", lambda: bundled(diabetes, StandardScaler, False), square,
         simplex(1.0)),
        ("classes 1000 x 20, l1 2", lambda: classes(1000, 20, 0), log, l1(2.0)),
        ("classes 2000 x 50, linf 0.2", lambda: classes(2000, 50, 1), hinge, linf(0.2)),
        ("classes 500 x 100, l1 3", lambda: classes(500, 100, 2), log, l1(3.0)),
        ("classes 3000 x 40, simplex 1", lambda: classes(3000, 40, 3), log, simplex(1.0)),
        ("regression 1000 x 50, l1 1", lambda: regression(1000, 50, 0), square, l1(1.0)),
        ("regression 2000 x 30, linf 0.1", lambda: regression(2000, 30, 1), square, linf(0.1)),
        ("friedman 1500, l1 1", lambda: friedman(1500, 0), square, l1(1.0)),
        ("dense 1000 x 30, groups 3", lambda: dense(1000, 30, 5), log,
         adafw.GroupBall(3.0, groups(30, 3))),
        ("correlated 1000 x 40, l1 3", lambda: correlated(1000, 40, 6, True), log, l1(3.0)),
        ("dense 2000 x 40, l2 1", lambda: dense(2000, 40, 7), hinge, l2(1.0)),
    ]  # fmt: skip
    misleading = []
    for m in (300, 1000, 3000):
        misleading += [
            (f"columns of all sizes {m}, l1 10", partial(dense, m, 40, m, (-1, 1)), log, l1(10.0)),
            (f"no signal {m}, l1 5", partial(no_signal, m, 30, m), log, l1(5.0)),
            (f"off centre {m}, l1 5", partial(off_centre, m, 40, m), log, l1(5.0)),
            (f"off centre squares {m}, linf 0.5", partial(off_centre, m, 30, m + 1), square,
             linf(0.5)),
        ]  # fmt: skip
    return {
        part: {name: rest for name, *rest in table}
        for part, table in (("as it comes", plain), ("made to mislead", misleading))
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--gradient", default="CSFW", type=lambda name: getattr(gradients, name))
    given = parser.parse_args()
    for part, known in problems().items():
        wanted = {name: rest for name, rest in known.items() if name in (given.names or known)}
        print(part)
        summary([*compare(wanted, given.seeds, given.gradient)])
