"""scikit-learn's liblinear."""

from sklearn.linear_model import LogisticRegression
from solver import Solver


def solve(problem, budget):
    C = 1 / (problem.penalty * len(problem.y))
    model = LogisticRegression(
        l1_ratio=1.0, C=C, solver="liblinear", fit_intercept=False, tol=1e-12, max_iter=budget
    )
    return model.fit(problem.A, problem.y).coef_.ravel()


SOLVERS = (Solver("scikit-learn liblinear", solve, (1, 2, 3, 5, 8, 15, 30), penalised=True),)
