import numpy as np
import pytest

from adafw import GroupBall, L1Ball, L2Ball


def test_lmo_fills_the_strongest_group():
    ball = GroupBall(2.0, [5, 5, -1, -1, 9])
    np.testing.assert_allclose(ball.lmo(np.array([0.0, 3, 2, -2, 2.9])), [0, -2, 0, 0, 0])
    np.testing.assert_allclose(
        ball.lmo(np.array([1.0, 1, 3, -4, 0])), [0, 0, -1.2, 1.6, 0], atol=1e-15
    )


def test_of_equal_groups_the_lowest_label_wins():
    ball = GroupBall(1.0, [7, 7, 3, 3])
    np.testing.assert_allclose(ball.lmo(np.array([3.0, 4, 4, 3])), [0, 0, -0.8, -0.6])
    np.testing.assert_array_equal(ball.lmo(np.zeros(4)), 0)


def test_is_the_l1_ball_of_single_coordinates_and_the_l2_ball_of_one_group():
    rng = np.random.default_rng(0)
    singles, one = GroupBall(2.0, np.arange(6)), GroupBall(2.0, np.zeros(6, dtype=int))
    for _ in range(20):
        x, h = 3 * rng.standard_normal(6), 10 ** rng.uniform(-3, 3, 6)
        for ours, theirs in ((singles, L1Ball(2.0)), (one, L2Ball(2.0))):
            np.testing.assert_allclose(ours.lmo(x), theirs.lmo(x), atol=1e-15)
            for metric in (None, h):
                ours_p, theirs_p = ours.project(x, metric), theirs.project(x, metric)
                np.testing.assert_allclose(ours_p, theirs_p, rtol=0, atol=1e-13)
            assert ours.violation(x) == pytest.approx(theirs.violation(x))


def exact_projection(x, h, labels):
    """Onto the unit ball, by nested bisection in extended precision."""
    x, h = np.longdouble(x), np.longdouble(h)

    def lengths(l):
        rho = np.zeros(labels.max() + 1, dtype=np.longdouble)
        for k in range(len(rho)):
            hx, weights = (h * x)[labels == k], h[labels == k]
            low, high = np.longdouble(0), np.sqrt(np.sum(x[labels == k] ** 2))
            for _ in range(90):
                middle = (low + high) / 2
                beyond = np.sum((hx / (weights * middle + l)) ** 2) > 1
                low, high = (middle, high) if beyond else (low, middle)
            rho[k] = low
        return rho

    low, high = np.log(1e-25 * np.abs(h * x).min()), np.log(2 * np.sqrt(np.sum((h * x) ** 2)))
    for _ in range(90):
        middle = (low + high) / 2
        low, high = (middle, high) if lengths(np.exp(middle)).sum() > 1 else (low, middle)
    rho = lengths(np.exp(low))[labels]
    return h * x * rho / (h * rho + np.exp(low))


@pytest.mark.parametrize("orders", [0, 2, 8])
def test_projection_has_the_digits_of_extended_precision(orders):
    rng = np.random.default_rng(1)
    for _ in range(4):
        labels = np.unique(rng.integers(0, 4, 9), return_inverse=True)[1]
        x, h = rng.standard_normal(9) * 3, 10 ** rng.uniform(-orders, orders, 9)
        v = GroupBall(1.0, labels).project(x, h)
        expected = exact_projection(x, h, labels).astype(float)
        np.testing.assert_allclose(v, expected, rtol=0, atol=1e-13)


def test_projection_drops_weak_groups_and_keeps_empty_ones_empty():
    ball = GroupBall(1.0, [0, 0, 1, 1, 2, 2])
    x = np.array([3.0, 4, 0.1, 0.1, 0, 0])
    np.testing.assert_allclose(ball.project(x), [0.6, 0.8, 0, 0, 0, 0])
    v = ball.project(x, np.array([1.0, 2, 1, 1, 5, 5]))
    assert (v[2:] == 0).all()
    assert np.linalg.norm(v) == pytest.approx(1)


def test_points_have_the_shape_of_the_labels():
    ball = GroupBall(1.0, [[0, 0], [1, 1]])
    assert ball.shape == (2, 2)
    np.testing.assert_allclose(ball.lmo(np.array([[0.0, 1], [0, -2]])), [[0, 0], [0, 1]])
    with pytest.raises(ValueError, match="holds points of shape"):
        ball.lmo(np.ones(4))


def test_diameter_is_that_of_the_largest_group():
    ball = GroupBall(2.0, [0, 1, 1, 1, 1])
    assert ball.diameter(5) == 4.0
    assert ball.diameter(5, 1) == pytest.approx(8.0)
    assert ball.diameter(5, np.inf) == 4.0


def test_labels_only_name_the_groups():
    assert GroupBall(1.0, [10, 10, 30]) == GroupBall(1.0, [0, 0, 1])
    assert GroupBall(1.0, [0, 1, 1]) != GroupBall(1.0, [0, 0, 1])


@pytest.mark.parametrize("groups", [[0.5, 1], 3, []])
def test_refuses_labels_that_are_none(groups):
    with pytest.raises(ValueError, match="groups must"):
        GroupBall(1.0, groups)


def test_a_point_on_the_sphere_with_a_dead_group_stays():
    """Outside by rounding only: the multiplier is 0, and a group without norm would be 0 / 0."""
    ball, h = GroupBall(1.0, [0, 0, 1, 1]), np.array([1.0, 2, 1, 3])
    x = np.array([-0.9684443606919009, 0.24922985423912564, 0, 0])
    assert ball.violation(x) > 0
    np.testing.assert_allclose(ball.project(x, h), x, rtol=1e-15)
    # By two steps the multiplier would be below 0.
    ball, x = GroupBall(1.0, np.arange(12) // 3), np.array(
        [0.2930647535906533, -0.5876743697288791, -0.07886319401464006, -0.00645996842096206,
         -0.002529860781789882, 0.00505493621669914, -0.04349961428698965, -0.2750337243396545,
         0.17710472392172164, 0.0, 0.0, 0.0]
    )  # fmt: skip
    h = np.array(
        [0.032039342236520066, 0.027934284037946133, 0.03559395689597876, 0.048920559100378534,
         0.02659440009555568, 0.03422095032093931, 0.03171748828046965, 0.035783225127864166,
         0.030841118709552345, 0.026158101604049605, 0.04352753579672206, 0.023278150368962088]
    )  # fmt: skip
    np.testing.assert_allclose(ball.project(x, h), x, atol=1e-15)
