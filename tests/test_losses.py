import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adafw import losses

LOSSES = [losses.Squared(), losses.Logistic(), losses.SquaredHinge()]
NUMBERS = st.floats(-50, 50)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@given(z=NUMBERS, y=st.sampled_from([-1.0, 1.0]))
def test_slope_is_the_derivative_and_curvature_bounds_its_change(loss, z, y):
    z, y = np.array([z]), np.array([y])
    step = 1e-5
    up, down = loss.value(z + step, y), loss.value(z - step, y)
    scale = 1 + np.abs(loss.slope(z, y))
    assert np.abs((up - down) / (2 * step) - loss.slope(z, y)) <= 1e-4 * scale
    change = np.abs(loss.slope(z + step, y) - loss.slope(z - step, y))
    assert change <= loss.curvature * 2 * step * (1 + 1e-6) + 1e-12 * scale


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_dtype_is_kept_and_extremes_do_not_overflow(loss):
    for dtype in (np.float32, np.float64):
        z, y = np.array([-800.0, 0.0, 800.0], dtype), np.array([1.0, 1.0, -1.0], dtype)
        for result in (loss.value(z, y), loss.slope(z, y)):
            assert result.dtype == dtype
            assert np.isfinite(result).all()


def test_known_values():
    one = np.array([1.0])
    assert losses.Squared().value(np.array([3.0]), one) == 4
    assert losses.Squared().slope(np.array([3.0]), one) == 4
    assert losses.Logistic().value(np.zeros(1), one) == pytest.approx(np.log(2))
    assert losses.Logistic().slope(np.zeros(1), one) == -0.5
    assert losses.Logistic().value(np.array([-800.0]), one) == 800
    assert losses.SquaredHinge().value(np.array([-1.0]), one) == 4
    assert losses.SquaredHinge().slope(np.array([2.0]), one) == 0


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.SquaredHinge()], ids=repr)
def test_labels_must_be_signs(loss):
    with pytest.raises(ValueError, match=r"takes labels -1 and \+1, got 0"):
        loss.check(np.array([1.0, 0.0]))


def test_every_sample_of_a_softmax_is_scaled_by_itself():
    """Predictions of one may be far above those of another."""
    loss, y = losses.Softmax(), np.array([0, 1, 0])
    z = np.array([[0.0, 1.0], [900.0, 901.0], [-900.0, -899.0]])
    p = 1 / (1 + np.e)
    np.testing.assert_allclose(loss.probabilities(z), [[p, 1 - p]] * 3, rtol=1e-12)
    np.testing.assert_allclose(loss.slope(z, y), [[p - 1, 1 - p], [p, -p], [p - 1, 1 - p]])
    np.testing.assert_allclose(loss.value(z, y), -np.log([p, 1 - p, p]), rtol=1e-12)


def test_classes_that_do_not_occur_are_counted():
    assert losses.Softmax().outputs(np.array([0, 3, 3, 1])) == 4
    assert losses.Outputs(losses.Squared()).outputs(np.zeros((4, 3))) == 3


def test_small_probabilities_and_curvatures_of_the_logistic_loss_keep_their_digits():
    loss, z = losses.Logistic(), np.array([-45.0, -2.0, 45.0])
    small = np.exp(-45.0)
    p = loss.probabilities(z)
    np.testing.assert_allclose(p[[2, 0], [0, 1]], small, rtol=1e-12)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    for y in (np.ones(3), -np.ones(3)):
        np.testing.assert_allclose(loss.second(z, y)[[0, 2]], small, rtol=1e-12)


def test_what_a_loss_inherits_it_knows():
    class Same(losses.Logistic):
        pass

    class Less(losses.Squared):
        pass

    assert (Same.has_second, Same.has_probabilities) == (True, True)
    assert (Less.has_second, Less.has_probabilities) == (True, False)


WIDENED = [losses.Logistic(), losses.Huber(0.5), losses.SmoothedHinge(0.5), losses.Poisson()]


@pytest.mark.parametrize("loss", WIDENED, ids=lambda loss: type(loss).__name__)
def test_a_stretched_loss_has_the_same_slopes_far_out_and_bends_over_a_wider_range(loss):
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], 40) if loss.task == "classification" else rng.poisson(2.0, 40) + 0.0
    z = 3 * rng.standard_normal(40)
    assert np.allclose(loss.stretched(1.0).slope(z, y), loss.slope(z, y), atol=1e-12)
    assert np.allclose(loss.stretched(1.0).value(z, y), loss.value(z, y), atol=1e-12)
    wide = loss.stretched(10.0)
    ends = (wide.value(z + 1e-5, y) - wide.value(z - 1e-5, y)) / 2e-5
    assert np.allclose(wide.slope(z, y), ends, atol=1e-7)
    bends = (wide.slope(z + 1e-5, y) - wide.slope(z - 1e-5, y)) / 2e-5
    assert np.allclose(wide.second(z, y), bends, atol=1e-7)
    assert np.allclose(wide.slope(z - 1e4, y), loss.slope(z - 1e4, y))
    assert 0 < wide.second(z, y).max() < loss.second(z, y).max()


def test_how_far_predictions_are_from_where_a_loss_bends():
    z, y = np.array([-40.0, 40.0, 80.0]), np.array([1.0, -1.0, 1.0])
    assert losses.Logistic().stretch(z, y) == pytest.approx(160 / 3 / 4)
    assert losses.Huber(0.5).stretch(z, y) == pytest.approx(82 / 4)
    assert losses.SmoothedHinge(0.5).stretch(z, y) == pytest.approx(82 / 4)
    counts = np.array([np.e**2, 0.0, 0.0])
    # The furthest row above ln y; those below their count on average.
    assert losses.Poisson().stretch(np.array([2.0, -90.0, 80.0]), counts) == pytest.approx(20)
    assert losses.Poisson().stretch(np.array([-78.0, -90.0, 0.0]), counts) == pytest.approx(20)
    assert losses.Poisson().stretch(z, np.zeros(3)) == pytest.approx(20)
    for loss in (losses.Squared(), losses.SquaredHinge()):
        assert loss.stretch(z, y) == 0
        assert loss.stretched(3.0) is loss
