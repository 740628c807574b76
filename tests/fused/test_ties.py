"""Equal columns: every path takes the lower one, wherever x is."""

import numpy as np
import pytest
from scipy import sparse

import adafw

LOW, HIGH, N = 3, 700, 1100  # in different blocks of the kernel's search
#: Where a run begins: shares of the radius on the two equal columns.
STARTS = {"origin": (0, 0), "lower": (0.5, 0), "higher": (0, 0.5), "both": (0.25, 0.25)}


def problem():
    """Whole numbers, so that equal columns have equal slopes to the last bit."""
    rng = np.random.default_rng(0)
    A = np.zeros((40, N))
    for j in (LOW, HIGH):
        A[:, j] = np.where(np.arange(40) % 3, 2.0, -1.0)
    for j in (17, 18, 600, 1099):
        A[:, j] = rng.integers(-1, 2, 40)
    return adafw.LinearModel(sparse.csr_array(A), np.ones(40), adafw.losses.SquaredHinge())


ALGORITHMS = {
    "K=1": lambda: adafw.AdaCSFW(0.3, inner_steps=1, batch_size=40),
    "K=2": lambda: adafw.AdaCSFW(0.3, inner_steps=2, batch_size=5),
    "K=4": lambda: adafw.AdaCSFW(0.05, inner_steps=4, batch_size=9),
    "template 1": lambda: adafw.CSFW(batch_size=7),
    "projected": lambda: adafw.AdaGrad(0.3, gradient=adafw.gradients.CSFW(7)),
}


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("path", ["fused", "lazy"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_lower_of_two_equal_columns(path, start, name, sign):
    f, ball = problem(), adafw.L1Ball(2.0)
    x0 = np.zeros(N)
    x0[[LOW, HIGH]] = sign * 2.0 * np.array(STARTS[start])
    for t in (1, 3, 12):
        runs = [
            adafw.minimize(f, ball, ALGORITHMS[name](), x0=x0, max_iterations=t, path=path)
            for path in ("generic", path)
        ]
        np.testing.assert_allclose(runs[1].x, runs[0].x, rtol=0, atol=1e-13)
        np.testing.assert_array_equal(runs[1].x != 0, runs[0].x != 0)
    if start == "origin" and name in ("K=1", "template 1"):
        assert runs[1].x[LOW] != 0
        assert runs[1].x[HIGH] == 0
