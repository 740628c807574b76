"""Conditional gradient sliding: the subproblem's gap, the points asked for, the stages."""

import numpy as np
import pytest

import adafw
from adafw import gradients
from adafw.schedules import Stages
from adafw.steps import HazanLuo, LanZhou, SlidingStep


@pytest.mark.parametrize("rule", [LanZhou(), LanZhou(stochastic=True), HazanLuo()], ids=repr)
@pytest.mark.parametrize("constraint", [adafw.L1Ball(2.0), adafw.LInfBall(0.3), adafw.Simplex(1.0)],
                         ids=repr)  # fmt: skip
def test_every_subproblem_is_solved_to_its_tolerance(rule, constraint, logistic):
    step, x = SlidingStep(rule), constraint.start((12,))
    L, D, state = logistic.smoothness, constraint.diameter((12,)), {}
    for t in range(40):
        now = rule(t)
        centre = x if now.restart else state["centre"]
        z = step.query(x, t, state)
        assert np.allclose(z, (1 - now.gamma) * x + now.gamma * centre, atol=1e-15)
        g = logistic.gradient(z)
        new, state = step.update(logistic, constraint, x, g, t, state)
        u = state["centre"]
        slope = g + L * now.beta * (u - centre)
        assert constraint.gap(u, slope) <= L * D**2 * now.eta * (1 + 1e-12)
        assert np.allclose(new, (1 - now.gamma) * x + now.gamma * u, atol=1e-15)
        assert constraint.violation(new) <= 1e-14
        x = new


@pytest.mark.parametrize(("rule", "restart"), [(LanZhou(), 0), (HazanLuo(), 6)], ids=repr)
def test_a_gradient_of_zero_leaves_the_centre_where_it_is(rule, restart, logistic):
    """It is x itself where a stage begins."""
    ball, x, u = adafw.L1Ball(2.0), np.full(12, 0.05), np.full(12, -0.1)
    step, g = SlidingStep(rule), np.zeros(12)
    for t, centre in ((restart, x), (restart + 1, u), (restart + 2, u)):
        new, state = step.update(logistic, ball, x, g, t, {"centre": u})
        np.testing.assert_array_equal(state["centre"], centre)
        # A minimiser where f is convex: the point that the gradient was asked for at.
        np.testing.assert_array_equal(new, step.query(x, t, {"centre": u}))


def test_stages_follow_one_another():
    lengths = [6, 8, 12, 16, 23, 32, 46, 64]
    begin = 0
    for length in lengths:
        for t in range(begin, begin + length):
            assert Stages().around(t) == (begin, length)
        begin += length


def test_storc_is_exact_where_a_stage_begins(logistic):
    r = adafw.minimize(logistic, adafw.L1Ball(1.0), adafw.STORC(batch_size=4), max_iterations=30,
                       record_every=1)  # fmt: skip
    spent = np.diff(r.trace["gradient_evaluations"])
    assert set(np.flatnonzero(spent == 60)) == {0, 6, 14, 26}
    assert set(spent.tolist()) == {60, 8}


