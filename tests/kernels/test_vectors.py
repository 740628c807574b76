import numpy as np
import pytest

import adafw
from adafw import arrays


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [10, arrays.LONG, 3 * arrays.LONG + 1])
def test_long_and_short_vectors_get_the_same_vertex(dtype, n):
    rng = np.random.default_rng(n)
    ball = adafw.L1Ball(2.0)
    for _ in range(5):
        g = rng.standard_normal(n).astype(dtype)
        g[[n // 2, n - 1]] = -5, 5  # a tie: the first one wins
        v = ball.lmo(g)
        assert v[n // 2] == 2.0
        assert np.count_nonzero(v) == 1
        assert v.dtype == dtype
    assert not ball.lmo(np.zeros(n, dtype)).any()
    assert ball.lmo(g.reshape(-1, 1))[n // 2, 0] == 2.0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n", [10, arrays.LONG])
def test_what_is_not_finite_is_refused_whatever_the_length(bad, n):
    g = np.ones(n)
    g[n - 2] = bad
    with pytest.raises(ValueError, match="g must be finite"):
        adafw.L1Ball(1.0).lmo(g)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [10, arrays.LONG])
def test_adagrad_accumulates_squares(dtype, n):
    rng = np.random.default_rng(0)
    metric, gs = adafw.metrics.AdaGrad(1e-3), rng.standard_normal((3, n)).astype(dtype)
    state = metric.init(gs[0])
    for t, g in enumerate(gs):
        m, h, state = metric.update(g, t, state)
        assert m is g
        np.testing.assert_allclose(h, 1e-3 + np.sqrt((gs[: t + 1] ** 2).sum(0)), rtol=1e-6)
        assert h.dtype == dtype


def shed_one_by_one(top, rounds):
    """`top` ones, and entries each of which hides the next larger one from Michelot's rounds."""
    below = [0.9]
    for k in range(rounds - 1):
        n = top + k + 1
        below.append(-2 * n * (1 + abs(below[-1])))
    return np.r_[np.ones(top), below]


@pytest.mark.parametrize("rounds", [1, 10, 45])
@pytest.mark.parametrize("top", [3, arrays.LONG])
def test_projections_where_entries_fall_out_one_by_one(top, rounds):
    x = shed_one_by_one(top, rounds)
    expected = np.where(x == 1, 0.2 / top, 0.0)
    rng = np.random.default_rng(0)
    order = rng.permutation(x.size)
    v = adafw.Simplex(0.2).project(x[order])
    np.testing.assert_allclose(v, expected[order], rtol=1e-12)


def level_in_extended_precision(a, w, total):
    while True:
        level = (a.sum() - total) / w.sum()
        if (a > level * w).all():
            return level
        a, w = a[a > level * w], w[a > level * w]


@pytest.mark.parametrize("spread", [0.0, 2.0, 8.0])
@pytest.mark.parametrize("share", [1e-6, 1e-3, 0.5])
def test_projections_of_long_vectors_in_extended_precision(spread, share):
    rng = np.random.default_rng(1)
    x, h = rng.standard_normal(3 * arrays.LONG), 10 ** rng.uniform(-spread, spread, 3 * arrays.LONG)
    ball = adafw.L1Ball(share * np.abs(x).sum())
    v = ball.project(x, h)
    a, w = np.abs(x).astype(np.longdouble), 1 / h.astype(np.longdouble)
    expected = np.sign(x) * np.maximum(a - level_in_extended_precision(a, w, ball.radius) * w, 0)
    assert ball.violation(v) <= 1e-15
    assert np.abs(v - expected).max() <= 1e-14 * np.abs(expected).max()
