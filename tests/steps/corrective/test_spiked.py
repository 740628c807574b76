"""A diagonal and a few directions: its inverse on a face, its minimiser over a box."""

import numpy as np
import pytest

import adafw
from adafw import losses
from adafw.steps.corrective.curvature import view
from adafw.steps.corrective.spiked import Spiked, diagonal


def made(n=40, k=3, size=10.0, seed=0):
    rng = np.random.default_rng(seed)
    near = Spiked(rng.uniform(0.5, 2.0, n), np.sqrt(size) * rng.standard_normal((n, k)))
    return near, np.diag(near.rest) + near.V @ near.V.T, rng


def test_the_inverse_is_that_of_the_free_coordinates():
    near, P, rng = made()
    free, r = rng.random(40) < 0.6, rng.standard_normal(40)
    s = near.inverse(free)(r)
    np.testing.assert_allclose(s[free], np.linalg.solve(P[np.ix_(free, free)], r[free]), rtol=1e-9)
    assert not s[~free].any()


def test_the_inverse_keeps_its_digits_along_a_huge_spike():
    """Features of mean 1e4 have one: what is lost along it, H multiplies by 1e10."""
    near, P, rng = made(k=1, size=1e10)
    r = rng.standard_normal(40)
    assert np.abs(P @ near.inverse(np.ones(40, bool))(r) - r).max() < 1e-4


@pytest.mark.parametrize(
    ("dtype", "size", "exact"),
    [(np.float64, 1e2, 1e-14), (np.float64, 1e8, 1e-10), (np.float32, 1e2, 1e-5)],
)
@pytest.mark.parametrize("k", [1, 3])
def test_the_inverse_keeps_its_digits_of_slopes_along_a_spike(k, dtype, size, exact):
    """P is huge there and the answer tiny: the difference of two numbers that nearly cancel."""
    for seed in range(5):
        near, _, rng = made(k=k, size=size, seed=seed)
        near = Spiked(near.rest.astype(dtype), near.V.astype(dtype))
        wide = Spiked(near.rest.astype(np.float64), near.V.astype(np.float64))
        for free in (np.ones(40, bool), rng.random(40) < 0.6):
            r = np.where(free, near.V @ rng.standard_normal(k), 0.0).astype(dtype)
            s = near.inverse(free)(r)
            assert np.abs(wide.product(s) - r)[free].max() < exact * np.abs(r).max()


