"""What an iteration costs, as a ratio to something else that does the same or less."""

import numpy as np
from data import text_like
from plain import PlainAdaCSFW
from rows.problems import text_model
from timing import Side, ratio

import adafw
from adafw import losses


def inner_steps():
    """AdaCSFW, K = 5 over K = 1, l1 ball."""
    f, ball = text_model()
    sides = {f"K = {k}": Side(f, ball, adafw.AdaCSFW(100.0, k)) for k in (1, 5)}
    return ratio("K = 5", "K = 1", sides)


def adaptive():
    """AdaCSFW K = 5 over CSFW, same path."""
    f, ball = text_model()
    sides = {
        "AdaCSFW": Side(f, ball, adafw.AdaCSFW(100.0, 5), "fused"),
        "CSFW": Side(f, ball, adafw.CSFW(), "fused"),
    }
    return ratio("AdaCSFW", "CSFW", sides)


def million():
    """NumPy over adafw, n = 1 M, K = 5."""
    wide, y = text_like(20_000, 1_000_000, 75)
    f, ball = adafw.LinearModel(wide, y, losses.Logistic()), adafw.L1Ball(100.0)
    sides = {
        "NumPy": lambda plain=PlainAdaCSFW(wide, y, 100.0, 100.0, 5, 200): plain.run(3),
        "adafw": Side(f, ball, adafw.AdaCSFW(100.0, 5, batch_size=200), each=2000),
    }
    return ratio("NumPy", "adafw", sides, 5)


def lazy():
    """Lazy path, n = 10 M over n = 47 k, same non-zeros in a batch."""
    sides = {}
    for name, n in (("47 k", 47_236), ("10 M", 10_000_000)):
        wide, y = text_like(20_000, n, 75)
        per_row = wide.nnz / 20_000
        f = adafw.LinearModel(wide, y, losses.Logistic())
        algorithm = adafw.AdaCSFW(100.0, 5, batch_size=round(15_000 / per_row))
        # Long stretches, as between records: each ends with one pass over n, for who looks then.
        sides[name] = Side(f, adafw.L1Ball(100.0), algorithm, "lazy", each=2000)
    return ratio("10 M", "47 k", sides)


def dense():
    """AdaCSFW K = 5 on the linf ball, n = 1000, b = 200, over reading the rows once."""
    from adafw.kernels.rows import dot

    rng = np.random.default_rng(0)
    D = rng.standard_normal((20_000, 1000))
    y = np.sign(D[:, 0] + 0.3 * rng.standard_normal(20_000))
    f = adafw.LinearModel(D, y, losses.Logistic())
    x, out, rows = np.ones(1000), np.empty(200), f.rows.arrays
    x.flags.writeable = False

    def read():
        for _ in range(50):
            batch = rng.integers(0, 20_000, 200).view(np.uint64)
            batch.flags.writeable = False
            dot(rows, batch, 0, 200, x, out)
        return 50

    sides = {"adafw": Side(f, adafw.LInfBall(0.1), adafw.AdaCSFW(0.1, 5), each=50), "read": read}
    return ratio("adafw", "read", sides, 15)


def generic():
    """Generic path over plain NumPy code, n = 47 k, K = 5 (CSFW: see microseconds)."""
    f, ball = text_model()
    A, y = f.rows.matrix, f.y
    batch = f.n_terms // 100
    sides = {
        "generic": Side(f, ball, adafw.AdaCSFW(100.0, 5), "generic", 20, 20),
        "NumPy": lambda plain=PlainAdaCSFW(A, y, 100.0, 100.0, 5, batch): plain.run(20),
        "generic CSFW": Side(f, ball, adafw.CSFW(), "generic", 40, 20),
        "NumPy CSFW": lambda plain=PlainAdaCSFW(A, y, 100.0, 0.0, 0, batch): plain.run(40),
    }
    return ratio("generic", "NumPy", sides)
