"""celer: working sets and extrapolation; its budget is a tolerance."""

from celer import LogisticRegression
from solver import Solver


def solve(problem, budget):
    C = 1 / (problem.penalty * len(problem.y))
    return LogisticRegression(C=C, tol=10.0**-budget).fit(problem.columns, problem.y).coef_.ravel()


SOLVERS = (Solver("celer", solve, (1, 2, 3, 4, 6), penalised=True),)