def test_far_fewer_gradients_than_frank_wolfe():
    """O(eps^(-1/2)) against O(1 / eps), with the minimiser inside a face."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(80, 30))
    f = adafw.LinearModel(A, A @ np.full(30, 1 / 30) + 0.01 * rng.normal(size=80),
                          adafw.losses.Squared())  # fmt: skip
    reached = [
        adafw.minimize(f, adafw.Simplex(1.0), algorithm, gap_tolerance=1e-3, max_iterations=10_000)
        for algorithm in (adafw.CGS(), adafw.FW())
    ]
    assert all(r.status == "converged" for r in reached)
    cgs, fw = (r.trace[-1] for r in reached)
    assert 5 * cgs.gradient_evaluations < fw.gradient_evaluations


def test_counts_and_limits(logistic):
    r = adafw.minimize(logistic, adafw.L1Ball(1.0), adafw.CGS(), max_lmo_calls=50, record_every=1)
    assert r.status == "max_lmo_calls"
    # Limits are tested before an iteration: it had not been reached then.
    assert r.trace[-2].lmo_calls < 50 <= r.trace[-1].lmo_calls


def test_inner_steps_bound_the_subproblem(logistic):
    step = SlidingStep(inner_steps=2)
    r = adafw.minimize(logistic, adafw.L1Ball(5.0), adafw.Algorithm(gradients.Full(), step),
                       max_iterations=20, record_every=1)  # fmt: skip
    assert np.diff(r.trace["lmo_calls"]).max() <= 2
    assert r.gap < r.trace[0].gap


def test_smoothness_and_diameter_may_be_given(logistic):
    L, D = logistic.smoothness, 2 * 1.5
    user = adafw.UserSum(60, logistic.value, logistic.gradient, convex=True)
    ball = adafw.L1Ball(1.5)
    a = adafw.minimize(logistic, ball, adafw.CGS(), max_iterations=20)
    b = adafw.minimize(user, ball, adafw.CGS(L, D), x0=np.zeros(12), max_iterations=20)
    assert np.allclose(a.x, b.x, atol=1e-12)
    with pytest.raises(TypeError, match="does not know its smoothness constant L"):
        adafw.minimize(user, ball, adafw.CGS(), x0=np.zeros(12))
    with pytest.raises(TypeError, match=r"rule must be steps.LanZhou\(\) or steps.HazanLuo\(\)"):
        SlidingStep(rule=3)
    with pytest.raises(ValueError, match="diameter must be a number that is finite and > 0"):
        SlidingStep(diameter=0.0)


def test_parameters_are_those_of_the_papers():
    """Corollaries 2.2 and 3.2 of Lan and Zhou, theorem 2 of Hazan and Luo."""
    for t in range(5):
        k = t + 1
        assert LanZhou()(t) == (3 / (k + 2), 3 / (k + 1), 1 / (k * (k + 1)), k == 1)
        noisy = LanZhou(stochastic=True)(t)
        assert noisy == (3 / (k + 2), 4 / (k + 2), 1 / (k * (k + 1)), k == 1)
    for begin, length in ((0, 6), (6, 8), (14, 12)):
        for k in (1, 2, length):
            now = HazanLuo()(begin + k - 1)
            assert now == (2 / (k + 1), 3 / k, 2 / (length * k), k == 1)


def test_constants_that_are_given_are_used(logistic):
    """Where f and the set know their own, too."""
    ball, x = adafw.L1Ball(2.0), np.full(12, 0.05)
    own, now = logistic.smoothness, LanZhou()(t := 60)
    centre, g = np.full(12, -0.1), own * now.beta * np.linspace(-1.0, 2.0, 12)
    for step, L, D in (
        (SlidingStep(L=3 * own), 3 * own, ball.diameter((12,))),
        (SlidingStep(diameter=0.9), own, 0.9),
    ):
        _, state = step.update(logistic, ball, x, g, t, {"centre": centre})
        u, calls = centre, 0
        while True:
            slope = g + L * now.beta * (u - centre)
            d = ball.lmo(slope) - u
            if -(slope @ d) <= L * D * D * now.eta:
                break
            u, calls = u + min(1.0, -(slope @ d) / (L * now.beta * (d @ d))) * d, calls + 1
        assert calls > 1
        np.testing.assert_allclose(state["centre"], u, atol=1e-12)


def test_steps_in_a_tiny_set_are_whole(logistic):
    """Squares of its size underflow."""
    tiny, g = adafw.L1Ball(1e-200), logistic.gradient(np.zeros(12))
    _, state = SlidingStep().update(logistic, tiny, np.zeros(12), g, 0, {})
    np.testing.assert_array_equal(state["centre"], tiny.lmo(g))


def test_l_is_asked_for_before_any_work(logistic):
    user = adafw.UserSum(60, logistic.value, logistic.gradient, convex=True)
    with pytest.raises(TypeError, match="does not know its smoothness constant L"):
        SlidingStep().check(user, adafw.L1Ball(1.0), gradients.Full())
    SlidingStep(L=1.0).check(user, adafw.L1Ball(1.0), gradients.Full())
    with pytest.raises(ValueError, match="L must be a number that is finite and > 0"):
        SlidingStep(L=0.0)
