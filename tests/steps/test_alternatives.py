"""Section 3.1's two alternatives: the LMO on the adaptive direction, and the inner loop by gap."""

import numpy as np
import pytest

import adafw
from adafw import gradients, losses, metrics
from adafw.constraints.counted import CountedSet
from adafw.schedules import OpenLoop
from adafw.steps import AdaptiveStep, FrankWolfeStep, LineSearch, PreconditionedStep

SETS = [adafw.L1Ball(2.0), adafw.L2Ball(1.5), adafw.LInfBall(0.7), adafw.Simplex(1.0)]


def model(seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((30, 5)) * np.array([1, 0.1, 3, 0.5, 1])
    return adafw.LinearModel(A, rng.standard_normal(30), losses.Squared())


# The LMO called on H^-1 m ------------------------------------------------------------------------


@pytest.mark.parametrize("constraint", SETS, ids=repr)
@pytest.mark.parametrize("metric", [metrics.AdaGrad(), metrics.Adam()], ids=repr)
def test_preconditioned_step_is_the_plain_loop(constraint, metric):
    f = model()
    algorithm = adafw.Algorithm(gradients.Full(), PreconditionedStep(metric=metric))
    x = constraint.start(5)
    state = metric.init(x)
    for t in range(10):
        m, h, state = metric.update(f.gradient(x), t, state)
        x = x + 2 / (t + 2) * (constraint.lmo(m / h) - x)
    r = adafw.minimize(f, constraint, algorithm, max_iterations=10)
    np.testing.assert_allclose(r.x, x, rtol=1e-12, atol=1e-14)
    assert r.trace[-1].lmo_calls == 10


def test_on_the_linf_ball_scaling_changes_no_vertex():
    f, constraint = model(), adafw.LInfBall(0.7)
    plain = adafw.Algorithm(gradients.Full(), FrankWolfeStep())
    scaled = adafw.Algorithm(gradients.Full(), PreconditionedStep())
    a = adafw.minimize(f, constraint, plain, max_iterations=30)
    b = adafw.minimize(f, constraint, scaled, max_iterations=30)
    np.testing.assert_array_equal(a.x, b.x)


def test_elsewhere_the_direction_may_ascend_as_the_paper_warns():
    f = adafw.UserSum(
        1, lambda x: float(x @ [3.0, 1.0]), lambda x, batch: np.array([3.0, 1.0]), convex=True
    )
    # H = (9, 1) turns the largest entry of g, the first, into the smallest of g / h.
    metric = metrics.RMSProp(beta=0.0)
    state = metric.init(np.zeros(2))
    x = np.array([-0.9, 0.1])  # on the l1 sphere
    step = PreconditionedStep(0.5, metrics.Clipped(metric, 1.0, 1.0))
    moved, _ = step.update(f, adafw.L1Ball(1.0), x, np.array([3.0, 1.0]), 0, state)
    assert f.value(moved) < f.value(x)  # H = 1: Frank-Wolfe
    step = PreconditionedStep(0.5, _Fixed(np.array([9.0, 1.0])))
    moved, _ = step.update(f, adafw.L1Ball(1.0), x, np.array([3.0, 1.0]), 0, {})
    np.testing.assert_allclose(moved, [-0.45, -0.45])
    assert f.value(moved) > f.value(x)


class _Fixed(metrics.Metric):
    def __init__(self, h):
        self.h = h

    def init(self, x):
        return {}

    def update(self, g, t, state):
        return g, self.h, state


def test_a_zero_estimate_moves_nothing():
    f, x = model(), np.array([0.3, 0, 0, 0, 0])
    step = PreconditionedStep()
    moved, _ = step.update(f, adafw.Simplex(1.0), x, np.zeros(5), 0, step.init(x))
    np.testing.assert_array_equal(moved, x)


def test_preconditioned_step_refuses_line_searches_and_non_metrics():
    with pytest.raises(TypeError, match="step_size must be a schedule, got LineSearch"):
        PreconditionedStep(LineSearch())
    with pytest.raises(TypeError, match="metric must be one of"):
        PreconditionedStep(metric="adagrad")
    for bad in (1.1, -0.1):
        with pytest.raises(ValueError, match="step_size must be a number"):
            PreconditionedStep(bad)


# The inner loop stopped by the subproblem's gap --------------------------------------------------


def one_update(constraint, **options):
    """One step of Template 3 from a point inside, and the LMO calls it took."""
    f = model()
    x = 0.5 * constraint.start(5) + 0.5 * constraint.lmo(np.array([1.0, -1, 2, 0.5, 3]))
    step = AdaptiveStep(learning_rate=0.3, **options)
    counted = CountedSet(constraint)
    g = f.gradient(x)
    y, _ = step.update(f, counted, x, g, 0, step.init(x))
    h = 1e-8 + np.abs(g)
    grad_q = g + h * (y - x) / 0.3
    gap = grad_q @ (y - constraint.lmo(grad_q))
    return y, gap, counted.lmo_calls


@pytest.mark.parametrize("constraint", SETS, ids=repr)
@pytest.mark.parametrize("accuracy", [1.0, 1e-1, 1e-2])
def test_the_inner_loop_stops_at_the_first_gap_below(constraint, accuracy):
    y, gap, calls = one_update(constraint, inner_steps=10_000, inner_gap=accuracy)
    assert gap <= accuracy
    assert calls < 10_000
    if calls > 1:
        _, before, _ = one_update(constraint, inner_steps=calls - 2) if calls > 2 else (0, 9e9, 0)
        assert before > accuracy
        same, _, _ = one_update(constraint, inner_steps=calls - 1)
        np.testing.assert_array_equal(y, same)


@pytest.mark.parametrize("constraint", SETS, ids=repr)
def test_a_gap_out_of_reach_leaves_k_steps(constraint):
    plain, _, _ = one_update(constraint, inner_steps=4)
    stopped, _, calls = one_update(constraint, inner_steps=4, inner_gap=1e-14)
    np.testing.assert_array_equal(plain, stopped)
    assert calls <= 4


def test_a_loose_gap_moves_nothing_and_counts_the_call_it_made():
    f, constraint = model(), adafw.L1Ball(2.0)
    step = AdaptiveStep(learning_rate=0.3, inner_gap=1e9)
    r = adafw.minimize(f, constraint, adafw.Algorithm(gradients.Full(), step), max_iterations=7)
    np.testing.assert_array_equal(r.x, np.zeros(5))
    assert r.trace[-1].lmo_calls == 7


def test_lmo_calls_of_a_run_are_those_made():
    f, constraint = model(), adafw.L2Ball(1.5)
    step = AdaptiveStep(learning_rate=0.3, inner_steps=50, inner_gap=OpenLoop())
    algorithm = adafw.Algorithm(gradients.Full(), step)
    r = adafw.minimize(f, constraint, algorithm, max_iterations=20)
    assert 20 <= r.trace[-1].lmo_calls < 20 * 50
    limited = adafw.minimize(f, constraint, algorithm, max_lmo_calls=40)
    assert limited.status == "max_lmo_calls"
    assert limited.trace[-1].lmo_calls < 40 + 50


@pytest.mark.parametrize("inner", ["frank_wolfe", "corrective"])
def test_the_gap_of_an_iteration_is_its_own(inner):
    """phi_0 is loose and phi_1 is not: the first iteration moves nothing, the second does."""
    phi = {0: 1e9, 1: 1e-9, 2: 1e9}
    step = AdaptiveStep(learning_rate=0.3, inner_steps=9, inner=inner, inner_gap=lambda t: phi[t])
    f, constraint = model(), adafw.L1Ball(2.0)
    x = constraint.start(5)
    state, moved = step.init(x), []
    for t in range(3):
        y, state = step.update(f, constraint, x, f.gradient(x), t, state)
        moved.append(bool((y != x).any()))
        x = y
    assert moved[:2] == [False, True]
    # Corrective steps begin on the face of x, whatever is enough.
    assert moved[2] is (inner == "corrective")


def test_inner_gap_is_checked():
    with pytest.raises(ValueError, match="inner_gap must be a number that is finite and >= 0"):
        AdaptiveStep(learning_rate=1.0, inner_gap=-1e-3)
