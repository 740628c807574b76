import numpy as np
import pytest

import adafw
from adafw.datasets import support_vector
from adafw.experiments.alternatives import AuditedStep, DirectStep, SolvedStep
from adafw.steps import AdaptiveStep


def problem():
    A, y = support_vector(80, 9, seed=2)
    return adafw.LinearModel(A, y, adafw.losses.Logistic()), adafw.L1Ball(3.0)


def run(step, n=25):
    f, ball = problem()
    algorithm = adafw.Algorithm(adafw.gradients.CSFW(), step)
    return adafw.minimize(f, ball, algorithm, max_iterations=n, record_every=1)


def test_direct_step_by_hand():
    f, ball = problem()
    x = np.zeros(9)
    g = f.gradient(x)
    step = DirectStep()
    moved, _ = step.update(f, ball, x, g, 1, step.init(x))
    v = np.zeros(9)
    # At t = 0 of the metric h = |g| + 1e-8, so that m / h is nearly a sign: compare exactly.
    scaled = g / (np.abs(g) + 1e-8)
    i = np.argmax(np.abs(scaled))
    v[i] = -3.0 * np.sign(scaled[i])
    np.testing.assert_allclose(moved, 2 / 3 * v)


def test_solved_step_solves_its_subproblem_ever_better():
    """x_{t+1} is within sqrt(2 eta phi_t) of AdaGrad's projection in the norm of H_t."""
    f, ball = problem()
    step = SolvedStep(learning_rate=0.5, most_steps=100_000)
    x = np.zeros(9)
    state = step.init(x)
    accumulated = np.zeros(9)
    for t in range(8):
        g = f.gradient(x)
        accumulated += g * g
        h = 1e-8 + np.sqrt(accumulated)
        y, state = step.update(f, ball, x, g, t, state)
        exact = ball.project(x - 0.5 * g / h, h)
        phi = state["first_gap"] / ((t + 1) * (t + 2))
        assert np.dot(h, (y - exact) ** 2) <= 2 * 0.5 * phi + 1e-12
        assert ball.contains(y)
        x = y


def test_solved_step_keeps_to_its_limit():
    result = run(SolvedStep(learning_rate=0.5, accuracy=1e-12, most_steps=7), n=4)
    assert result.trace["lmo_calls"].max() <= 4 * 7


def test_audited_step_changes_no_bit_and_counts():
    step = AdaptiveStep(learning_rate=30.0, inner_steps=3)
    plain, audited = run(step), run(AuditedStep(step))
    np.testing.assert_array_equal(plain.x, audited.x)
    state = audited.state.step
    assert state["inner"] == 25 * 3
    assert 0 < state["exceeded"] <= state["inner"]
    assert state["cut"] <= state["exceeded"]


def test_bad_parameters():
    with pytest.raises(ValueError, match="accuracy must be a number"):
        SolvedStep(learning_rate=1.0, accuracy=0.0)
    with pytest.raises(ValueError, match="most_steps must be an integer >= 1"):
        SolvedStep(learning_rate=1.0, most_steps=0)
