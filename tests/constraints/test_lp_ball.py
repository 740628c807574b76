import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adafw import L1Ball, L2Ball, LInfBall, LpBall

ORDERS = [1.0001, 1.01, 1.3, 1.99, 2.01, 3.0, 20.0, 1000.0]


@pytest.mark.parametrize(("p", "ball"), [(1, L1Ball), (2, L2Ball), (math.inf, LInfBall)])
def test_is_the_classical_ball_where_there_is_one(p, ball):
    rng = np.random.default_rng(0)
    ours, theirs = LpBall(2.0, p), ball(2.0)
    for g in (rng.standard_normal(7), np.array([0.0, -2, 2, 1, -2, 0, 0]), np.zeros(7)):
        np.testing.assert_array_equal(ours.lmo(g), theirs.lmo(g))
        h = 10 ** rng.uniform(-3, 3, 7)
        np.testing.assert_array_equal(ours.project(3 * g, h), theirs.project(3 * g, h))
        assert ours.violation(3 * g) == theirs.violation(3 * g)
    for q in (1, 1.5, 2, 7, math.inf):
        assert ours.diameter(7, q) == theirs.diameter(7, q)


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1.0, 1e150, 1e300])
def test_lmo_at_extreme_orders_and_gradients(p, scale):
    g = np.random.default_rng(1).standard_normal(50)
    v = LpBall(3.0, p).lmo(g * scale)
    assert np.isfinite(v).all()
    q = p / (p - 1)
    a = np.abs(g) / np.abs(g).max()
    least = -3.0 * np.abs(g).max() * np.sum(a**q) ** (1 / q)
    assert np.vdot(g, v) == pytest.approx(least, rel=1e-12)
    assert LpBall(3.0, p).violation(v) <= 1e-14


@pytest.mark.parametrize("p", ORDERS)
def test_lmo_treats_equal_entries_equally_and_zeros_as_zero(p):
    g = np.array([2.0, -2.0, 0.0, 2.0])
    v = LpBall(1.0, p).lmo(g)
    share = 3 ** (-1 / p)
    np.testing.assert_allclose(v, [-share, share, 0, -share], rtol=1e-12)
    np.testing.assert_array_equal(LpBall(1.0, p).lmo(np.zeros(4)), 0)


def test_lmo_tends_to_those_of_its_neighbours():
    g = np.random.default_rng(2).standard_normal(6)
    for p, near in ((1, 1 + 1e-9), (2, 2 + 1e-9), (math.inf, 1e12)):
        np.testing.assert_allclose(LpBall(1, near).lmo(g), LpBall(1, p).lmo(g), atol=1e-8)


def exact_projection(x, h, p):
    """Onto the unit ball, by bisection in extended precision: slow, simple, and independent."""
    a, h, p = np.abs(np.longdouble(x)), np.longdouble(h), np.longdouble(p)

    def entries(l):
        low, high = np.full(a.shape, np.longdouble(-2000)), np.log(a)
        for _ in range(90):
            middle = (low + high) / 2
            large = np.exp(middle) + l / h * np.exp((p - 1) * middle) > a
            low, high = np.where(large, low, middle), np.where(large, middle, high)
        return np.exp(low)

    low, high = np.log(1e-30 * (h * a).min()), np.log(1e6 * (h * a).max())
    for _ in range(90):
        middle = (low + high) / 2
        outside = np.sum(entries(np.exp(middle)) ** p) > 1
        low, high = (middle, high) if outside else (low, middle)
    return np.sign(x) * entries(np.exp(low))


@pytest.mark.parametrize("orders", [0, 3, 8])
@pytest.mark.parametrize("p", ORDERS)
def test_projection_has_the_digits_of_extended_precision(p, orders):
    rng = np.random.default_rng(3)
    for _ in range(3):
        x = rng.standard_normal(5) * 10 ** rng.uniform(0, 2)
        h = 10 ** rng.uniform(-orders, orders, 5)
        if LpBall(1.0, p).contains(x):
            continue
        v = LpBall(1.0, p).project(x, h)
        digits = 1e-14 if p > 1.05 else 1e-15 / (p - 1)
        np.testing.assert_allclose(v, exact_projection(x, h, p).astype(float), rtol=0, atol=digits)


@given(st.floats(1.001, 200), st.integers(0, 10**6))
def test_projection_is_symmetric_and_keeps_the_order(p, seed):
    x = np.random.default_rng(seed).standard_normal(6) * 3
    v = LpBall(1.0, p).project(x)
    np.testing.assert_array_equal(LpBall(1.0, p).project(-x), -v)
    order = np.argsort(np.abs(x))
    assert (np.diff(np.abs(v)[order]) >= -1e-15).all()
    assert (np.abs(v) <= np.abs(x) * (1 + 1e-15)).all()


def test_a_point_outside_by_rounding_only_is_scaled_back():
    x = np.full(6, 6 ** (-1 / 1.2)) * (1 + 3e-16)
    np.testing.assert_allclose(LpBall(1.0, 1.2).project(x, np.arange(1.0, 7)), x, rtol=1e-15)


def test_diameter_between_opposite_points():
    assert LpBall(2.0, 1.5).diameter(9, 1.5) == pytest.approx(4.0)
    assert LpBall(2.0, 3.0).diameter(9, 1) == pytest.approx(4 * 9 ** (2 / 3))
    assert LpBall(2.0, 3.0).diameter((3, 3), math.inf) == 4.0


@pytest.mark.parametrize("p", [0.5, -1, math.nan])
def test_refuses_an_order_that_is_no_norm(p):
    with pytest.raises(ValueError, match="p must be a number"):
        LpBall(1.0, p)


@pytest.mark.parametrize("p", [1, 1.5, 3.0, np.inf])
def test_a_point_at_infinity_is_infinitely_far_outside(p):
    assert LpBall(2.0, p).violation(np.array([0.5, np.inf, 1.0])) == np.inf
    assert LpBall(2.0, p).violation(np.zeros(3)) == 0
