"""FrankWolfeClassifier beside scikit-learn's l1-penalised solvers, and what an intercept costs.

    python benchmarks/estimators.py

Each tool at its own tolerance of 1e-4 and at matched radius, on one thread; medians over
interleaved repeats, accuracy on rows held out. docs/when_other_tools.md quotes these numbers.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import warnings  # noqa: E402

import numpy as np  # noqa: E402
from sklearn.datasets import make_classification  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from timing import Side, interleaved, ratio  # noqa: E402

import adafw  # noqa: E402
from adafw.objectives import LinearModel, WithIntercept  # noqa: E402
from adafw.sklearn import FrankWolfeClassifier  # noqa: E402


def problems():
    A, y = adafw.datasets.text_like(m=12_000, n=20_000, seed=0)
    yield "text-like, 8 000 x 20 000", A, y, 8_000, 1.0
    A, y = make_classification(
        30_000, 300, n_informative=30, n_redundant=30, flip_y=0.1, random_state=0
    )
    yield "dense, 20 000 x 300", A, y, 20_000, 0.01


def penalised(solver, C):
    return LogisticRegression(l1_ratio=1, solver=solver, C=C, tol=1e-4, max_iter=10_000)


def fits():
    for name, A, y, rows, C in problems():
        X, target = A[:rows], y[:rows]
        radius = float(np.abs(penalised("liblinear", C).fit(X, target).coef_).sum())
        tools = {
            "liblinear": penalised("liblinear", C),
            "saga": penalised("saga", C),
            "FrankWolfeClassifier": FrankWolfeClassifier(constraint="l1", radius=radius),
        }

        def fit(model, X=X, target=target):
            model.fit(X, target)
            return 1

        sides = {tool: lambda model=model, fit=fit: fit(model) for tool, model in tools.items()}
        print(f"{name}, radius {radius:.1f}")
        for tool, microseconds in interleaved(sides, 3).items():
            score = tools[tool].score(A[rows:], y[rows:])
            print(f"  {tool:<22}{microseconds / 1e6:8.3f} s, accuracy {score:.4f}")


def intercepts():
    A, y = adafw.datasets.text_like(m=20_000, n=50_000, seed=0)
    f = WithIntercept(LinearModel(A, y, adafw.losses.Logistic()))
    for algorithm in (adafw.CSFW(), adafw.AdaCSFW(100.0)):
        sides = {
            path: Side(f, adafw.L1Ball(100.0), algorithm, path, each=20, first=20)
            for path in ("generic", "auto")
        }
        times = ratio("generic", "auto", sides)
        print(f"{algorithm.name} with an intercept: generic over auto {times['ratio']:.1f}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    fits()
    intercepts()
