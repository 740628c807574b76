import numpy as np
import pytest

import adafw
from adafw import L1Ball
from adafw.arrays import float_bits
from adafw.fused import problem
from adafw.kernels import l1, linf
from adafw.kernels.parts import Bits, Point


def shrunk(u, h, radius, level=0.0):
    """(y, level) of the kernel."""
    active = problem.active(np.arange(u.size), 0, u.size)
    _, sizes, widths, us, ys, _ = active
    sizes[:], widths[:], us[:] = np.abs(u), 1 / h, u
    level = l1.shrink(active, u.size, level, radius)
    return ys.copy(), level


@pytest.mark.parametrize("far", [2.0, 1e3, 1e10, 1e14])
def test_what_is_shrunk_has_the_norm_of_the_radius(far):
    """From far out, |u| - l / h is what rounding leaves; it is scaled, not the norm missed."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        u, h = far * (1 + rng.random(9)) * rng.choice([-1.0, 1.0], 9), np.ones(9)
        u[1:4] = np.sign(u[1:4]) * (np.abs(u).max() + rng.random(3))
        y, _ = shrunk(u, h, 1.7)
        assert np.abs(y).sum() == pytest.approx(1.7, rel=1e-14)
        assert (y * u >= 0).all()


def test_it_is_the_projection():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        u, h = 5 * rng.standard_normal(9), 10 ** rng.uniform(-1, 1, 9)
        y, level = shrunk(u, h, 1.7)
        np.testing.assert_allclose(y, L1Ball(1.7).project(u, h), atol=1e-12)
        again, same = shrunk(u, h, 1.7, 0.9 * level)  # from any level below
        np.testing.assert_allclose(again, y, atol=1e-12)
        assert same == pytest.approx(level)


def bits_of(g):
    magnitude, infinity = float_bits(g.dtype)
    words = g.view(magnitude.dtype)
    return Bits(words, magnitude, infinity, np.empty(-(-g.size // l1.BLOCK), words.dtype))


def sized(words, dtype=np.float64):
    return np.asarray(words).view(dtype).tolist()


def test_a_sweep_adds_squares_and_finds_the_peak_of_every_block():
    rng = np.random.default_rng(0)
    g, squares = rng.standard_normal(1300), np.ones(1300)
    g[[5, 700, 1299]] = -7.0, 8.0, 7.5
    bits = bits_of(g)
    top = l1.sweep(g, bits, squares)
    np.testing.assert_allclose(squares, 1 + g**2)
    assert sized(np.array([top])) == [8.0]
    assert sized(bits.peaks) == [7.0, 8.0, 7.5]
    assert l1.first_largest(bits) == 700
    l1.hide(700, g, bits)
    assert g[700] == 0
    assert sized(bits.peaks) == [7.0, np.abs(g[512:1024]).max(), 7.5]
    assert l1.first_largest(bits) == 1299
    g[5] = 7.5
    l1.sweep(g, bits, g[:0])
    assert l1.first_largest(bits) == 5  # of equal ones the first
    for bad in (np.nan, -np.inf):
        g[900] = bad
        assert l1.sweep(g, bits, g[:0]) >= bits.refused


def test_a_coordinate_is_inserted_in_order_with_all_that_belongs_to_it():
    active = problem.active(np.array([3, 8]), 2, 20)
    index, gs, hs, xs, ys, qs = active
    for values in (gs, hs, xs, ys, qs):
        values[:2] = 10.0, 20.0
    assert l1.insert(active, 2, 5, -1.5, 2.5) == 1
    assert index[:3].tolist() == [3, 5, 8]
    assert gs[:3].tolist() == qs[:3].tolist() == [10.0, -1.5, 20.0]
    assert hs[:3].tolist() == [10.0, 2.5, 20.0]
    assert xs[:3].tolist() == ys[:3].tolist() == [10.0, 0.0, 20.0]
    assert l1.insert(active, 3, 1, 1.0, 1.0) == 0
    assert index.tolist() == [1, 3, 5, 8]
    x = np.zeros(20)
    x[[3, 8]] = 1.0
    assert l1.keep(index, 4, x) == 2
    assert index[:2].tolist() == [3, 8]


def test_an_inner_step_goes_to_the_minimum_along_its_way():
    """q = g + h (y - x) / eta, the vertex where |q| is largest, min(eta slope / bend, bound)."""
    active = problem.active(np.arange(3), 0, 3)
    _, gs, hs, xs, ys, qs = active
    for bound in (1.0, 0.05):
        gs[:], hs[:], xs[:] = (1.0, -4.0, 2.0), (2.0, 1.0, 4.0), (0.1, 0.2, -0.3)
        ys[:] = 0.3, 0.1, -0.2
        y = ys.copy()
        where = l1.steepest(active, 3, 0.5)
        q = gs + hs * (ys - xs) / 0.5
        np.testing.assert_allclose(qs, q)
        assert where == int(np.abs(q).argmax())
        vertex = np.zeros(3)
        vertex[where] = -1.5 * np.sign(q[where])
        d = vertex - y
        gamma = min(0.5 * -(q @ d) / (d @ (hs * d)), bound)
        l1.advance(active, 3, where, 1.5, 0.5, bound)
        np.testing.assert_allclose(ys, y + gamma * d)
    assert l1.steepest(active, 0, 0.5) == -1
    gs[:], xs[:], ys[:] = 1.0, 0.0, 0.0
    assert l1.steepest(active, 3, 0.5) == 0  # of equal ones the first
    qs[:], before = 0.0, ys.copy()
    l1.advance(active, 3, 0, 1.5, 0.5, 1.0)  # no slope: nothing moves
    assert np.array_equal(ys, before)


def test_what_may_stay_is_gathered_from_steep_blocks_and_the_support():
    rng = np.random.default_rng(2)
    g, squares = 0.01 * rng.standard_normal(1300), rng.random(1300)
    g[[4, 600, 601, 1290]] = 2.0, -3.0, 1.0, 0.02
    x = np.zeros(1300)
    support = np.array([4, 30, 1200])
    x[support] = 0.5, -0.25, 0.125
    steps = problem.steps(adafw.AdaGrad(0.5, gradient=adafw.gradients.CSFW()), 0, 1, squares)
    bits, active = bits_of(g), problem.active(support, 1300, 1300)
    l1.sweep(g, bits, g[:0])
    count, level = l1.gather(g, bits, steps, 0, x, support, active, 0.5)
    assert active.index[:count].tolist() == [4, 30, 600, 1200]  # 0.5 |1| is not above 0.5
    assert level == 0.5
    j = active.index[:count]
    h = 1e-8 + np.sqrt(squares[j])
    u = x[j] - 0.5 * g[j] / h
    np.testing.assert_allclose(active.x[:count], u)
    np.testing.assert_allclose(active.g[:count], np.abs(u))
    np.testing.assert_allclose(active.h[:count], 1 / h)
    total, width, left = l1.excess(active, count, 0.1)
    over = np.abs(u) - 0.1 / h
    assert left == (over > 0).sum()
    assert total == pytest.approx(over[over > 0].sum())
    assert width == pytest.approx((1 / h)[over > 0].sum())
    squares[600] = np.inf
    assert l1.gather(g, bits, steps, 0, x, support, active, 0.5)[0] == -1


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_the_linf_ball_entry_by_entry(n):
    rng = np.random.default_rng(n)
    g, h, x, y = rng.standard_normal(n), rng.random(n) + 0.5, rng.random(n), rng.random(n)
    d = np.empty(n)
    slope, curvature = linf.model(g, h, Point(x, 0.7), y, d, 0.25)
    q = g + h * (y - x) / 0.25
    np.testing.assert_allclose(d, -0.7 * np.sign(q) - y)
    assert slope == pytest.approx(-(q @ d))
    assert curvature == pytest.approx(d @ (h * d))
    assert linf.look(g) == (True, True)
    assert linf.look(np.zeros(n)) == (True, False)
    one = np.zeros(n)
    one[-1] = 1e-300
    assert linf.look(one) == (True, True)
    for bad in (np.nan, np.inf, -np.inf):
        one[0] = bad
        assert linf.look(one)[0] is False
