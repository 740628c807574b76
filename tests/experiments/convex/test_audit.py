import numpy as np
import pytest

import adafw
from adafw import metrics
from adafw.datasets import support_vector
from adafw.experiments.convex.audit import AuditedStep
from adafw.steps import AdaptiveStep


def run(step, n=25, constraint=None):
    A, y = support_vector(80, 9, seed=2)
    f = adafw.LinearModel(A, y, adafw.losses.Logistic())
    algorithm = adafw.Algorithm(adafw.gradients.CSFW(), step)
    return adafw.minimize(
        f, constraint or adafw.L1Ball(3.0), algorithm, max_iterations=n, record_every=1,
        path="generic",
    )  # fmt: skip


@pytest.mark.parametrize("metric", [metrics.AdaGrad(), metrics.AMSGrad(), metrics.AdaDelta()])
@pytest.mark.parametrize("constraint", [adafw.L1Ball(3.0), adafw.LInfBall(1.0), adafw.L2Ball(2.0)])
@pytest.mark.parametrize("max_step", [1.0, 0.3])
def test_a_watched_step_changes_no_bit(metric, constraint, max_step):
    """On every metric and set: the watcher raises if it loses track of the iterates by a bit."""
    step = AdaptiveStep(learning_rate=0.5, inner_steps=3, metric=metric, max_step=max_step)
    plain, watched = run(step, 25, constraint), run(AuditedStep(step), 25, constraint)
    np.testing.assert_array_equal(plain.x, watched.x)
    assert plain.trace["lmo_calls"].tolist() == watched.trace["lmo_calls"].tolist()
    state = watched.state.step
    assert state["inner"] == 25 * 3
    assert 0 <= state["cut"] <= state["exceeded"] <= state["inner"]


def test_counts_are_those_of_bounded_steps():
    """An inner step exceeds a bound exactly if a step with that bound goes elsewhere."""
    free = AdaptiveStep(learning_rate=30.0, inner_steps=1)
    bounded = AdaptiveStep(learning_rate=30.0, inner_steps=1, max_step=lambda t: 2 / (t + 2))
    x, state = np.zeros(4), AuditedStep(free).init(np.zeros(4))
    ball, memory = adafw.L1Ball(1.0), bounded.init(np.zeros(4))
    rng, differ = np.random.default_rng(0), 0
    for k in range(200):
        t = 1 + k % 4  # at 0 the bound is 1, which the free step has, too; later bounds are close
        g = rng.standard_normal(4) * 10.0 ** rng.uniform(-3, 1)
        elsewhere, memory = bounded.update(None, ball, x, g, t, memory)
        x, state = AuditedStep(free).update(None, ball, x, g, t, state)
        differ += not np.array_equal(x, elsewhere)
    assert state["inner"] == 200
    assert 0 < state["exceeded"] == differ < 200


def test_an_audit_that_is_resumed_goes_on_counting():
    step = AuditedStep(AdaptiveStep(learning_rate=30.0, inner_steps=3))
    whole, half = run(step, 20).state.step, run(step, 10)
    A, y = support_vector(80, 9, seed=2)
    f = adafw.LinearModel(A, y, adafw.losses.Logistic())
    algorithm = adafw.Algorithm(adafw.gradients.CSFW(), step)
    rest = adafw.minimize(
        f, adafw.L1Ball(3.0), algorithm, state=half.state, max_iterations=20, record_every=1
    )
    for key in ("inner", "exceeded", "cut"):
        assert rest.state.step[key] == whole[key]


def test_counts_of_inner_steps_by_hand():
    """Sizes from the formula of the short step on the subproblem, with rates that change."""
    step = AdaptiveStep(learning_rate=lambda t: 90.0 / (t + 1), inner_steps=3)
    ball, x, squares = adafw.L1Ball(1.0), np.zeros(4), np.zeros(4)
    watched, counts = AuditedStep(step), {"inner": 0, "exceeded": 0, "cut": 0}
    state = watched.init(x)
    rng, twice = np.random.default_rng(0), 0
    for k in range(300):
        t, g = 1 + k % 4, rng.standard_normal(4) * 10.0 ** rng.uniform(-3, 1)
        squares += g**2
        h, eta, y = step.metric.offset + np.sqrt(squares), 90.0 / (t + 1), x
        before = counts["cut"]
        for _ in range(3):
            slope = g + h * (y - x) / eta
            d = ball.lmo(slope) - y
            size = -slope @ d / (d @ (h * d) / eta) if d.any() else 0.0
            y = y + np.clip(size, 0, 1) * d
            counts["inner"] += 1
            counts["exceeded"] += size > 2 / (t + 2)
            counts["cut"] += size > 1
        twice += counts["cut"] - before > 1
        x, state = watched.update(None, ball, x, g, t, state)
        np.testing.assert_allclose(x, y, atol=1e-12)
    assert {key: state[key] for key in counts} == counts
    assert twice  # both of an iteration are counted
    assert 0 < counts["cut"] < counts["exceeded"] < counts["inner"] == 900
