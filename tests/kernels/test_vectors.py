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
