"""What a state must be to be gone on from: its records against the problem that is there now."""

import numpy as np
import pytest

import adafw
from adafw.beginning import _brief, _check_record, at_last, start_point, unrecorded
from adafw.integrity import Damaged
from adafw.recorder import as_record

BALL = adafw.L1Ball(2.0)


def stopped(logistic, n=4):
    return adafw.minimize(logistic, BALL, adafw.FW(), max_iterations=n, record_every=1).state


def change(s, k, **numbers):
    s.records[k] = tuple(as_record(s.records[k])._replace(**numbers))


@pytest.mark.parametrize("order", [[0, 1, 1, 2, 3], [0, 2, 1, 3, 4], [-1, 0, 1, 2, 3]])
def test_records_ascend_from_the_start(order, logistic):
    s = stopped(logistic)
    for k, t in enumerate(order):
        change(s, k, iteration=t)
    with pytest.raises(Damaged, match="a trace up to iteration 4"):
        _check_record(s, logistic, BALL)


def test_records_end_where_the_state_is(logistic):
    s = stopped(logistic)
    change(s, -1, iteration=5)
    with pytest.raises(Damaged, match="a trace up to iteration 4"):
        _check_record(s, logistic, BALL)


@pytest.mark.parametrize(("name", "what"), [("value", "objective"), ("gap", "set")])
def test_another_value_or_gap_is_another_problem(name, what, logistic):
    s = stopped(logistic)
    last = as_record(s.records[-1])
    scale = abs(last.value) + abs(last.gap)
    change(s, -1, **{name: getattr(last, name) + 0.5e-6 * scale})
    _check_record(s, logistic, BALL)
    change(s, -1, **{name: getattr(last, name) + 3e-6 * scale})
    with pytest.raises(ValueError, match=f"state belongs to another {what}"):
        _check_record(s, logistic, BALL)
    change(s, -1, **{name: np.nan})
    _check_record(s, logistic, BALL)


def test_what_came_down_from_far_has_fewer_digits(logistic):
    """A gap of 1e8 at first leaves 1e-2 of rounding in all that follows; one of inf, nothing."""
    s = stopped(logistic)
    last = as_record(s.records[-1])
    change(s, -1, value=last.value + 5e-3)
    change(s, 1, gap=np.inf)
    with pytest.raises(ValueError, match="another objective"):
        _check_record(s, logistic, BALL)
    change(s, 0, gap=1e8)
    _check_record(s, logistic, BALL)


def test_a_record_is_of_an_iteration_and_of_its_work(logistic):
    s = stopped(logistic)
    assert at_last(s)
    assert not unrecorded(s)
    s.gradient_evaluations += 1
    assert at_last(s)
    assert unrecorded(s)
    s.t += 1
    assert not at_last(s)
    assert unrecorded(s)
    s.records.clear()
    assert unrecorded(s)


def test_a_start_has_the_dtype_of_the_problem_and_is_a_copy(regression):
    A, y = regression
    loss = adafw.losses.Squared()
    for dtype in (np.float32, np.float64):
        f = adafw.LinearModel(A.astype(dtype), y, loss)
        for given in (np.zeros(12), np.zeros(12, np.float32), np.zeros(12, int), [0] * 12, None):
            x = start_point(f, BALL, given)
            assert x.dtype == dtype
            assert x is not given
            assert x.flags.c_contiguous
    f = adafw.UserSum(3, lambda x: 0.0, lambda x, batch: x)
    for given, dtype in ((np.float32, np.float32), (np.float16, np.float64), (int, np.float64)):
        x0 = np.zeros((2, 3), given, order="F")
        x = start_point(f, BALL, x0)
        assert x.dtype == dtype
        assert x.flags.c_contiguous
        assert not np.shares_memory(x, x0)
    with pytest.raises(ValueError, match="x0 must have at least one dimension"):
        start_point(f, BALL, 0.5)


def test_long_descriptions_are_cut():
    assert _brief({"a": 1}) == '{"a": 1}'
    assert _brief("x" * 158) == '"' + "x" * 158 + '"'
    assert _brief("x" * 159) == '"' + "x" * 156 + "..."
