"""Second moments of some rows: right to single precision, whatever the units."""

import numpy as np
import pytest

from adafw.rows import MatrixRows, as_rows
from adafw.rows.moments import moments


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize(("m", "step"), [(3000, 1), (3000, 7), (90, 4)])
def test_moments_are_those_of_every_so_many_rows(m, step, centred, dtype):
    rng = np.random.default_rng(0)
    units = np.logspace(-25, 15, 9) if dtype == "f8" else np.logspace(-9, 9, 9)
    A = ((rng.standard_normal((m, 9)) + (3 if centred else 0)) * units).astype(dtype)
    w, some = rng.random(len(A[::step])), A[::step].astype(float)
    w[0] = 0.0
    if centred:
        some = some - w @ some / w.sum()
    found = as_rows(A).some_moments(step, w, 2 * units, centred)
    exact = (some.T * w) @ some
    sizes = np.sqrt(np.outer(exact.diagonal(), exact.diagonal()))
    assert np.abs((found - exact) / sizes).max() < 2e-6
    np.testing.assert_array_equal(found, found.T)


def test_a_centre_far_away_costs_no_digits():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((4000, 5)) + 1e6
    found = moments(A, 2, np.ones(2000), np.ones(5), centred=True)
    np.testing.assert_allclose(found, 2000 * np.cov(A[::2].T, bias=True), atol=0.01)


def test_weights_that_are_all_0_make_nothing():
    for centred in (False, True):
        assert not moments(np.ones((8, 3)), 1, np.zeros(8), np.ones(3), centred).any()


def test_rows_without_a_sample_say_so():
    rows = MatrixRows(as_rows(np.ones((8, 6))), (2, 3))
    with pytest.raises(TypeError, match="MatrixRows have no sample of second moments"):
        rows.some_moments(1, np.ones(8), np.ones(6), centred=False)
    with pytest.raises(TypeError, match="MatrixRows are looked through by themselves"):
        rows.first_look(np.ones(8))
