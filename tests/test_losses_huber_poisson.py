"""Huber, SmoothedHinge and Poisson: values, slopes, curvature, limits and refusals."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

import adafw
from adafw.losses import Huber, Poisson, SmoothedHinge, Squared

SEEDED = settings(derandomize=True, deadline=None)
LOSSES = [
    (Huber(), 0.3),
    (Huber(2.5), -1.0),
    (SmoothedHinge(), 1.0),
    (SmoothedHinge(0.1), -1.0),
    (Poisson(), 3.0),
    (Poisson(), 0.0),
]


def at(function, z, y):
    return float(function(np.array([z]), np.array([y]))[0])


def plain(loss, z, y):
    """The formulas as the documentation has them, branch by branch."""
    if isinstance(loss, Huber):
        r, d = abs(z - y), loss.delta
        return r**2 if r <= d else 2 * d * r - d**2
    if isinstance(loss, SmoothedHinge):
        s, w = 1 - y * z, loss.width
        return 0.0 if s < 0 else s**2 / (2 * w) if s <= w else s - w / 2
    return math.exp(z) - y * z


@pytest.mark.parametrize(("loss", "y"), LOSSES)
@SEEDED
@given(z=st.floats(-30, 30))
def test_value_is_the_documented_formula(loss, y, z):
    assert at(loss.value, z, y) == pytest.approx(plain(loss, z, y), rel=1e-14, abs=1e-14)


@pytest.mark.parametrize(("loss", "y"), LOSSES)
@pytest.mark.parametrize(("a", "b"), [(-3.0, 2.5), (0.9, 1.1), (-1.5, -0.5)])
def test_value_is_the_integral_of_the_slope(loss, y, a, b):
    kinks = [p for p in (y - 1, y + 1, y - 2.5, y + 2.5, y, y * 0.9) if a < p < b]
    area, error = quad(lambda z: at(loss.slope, z, y), a, b, points=kinks or None, epsabs=1e-12)
    assert at(loss.value, b, y) - at(loss.value, a, y) == pytest.approx(area, abs=1e-10)
    assert error < 1e-8


@pytest.mark.parametrize(("loss", "y"), LOSSES)
@SEEDED
@given(z=st.floats(-20, 20), w=st.floats(-20, 20))
def test_is_convex_with_the_curvature_it_names(loss, y, z, w):
    slope_z, slope_w = at(loss.slope, z, y), at(loss.slope, w, y)
    rise = (slope_z - slope_w) * np.sign(z - w)
    noise = 1e-14 * (abs(slope_z) + abs(slope_w))
    assert rise >= -noise
    assert loss.curvature == math.inf or rise <= loss.curvature * abs(z - w) * (1 + 1e-9) + noise
    tangent = at(loss.value, w, y) + slope_w * (z - w)
    assert at(loss.value, z, y) >= tangent - 1e-12 * (1 + abs(tangent))


def test_curvature_is_attained():
    assert Huber(3).curvature == 2.0
    assert at(Huber().slope, 0.5, 0) - at(Huber().slope, -0.5, 0) == 2.0
    assert SmoothedHinge(0.25).curvature == 4.0
    assert at(SmoothedHinge(0.25).slope, 1, 1) - at(SmoothedHinge(0.25).slope, 0.75, 1) == 1.0
    assert Poisson().curvature == math.inf


@SEEDED
@given(z=st.floats(-50, 50), y=st.floats(-50, 50))
def test_huber_is_squared_near_and_grows_linearly_far_out(z, y):
    assert at(Huber(1e3).value, z, y) == pytest.approx(at(Squared().value, z, y), rel=1e-15)
    assert abs(at(Huber(0.5).slope, z, y)) <= 1.0


@SEEDED
@given(z=st.floats(-50, 50), y=st.sampled_from([-1.0, 1.0]), width=st.floats(1e-6, 10))
def test_smoothed_hinge_stays_within_half_a_width_of_the_hinge(z, y, width):
    hinge = max(0.0, 1 - y * z)
    assert hinge - width / 2 - 1e-14 * hinge <= at(SmoothedHinge(width).value, z, y) <= hinge


@pytest.mark.parametrize(("loss", "y"), LOSSES)
def test_keeps_float32(loss, y):
    z, targets = np.linspace(-3, 3, 7, dtype=np.float32), np.full(7, y, np.float32)
    assert loss.value(z, targets).dtype == loss.slope(z, targets).dtype == np.float32


def test_far_out_values_stay_finite_and_an_overflow_is_inf():
    assert at(Huber().value, 1e300, 0.0) == 2e300
    assert at(SmoothedHinge(1e-300).value, -1e300, 1.0) == 1e300
    assert at(Poisson().value, 1e4, 2.0) == math.inf
    assert at(Poisson().slope, -1e4, 2.0) == -2.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Huber(0), "delta must be a number that is finite and > 0, got 0"),
        (lambda: Huber(math.inf), "delta must be a number that is finite and > 0, got inf"),
        (lambda: SmoothedHinge(-1), "width must be a number that is finite and > 0, got -1"),
        (
            lambda: adafw.LinearModel(np.eye(2), [0, 1], SmoothedHinge()),
            "SmoothedHinge takes labels -1 and \\+1, got 0",
        ),
        (
            lambda: adafw.LinearModel(np.eye(2), [3, -1], Poisson()),
            "Poisson takes targets y >= 0, got -1",
        ),
    ],
)
def test_refuses(make, message):
    with pytest.raises(ValueError, match=message):
        make()
