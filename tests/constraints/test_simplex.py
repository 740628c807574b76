import numpy as np
import pytest

from adafw import Simplex, UnitSimplex


@pytest.mark.parametrize(
    ("x", "off"),
    [
        ([1.0, 1.0], 0.0),
        ([2.5, -0.5], 0.25),  # the sum is right, an entry is not
        ([0.5, 0.5], 0.5),
        ([2.0, 1.0], 0.5),
        ([-3.0, 5.0], 1.5),
        ([4.0, -1.0], 0.5),  # the worse of both counts
    ],
)
def test_violation_of_a_simplex(x, off):
    assert Simplex(2.0).violation(np.array(x)) == off


@pytest.mark.parametrize(
    ("x", "off"),
    [
        ([1.0, 1.0], 0.0),
        ([0.5, 0.5], 0.0),
        ([2.5, -0.5], 0.25),
        ([2.0, 1.0], 0.5),
        ([-1.0, -3.0], 1.5),
    ],
)
def test_violation_of_a_unit_simplex(x, off):
    assert UnitSimplex(2.0).violation(np.array(x)) == off


def test_diameters_of_one_and_of_two_coordinates():
    assert [Simplex(3.0).diameter(n) for n in (1, 2)] == [0.0, pytest.approx(3 * 2**0.5)]
    assert [UnitSimplex(3.0).diameter(n, 1) for n in (1, 2)] == [3.0, pytest.approx(6.0)]


def test_projections_onto_simplices_have_no_negative_zeros():
    for constraint in (UnitSimplex(1.0), Simplex(1.0)):
        v = constraint.project(np.array([-0.0, 0.25, -3.0]))
        assert not np.signbit(v).any()
