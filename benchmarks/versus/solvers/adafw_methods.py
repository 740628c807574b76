"""Ours: corrective steps, CSFW and AdaCSFW as in the paper, AdaGrad with CSFW's gradient.

Timed by the trace, which does not count the two exact gaps that `minimize` records; what the
whole call takes is in the table, too.
"""

from solver import Solver

import adafw

#: Iterations of m // 100 rows: 1.25 times as many each time.
BUDGETS = tuple(dict.fromkeys(int(4 * 1.25**k) for k in range(29)))


def solver(name, algorithm, tuned=False, budgets=BUDGETS):
    """An algorithm of ours as a solver."""

    def solve(problem, budget):
        r = adafw.minimize(
            problem.f, adafw.L1Ball(problem.radius), algorithm, max_iterations=budget,
            record_every=budget, progress=False,
        )  # fmt: skip
        return r.x, r.trace[-1].cpu_seconds

    return Solver(name, solve, budgets, ours=True, tuned=tuned)


def projected(eta):
    return adafw.AdaGrad(eta, gradient=adafw.gradients.CSFW())


SOLVERS = (
    solver("adafw Corrective", adafw.Corrective(), budgets=tuple(range(1, 31))),
    solver("adafw CSFW, steps 1/(t+1)", adafw.CSFW(adafw.schedules.OpenLoop(1.0, 1.0))),
    solver("adafw AdaCSFW, K = 5, eta = 100", adafw.AdaCSFW(100.0, 5)),
    solver("adafw AdaGrad + CSFW, eta = 1", projected(1.0)),
    solver("adafw AdaGrad + CSFW, eta = 3 (tuned)", projected(3.0), tuned=True),
)
