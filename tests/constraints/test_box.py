"""Boxes: what their bounds may be, and points between them."""

import numpy as np
import pytest

from adafw import Box, Nonnegative

LOW, HIGH = np.array([[-1.0], [0.0]]), np.array([0.5, 2.0, 3.0])


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ([0.0, 2.0, 3.0], [1.0, 1.0, 1.0], r"lower must be <= upper .*got 2 > 1 at entry 1\."),
        (np.zeros(3), np.ones(2), r"shapes that fit, got \(3,\) and \(2,\)"),
        (-1e200, 1.0, r"at most 1e\+151 in size, got 1e\+200"),
        (0.0, 1e200, r"at most 1e\+151 in size, got 1e\+200"),
        (np.nan, 1.0, "lower must be finite"),
        (0.0, np.inf, "upper must be finite"),
    ],
)
def test_bounds_that_are_none_are_refused(lower, upper, message):
    with pytest.raises(ValueError, match=message):
        Box(lower, upper)


def test_bounds_of_two_shapes_are_bounds_of_both():
    box = Box(LOW, HIGH)
    assert box.shape == (2, 3)
    assert box.scale == 3.0
    g = np.array([[1.0, -1.0, 0.0], [0.0, 2.0, -2.0]])
    np.testing.assert_array_equal(box.lmo(g), [[-1.0, 2.0, 1.0], [0.25, 0.0, 3.0]])
    np.testing.assert_array_equal(box.project(5 * g - 1), [[0.5, -1.0, -1.0], [0.0, 2.0, 0.0]])
    np.testing.assert_array_equal(box.start((2, 3)), np.zeros((2, 3)))
    assert box.diameter((2, 3), 1) == 1.5 + 3 + 4 + 0.5 + 2 + 3
    assert box.violation(np.full((2, 3), -3.0)) == pytest.approx(3 / 3)  # below 0, by its scale
    assert box.violation(np.full((2, 3), 4.0)) == pytest.approx(3.5 / 3)
    assert Box(-7.0, 2.0).scale == 7.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numbers_bound_points_of_any_shape(dtype):
    """By a look-up, which must not mix up the three cases."""
    box = Box(-1.0, 3.0)
    assert box.shape is None
    g = np.array([[2.0, -2.0, 0.0], [-0.0, 1e-30, -1e30]], dtype)
    v = box.lmo(g)
    assert v.dtype == dtype
    np.testing.assert_array_equal(v, [[-1.0, 3.0, 1.0], [1.0, -1.0, 3.0]])
    assert box.diameter((2, 3), np.inf) == 4.0
    np.testing.assert_array_equal(Box(1.0, 3.0).start(2), [1.0, 1.0])
    np.testing.assert_array_equal(Box(-3.0, -1.0).start(2), [-1.0, -1.0])


def test_the_middle_of_huge_bounds_is_in_range():
    middle = Box(2e38, 3e38).lmo(np.zeros(2, np.float32))
    np.testing.assert_allclose(middle, 2.5e38, rtol=1e-6)


def test_a_nonnegative_box_is_measured_by_its_radius():
    box = Nonnegative(0.5)
    assert (box.scale, box.radial, repr(box)) == (0.5, True, "Nonnegative(radius=0.5)")
    assert box.violation(np.array([0.0, -1.0])) == 2.0
    assert box.violation(np.array([0.0, 1.0])) == 1.0
    np.testing.assert_array_equal(box.lmo(np.array([1.0, -1.0, 0.0])), [0.0, 0.5, 0.25])
