"""Sets of functions of the user's: what is asked of them, what is refused, what they say."""

import math

import numpy as np
import pytest

from adafw import L1Ball, UserSet

BALL = L1Ball(1.0)


def test_a_point_to_start_from_is_copied_each_time():
    given = [0.25, -0.5, 0.0]
    constraint = UserSet(BALL.lmo, given)
    assert constraint.shape == (3,)
    first = constraint.start(3)
    first[:] = 7.0
    np.testing.assert_array_equal(constraint.start((3,)), given)
    assert constraint.start(3, np.float32).dtype == np.float32
    with pytest.raises(ValueError, match=r"holds points of shape \(3,\), got \(4,\)"):
        constraint.start(4)
    with pytest.raises(ValueError, match="start must be finite"):
        UserSet(BALL.lmo, [0.0, np.nan])


def test_a_function_that_starts_is_told_shape_and_dtype():
    told = []
    constraint = UserSet(BALL.lmo, lambda shape, dtype: told.append((shape, dtype)) or 5)
    assert constraint.shape is None
    assert constraint.start(4, np.float32) == 5
    constraint.start((2, 3))
    assert told == [((4,), np.float32), ((2, 3), float)]


@pytest.mark.parametrize(
    ("lmo", "message"),
    [
        (lambda g: g[:2], r"shape of g, \(3,\), got \(2,\)"),
        (lambda g: np.nan * g, "the point that lmo returned must be finite"),
        (lambda g: g / np.array([1.0, 1.0, 0.0]), "the point that lmo returned must be finite"),
    ],
)
def test_what_a_function_returns_is_looked_at(lmo, message):
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=message):
        UserSet(lmo, np.zeros(3)).lmo(np.ones(3))


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="lmo must be a function of g, got list"):
        UserSet([1.0], np.zeros(1))
    with pytest.raises(TypeError, match="start must be a point of the set or a function"):
        UserSet(BALL.lmo, None)


def test_points_are_inside_outside_or_not_known():
    blind, seeing = UserSet(BALL.lmo, np.zeros(2)), UserSet(BALL.lmo, np.zeros(2), BALL.contains)
    inside, outside = np.array([0.5, 0.0]), np.array([5.0, 0.0])
    assert (seeing.violation(inside), seeing.violation(outside)) == (0.0, math.inf)
    assert math.isnan(blind.violation(inside))
    assert [seeing.contains(x) for x in (inside, outside)] == [True, False]
    assert blind.contains(outside)
    assert type(seeing.contains(inside)) is bool


def test_projections_are_those_given():
    told = []
    constraint = UserSet(
        BALL.lmo, np.zeros(2), project=lambda x, h: told.append(h) or BALL.project(x, h)
    )
    x, h = np.array([2.0, 1.0]), np.array([1.0, 9.0])
    assert constraint.projection == "metric"
    np.testing.assert_array_equal(constraint.project(x, h), BALL.project(x, h))
    np.testing.assert_array_equal(constraint.project(x), BALL.project(x))
    np.testing.assert_array_equal(told[0], h)
    assert told[1] is None
    for bad in (-h, np.ones(3), h * np.nan):
        with pytest.raises(ValueError, match="h must"):
            constraint.project(x, bad)
    with pytest.raises(ValueError, match="x must be finite"):
        constraint.project(x * np.inf)
    without = UserSet(BALL.lmo, np.zeros(2))
    assert without.projection is None
    with pytest.raises(TypeError, match="UserSet knows no projection"):
        without.project(x)


def test_a_metric_is_looked_at_before_a_function_sees_it():
    told = []
    constraint = UserSet(BALL.lmo, np.zeros(2), project=lambda x, h: told.append(h) or x)
    x = np.array([0.5, 0.25])
    for bad in ([1.0, 0.0], [1.0, -1.0], [1.0, np.nan], [np.inf, 1.0], [1.0], [[1.0, 1.0]]):
        with pytest.raises(ValueError, match="h must"):
            constraint.project(x, np.array(bad))
    assert not told
    for point in (x, x.astype(np.float32)):
        constraint.project(point, np.array([1, 9]))
        np.testing.assert_array_equal(told[-1], [1, 9])
        assert told[-1].dtype.kind == "f"


def test_only_the_same_object_is_the_same_set():
    one, other = (UserSet(BALL.lmo, np.zeros(2)) for _ in range(2))
    assert one == one
    assert one != other
    assert len({one, other, one}) == 2
    assert one.describe() == {"name": "UserSet", "lmo": "L1Ball.lmo"}
    assert repr(one) == "UserSet(lmo=lmo)"
    with pytest.raises(TypeError, match="does not know its diameter"):
        one.diameter(2)


def test_a_vertex_of_another_shape_is_refused_whatever_its_length():
    for v in (np.zeros(3), np.zeros((3, 1)), np.zeros((3, 2, 1))):
        odd = UserSet(lambda g, v=v: v, np.zeros((3, 2)))
        with pytest.raises(ValueError, match=r"an array of the shape of g, \(3, 2\), got"):
            odd.lmo(np.ones((3, 2)))
