"""Vectors that rise: against brute force over all steps, and by hand."""

import numpy as np
import pytest

from adafw import Monotone


def test_lmo_takes_the_first_of_the_best_steps():
    constraint = Monotone(2.0)
    for g, expected in (
        ([1.0, 1.0, 1.0], [-2, -2, -2]),
        ([-1.0, -1.0, -1.0], [2, 2, 2]),
        ([3.0, -1.0, -2.0], [-2, 2, 2]),
        ([-3.0, 4.0, -5.0], [-2, -2, 2]),
        ([2.0, -2.0, 2.0], [-2, 2, 2]),  # as good as all at -2
        ([-1.0, 1.0, 0.0], [2, 2, 2]),  # as good as one more
    ):
        np.testing.assert_array_equal(constraint.lmo(np.array(g)), expected)
    zero = constraint.lmo(np.zeros(3))
    np.testing.assert_array_equal(zero, np.zeros(3))


def test_violation_is_the_deepest_fall_or_what_is_beyond_the_radius():
    constraint = Monotone(2.0)
    for x, amount in (
        ([-2.0, 0.0, 2.0], 0.0),
        ([0.0, 1.0, 0.5], 0.25),
        ([-5.0, 0.0, 1.0], 1.5),
        ([-1.0, 0.0, 5.0], 1.5),
        ([1.0, -1.0, 2.5], 1.0),
    ):
        assert constraint.violation(np.array(x)) == pytest.approx(amount)
        assert constraint.contains(np.array(x)) == (amount == 0)
    assert constraint.violation(np.array([1.0])) == 0.0
    assert np.isnan(constraint.violation(np.array([0.0, np.inf])))


def test_projection_pools_what_falls_by_its_weights():
    constraint, x = Monotone(2.0), np.array([1.0, 0.0, 9.0, -0.5])
    np.testing.assert_allclose(constraint.project(x), [0.5, 0.5, 2.0, 2.0])
    h = np.array([1.0, 1.0, 1.0, 17.0])
    np.testing.assert_allclose(constraint.project(x, h), [0.075] * 4)  # (1 + 9 - 8.5) / 20
    pooled = constraint.project(np.array([1.0, 0.0, 3.0]), np.array([3.0, 1.0, 1.0]))
    np.testing.assert_allclose(pooled, [0.75, 0.75, 2.0])
    np.testing.assert_allclose(constraint.project(np.array([-9.0, 0.0])), [-2.0, 0.0])


def test_diameter_is_from_the_lowest_to_the_highest():
    for p, width in ((1, 12.0), (2, 4 * 3**0.5), (np.inf, 4.0)):
        assert Monotone(2.0).diameter(3, p) == pytest.approx(width)


def test_refuses_what_is_no_vector():
    constraint = Monotone(2.0)
    for ask in (constraint.lmo, constraint.violation, constraint.project):
        with pytest.raises(ValueError, match=r"this Monotone holds vectors, got shape \(2, 2\)"):
            ask(np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"this Monotone holds vectors, got shape \(2, 2\)"):
        constraint.start((2, 2))
