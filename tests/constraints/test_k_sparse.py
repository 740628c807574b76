import itertools

import numpy as np
import pytest

from adafw import KSparse, L1Ball, LInfBall


def test_lmo_takes_the_first_of_equal_entries():
    g = np.array([1.0, -2, 2, 0, 2, -2])
    np.testing.assert_array_equal(KSparse(3.0, 2).lmo(g), [0, 3, -3, 0, 0, 0])
    np.testing.assert_array_equal(KSparse(3.0, 3).lmo(g), [0, 3, -3, 0, -3, 0])


def test_lmo_leaves_zeros_alone_even_if_k_has_room():
    np.testing.assert_array_equal(KSparse(3.0, 3).lmo(np.array([0.0, 0, -1, 0])), [0, 0, 3, 0])
    np.testing.assert_array_equal(KSparse(3.0, 2).lmo(np.zeros(4)), 0)


def test_ties_of_torch_are_those_of_numpy():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    for _ in range(50):
        g = rng.integers(-2, 3, 30).astype(float)
        v = KSparse(1.0, 7).lmo(torch.from_numpy(g))
        np.testing.assert_array_equal(v.numpy(), KSparse(1.0, 7).lmo(g))


def test_lmo_is_the_best_vertex():
    rng = np.random.default_rng(1)
    g = rng.standard_normal(5)
    signs = [np.array(s) for s in itertools.product([-1, 0, 1], repeat=5)]
    best = min(0.5 * s @ g for s in signs if np.abs(s).sum() <= 2)
    assert KSparse(0.5, 2).lmo(g) @ g == pytest.approx(best)


def test_is_the_l1_ball_for_one_and_the_box_for_all():
    rng = np.random.default_rng(2)
    for _ in range(20):
        x, h = 3 * rng.standard_normal(6), 10 ** rng.uniform(-3, 3, 6)
        one, all_of_them = KSparse(2.0, 1), KSparse(0.7, 6)
        np.testing.assert_array_equal(one.lmo(x), L1Ball(2.0).lmo(x))
        np.testing.assert_allclose(one.project(x, h), L1Ball(2.0).project(x, h), atol=1e-13)
        np.testing.assert_array_equal(all_of_them.lmo(x), LInfBall(0.7).lmo(x))
        np.testing.assert_array_equal(all_of_them.project(x, h), LInfBall(0.7).project(x, h))


def exact_projection(x, h, radius, k):
    """By bisection on the multiplier, in extended precision."""
    a, h = np.abs(np.longdouble(x)), np.longdouble(h)
    low, high = np.longdouble(0), (a * h).max()
    for _ in range(200):
        middle = (low + high) / 2
        large = np.clip(a - middle / h, 0, radius).sum() > np.longdouble(k) * radius
        low, high = (middle, high) if large else (low, middle)
    return np.sign(x) * np.clip(a - high / h, 0, radius)


@pytest.mark.parametrize("orders", [0, 2, 8])
def test_projection_has_the_digits_of_extended_precision(orders):
    rng = np.random.default_rng(3)
    for _ in range(200):
        n, k = int(rng.integers(1, 15)), int(rng.integers(1, 5))
        x, h = rng.standard_normal(n) * 3, 10 ** rng.uniform(-orders, orders, n)
        v = KSparse(0.5, k).project(x, h)
        expected = exact_projection(x, h, 0.5, k).astype(float)
        np.testing.assert_allclose(v, expected, rtol=0, atol=2e-15)


def test_projection_of_huge_entries_keeps_the_small_digits():
    x = np.full(5, 1e17)
    np.testing.assert_allclose(KSparse(1.0, 2).project(x), 0.4, rtol=1e-15)
    assert KSparse(1.0, 2).violation(KSparse(1.0, 2).project(x * np.arange(1, 6))) == 0


def test_vertices_of_float32_are_inside_though_the_radius_is_rounded():
    ball = KSparse(0.1, 2000)
    assert ball.contains(ball.lmo(np.ones(5000, dtype=np.float32)))


def test_diameter_joins_opposite_vertices():
    assert KSparse(2.0, 4).diameter(9) == pytest.approx(8.0)
    assert KSparse(2.0, 4).diameter(3) == pytest.approx(4 * 3**0.5)
    assert KSparse(2.0, 4).diameter(9, 1) == pytest.approx(16.0)
    assert KSparse(2.0, 4).diameter(9, np.inf) == 4.0


@pytest.mark.parametrize("k", [0, 1.5, True])
def test_refuses_k_that_is_no_count(k):
    with pytest.raises(ValueError, match="k must be an integer >= 1"):
        KSparse(1.0, k)


def test_projection_where_the_multiplier_has_no_digit_to_spare():
    x = np.array([-2076.9534, -9926.055, 3992.8054, 1413.1962, -2801.576], dtype=np.float32)
    v = KSparse(0.014232505146642063, 3).project(x)
    r = np.float32(0.014232505146642063)
    np.testing.assert_allclose(v, [0, -r, r, 0, -r], rtol=1e-6)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_matrices_are_taken_as_the_vectors_that_they_hold(k):
    """k counts entries, not rows."""
    rng, ball = np.random.default_rng(k), KSparse(0.7, k)
    for shape in ((2, 4), (3, 2), (1, 6)):
        g, h = 3 * rng.normal(size=shape), rng.uniform(0.1, 3, size=shape)
        flat = g.ravel()
        np.testing.assert_array_equal(ball.lmo(g).ravel(), ball.lmo(flat))
        np.testing.assert_array_equal(ball.project(g).ravel(), ball.project(flat))
        np.testing.assert_array_equal(ball.project(g, h).ravel(), ball.project(flat, h.ravel()))
        assert ball.diameter(shape) == ball.diameter(g.size)
        assert ball.contains(ball.project(g))
