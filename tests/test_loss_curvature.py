"""Second derivatives of losses: against differences of slopes, and within the stated bound."""

import numpy as np
import pytest

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
