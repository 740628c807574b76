"""Ours: one run each, its own trace tells time and value."""

import adafw

ALGORITHMS = {
    "adafw CSFW": adafw.CSFW(adafw.schedules.OpenLoop(1.0, 1.0)),
    "adafw AdaCSFW": adafw.AdaCSFW(100.0, 5),
    "adafw AdaGrad + CSFW, eta 3": adafw.AdaGrad(3.0, gradient=adafw.gradients.CSFW()),
    "adafw AdaGrad + CSFW, eta 10": adafw.AdaGrad(10.0, gradient=adafw.gradients.CSFW()),
}


def curve(problem, name, seconds):
    """(CPU seconds, relative suboptimality) at every record."""
    r = adafw.minimize(
        problem.f, adafw.L1Ball(problem.radius), ALGORITHMS[name], max_cpu_seconds=seconds
    )
    scale = r.trace[0].value - problem.optimum
    return [(t.cpu_seconds, (t.value - problem.optimum) / scale) for t in r.trace]
