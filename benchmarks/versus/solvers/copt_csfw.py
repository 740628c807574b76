"""copt's CSFW (minimize_sfw, variant SAG): its CPU time an iteration."""

import numpy as np


def epoch(problem):
    """A function that runs 3 epochs of m // 100 rows an iteration; it returns the iterations."""
    import copt
    from scipy import sparse

    m, n = problem.A.shape
    A, y01 = sparse.csr_matrix(problem.A), (problem.y + 1) / 2
    loss, ball, start = (
        copt.loss.LogLoss(A, y01),
        copt.constraint.L1Ball(problem.radius),
        np.zeros(n),
    )

    def work():
        copt.randomized.minimize_sfw(
            loss.partial_deriv, A, y01, start, ball.lmo, batch_size=m // 100, max_iter=3, tol=0,
            variant="SAG",
        )  # fmt: skip
        return 3 * (m // (m // 100))

    return work
