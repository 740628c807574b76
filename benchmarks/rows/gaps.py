"""The exact gap that AdaCSFW reaches in 1000 epochs, over that of CSFW with steps 1 / (t + 1)."""

import numpy as np
from rows.problems import text_model

import adafw

SEEDS = range(3)


def reached(f, constraint, algorithm):
    """Gaps of all seeds, after 250 and after 1000 epochs."""
    early, late = [], []
    for seed in SEEDS:
        r = None
        for epochs, gaps in ((250, early), (1000, late)):
            start = {"seed": seed} if r is None else {"state": r.state}
            r = adafw.minimize(
                f, constraint, algorithm, max_epochs=epochs, record_every=10**9, **start
            )
            gaps.append(r.gap)
    return early, late


def over_csfw(f, constraint, **algorithms):
    """The first algorithm's median gap over CSFW's; both, and further ones, for the record."""
    plain = adafw.CSFW(adafw.schedules.OpenLoop(1.0, 1.0))
    found = {name: reached(f, constraint, a) for name, a in {**algorithms, "CSFW": plain}.items()}
    early, late = ({k: float(np.median(g[i])) for k, g in found.items()} for i in (0, 1))
    return {
        "ratio": late["AdaCSFW"] / late["CSFW"],
        "ratio after 250 epochs": early["AdaCSFW"] / early["CSFW"],
        "gaps": {name: gaps[1] for name, gaps in found.items()},
        "gaps after 250 epochs": {name: gaps[0] for name, gaps in found.items()},
    }


def gap_svm():
    """Gap of AdaCSFW (K = 2, eta = 0.1) over CSFW, the paper's SVM, 1000 epochs."""
    X, y = adafw.datasets.support_vector()
    f = adafw.LinearModel(X, y, adafw.losses.SquaredHinge())
    return over_csfw(f, adafw.LInfBall(1.0), AdaCSFW=adafw.AdaCSFW(0.1, 2))


def gap_text():
    """Gap of AdaCSFW (K = 5, eta = 100) over CSFW, RCV1, 1000 epochs."""
    algorithms = {"AdaCSFW": adafw.AdaCSFW(100.0, 5), "AdaCSFW, K = 20": adafw.AdaCSFW(100.0, 20)}
    return over_csfw(*text_model(), **algorithms)
