"""The peers: each is solved from scratch with growing budgets, as benchopt does.

A solver is a function (problem, budget) -> w; budgets are passes or, for solvers that stop by
themselves, negative powers of ten of their tolerance.
"""

import warnings

import numpy as np


def sklearn_liblinear(problem, budget):
    from sklearn.linear_model import LogisticRegression

    C = 1 / (problem.penalty * len(problem.y))
    model = LogisticRegression(
        l1_ratio=1.0, C=C, solver="liblinear", fit_intercept=False, tol=1e-12, max_iter=budget
    )
    return model.fit(problem.A, problem.y).coef_.ravel()


def sklearn_saga(problem, budget):
    from sklearn.linear_model import LogisticRegression

    C = 1 / (problem.penalty * len(problem.y))
    model = LogisticRegression(
        l1_ratio=1.0, C=C, solver="saga", fit_intercept=False, tol=1e-12, max_iter=budget,
        random_state=0,
    )  # fmt: skip
    return model.fit(problem.A, problem.y).coef_.ravel()


def celer(problem, budget):
    from celer import LogisticRegression

    C = 1 / (problem.penalty * len(problem.y))
    return LogisticRegression(C=C, tol=10.0**-budget).fit(problem.columns, problem.y).coef_.ravel()


def skglm(problem, budget):
    from skglm.datafits import Logistic
    from skglm.estimators import GeneralizedLinearEstimator
    from skglm.penalties import L1
    from skglm.solvers import ProxNewton

    solver = ProxNewton(max_iter=budget, tol=1e-12, fit_intercept=False)
    model = GeneralizedLinearEstimator(Logistic(), L1(problem.penalty), solver)
    return model.fit(problem.columns, problem.y).coef_.ravel()


def fista(problem, budget):
    """Projected: y = x + beta (x - last), x = project(y - grad f(y) / L)."""
    import adafw

    ball, L = adafw.L1Ball(problem.radius), problem.smoothness
    x = y = np.zeros(problem.A.shape[1])
    t = 1.0
    for _ in range(budget):
        last, x = x, ball.project(y - problem.f.gradient(y) / L)
        t, old = (1 + np.sqrt(1 + 4 * t * t)) / 2, t
        y = x + (old - 1) / t * (x - last)
    return x


#: name -> (solver, budgets, whether it solves the penalised problem)
PEERS = {
    "scikit-learn liblinear": (sklearn_liblinear, (1, 2, 3, 5, 8, 15, 30), True),
    "scikit-learn saga": (sklearn_saga, (1, 3, 10, 30, 100), True),
    "celer": (celer, (1, 2, 3, 4, 6), True),
    "skglm": (skglm, (1, 2, 3, 5, 8, 12), True),
    "projected FISTA": (fista, (2, 5, 12, 30, 80, 200), False),
}


def quiet(solver, problem, budget):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that they have not converged is the point
        return solver(problem, budget)
