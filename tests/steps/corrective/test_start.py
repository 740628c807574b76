"""Where an iteration on atoms begins: what is known of x, and what is left to the next one."""

import numpy as np
import pytest

import adafw
from adafw import losses
from adafw.constraints.counted import CountedSet
from adafw.steps.corrective.joining import Shape
from adafw.steps.corrective.start import Outset, inside, placed, shape_of

L1, UNIT, SIMPLEX = Shape(2.0), Shape(2.0, False), Shape(2.0, False, False)
X, G = np.array([0.5, 0.0, -1.0, 0.0]), np.array([-3.0, 1.0, 2.0, 0.5])


def test_shapes_of_sets():
    for constraint, shape in (
        (adafw.L1Ball(2.0), L1), (adafw.UnitSimplex(2.0), UNIT), (adafw.Simplex(2.0), SIMPLEX),
        (adafw.L2Ball(2.0), None), (adafw.Box(0.0, 2.0), None),
    ):  # fmt: skip
        assert shape_of(constraint) == shape_of(CountedSet(constraint)) == shape


def test_what_is_known_of_a_point():
    at = Outset.of(L1, X, G, 3.0, {})
    assert at.support.tolist() == [0, 2]
    assert (at.norm, at.slack, at.bound, at.level) == (1.5, 0.5, False, -1.0)
    full = Outset.of(L1, 2 * X / 1.5 * (1 - 1e-10), G, 3.0, {})
    assert (full.slack, full.bound) == (0.0, True)
    assert Outset.of(L1, 2 * X / 1.5 * (1 - 1e-8), G, 3.0, {}).slack == pytest.approx(2e-8)
    # On sum x = radius there is no slack, whatever rounding says.
    short = Outset.of(SIMPLEX, np.abs(X), G, 3.0, {})
    assert (short.slack, short.bound) == (0.0, True)
    single = Outset.of(L1, X.astype(np.float32), G, 3.0, {})
    assert single.norm == 1.5


def test_a_set_still_binds_after_a_step_that_was_cut():
    for share, before, bound in ((0.95, 1, True), (0.95, 0, False), (0.89, 1, False)):
        x = 2 * share * X / 1.5
        assert Outset.of(L1, x, G, 3.0, {"bound": before}).bound is bound


def test_nothing_costs_once_weight_no_longer_grows():
    for norm, level in ((1.4, 0.3), (1.486, 0.0), (1.6, 0.0)):
        assert Outset.of(L1, X, G, 3.0, {"level": 0.3, "norm": norm}).level == level


def test_what_is_left_to_the_next_iteration():
    at = Outset.of(L1, X, G, 3.0, {})
    assert at.note(0.25, {"calm": 1, "gap": 3.0}) == {"level": 0.25, "norm": 1.5, "bound": 0}
    known = {"related": 1, "sample": 1}
    left = Outset.of(L1, X, G, 3.0, known).note(0.0, known)
    assert left == {"level": 0.0, "norm": 1.5, "bound": 0, "related": 1, "sample": 1}


def test_columns_are_related_once_a_gap_has_hardly_fallen():
    """Of a set that binds, and for good."""
    full = 2 * X / 1.5
    for x, state, related in (
        (full, {"gap": 4.2}, True), (full, {"gap": 4.3}, False), (full, {}, False),
        (X, {"gap": 4.2}, False), (X, {"related": 1}, True), (full, {"related": 0}, False),
    ):  # fmt: skip
        at = Outset.of(L1, x, G, 3.0, state)
        assert (at.gap, at.related) == (3.0, related)
        assert ("related" in at.note(0.0, state)) is related


def test_slopes_are_those_of_the_gradient_but_where_a_constant_means_nothing():
    """On sum x = radius the multiplier becomes as large as every |slope + multiplier|."""
    chosen = np.array([0, 1, 3])
    for shape in (L1, UNIT):
        np.testing.assert_array_equal(Outset.of(shape, X, G, 3.0, {}).slopes(chosen), G[chosen])
    x = np.array([0.5, 1.5, 0.0, 0.0])
    for shift in (-9.0, 0.0, 9.0):
        slopes = Outset.of(SIMPLEX, x, G + shift, 3.0, {}).slopes(chosen)
        multiplier = -(slopes @ x[chosen]) / 2.0
        plain = -((G + shift)[chosen] @ x[chosen]) / 2.0
        assert multiplier == pytest.approx(max(plain, np.abs(slopes + multiplier).max()))
        np.testing.assert_allclose(np.diff(slopes), np.diff(G[chosen]), atol=1e-14)


def test_weights_are_brought_inside():
    w = np.array([1.5, -1.5])
    np.testing.assert_allclose(inside(w, L1), [1, -1])
    for shape in (L1, UNIT):
        small = np.array([0.5, 0.25])
        assert inside(small, shape) is small
    np.testing.assert_allclose(inside(np.array([0.5, 0.0]), SIMPLEX), [2, 0])
    assert not inside(np.zeros(2), SIMPLEX).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_become_a_point_whose_predictions_are_known(dtype):
    A = np.random.default_rng(0).standard_normal((6, 4)).astype(dtype)
    f = adafw.LinearModel(A, np.ones(6, dtype), losses.Squared())
    z = f.rows.dot(np.array([0.0, 0.5, -0.0, -1.0])) * (1 + 1e-12)
    x, chosen, note = X.astype(dtype), np.array([3, 1, 2]), {}
    new, state = placed(f, x, chosen, np.array([-1.0, 0.5, -0.0]), z, note)
    assert state is note
    assert new.dtype == dtype
    assert new.tolist() == [0.0, 0.5, 0.0, -1.0]
    assert not np.signbit(new[2])
    assert ("predictions" in state) is (dtype == np.float64)
    if dtype == np.float64:
        np.testing.assert_array_equal(state["predictions"], z)
        np.testing.assert_array_equal(f.predictions(new)[0], z)
