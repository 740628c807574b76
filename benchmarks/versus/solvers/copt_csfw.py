"""copt's CSFW (minimize_sfw, variant SAG). It has no start-up worth timing: a side, not a curve."""

import copt
import numpy as np
from scipy import sparse


def epochs(problem, count=3):
    """A function that runs some epochs of m // 100 rows an iteration, and returns these."""
    m, n = problem.A.shape
    A, y = sparse.csr_matrix(problem.A), (problem.y + 1) / 2
    loss, ball = copt.loss.LogLoss(A, y), copt.constraint.L1Ball(problem.radius)

    def work():
        copt.randomized.minimize_sfw(
            loss.partial_deriv, A, y, np.zeros(n), ball.lmo, batch_size=m // 100, max_iter=count,
            tol=0, variant="SAG",
        )  # fmt: skip
        return count * (m // (m // 100))

    return work
