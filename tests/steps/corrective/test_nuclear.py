"""Factors of low-rank matrices moved by second-order steps."""

import numpy as np
import pytest

import adafw
from adafw import losses
from adafw.gradients import Full
from adafw.objectives import WithIntercept
from adafw.rows import EntryRows, MatrixRows, as_rows
from adafw.steps.corrective import CorrectiveStep
from adafw.steps.corrective.factors import Factored, as_factors, balanced
from adafw.steps.corrective.nuclear import improved

CORRECTIVE = adafw.Algorithm(Full(), CorrectiveStep())


def observed(m=900, shape=(40, 30), rank=3, seed=0, dtype=float):
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1]))
    rows, cols = rng.integers(0, shape[0], m), rng.integers(0, shape[1], m)
    values = truth[rows, cols] + 0.3 * rng.standard_normal(m)
    return rows, cols, values.astype(dtype)


@pytest.mark.parametrize("radius", [1e-6, 1.0, 60.0, 300.0, 1e4, 1e6])
def test_completion_is_certified_to_a_millionth(radius):
    f = adafw.MatrixCompletion(*observed(), (40, 30))
    r = adafw.minimize(f, adafw.NuclearBall(radius), CORRECTIVE, max_iterations=20)
    # radius * s_1(g): rounding of g is what a huge radius leaves.
    assert r.best.gap <= 1e-6 * r.value + 1e-12 * radius
    assert r.trace["violation"].max() <= 1e-12
    assert (np.diff(r.trace["value"]) <= 1e-12).all()


def test_large_sides_take_sparse_slopes():
    f = adafw.MatrixCompletion(*observed(9000, (230, 210)), (230, 210))
    r = adafw.minimize(
        f, adafw.NuclearBall(300.0), CORRECTIVE, max_iterations=15, gap_tolerance=1e-6
    )
    assert r.status == "converged"
    assert np.linalg.matrix_rank(r.x, 1e-6) <= 10


@pytest.mark.parametrize("loss", [losses.Huber(0.1), losses.SquaredHinge(), losses.Logistic()])
def test_other_losses_of_entries(loss):
    rows, cols, values = observed()
    targets = values if isinstance(loss, losses.Huber) else np.where(values > 0, 1.0, -1.0)
    f = adafw.LinearModel(EntryRows(rows, cols, (40, 30), np.dtype(float)), targets, loss)
    r = adafw.minimize(f, adafw.NuclearBall(50.0), CORRECTIVE, max_iterations=30)
    assert r.best.gap <= 1e-6 * r.value


@pytest.mark.parametrize("intercept", [False, True])
def test_samples_that_are_matrices(intercept):
    rng = np.random.default_rng(2)
    A = rng.standard_normal((80, 48))
    y = np.where(A[:, 0] + A[:, 9] + rng.standard_normal(80) > 0, 1.0, -1.0)
    f = adafw.LinearModel(MatrixRows(as_rows(A), (8, 6)), y, losses.Logistic())
    f = WithIntercept(f) if intercept else f
    r = adafw.minimize(f, adafw.NuclearBall(0.7), CORRECTIVE, max_iterations=30)
    assert r.best.gap <= 1e-6 * r.value
    # A vector that stands for the same matrix.
    flat = adafw.LinearModel(A, y, losses.Logistic())
    flat = WithIntercept(flat) if intercept else flat
    v = adafw.minimize(flat, adafw.NuclearBall(0.7, shape=(8, 6)), CORRECTIVE, max_iterations=30)
    assert v.value == pytest.approx(r.value, rel=1e-6)


def test_it_starts_from_any_point_and_resumes_bit_for_bit():
    f, ball = adafw.MatrixCompletion(*observed(), (40, 30)), adafw.NuclearBall(60.0)
    x0 = ball.project(np.random.default_rng(3).standard_normal((40, 30)))
    whole = adafw.minimize(f, ball, CORRECTIVE, x0=x0, max_iterations=6)
    half = adafw.minimize(f, ball, CORRECTIVE, x0=x0, max_iterations=2)
    again = adafw.minimize(f, ball, CORRECTIVE, state=half.state, max_iterations=6)
    np.testing.assert_array_equal(whole.x, again.x)
    assert whole.gap <= 1e-6 * whole.value


def test_float32_and_a_single_entry():
    f = adafw.MatrixCompletion(*observed(dtype=np.float32), (40, 30))
    r = adafw.minimize(f, adafw.NuclearBall(60.0), CORRECTIVE, max_iterations=10)
    assert r.x.dtype == np.float32
    assert r.best.gap <= 1e-4 * r.value
    one = adafw.MatrixCompletion([1], [2], [3.0], (4, 5))
    r = adafw.minimize(one, adafw.NuclearBall(2.0), CORRECTIVE, max_iterations=10)
    assert r.x[1, 2] == pytest.approx(2.0)
    assert r.gap <= 1e-9


def test_factors_alone_are_enough():
    """What an estimator does that never has a dense matrix: the same iterates."""
    rows, cols, values = observed()
    f, ball = adafw.MatrixCompletion(rows, cols, values, (40, 30)), adafw.NuclearBall(60.0)
    left, right = np.zeros((40, 0)), np.zeros((30, 0))
    for _ in range(4):
        left, right = improved(Factored(f, (40, 30)), left, right, 60.0)
    r = adafw.minimize(f, ball, CORRECTIVE, max_iterations=4)
    np.testing.assert_array_equal(left @ right.T, r.x)


def test_balanced_factors_are_the_shortest():
    rng = np.random.default_rng(5)
    left, right = rng.standard_normal((9, 4)), rng.standard_normal((7, 4))
    left[:, 3] = left[:, 2]
    x = left @ right.T
    a, b = balanced(left, right, 1e9)
    np.testing.assert_allclose(a @ b.T, x, atol=1e-12)
    nuclear = np.linalg.svd(x, compute_uv=False).sum()
    assert ((a**2).sum() + (b**2).sum()) / 2 == pytest.approx(nuclear)
    assert a.shape[1] == 3
    c, d = as_factors(x, 1e9)
    np.testing.assert_allclose(c @ d.T, x, atol=1e-12)


def test_entries_of_samples_in_different_units():
    rng = np.random.default_rng(1)
    A = rng.poisson(0.3, (200, 12)).astype(float)
    A[:, 0] *= 1000
    y = np.where(rng.random(200) < 0.5, 1.0, -1.0)
    f = adafw.LinearModel(A, y, losses.SmoothedHinge())
    ball = adafw.NuclearBall(10.0, shape=(4, 3))
    found = adafw.minimize(f, ball, CORRECTIVE, gap_tolerance=1e-8, progress=False)
    assert found.status == "converged"
