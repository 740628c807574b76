"""Corrective steps on the l1 ball of matrices."""

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import losses
from adafw.objectives import MatrixModel


def problem(kind, seed=0, m=300, n=80):
    rng = np.random.default_rng(seed)
    A = sparse.random_array((m, n), density=0.15, rng=rng).tocsr()
    truth = np.where(rng.random((n, 4)) < 0.1, 6 * rng.normal(size=(n, 4)), 0)
    z = A @ truth + 0.5 * rng.normal(size=(m, 4))
    if kind == "softmax":
        return A, z.argmax(axis=1), losses.Softmax()
    loss = losses.Squared() if kind == "squared" else losses.Huber(0.3)
    return A, z, losses.Outputs(loss)


@pytest.mark.parametrize("dense", [False, True], ids=["csr", "dense"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", ["softmax", "squared", "huber"])
def test_it_reaches_the_minimum(kind, intercept, dense):
    A, y, loss = problem(kind)
    f = MatrixModel(A.toarray() if dense else A, y, loss, intercept=intercept)
    r = adafw.minimize(f, adafw.L1Ball(30.0), adafw.Corrective(), max_iterations=60,
                       gap_tolerance=1e-8)  # fmt: skip
    assert r.status == "converged"
    # The certificate, by hand: fresh predictions, softmax or slopes, and the l1 ball's minimiser.
    g = MatrixModel(A.toarray(), y, loss, intercept=intercept).gradient(r.x)
    assert np.isclose(np.vdot(g, r.x) + 30 * np.abs(g).max(), r.gap, atol=1e-10)
    assert np.abs(r.x).sum() <= 30 * (1 + 1e-12)
    values = r.trace["value"]
    assert (np.diff(values) <= 1e-12 * values[0]).all()


def test_a_ball_that_does_not_bind():
    A, y, loss = problem("squared")
    f = MatrixModel(A, y, loss, intercept=True)
    r = adafw.minimize(f, adafw.L1Ball(1e4), adafw.Corrective(), max_iterations=200,
                       gap_tolerance=1e-3)  # fmt: skip
    centred = A.toarray() - A.toarray().mean(axis=0)
    best = np.linalg.lstsq(centred, y - y.mean(axis=0), rcond=None)[1].sum() / len(y)
    assert r.value <= best + 1e-3


def test_resumed_runs_are_the_same():
    A, y, loss = problem("softmax")
    f = MatrixModel(A, y, loss, intercept=True)
    how = {"record_every": 1}
    whole = adafw.minimize(f, adafw.L1Ball(30.0), adafw.Corrective(), max_iterations=6, **how)
    half = adafw.minimize(f, adafw.L1Ball(30.0), adafw.Corrective(), max_iterations=3, **how)
    f = MatrixModel(A, y, loss, intercept=True)
    rest = adafw.minimize(f, adafw.L1Ball(30.0), adafw.Corrective(), max_iterations=6,
                          state=half.state, **how)  # fmt: skip
    np.testing.assert_array_equal(rest.x, whole.x)


def test_weights_are_copies():
    A, y, loss = problem("softmax")
    counts = np.random.default_rng(1).integers(0, 3, len(y))
    counts[:4] = 1
    weighted = MatrixModel(A, y, loss, counts, intercept=True)
    order = np.repeat(np.arange(len(y)), counts)
    copied = MatrixModel(A[order], y[order], loss, intercept=True)
    found = [
        adafw.minimize(f, adafw.L1Ball(20.0), adafw.Corrective(), gap_tolerance=1e-9).x
        for f in (weighted, copied)
    ]
    np.testing.assert_allclose(*found, atol=1e-5)
