"""The exponential that compilers can do several of at once, and the losses made of it."""

import math
from fractions import Fraction

import numpy as np
import pytest

from adafw.kernels.codes import LOGISTIC, SQUARED, SQUARED_HINGE
from adafw.kernels.curves import curves
from adafw.kernels.exponential import exponential


def series(x: float) -> Fraction:
    """exp(x) to 40 digits, by its series at x / 2^k, squared k times."""
    halvings = max(0, math.frexp(x)[1]) + 4
    small, total, term = Fraction(x) / 2**halvings, Fraction(1), Fraction(1)
    for k in range(1, 30):
        term = term * small / k
        total += term
    for _ in range(halvings):
        total = Fraction(math.floor(total * total * 2**1400), 2**1400)
    return total


def test_within_a_unit_of_the_last_digit():
    rng = np.random.default_rng(0)
    for x in np.concatenate([-rng.random(60), -700 * rng.random(60), -(10.0 ** -rng.random(20))]):
        exact = series(float(x))
        unit = math.ulp(float(exact))
        assert abs(Fraction(exponential(float(x))) - exact) <= unit


def test_its_ends():
    assert exponential(0.0) == exponential(-0.0) == 1.0
    assert exponential(-708.0) == pytest.approx(math.exp(-708.0), rel=1e-15)
    assert exponential(-708.1) == exponential(-math.inf) == 0.0
    assert math.isnan(exponential(math.nan))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("m", [1, 127, 128, 129, 1000])
def test_curves_by_the_formulas(m, weighted):
    rng = np.random.default_rng(m)
    z, y = 5 * rng.standard_normal(m), np.sign(rng.standard_normal(m))
    w = rng.random(m) if weighted else np.ones(m)
    s = np.maximum(0, 1 - y * z)
    p = 1 / (1 + np.exp(y * z))
    expected = {
        SQUARED: ((z - y) ** 2, 2 * (z - y), np.full(m, 2.0)),
        LOGISTIC: (np.logaddexp(0, -y * z), -y * p, p / (1 + np.exp(-y * z))),
        SQUARED_HINGE: (s**2, -2 * y * s, np.where(s > 0, 2.0, 0.0)),
    }
    for loss, (value, slope, bend) in expected.items():
        slopes, bends = np.full(m, np.nan), np.full(m, np.nan)
        mean = curves(loss, z, y, w if weighted else np.empty(0), slopes, bends)
        assert mean == pytest.approx(float(np.mean(w * value)), rel=1e-14)
        np.testing.assert_allclose(slopes, w * slope / m, rtol=1e-13, atol=1e-300)
        np.testing.assert_allclose(bends, w * bend / m, rtol=1e-13, atol=1e-300)


def test_what_is_no_number_is_told():
    slopes, bends = np.empty(3), np.empty(3)
    z, y = np.array([0.0, np.nan, 1.0]), np.ones(3)
    for loss in (SQUARED, LOGISTIC):
        assert math.isnan(curves(loss, z, y, np.empty(0), slopes, bends))
        assert math.isnan(slopes[1])
