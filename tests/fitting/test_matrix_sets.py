"""Sets of matrices that names of sets of vectors stand for, where several outputs are fitted."""

import numpy as np
import pytest

import adafw
from adafw.fitting.matrix_sets import as_set_of_matrices, set_of_matrices
from adafw.names import VECTOR_SETS


def made(name, **given):
    return set_of_matrices(VECTOR_SETS.find(name), given, 4, 3)


def test_balls_hold_the_matrix_and_simplices_its_columns():
    assert made("l1", radius=2.0) == adafw.L1Ball(2.0)
    assert made("simplex", radius=2.0) == adafw.Columns(adafw.Simplex(2.0))
    assert made("unit_simplex", radius=2.0) == adafw.Columns(adafw.UnitSimplex(2.0))


def test_groups_are_rows():
    by_rows = np.repeat(np.arange(4)[:, None], 3, axis=1)
    assert made("group", radius=2.0, groups=...) == adafw.GroupBall(2.0, by_rows)
    labels = np.array([5, 5, 1, 1])
    given = adafw.GroupBall(2.0, np.repeat(labels[:, None], 3, axis=1))
    assert made("group", radius=2.0, groups=labels) == given
    own = np.arange(12).reshape(4, 3) // 2
    assert made("group", radius=2.0, groups=own) == adafw.GroupBall(2.0, own)


def test_the_shape_is_that_of_the_coefficients():
    for shape in (..., (4, 3), [4, 3]):
        assert made("nuclear", radius=2.0, shape=shape) == adafw.NuclearBall(2.0)
    with pytest.raises(ValueError, match=r"shape must be left out, .* \(4, 3\), got \(3, 4\)"):
        made("nuclear", radius=2.0, shape=(3, 4))


def test_bounds_of_a_box_are_those_of_the_rows():
    box = made("box", lower=[-1.0, -2, -3, -4], upper=5.0)
    lower = np.repeat([[-1.0], [-2], [-3], [-4]], 3, axis=1)
    assert box == adafw.Box(lower, 5.0)
    x = np.arange(12.0).reshape(4, 3) - 8
    np.testing.assert_array_equal(box.project(x), np.clip(x, lower, 5))
    assert made("box", lower=lower, upper=5.0) == box


def test_a_set_of_vectors_holds_every_column():
    ball = adafw.GroupBall(1.0, [0, 0, 1, 1])
    assert as_set_of_matrices(ball, 4, 3) == adafw.Columns(ball)
    whole = adafw.GroupBall(1.0, np.zeros((4, 3), int))
    assert as_set_of_matrices(whole, 4, 3) is whole
    assert as_set_of_matrices(adafw.L1Ball(1.0), 4, 3) == adafw.L1Ball(1.0)
