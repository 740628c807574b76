"""Whether rounding keeps a gap up: at minimisers and away from them, near 0 and far from it."""

import numpy as np
import pytest

import adafw
from adafw import losses
from adafw.fitting.rounding import keeps_up
from adafw.objectives import MatrixModel, WithIntercept


def problem(loss, offset, intercept=False):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, 10))
    y = A[:, 0] + rng.standard_normal(200)
    y = np.sign(y) if loss.task == "classification" else y
    f = adafw.LinearModel(A + offset, y, loss)
    return WithIntercept(f) if intercept else f


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Squared()], ids=repr)
@pytest.mark.parametrize("offset", [0.0, 10.0, 1e4])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("ball", [adafw.L1Ball(0.5), adafw.L2Ball(0.3), adafw.KSparse(0.1, 3)])
def test_rounding_is_told_from_what_is_left(loss, offset, intercept, ball):
    f = problem(loss, offset, intercept)
    r = adafw.minimize(f, ball, adafw.Corrective(), max_iterations=30, record_every=1)
    assert keeps_up(f, ball, r.x, r.gap)
    # A millionth of the way to another vertex is no rounding, nor is the start.
    for x in (r.x + 1e-6 * (ball.lmo(-f.gradient(r.x)) - r.x), 0 * r.x):
        assert not keeps_up(f, ball, x, ball.gap(x, f.gradient(x)))


def test_several_outputs_are_told_by_their_values():
    rng = np.random.default_rng(0)
    f = MatrixModel(rng.standard_normal((60, 4)), rng.integers(0, 3, 60), losses.Softmax())
    ball, x = adafw.L2Ball(0.5), np.zeros((4, 3))
    assert not keeps_up(f, ball, x, ball.gap(x, f.gradient(x)))
    r = adafw.minimize(f, ball, adafw.Corrective(), max_iterations=30, record_every=1)
    assert keeps_up(f, ball, r.x, r.gap)
