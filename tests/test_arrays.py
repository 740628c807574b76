"""Functions that numpy and torch share: norms at the ends of a dtype, and the largest entry."""

import numpy as np
import pytest
import torch

from adafw.arrays import LONG, NotFinite, all_finite, first_largest, norm, unit

KINDS = {"numpy": np.array, "torch": lambda x, dtype: torch.tensor(np.array(x, dtype))}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("x", [[3.0, 0.0, 4.0], [-3.0, 0.0, -4.0], [3.0, 4.0], [-4.0, 3.0]])
def test_norms_neither_overflow_nor_vanish(x, dtype, kind):
    info = np.finfo(dtype)
    for scale in (1.0, float(info.max) / 8, float(info.tiny) * 8):
        v = KINDS[kind](np.array(x) * scale, dtype)
        assert float(norm(v)) / scale == pytest.approx(5.0, rel=4 * float(info.eps))
        direction, length = unit(v)
        assert direction.dtype == v.dtype
        assert float(length) / scale == pytest.approx(5.0, rel=4 * float(info.eps))
        np.testing.assert_allclose(np.asarray(direction) * 5, x, rtol=8 * float(info.eps))


@pytest.mark.parametrize("kind", KINDS)
def test_half_precision_is_summed_in_float32(kind):
    """70 000 squares of 1, after scaling: their sum is beyond 65 504."""
    v = KINDS[kind](np.full(70_000, 0.5), np.float16)
    assert float(unit(v)[1]) == pytest.approx(0.5 * np.sqrt(70_000), rel=2e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_the_norm_of_nothing_is_zero(kind):
    zero = KINDS[kind](np.zeros(3), np.float64)
    assert float(norm(zero)) == 0
    assert not np.asarray(unit(zero)[0]).any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [5, LONG + 3])
def test_the_first_of_the_largest(size, kind):
    g = np.zeros(size)
    for at, value in ((size - 1, 1.0), (2, -3.0), (3, 3.0), (0, 3.0)):
        g[at] = value
        largest = min(np.flatnonzero(np.abs(g) == np.abs(g).max()))
        assert int(first_largest(KINDS[kind](g, np.float64))) == largest
    for bad in (np.nan, np.inf):
        g[4] = bad
        assert not all_finite(KINDS[kind](g, np.float64))
        with pytest.raises(NotFinite, match="g must be finite"):
            first_largest(KINDS[kind](g, np.float64))
