"""When a fit is good enough, has stalled, or has a radius that does nothing: on single records."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import adafw
from adafw.fitting import Design
from adafw.fitting.choice import Choice
from adafw.fitting.judge import PATIENCE, SHORT_PATIENCE, Judge, _over
from adafw.recorder import Record


def judge(
    tol=1e-3, every=1, ball=None, dtype=np.float64, fit_intercept=False, weights=None, choice=None
):
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(30, 4)), rng.choice([-1.0, 1.0], 30)
    risk = Design(A, weights).risk(y, adafw.losses.Logistic(), fit_intercept)
    ball = ball or adafw.L1Ball(2.0)
    choice = choice or Choice(adafw.FW(), math.inf)
    return Judge(risk, ball, tol, every, choice, np.dtype(dtype))


def record(t, value, gap, lower=-math.inf):
    return Record(t, t, 0, 0, 0, 0.0, 0.0, value, gap, lower, 0, 0.0)


@pytest.mark.parametrize("size", [1e6, 1.0, 1e-6, -1e3])
def test_a_tolerance_is_relative_to_the_value(size):
    one = judge(tol=1e-3)
    assert one.small(size, 0.999e-3 * abs(size))
    assert not one.small(size, 1.001e-3 * abs(size))


def test_a_value_of_zero_has_a_tolerance_too():
    assert judge(tol=1e-3).small(0.0, 0.9e-15)
    assert not judge(tol=1e-3).small(0.0, 1.1e-15)


@pytest.mark.parametrize(("every", "patience"), [(1, SHORT_PATIENCE), (5, PATIENCE)])
def test_a_run_has_stalled_after_so_many_idle_records(every, patience):
    one = judge(tol=0.0, every=every)
    x = SimpleNamespace(x=np.zeros(4))
    for k in range(patience):
        assert not one(x, record(k * every, 1.0, 0.5)), k
    assert one(x, record(patience * every, 1.0, 0.5))
    assert one.verdict == "stalled"


@pytest.mark.parametrize(("value", "verdict"), [(6e-13, "converged"), (8e-13, "stalled")])
@pytest.mark.parametrize("resumed", [False, True])
def test_a_value_of_rounding_has_nothing_left_to_lose(value, verdict, resumed):
    """The share is one of the first value, 0.7, here; the gap may say nothing."""
    one, x = judge(tol=1e-9), SimpleNamespace(x=np.zeros(4))
    first = record(0, 0.7, 9.0)
    if resumed:
        one.restore(SimpleNamespace(records=[tuple(first)]), 0.0)
    else:
        one(x, first)
    for k in range(SHORT_PATIENCE + 1):
        one(x, record(1 + k, value, 1e-3))
    assert one.verdict == verdict


def test_small_squares_of_residuals_may_be_noise():
    """Targets of 1e6 with noise of 1e-3: a stall there is one, whatever the first value was."""
    risk = Design(np.ones((2, 1))).risk(np.array([0.0, 2.0]), adafw.losses.Squared(), False)
    choice = Choice(adafw.FW(), math.inf)
    one = Judge(risk, adafw.L1Ball(10.0), 1e-9, 1, choice, np.dtype(float))
    x = SimpleNamespace(x=np.zeros(1))
    one(x, record(0, 1e12, 1e13))
    for k in range(SHORT_PATIENCE + 1):
        one(x, record(1 + k, 1e-6, 1e-6))
    assert one.verdict == "stalled"


@pytest.mark.parametrize("progress", [(1.0 - 2e-9, 0.5), (1.0, 0.49)])
def test_a_lower_value_or_a_tighter_gap_is_progress(progress):
    one = judge(tol=0.0)
    x = SimpleNamespace(x=np.zeros(4))
    for k in range(SHORT_PATIENCE):
        one(x, record(k, 1.0, 0.5))
    assert not one(x, record(SHORT_PATIENCE, *progress))
    for k in range(1, SHORT_PATIENCE):
        assert not one(x, record(SHORT_PATIENCE + k, *progress))
    assert one(x, record(2 * SHORT_PATIENCE, *progress))


def test_a_billionth_of_the_value_is_no_progress():
    one = judge(tol=0.0)
    x = SimpleNamespace(x=np.zeros(4))
    said = [one(x, record(k, 7.0 - k * 1e-10, 0.5)) for k in range(SHORT_PATIENCE + 1)]
    assert said == [False] * SHORT_PATIENCE + [True]


def test_estimated_gradients_never_stall():
    one = judge(tol=0.0, choice=Choice(adafw.SFW(), math.inf))
    x = SimpleNamespace(x=np.zeros(4))
    assert not any(one(x, record(k, 1.0, 0.5)) for k in range(3 * PATIENCE))


def test_a_value_near_what_the_loss_is_never_below_is_good_enough():
    """Where the gap is large all the same, as far from the minimum of separable data."""
    one = judge(tol=1e-3)
    x = np.zeros(4)
    assert one.risk.f.lower_bound == 0
    small = record(0, 0.0, 0.5)
    assert one.certificate(x, small).gap == 0
    assert one(SimpleNamespace(x=x), small)
    assert one.verdict == "converged"


def test_a_point_just_inside_the_boundary_has_a_radius_that_matters():
    """f is flat there, so that nothing but the place of x says so."""
    risk = Design(np.zeros((2, 1))).risk(np.array([0.0, 2.0]), adafw.losses.Squared(), False)
    one = Judge(risk, adafw.L1Ball(10.0), 0.0, 1, Choice(adafw.FW(), math.inf), np.dtype(float))
    assert one.radius_matters(np.array([9.95]), 1.0)
    assert not one.radius_matters(np.array([9.85]), 1.0)


@pytest.mark.parametrize("cut", [0, 3, 20])
def test_a_record_that_a_stop_added_is_no_idle_one(cut):
    """Records off the beat are those of the last iterate; the whole run does not have them."""
    every = 5
    beat = [record(k * every, 1.0, 0.5) for k in range(PATIENCE + 1)]
    x, one = SimpleNamespace(x=np.zeros(4)), judge(tol=0.0, every=every)
    stopped = [*beat[: cut + 1], record(cut * every + 2, 1.0, 0.5)]
    one.restore(SimpleNamespace(records=[tuple(r) for r in stopped]), 0.0)
    said = [one(x, r) for r in beat[cut + 1 :]]
    assert said == [False] * (len(said) - 1) + [True]


@pytest.mark.parametrize("cut", range(SHORT_PATIENCE + 2))
def test_a_resumed_run_stalls_where_the_whole_one_does(cut):
    records = [record(k, 1.0, 0.5) for k in range(SHORT_PATIENCE + 1)]
    x, one = SimpleNamespace(x=np.zeros(4)), judge(tol=0.0)
    one.restore(SimpleNamespace(records=[tuple(r) for r in records[:cut]]), 0.0)
    said = [one(x, r) for r in records[cut:]]
    assert said == [False] * (len(said) - 1) + [True] * bool(said)


@pytest.mark.parametrize(("delta", "matters"), [(1e-6, False), (1e-4, True)])
def test_a_radius_is_idle_where_ten_times_the_set_would_gain_nothing(delta, matters):
    """f = (x - 1)^2 + 1 inside |x| <= 10: the gap over |x| <= 100 is 202 delta at 1 + delta."""
    risk = Design(np.ones((2, 1))).risk(np.array([0.0, 2.0]), adafw.losses.Squared(), False)
    one = Judge(risk, adafw.L1Ball(10.0), 0.0, 1, Choice(adafw.FW(), math.inf), np.dtype(float))
    assert one.radius_matters(np.array([1 + delta]), 1.0) is matters
    # Beside a value a hundred times as large, a hundred times as much is nothing.
    assert one.radius_matters(np.array([1 + 100 * delta]), 100.0) is matters


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_what_is_returned_is_certified_as_it_is_rounded(dtype):
    """Rounded coefficients and a rounded intercept, no longer the best, have a gap of their own."""
    one = judge(dtype=dtype, fit_intercept=True, weights=np.arange(1.0, 31.0))
    f, x = one.risk.f, np.array([0.3, -0.7, 0.1, 0.2])
    now = one.certificate(x, record(3, f.value(x), 0.1))
    assert now.coef.dtype == dtype
    assert float(now.intercept) == float(dtype(now.intercept))
    back = now.coef.astype(float)
    z = f.rows.dot(back) + now.intercept
    assert now.value == pytest.approx(f.model.value_at(z), rel=1e-15)
    assert now.value >= f.value(back)
    exact = one.constraint.gap(back, f.gradient(back))
    lost = now.value - f.value(back)
    assert dtype is np.float32 or lost > 1e-10
    assert now.gap - exact == pytest.approx(lost, rel=1e-4, abs=1e-14)


@pytest.mark.parametrize(("value", "gap"), [(1.0, 2.0), (2.0, 0.5)])
def test_what_comes_back_to_the_best_so_far_is_no_progress(value, gap):
    """Every second record is worse than the first one, and the others are no better."""
    one, x = judge(tol=0.0), SimpleNamespace(x=np.zeros(4))
    for k in range(SHORT_PATIENCE):
        assert not one(x, record(k, *((1.0, 0.5) if k % 2 == 0 else (value, gap)))), k
    assert one(x, record(SHORT_PATIENCE, 1.0, 0.5))
    assert one.verdict == "stalled"


@pytest.mark.parametrize(("share", "ends"), [(0.001, True), (0.002, False)])
def test_less_than_a_hundredth_of_the_gap_is_no_progress(share, ends):
    """Of all records since the last progress together."""
    one = judge(tol=0.0)
    x = SimpleNamespace(x=np.zeros(4))
    said = [one(x, record(k, 1.0, 0.5 * (1 - share * k))) for k in range(SHORT_PATIENCE + 1)]
    assert said == [False] * SHORT_PATIENCE + [ends]


@pytest.mark.parametrize(("fall", "ends"), [(1e-15, True), (1e-11, False)])
def test_a_thousandth_of_a_small_gap_is_progress(fall, ends):
    """Though it is less than a billionth of the value; not what values are rounded at."""
    one = judge(tol=0.0)
    x = SimpleNamespace(x=np.zeros(4))
    said = [one(x, record(k, 7.0 - k * fall, 500 * fall)) for k in range(SHORT_PATIENCE + 1)]
    assert said == [False] * SHORT_PATIENCE + [ends]


def test_a_bound_that_is_not_zero_has_rounding_errors():
    """Four of the last digit of the value; a loss that reaches its bound of 0 has none."""
    eps = float(np.finfo(np.float64).eps)
    assert _over(2.0, 1.5) == 0.5 + 8 * eps
    assert _over(2.0, 3.0) == 8 * eps
    assert _over(-2.0, -3.0) == 1 + 8 * eps
    assert _over(2.0, 0.0) == 2.0
    assert judge().above(2.0, record(0, 2.0, 9.0, lower=1.5)) == 0.5 + 8 * eps
    assert judge().above(2.0, record(0, 2.0, 9.0, lower=-5.0)) == 2.0


def test_batches_get_their_intercept_at_scheduled_records_alone():
    """What follows must not depend on where a run was stopped, which adds a record."""
    one = judge(tol=0.0, every=5, fit_intercept=True, choice=Choice(adafw.SFW(), math.inf))
    x = SimpleNamespace(x=np.full(4, 0.3))
    one.set_intercept(7.0)
    one(x, record(3, 1.0, 0.5))
    assert one.batch_intercept == 7.0
    one(x, record(10, 1.0, 0.5))
    assert one.batch_intercept == one.risk.intercept(x.x) != 7.0
    exact = judge(tol=0.0, every=5, fit_intercept=True)
    exact.set_intercept(7.0)
    exact(x, record(10, 1.0, 0.5))
    assert exact.batch_intercept == 7.0
    assert judge().batch_intercept == 0.0


def test_intercepts_of_several_outputs_are_kept_in_the_dtype_of_the_data():
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(30, 4)).astype(np.float32), np.arange(30) % 3
    risk = Design(A).risk(y, adafw.losses.Softmax(), True)
    choice = Choice(adafw.SFW(), math.inf)
    one = Judge(risk, adafw.L1Ball(2.0), 1e-3, 5, choice, np.dtype(np.float32))
    b = np.array([0.1, 0.2, -0.3])
    one.set_intercept(b)
    np.testing.assert_array_equal(one.batch_intercept, b.astype(np.float32), strict=True)
    assert risk.f.gradient(np.zeros((4, 3), np.float32), np.arange(5)).dtype == np.float32
    b[0] = 9.0
    assert one.batch_intercept[0] == np.float32(0.1)
