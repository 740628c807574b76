"""skglm: proximal Newton steps on working sets."""

from skglm.datafits import Logistic
from skglm.estimators import GeneralizedLinearEstimator
from skglm.penalties import L1
from skglm.solvers import ProxNewton
from solver import Solver


def solve(problem, budget):
    newton = ProxNewton(max_iter=budget, tol=1e-12, fit_intercept=False)
    model = GeneralizedLinearEstimator(Logistic(), L1(problem.penalty), newton)
    return model.fit(problem.columns, problem.y).coef_.ravel()


SOLVERS = (Solver("skglm", solve, (1, 2, 3, 5, 8, 12), penalised=True),)
