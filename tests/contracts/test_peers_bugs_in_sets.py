"""Mistakes found in other libraries, each kept out of this one."""

import numpy as np
import pytest

import adafw


@pytest.mark.parametrize("p", [1.001, 1.2, 1.5, 1.9])
def test_lp_balls_between_one_and_two_work(p):
    """A peer raises for 1 < p < 2."""
    ball, g = adafw.LpBall(2.0, p), np.random.default_rng(0).standard_normal(6)
    assert np.vdot(g, ball.lmo(g)) == pytest.approx(-2 * np.linalg.norm(g, p / (p - 1)))
    assert ball.contains(ball.project(5 * g, np.arange(1.0, 7.0)))


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("constraint", [adafw.Simplex(2.0), adafw.UnitSimplex(2.0)], ids=repr)
def test_simplex_lmo_stays_in_the_simplex(constraint, sign):
    """A peer leaves the simplex when all scores are negative."""
    g = sign * np.array([3.0, 1.0, 2.0])
    v = constraint.lmo(g)
    assert constraint.contains(v, 0.0)
    best = 2 * g.min()
    assert g @ v == (best if isinstance(constraint, adafw.Simplex) else min(0.0, best))


def test_projected_methods_project_in_their_metric():
    """Peers' "projected" AdaGrad projects in the Euclidean norm; the nearest point is another."""
    g = np.array([4.0, 1.0, 0.5])
    f = adafw.UserSum(1, lambda x: float(g @ x), lambda x, batch: g, convex=True)
    ball = adafw.L1Ball(1.0)
    algorithm = adafw.Algorithm(
        adafw.gradients.Full(), adafw.steps.ProjectedStep(2.0, adafw.metrics.AdaGrad())
    )
    r = adafw.minimize(f, ball, algorithm, x0=np.zeros(3), max_iterations=1)
    h = 1e-8 + np.abs(g)
    step = -2.0 * g / h
    np.testing.assert_allclose(r.x, ball.project(step, h))
    assert np.abs(r.x - ball.project(step)).max() > 0.1
    value = np.sum(h * (r.x - step) ** 2)
    for seed in range(200):
        v = ball.project(np.random.default_rng(seed).standard_normal(3))
        assert np.sum(h * (v - step) ** 2) >= value - 1e-12
