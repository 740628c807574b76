"""Losses with both derivatives in one pass, against their definitions in extended precision."""

import numpy as np
import pytest
from scipy import sparse

from adafw.kernels import curves
from adafw.kernels.codes import LOGISTIC, SQUARED, SQUARED_HINGE
from adafw.kernels.losses import slope
from adafw.rows import as_rows
from adafw.rows.base import as_batch

CODES = {"squared": SQUARED, "logistic": LOGISTIC, "hinge": SQUARED_HINGE}


def exact(name, z, y):
    """(value, slope, second derivative) of every term."""
    z, y = np.asarray(z, np.longdouble), np.asarray(y, np.longdouble)
    if name == "squared":
        return (z - y) ** 2, 2 * (z - y), np.full_like(z, 2)
    if name == "logistic":
        e = np.exp(-y * z)
        return np.log1p(e), -y * e / (1 + e), e / (1 + e) ** 2
    s = np.maximum(0, 1 - y * z)
    return s**2, -2 * y * s, np.where(s > 0, 2, 0).astype(np.longdouble)


def terms(m, seed=0):
    rng = np.random.default_rng(seed)
    z = 3 * rng.standard_normal(m)
    y = rng.choice([-1.0, 1.0], m)
    return z, y, rng.random(m) + 0.1


@pytest.mark.parametrize("name", CODES)
def test_value_slope_and_second_derivative(name):
    for z in (-30.0, -1.0, -0.3, 0.0, 0.4, 1.0, 2.5, 40.0):
        for y in (-1.0, 1.0):
            plain, e, first, second = curves.curve(CODES[name], z, y)
            value = plain + np.log1p(e)
            assert 0 <= e <= 1
            expected = exact(name, z, y)
            np.testing.assert_allclose([value, first, second], np.array(expected, float),
                                       rtol=1e-13, atol=1e-300)  # fmt: skip
            assert slope(CODES[name], z, y) == pytest.approx(float(expected[1]), rel=1e-13)


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("m", [1, 127, 128, 129, 300])
def test_means_over_all_terms(name, weighted, m):
    """In blocks of 128, the last one shorter; weights count in all three."""
    z, y, w = terms(m)
    weights = w if weighted else np.empty(0)
    slopes, bends = np.full(m, 9.0), np.full(m, 9.0)
    value = curves.curves(CODES[name], z, y, weights, slopes, bends)
    scale = w if weighted else np.ones(m)
    values, first, second = exact(name, z, y)
    assert value == pytest.approx(float((scale * values).sum() / m), rel=1e-14)
    np.testing.assert_allclose(slopes, (scale * first / m).astype(float), rtol=1e-13)
    np.testing.assert_allclose(bends, (scale * second / m).astype(float), rtol=1e-13)


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_gradient_of_some_terms_in_one_pass(name, weighted):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((300, 7)) * (rng.random((300, 7)) < 0.6)
    y, x = rng.choice([-1.0, 1.0], 300), rng.standard_normal(7)
    w = rng.random(300) + 0.1
    rows = as_rows(sparse.csr_array(A)).arrays
    for first, last in ((0, 300), (40, 41), (130, 290)):
        out = np.ones(7)
        share = curves.risk(
            CODES[name], rows, as_batch(None, 300), first, last, x, y,
            w if weighted else np.empty(0), out,
        )  # fmt: skip
        some = slice(first, last)
        scale = (w if weighted else np.ones(300))[some]
        values, slopes, _ = exact(name, (A @ x)[some], y[some])
        assert share == pytest.approx(float((scale * values).sum() / 300), rel=1e-12)
        expected = 1 + A[some].T @ (scale * slopes / 300).astype(float)
        np.testing.assert_allclose(out, expected, rtol=1e-12)


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("weighted", [False, True])
def test_slopes_of_either_sign_are_summed_apart(name, weighted):
    z, y, w = terms(300)
    scale = w if weighted else np.ones(300)
    up, down, up_slope, down_slope = curves.sides(
        CODES[name], z, 0.7, y, w if weighted else np.empty(0)
    )
    _, first, second = exact(name, z + 0.7, y)
    high = first > 0
    expected = [(scale * first)[high].sum(), -(scale * first)[~high].sum(),
                (scale * second)[high].sum(), (scale * second)[~high].sum()]  # fmt: skip
    np.testing.assert_allclose(
        [up, down, up_slope, down_slope], np.array(expected, float), rtol=1e-12
    )
    assert min(up, down) > 0


def test_products_of_many_small_numbers_keep_their_digits():
    """log prod (1 + e_i), where 1 + e would round, and where the product is near 2^128."""
    for e in (1e-17, 1e-9, 0.5, 1.0):
        plain, powers = np.full(128, 0.25), np.full(128, e)
        assert curves.folded(plain, powers) == pytest.approx(32 + 128 * np.log1p(e), rel=1e-14)
    plain, powers = np.zeros(128), np.full(128, 1e-17)
    assert curves.folded(plain, powers) == pytest.approx(1.28e-15, rel=1e-12)
    rng = np.random.default_rng(0)
    plain, powers = rng.random(128), rng.random(128)
    expected = plain.sum() + np.log1p(powers).sum()
    assert curves.folded(plain, powers) == pytest.approx(expected, rel=1e-14)
