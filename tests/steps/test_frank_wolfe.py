"""Template 1 line by line: vertices, step sizes, averages of gradients."""

import numpy as np
import pytest

import adafw
from adafw.constraints.counted import CountedSet
from adafw.steps import FrankWolfeStep, LineSearch, ShortStep


def run(step, gradients, x):
    """Iterates of a linear objective whose gradient is told for each t."""
    f = adafw.UserSum(1, lambda x: 0.0, lambda x, batch=None: x)
    ball, state, found = adafw.LInfBall(1.0), step.init(x), []
    for t, g in enumerate(gradients):
        x, state = step.update(f, ball, x, np.array(g), t, state)
        found.append(x)
    return found, state


def test_steps_lead_towards_vertices():
    first, second = [1.0, -1.0], [-1.0, -2.0]
    found, state = run(FrankWolfeStep(), [first, second], np.zeros(2))
    np.testing.assert_array_equal(found[0], [-1, 1])
    np.testing.assert_allclose(found[1], [-1 + 2 / 3 * 2, 1])
    assert state == {}
    found, _ = run(FrankWolfeStep(lambda t: [0.5, 0.25][t]), [first, second], np.zeros(2))
    np.testing.assert_array_equal(found[0], [-0.5, 0.5])
    np.testing.assert_array_equal(found[1], [-0.5 + 0.25 * 1.5, 0.5 + 0.25 * 0.5])


def test_averages_of_gradients():
    """c_0 = g_0, c_t = (1 - delta_t) c_{t-1} + delta_t g_t, and the vertex is that of c_t."""
    gradients = [[4.0, -1.0], [-1.0, 3.0], [-9.0, 2.0]]
    step = FrankWolfeStep(0.5, averaging=lambda t: [0.9, 0.25, 0.5][t])
    found, state = run(step, gradients, np.zeros(2))
    c1 = 0.75 * np.array(gradients[0]) + 0.25 * np.array(gradients[1])
    c2 = 0.5 * c1 + 0.5 * np.array(gradients[2])
    assert (np.sign(c1) == [1, 0]).all()
    np.testing.assert_allclose(state["average"], c2)
    x = np.array([-0.5, 0.5])
    np.testing.assert_array_equal(found[0], x)
    x = x + 0.5 * (adafw.LInfBall(1.0).lmo(c1) - x)
    np.testing.assert_allclose(found[1], x)
    x = x + 0.5 * (adafw.LInfBall(1.0).lmo(c2) - x)
    np.testing.assert_allclose(found[2], x)


def test_a_gradient_of_zero_moves_nothing_and_is_counted():
    f = adafw.UserSum(1, lambda x: 0.0, lambda x, batch=None: x)
    x, counted = np.array([0.3, 0.1]), CountedSet(adafw.LInfBall(1.0))
    new, state = FrankWolfeStep().update(f, counted, x, np.zeros(2), 0, {})
    assert new is x
    assert state == {}
    assert counted.lmo_calls == 1


def test_rules_are_asked_at_x():
    f = adafw.LinearModel(np.eye(2), np.array([0.2, 0.0]), adafw.losses.Squared())
    x = np.array([-0.5, 0.0])
    for rule in (LineSearch(), ShortStep()):
        new, _ = FrankWolfeStep(rule).update(f, adafw.L1Ball(1.0), x, f.gradient(x), 0, {})
        np.testing.assert_allclose(new, [0.2, 0.0], atol=1e-12)


def test_what_does_not_go_together_is_refused():
    with pytest.raises(TypeError, match="step_size must be a schedule where averaging is one"):
        FrankWolfeStep(LineSearch(), averaging=0.5)
    with pytest.raises(ValueError, match="step_size"):
        FrankWolfeStep(1.5)
    with pytest.raises(ValueError, match="averaging"):
        FrankWolfeStep(averaging=-0.1)
    with pytest.raises(ValueError, match="averaging"):
        FrankWolfeStep(averaging=1.1)
    f = adafw.LinearModel(np.eye(2), np.zeros(2), adafw.losses.Squared())
    FrankWolfeStep(0.5).check(f, adafw.L1Ball(1.0), adafw.gradients.CSFW())
    with pytest.raises(TypeError, match="LineSearch needs exact gradients"):
        FrankWolfeStep(LineSearch()).check(f, adafw.L1Ball(1.0), adafw.gradients.CSFW())
