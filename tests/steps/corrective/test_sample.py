"""The first iteration on long data: near the minimum of all rows, or as if there were no sample."""

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import losses
from adafw.objectives import WithIntercept
from adafw.steps.corrective import sample

M = sample.LEAST_ROWS + 100


def data(n=15):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(M, n)) * (rng.random((M, n)) < 0.3)
    return sparse.csr_array(A), np.where(A @ rng.normal(size=n) + rng.logistic(size=M) > 0, 1.0, -1)


SETS = {
    "l1": adafw.L1Ball(2.0),
    "simplex": adafw.Simplex(1.0),
    "linf": adafw.LInfBall(0.4),
    "l2": adafw.L2Ball(1.0),
    "group": adafw.GroupBall(1.5, np.arange(15) // 3),
}


def run(f, constraint, **limits):
    return adafw.minimize(f, constraint, adafw.Corrective(), progress=False, **limits)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", SETS)
def test_one_iteration_on_an_eighth_of_the_rows_is_most_of_the_way(kind, intercept):
    A, y = data()
    f = adafw.LinearModel(A, y, losses.Logistic())
    f = WithIntercept(f) if intercept else f
    best = run(f, SETS[kind], gap_tolerance=1e-10, max_iterations=30)
    first = run(f, SETS[kind], max_iterations=1)
    assert best.gap <= 1e-9
    start = first.trace[0].value
    assert 0 < first.value - best.value < 0.02 * (start - best.value)
    # It is the minimiser over these rows, which that over all rows is not (on wide enough sets).
    part = adafw.LinearModel(A[:: sample.EVERY], y[:: sample.EVERY], losses.Logistic())
    part = WithIntercept(part) if intercept else part
    mine, all_rows = (SETS[kind].gap(x, part.gradient(x)) for x in (first.x, best.x))
    assert mine <= sample.ENOUGH * part.value(first.x)
    assert all_rows > sample.ENOUGH * part.value(first.x) or kind in ("simplex", "l2")
    # Counted as every iteration is.
    assert first.trace[-1].gradient_evaluations <= 2 * M
    assert first.trace[-1].lmo_calls <= 2


def test_it_is_resumed_bit_for_bit(tmp_path):
    A, y = data()
    f, ball = adafw.LinearModel(A, y, losses.Logistic()), adafw.L1Ball(2.0)
    for stop in (1, 2):
        run(f, ball, max_iterations=stop).state.save(tmp_path / "s.npz")
        state = adafw.State.load(tmp_path / "s.npz")
        again = adafw.minimize(f, ball, adafw.Corrective(), state=state, max_iterations=4)
        np.testing.assert_array_equal(again.x, run(f, ball, max_iterations=4).x)


@pytest.mark.parametrize("case", ["no weight", "one label", "a warm start", "more columns"])
def test_where_a_sample_says_nothing_all_rows_are_asked(case):
    A, y = data()
    weight, x0, ball = None, None, adafw.L1Ball(2.0)
    if case == "no weight":
        weight = np.ones(M)
        weight[:: sample.EVERY] = 0.0
    elif case == "one label":
        y[:: sample.EVERY] = 1.0
    elif case == "a warm start":
        x0 = np.full(15, 0.01)
    else:
        rng = np.random.default_rng(1)
        A = sparse.random(M, 3000, 0.002, random_state=1, format="csr")
        y = np.where(A @ rng.normal(size=3000) + 0.1 * rng.logistic(size=M) > 0, 1.0, -1.0)
        ball = adafw.L1Ball(2000.0)  # needs more atoms than a sample could tell from noise
    f = WithIntercept(adafw.LinearModel(A, y, losses.Logistic(), weight))
    r = run(f, ball, gap_tolerance=1e-6, max_iterations=40, x0=x0)
    assert r.status == "converged"
    x, b = r.x, f.best_intercept(r.x)
    w = np.ones(M) if weight is None else weight
    slopes = -y * w / (1 + np.exp(y * (A @ x + b))) / w.sum()
    g = A.T @ slopes
    assert abs(slopes.sum()) < 1e-9
    assert g @ x + ball.radius * np.abs(g).max() <= 1.01e-6
