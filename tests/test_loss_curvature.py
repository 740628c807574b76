"""Second derivatives of losses: against differences of slopes, and within the stated bound."""

import numpy as np
import pytest

import adafw
from adafw import losses

LOSSES = [
    (losses.Squared(), 0.3),
    (losses.Logistic(), 1.0),
    (losses.SquaredHinge(), -1.0),
    (losses.Huber(0.7), 0.4),
    (losses.SmoothedHinge(0.5), 1.0),
    (losses.Poisson(), 2.0),
]


@pytest.mark.parametrize(("loss", "target"), LOSSES, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_second_derivative(loss, target, dtype):
    z = np.linspace(-4.003, 4.001, 97)  # off the kinks
    y = np.full_like(z, target)
    second = loss.second(z.astype(dtype), y.astype(dtype))
    assert second.dtype == dtype
    h = 1e-5
    difference = (loss.slope(z + h, y) - loss.slope(z - h, y)) / (2 * h)
    np.testing.assert_allclose(second, difference, rtol=1e-5, atol=1e-6)
    assert (second <= loss.curvature * (1 + 1e-6)).all()


@pytest.mark.parametrize(("loss", "target"), LOSSES[:-1], ids=lambda v: type(v).__name__)
def test_no_smaller_curvature_would_do(loss, target):
    z = np.linspace(-3, 3, 60_001)
    assert loss.second(z, np.full_like(z, target)).max() == pytest.approx(loss.curvature, rel=1e-6)


def test_that_of_softmax_is_met_where_two_classes_are_level():
    p = losses.Softmax().probabilities(np.array([[0.0, 0.0, -1e3]]))[0]
    largest = np.linalg.eigvalsh(np.diag(p) - np.outer(p, p))[-1]
    assert losses.Softmax().curvature == pytest.approx(largest)
    assert losses.Outputs(losses.Huber(0.5)).curvature == losses.Huber(0.5).curvature


def test_several_outputs_are_judged_as_their_loss_is():
    squares, counts = losses.Outputs(losses.Squared()), losses.Outputs(losses.Poisson())
    assert (squares.lower_bound, counts.lower_bound) == (0.0, -np.inf)
    assert (squares.task, squares.outputs(np.ones((4, 3)))) == ("regression", 3)
    z, y = np.array([[0.0, 1.0], [2.0, 0.5]]), np.array([[1.0, 0.0], [2.0, 3.0]])
    np.testing.assert_allclose(counts.mean(z), np.exp(z))
    np.testing.assert_array_equal(squares.mean(z), z)
    for loss in (squares, counts):
        np.testing.assert_allclose(loss.value(z, y), loss.loss.value(z, y).sum(axis=1))
        np.testing.assert_allclose(loss.least(y), loss.loss.least(y).sum(axis=1))
        np.testing.assert_array_equal(loss.slope(z, y), loss.loss.slope(z, y))
        np.testing.assert_array_equal(loss.second(z, y), loss.loss.second(z, y))
    assert losses.Softmax().lower_bound == 0
    np.testing.assert_array_equal(losses.Softmax().least(np.array([0, 1])), [0, 0])
    np.testing.assert_array_equal(losses.Softmax().mean(z), z)


def test_where_the_second_derivative_jumps_the_flat_side_counts():
    """Of the losses, and of what is compiled for them, bit for bit on the kinks themselves."""
    for loss, z, y in (
        (losses.Huber(0.5), [0.5, -0.5, 0.25], [0.0, 0.0, 0.0]),
        (losses.SmoothedHinge(0.5), [1.0, 0.5, 0.75], [1.0, 1.0, 1.0]),
        (losses.SquaredHinge(), [1.0, 1.0, 0.5], [1.0, 1.0, 1.0]),
    ):
        z, y = np.array(z), np.array(y)
        curved = loss.curvature if not isinstance(loss, losses.Huber) else 2.0
        np.testing.assert_array_equal(loss.second(z, y), [0, 0, curved])
        f = adafw.LinearModel(np.eye(3), np.where(y == 0, 0.0, y), loss)
        value, slopes, bends = f.curves_at(z)
        assert value == pytest.approx(loss.value(z, y).mean())
        np.testing.assert_allclose(3 * slopes, loss.slope(z, y))
        np.testing.assert_allclose(3 * bends, loss.second(z, y))
