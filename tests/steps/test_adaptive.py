"""Template 3 line by line: short steps on Q, bounds, gaps and what is left alone."""

import numpy as np
import pytest

import adafw
from adafw import metrics
from adafw.constraints.counted import CountedSet
from adafw.steps import AdaptiveStep, short_step


def test_short_steps_minimise_q_on_the_way():
    """-eta <grad Q, d> / <d, H d>, at most the bound; by hand and by many points on the way."""
    q, d, h = np.array([-3.0, 1.0]), np.array([2.0, 1.0]), np.array([1.0, 4.0])
    assert short_step(q, d, h, 0.8, 1.0) == 0.8 * 5 / 8
    assert short_step(q, d, h, 0.8, 0.3) == 0.3
    assert short_step(q, d, h, 1.6, 1.0) == 1.0
    gammas = np.linspace(0, 1, 1001)
    values = gammas * (q @ d) + gammas**2 * (d @ (h * d)) / (2 * 0.8)
    assert gammas[values.argmin()] == pytest.approx(0.5)
    assert short_step(-q, d, h, 0.8, 1.0) == 0.0  # uphill
    assert short_step(q, 0 * d, h, 0.8, 1.0) == 0.0
    assert short_step(q, d, 0 * h, 0.8, 1.0) == 0.0  # no curvature is no length
    assert short_step(q, d, h, np.inf, 0.7) == 0.7
    assert short_step(q, 0 * d, h, np.inf, 0.7) == 0.0
    assert short_step(q, d, h, 0.8, 0.0) == 0.0


class Fixed(metrics.Metric):
    """m = 2 g and H = h, whatever was before."""

    def __init__(self, h):
        self.h = h

    def init(self, x):
        return {}

    def update(self, g, t, state):
        return 2 * g, self.h, {"seen": t}


@pytest.mark.parametrize("eta", [0.05, 0.5, np.inf])
@pytest.mark.parametrize("bound", [0.2, 1.0])
def test_an_iteration_is_k_steps_on_q(eta, bound):
    h, x, g = np.array([1.0, 3.0, 0.5]), np.array([0.3, -0.2, 0.1]), np.array([1.0, -2.0, 0.5])
    ball = adafw.L2Ball(1.0)
    f = adafw.UserSum(1, lambda x: 0.0, lambda x, batch=None: x)
    for K in (1, 2, 6):
        y = x.copy()
        for _ in range(K):
            q = 2 * g + h * (y - x) / eta
            d = ball.lmo(q) - y
            length = bound if eta == np.inf else min(-eta * (q @ d) / (d @ (h * d)), bound)
            y = y + length * d
        counted = CountedSet(ball)
        step = AdaptiveStep(eta, K, bound, Fixed(h))
        new, state = step.update(f, counted, x, g, 7, {})
        np.testing.assert_allclose(new, y, atol=1e-12)
        assert state == {"seen": 7}
        assert counted.lmo_calls == K


def test_schedules_are_those_of_their_iteration():
    """eta_t, gamma_t and phi_t of t, not of another."""
    h, x, g = np.ones(2), np.zeros(2), np.array([1.0, 0.5])
    f = adafw.UserSum(1, lambda x: 0.0, lambda x, batch=None: x)
    rates = {3: 0.1, 4: 0.2}
    step = AdaptiveStep(lambda t: rates[t], 1, metric=Fixed(h))
    for t in (3, 4):
        new, _ = step.update(f, adafw.LInfBall(9.0), x, g, t, {})
        v = np.array([-9.0, -9.0])
        np.testing.assert_allclose(new, rates[t] * (2 * g @ -v) / (v @ v) * v)
    bounds = {3: 0.01, 4: 0.02}
    step = AdaptiveStep(np.inf, 1, lambda t: bounds[t], Fixed(h))
    for t in (3, 4):
        new, _ = step.update(f, adafw.LInfBall(9.0), x, g, t, {})
        np.testing.assert_allclose(new, bounds[t] * np.array([-9.0, -9.0]))


def test_corrective_inner_steps_solve_q():
    h, x, g = np.array([1.0, 3.0, 0.5]), np.array([0.3, -0.2, 0.1]), np.array([1.0, -2.0, 0.5])
    f = adafw.UserSum(1, lambda x: 0.0, lambda x, batch=None: x)
    ball = adafw.L1Ball(0.7)
    for eta in (0.1, 1.0):
        step = AdaptiveStep(lambda t, eta=eta: eta * t, metric=Fixed(h), inner="corrective")
        new, _ = step.update(f, ball, x, g, 3, {})
        np.testing.assert_allclose(new, ball.project(x - 3 * eta * 2 * g / h, h), atol=1e-9)
    one = AdaptiveStep(1.0, 1, metric=Fixed(h), inner="corrective")
    counted = CountedSet(ball)
    one.update(f, counted, x, g, 0, {})
    assert counted.lmo_calls == 1


@pytest.mark.parametrize("kind", ["metric", "inner"])
def test_what_it_is_made_of_is_checked(kind):
    if kind == "metric":
        with pytest.raises(TypeError, match=r"metric must be one of adafw.metrics, got 3"):
            AdaptiveStep(0.1, metric=3)
        with pytest.raises(TypeError, match=r"metric must be one of adafw.metrics, got 3"):
            adafw.steps.ProjectedStep(0.1, metric=3)
        return
    for bad in (0, -1, 2.5):
        with pytest.raises(ValueError, match="inner_steps must be an integer >= 1"):
            AdaptiveStep(0.1, inner_steps=bad)
    AdaptiveStep(0.1, max_step=1, inner="corrective")


def test_bounds_of_settings():
    for bad in (1.1, -0.1):
        with pytest.raises(ValueError, match="max_step must be a number"):
            AdaptiveStep(0.1, max_step=bad)
    for inner in ("frank_wolfe", "corrective"):
        with pytest.raises(ValueError, match="inner_steps must be an integer >= 1, got 0"):
            AdaptiveStep(0.1, inner_steps=0, inner=inner)
    assert AdaptiveStep(0.1, inner_gap=7.0).inner_gap.rule == 7.0
