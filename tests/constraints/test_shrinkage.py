import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adafw.constraints import projections


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 400),
    st.integers(0, 10**6),
    st.sampled_from([1e-3, 1.0, 1e3]),
    st.sampled_from([0.0, 1.0, 8.0]),
    st.booleans(),
)
def test_filtering_before_sorting_gives_the_projection(n, seed, radius, spread, signed):
    """The optimality conditions of min sum h (v - x)^2 over the simplex, or the l1 ball."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n) * np.exp(spread * rng.standard_normal(n)) * radius
    h = np.exp(rng.standard_normal(n) * spread / 2)
    if signed:
        v = projections.l1_ball(x, h, radius)
        if np.abs(x).sum() <= radius:
            np.testing.assert_array_equal(v, x)
            return
        assert np.all(v * x >= 0)
        x, v = np.abs(x), np.abs(v)
    else:
        v = projections.simplex(x, h, radius)
    assert np.all(v >= 0)
    assert v.sum() == pytest.approx(radius, rel=1e-12)
    pull = h * (x - v)  # equal to one l where v > 0, at most l elsewhere
    level = pull[v > 0]
    scale = np.abs(h * x).max()
    assert np.ptp(level) <= 1e-9 * scale
    assert np.all(pull[v == 0] <= level.max() + 1e-9 * scale)
