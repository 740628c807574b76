"""Dense rows: precision of what is made of them, and means that lose no digits."""

import numpy as np
import pytest

from adafw.rows import as_rows
from adafw.rows.dense import DenseRows

RNG = np.random.default_rng(0)
A = RNG.normal(size=(40, 9)).astype(np.float32)


def test_points_of_double_precision_stay_so_for_some_rows_and_columns():
    rows = DenseRows(A, np.float64)
    some = (rows.take(np.array([5, 2])), rows.columns(np.array([3, 1])), rows.by_columns)
    for each in some:
        assert each.dtype == np.float64
        assert each.array.dtype == np.float32
        assert each.array.flags.c_contiguous
    x = RNG.normal(size=9)
    np.testing.assert_allclose(some[0].dot(x), A[[5, 2]].astype(float) @ x, rtol=1e-13)
    for k in (1, 2, 40):
        batch = RNG.integers(0, 40, k)
        np.testing.assert_allclose(rows.dot(x, batch), A[batch].astype(float) @ x, atol=1e-13)


@pytest.mark.parametrize("weighted", [False, True])
def test_centred_rows_and_their_mean_make_up_the_data(weighted):
    """The mean of float32 data far from 0 is found in two passes, and both are told."""
    data = (1000 + RNG.normal(size=(5000, 3))).astype(np.float32)
    w = RNG.random(5000).astype(np.float32) if weighted else None
    rows, mean = as_rows(data).centred(w)
    whole = rows.array.astype(float) + mean.astype(float)
    assert np.abs(whole - data).max() <= 2 * np.spacing(np.float32(1000))
    exact = np.average(data.astype(float), axis=0, weights=w)
    np.testing.assert_allclose(mean, exact, atol=np.spacing(np.float32(1000)))
    assert np.abs(np.average(rows.array.astype(float), axis=0, weights=w)).max() <= 1e-6


def test_arrays_of_other_layouts_are_laid_out_by_rows():
    for data in (np.asfortranarray(A), A[::2], A[:, ::-1]):
        rows = DenseRows(data)
        assert rows.array.flags.c_contiguous
        np.testing.assert_array_equal(rows.array, data)
    plain = np.ascontiguousarray(A)
    assert DenseRows(plain).array is plain


def test_second_moments_of_long_data_have_every_slice():
    rng = np.random.default_rng(0)
    A, w = rng.standard_normal((5000, 260)), rng.random(5000)
    np.testing.assert_allclose(as_rows(A).gram(w), (A.T * w) @ A, rtol=1e-10, atol=1e-9)


def test_float32_in_double_precision_is_centred_without_a_copy():
    rows = DenseRows(A, np.float64)
    inner, mean = rows.centred()
    assert inner.plain == (rows, True)
    assert rows.array is A
    assert inner.dtype == mean.dtype == np.float64
    np.testing.assert_allclose(mean, A.astype(float).mean(axis=0), atol=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_which_few_weigh_nearly_all_know_what_each_weighs(dtype):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((5000, 30))
    assert DenseRows(A.astype(dtype)).heavy is None
    units = 10.0 ** rng.uniform(-3, 3, 30)
    long = (A * rng.lognormal(0, 2, (5000, 1))).astype(dtype)
    found = DenseRows(long).heavy
    plain = (long.astype(np.float64) ** 2).sum(axis=1)
    assert np.corrcoef(np.log(found), np.log(plain))[0, 1] > 0.98
    other = DenseRows((long * units).astype(dtype)).heavy  # units of columns do not matter
    np.testing.assert_allclose(other, found, rtol=1e-5)
    with np.errstate(over="ignore", invalid="ignore"):
        assert DenseRows(np.full((2000, 3), 1e200)).heavy is None
    assert DenseRows(np.zeros((2000, 3), dtype)).heavy is None
