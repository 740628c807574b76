"""A set for each column: one vector of it an output."""

import numpy as np
import pytest

from adafw import Columns, Hull, L1Ball, Polytope, Simplex, UserSet
from adafw.constraints.base import Constraint

X = np.array([[0.9, 3.0], [0.3, -1.0], [0.0, 0.5]])
H = np.array([[1.0, 4.0], [2.0, 1.0], [1.0, 9.0]])


def test_everything_goes_column_by_column():
    column = Simplex(1.0)
    both = Columns(column)
    for j in range(2):
        np.testing.assert_array_equal(both.lmo(X)[:, j], column.lmo(X[:, j]))
        np.testing.assert_array_equal(both.project(X)[:, j], column.project(X[:, j]))
        ours = both.project(X, H)[:, j]
        np.testing.assert_array_equal(ours, column.project(X[:, j].copy(), H[:, j].copy()))
    np.testing.assert_array_equal(both.start((3, 2)), [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    inside = both.project(X)
    gaps = [column.gap(inside[:, j], H[:, j]) for j in range(2)]
    assert both.gap(inside, H) == pytest.approx(sum(gaps))
    assert both.violation(X) == column.violation(X[:, 1])
    assert both.violation(X[:, ::-1]) == column.violation(X[:, 1])
    for p, width in ((1, 4.0), (2, 2.0), (4, 4**0.25), (np.inf, 1.0)):
        assert both.diameter((3, 2), p) == pytest.approx(width)
    assert (both.scale, Columns(L1Ball(3.0)).scale) == (1.0, 3.0)


def test_the_tolerance_is_that_of_each_column():
    both, x = Columns(Simplex(1.0)), np.array([[1.0, 1.0], [0.0, 1e-6]])
    assert not both.contains(x)
    assert both.contains(x, 1e-5)
    assert not both.contains(x, 1e-7)


def test_it_says_of_itself_what_its_columns_say():
    polytope = Polytope([[1.0, 1.0]], [1.0])
    blind = UserSet(lambda g: -np.sign(g), np.zeros(2))
    for column in (Simplex(1.0), Hull(np.eye(2)), polytope, blind):
        both = Columns(column)
        assert (both.projection, both.exact_diameter) == (column.projection, column.exact_diameter)
    assert repr(Columns(Simplex(2.0))) == "Columns(Simplex(radius=2.0))"
    assert Columns(Simplex(2.0)) != Columns(Simplex(1.0))
    assert Columns(Simplex(2.0)) == Columns(Simplex(2.0))


def test_refuses_what_is_no_matrix_and_no_set():
    assert not isinstance(3, Constraint)
    with pytest.raises(TypeError, match="Columns must be made of a set of vectors, got 3"):
        Columns(3)
    both = Columns(Simplex(1.0))
    for ask in (both.lmo, both.violation, both.contains, both.project, lambda x: both.gap(x, X)):
        with pytest.raises(ValueError, match=r"this Columns holds matrices, got shape \(3,\)"):
            ask(np.ones(3))
    for ask in (both.start, both.diameter):
        with pytest.raises(ValueError, match=r"this Columns holds matrices, got shape \(3,\)"):
            ask(3)
