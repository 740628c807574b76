"""scikit-learn's SAGA."""

from sklearn.linear_model import LogisticRegression
from solver import Solver


def solve(problem, budget):
    C = 1 / (problem.penalty * len(problem.y))
    model = LogisticRegression(
        l1_ratio=1.0, C=C, solver="saga", fit_intercept=False, tol=1e-12, max_iter=budget,
        random_state=0,
    )  # fmt: skip
    return model.fit(problem.A, problem.y).coef_.ravel()


SOLVERS = (Solver("scikit-learn saga", solve, (1, 3, 10, 30), penalised=True),)