@pytest.mark.parametrize("size", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("width", [1e-3, 0.3, 100.0])
def test_nearest_is_the_minimiser_over_the_box(size, width):
    near, P, rng = made(size=size)
    q, lower, upper = 5 * rng.standard_normal(40), -width * rng.random(40), width * rng.random(40)
    s = near.nearest(q, lower, upper)
    slopes = q + P @ s
    assert ((lower <= s) & (s <= upper)).all()
    gap = slopes @ (s - np.where(slopes > 0, lower, upper))
    assert gap <= 2e-6 * abs(q @ s)


def test_a_diagonal_alone_is_clipped_exactly():
    near = diagonal(np.array([1.0, 2.0, 4.0]))
    s = near.nearest(np.array([-1.0, 8.0, 2.0]), np.full(3, -1.0), np.full(3, 0.8))
    np.testing.assert_array_equal(s, [0.8, -1.0, -0.5])


@pytest.mark.parametrize("mean", [0.0, 50.0])
@pytest.mark.parametrize("intercept", [False, True])
def test_factors_of_dense_data_are_spikes(mean, intercept):
    """Solving with P is solving with H, but for a condition number of about ten."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((4400, 256)) + mean
    A += rng.standard_normal((4400, 8)) @ rng.standard_normal((8, 256))
    f = adafw.LinearModel(A, np.where(rng.random(4400) < 0.4, 1.0, -1.0), losses.Logistic())
    f = adafw.objectives.WithIntercept(f) if intercept else f
    seen, x = view(f), np.zeros(256)
    h = seen.hessian(seen.predict(x), seen.weights(x))
    near = h.nearly()
    assert 8 + (mean > 0 and not intercept) <= near.V.shape[1] <= 20
    H = np.column_stack([h.product(e)[0] for e in np.eye(256)])
    root = 1 / np.sqrt(h.scale)
    before = np.linalg.cond(root[:, None] * H * root)
    P = np.diag(near.rest) + near.V @ near.V.T
    after = np.linalg.eigvals(np.linalg.solve(P, H)).real
    assert after.max() / after.min() < min(12, before / 8)


def test_too_few_rows_that_bend_leave_the_diagonal():
    A = np.random.default_rng(1).standard_normal((4400, 256))
    f = adafw.LinearModel(A, np.full(4400, 1e3), losses.Huber(1.0))
    seen, x = view(f), np.zeros(256)
    near = seen.hessian(seen.predict(x), seen.weights(x)).nearly()
    assert near.V.shape[1] == 0
    assert (near.rest > 0).all()


def test_the_product_is_that_of_the_matrix():
    near, P, rng = made()
    s = rng.standard_normal(40)
    np.testing.assert_allclose(near.product(s), P @ s, rtol=1e-12)
    alone = diagonal(near.rest)
    np.testing.assert_array_equal(alone.product(s), near.rest * s)
    few = np.arange(40) < 9
    np.testing.assert_allclose(alone.inverse(few)(s), np.where(few, s / near.rest, 0), rtol=1e-14)


@pytest.mark.parametrize(("n", "k", "size"), [(300, 64, 100.0), (200, 30, 1e4), (50, 1, 1e10)])
def test_long_spikes_are_solved_to_the_end(n, k, size):
    """The face changes with every step for a while; active sets went in circles here."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        V = rng.standard_normal((n, k)) * np.sqrt(size * np.arange(1, k + 1) ** -1.5)
        near = Spiked(rng.uniform(0.05, 2, n), V)
        q = 3 * V @ rng.standard_normal(k) + rng.standard_normal(n)
        lower, upper = np.full(n, -0.05), 0.05 * rng.random(n)
        s = near.nearest(q, lower, upper)
        slopes, P = q + near.product(s), np.diag(near.rest) + V @ V.T
        assert ((lower <= s) & (s <= upper)).all()
        gap = slopes @ (s - np.where(slopes > 0, lower, upper))
        assert gap <= 1e-7 * abs(q @ s + s @ P @ s / 2)


def test_boxes_that_leave_out_where_one_stands():
    """A step that led outside comes back: 0 is not between the bounds."""
    near, P, rng = made()
    q, lower = rng.standard_normal(40), rng.uniform(0.1, 0.2, 40)
    s = near.nearest(q, lower, lower + 0.1)
    slopes = q + P @ s
    assert ((lower <= s) & (s <= lower + 0.1)).all()
    assert slopes @ (s - np.where(slopes > 0, lower, lower + 0.1)) <= 1e-9


def test_bounds_that_are_met_exactly_do_not_move():
    """A minimiser that lies on its bounds by itself: nothing changes when it is asked again."""
    near, P, _ = made(n=6, k=1)
    s = np.array([1.0, -1.0, 0.5, 0.0, 1.0, -0.25])
    q = -P @ s
    np.testing.assert_allclose(near.nearest(q, np.full(6, -1.0), np.ones(6)), s, atol=1e-9)


def test_single_precision_stays():
    near, _, rng = made()
    single = Spiked(near.rest.astype(np.float32), near.V.astype(np.float32))
    s = single.inverse(np.ones(40, bool))(rng.standard_normal(40).astype(np.float32))
    assert diagonal(single.rest).V.dtype == np.float32
    assert s.shape == (40,)


def test_spikes_are_those_of_the_rows_that_bend():
    """The first rows, far out, are flat: the others have the directions all the same."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((4400, 256))
    A += rng.standard_normal((4400, 8)) @ rng.standard_normal((8, 256))
    f = adafw.LinearModel(A, np.where(rng.random(4400) < 0.4, 1.0, -1.0), losses.Logistic())
    seen = view(f)
    z = np.where(np.arange(4400) < 2200, 1e3, 0.0)
    assert seen.hessian(z, np.mean(A**2, axis=0)).nearly().V.shape[1] >= 8


def test_spikes_are_centred_where_the_rows_bend():
    """Rows of one side are flat: with an intercept, the mean of the others is no direction."""
    rng = np.random.default_rng(0)
    flat = np.arange(4400) // 11 % 2 == 1
    A = rng.standard_normal((4400, 256)) + 3 * np.where(flat, -1, 1)[:, None]
    A += rng.standard_normal((4400, 8)) @ rng.standard_normal((8, 256))
    y = np.where(rng.random(4400) < 0.4, 1.0, -1.0)
    f = adafw.objectives.WithIntercept(adafw.LinearModel(A, y, losses.Logistic()))
    seen = view(f)
    z = np.where(flat, 8 * np.where(rng.random(4400) < 0.5, 1.0, -1.0), 0.0)
    h = seen.hessian(z, seen.weights(np.zeros(256)))
    near = h.nearly()
    H = np.column_stack([h.product(e)[0] for e in np.eye(256)])
    P = np.diag(near.rest) + near.V @ near.V.T
    size = np.linalg.eigvals(np.linalg.solve(P, H)).real
    assert 0.2 < size.min() < size.max() < 4
    share = np.diag(P) / np.diag(H)  # what is no spike is in the diagonal
    assert 0.8 < share.min() < share.max() < 1.4
