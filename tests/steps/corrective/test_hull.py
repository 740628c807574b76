"""Working sets of vertices, their weights, and what an iteration on a hull leaves behind."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import losses
from adafw.constraints.counted import CountedSet
from adafw.objectives import WithIntercept
from adafw.rows import MatrixRows, as_rows
from adafw.rows.dense import DenseRows
from adafw.steps.corrective.hull import FIRST, HullCorrector, _weights, _working_set


def test_vertices_below_the_mean_of_those_in_use_join():
    w = np.array([0.0, 0.5, 0.0, 0.5, 0.0, 0.0])
    slopes = np.array([1.0, 4.0, 2.9, 2.0, -7.0, 3.1])  # in use: 3
    chosen, fresh = _working_set(w, slopes, {})
    assert (chosen.tolist(), fresh) == ([1, 3, 0, 2, 4], 3)
    # In the order of the last set, as far as it is in use.
    chosen, fresh = _working_set(w, slopes, {"chosen": np.array([3, 5, 1])})
    assert (chosen.tolist(), fresh) == ([3, 1, 0, 2, 4], 3)
    chosen, _ = _working_set(w, slopes, {"chosen": np.array([3])})
    assert chosen.tolist() == [3, 1, 0, 2, 4]
    assert _working_set(w, np.full(6, 2.0), {})[1] == 0


@pytest.mark.parametrize("used", [1, 20, 50])
def test_as_many_join_as_take_part_but_some_always(used):
    rng = np.random.default_rng(0)
    w, slopes = np.zeros(300), -rng.random(300)
    w[:used], slopes[:used] = 1 / used, 1.0
    chosen, fresh = _working_set(w, slopes, {})
    most = max(FIRST, used)
    assert fresh == most
    expected = np.sort(used + np.argsort(slopes[used:])[:most])
    np.testing.assert_array_equal(chosen, [*range(used), *expected])


def test_weights_are_those_of_the_state_or_those_of_the_point():
    V = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    hull, x = adafw.Hull(V), np.array([0.5, 0.25])
    np.testing.assert_allclose(_weights(hull, x, {}), [0.25, 0.5, 0.25], atol=1e-12)
    known = np.array([0.0, 0.0, 1.0])
    assert _weights(hull, x, {"weights": known}) is known
    others: list[Any] = [np.ones(2) / 2, [0.0, 0.0, 1.0]]
    for other in others:
        found = _weights(hull, x, {"weights": other})
        np.testing.assert_allclose(found, [0.25, 0.5, 0.25], atol=1e-12)
    vertex = _weights(hull, V[1], {})
    assert (vertex[0], vertex[2]) == (0.0, 0.0)  # rounding is no weight


def problem(dtype=np.float64, loss=losses.Logistic()):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((60, 4)).astype(dtype)
    y = np.where(A[:, 0] + rng.standard_normal(60) > 0, 1, -1).astype(dtype)
    return adafw.LinearModel(A, y, loss), adafw.Hull(rng.standard_normal((50, 4)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_an_iteration_descends_over_the_hull_and_keeps_what_it_knows(dtype):
    f, hull = problem(dtype)
    corrector, counted = HullCorrector(), CountedSet(hull)
    x = hull.start((4,)).astype(dtype)
    state: Any = corrector.init(x)
    for _ in range(3):
        gap, value = hull.gap(x, f.gradient(x)), f.value(x)
        new, state = corrector.improve(f, counted, x, f.gradient(x), 1, state)
        w = state["weights"]
        assert new.dtype == dtype
        assert w.min() >= 0
        assert w.sum() == pytest.approx(1, abs=1e-12)
        np.testing.assert_allclose(w @ hull.vertices.value, new, atol=1e-6)
        assert f.value(new) < value
        kept = set(state["chosen"].tolist())
        assert set(np.flatnonzero(w).tolist()) <= kept
        assert state["gram"].shape == (len(kept),) * 2
        if dtype == np.float64:
            np.testing.assert_allclose(state["predictions"], f.rows.array @ new, atol=1e-12)
            assert f.predictions(new)[0] is state["predictions"]
        else:
            assert "predictions" not in state
        x = new
    assert hull.gap(x, f.gradient(x)) < 1e-3 * gap
    assert counted.lmo_calls == 3
    weights, atoms = corrector.active_set(hull, x, state)
    assert (weights > 0).all()
    np.testing.assert_allclose(weights @ atoms, x, atol=1e-6)


def test_each_vertex_that_joins_costs_one_product(monkeypatch):
    f, hull = problem()
    corrector, products = HullCorrector(), []
    plain = DenseRows.dot
    monkeypatch.setattr(DenseRows, "dot", lambda *given: products.append(0) or plain(*given))
    x, state, known = hull.start((4,)), {}, set()
    for _ in range(4):
        g = f.gradient(x)
        products.clear()
        new, state = corrector.improve(f, hull, x, g, 1, state)
        chosen = set(state["chosen"].tolist())
        assert len(products) == len(chosen - known)
        f.value_and_gradient(new)  # at predictions that were led along
        assert len(products) == len(chosen - known)
        x, known = new, chosen


def test_at_a_minimum_nothing_is_done():
    f, _ = problem()
    hull = adafw.Hull(np.array([[1.0, 0, 0, 0], [0, 1.0, 0, 0]]))
    x, g = np.array([1.0, 0, 0, 0]), np.array([-1.0, 0.0, 0, 0])
    state: Any = {"weights": np.array([1.0, 0.0])}
    counted = CountedSet(hull)
    new, after = HullCorrector().improve(f, counted, x, g, 1, state)
    assert new is x
    assert after is state
    assert counted.lmo_calls == 1


def test_which_problems_fit():
    f, hull = problem()
    fits = HullCorrector().fits
    assert fits(f, hull)
    assert fits(WithIntercept(f), CountedSet(hull))
    assert not fits(f, adafw.Simplex(1.0))
    other = adafw.UserSum(1, lambda x: 0.0, lambda x, batch=None: x)
    assert not fits(other, hull)
    centred = as_rows(sparse.csr_array(f.rows.array)).centred()[0]
    assert not fits(adafw.LinearModel(centred, f.y, losses.Logistic()), hull)
    assert fits(adafw.LinearModel(centred, f.y, losses.Squared()), hull)
    square = adafw.Hull(np.random.default_rng(0).standard_normal((5, 2, 2)))
    rows = MatrixRows(as_rows(f.rows.array), (2, 2))
    assert not fits(adafw.LinearModel(rows, f.y, losses.Squared()), square)


def test_predictions_of_centred_rows_are_those_of_the_point():
    f, hull = problem(loss=losses.Squared())
    rows = as_rows(sparse.csr_array(f.rows.array + 2.0)).centred()[0]
    f = adafw.LinearModel(rows, f.y, losses.Squared())
    x, state = hull.start((4,)), {}
    for _ in range(3):
        x, state = HullCorrector().improve(f, hull, x, f.gradient(x), 1, state)
        np.testing.assert_allclose(state["predictions"], rows.dot(x), atol=1e-12)
        np.testing.assert_array_equal(f.predictions(x)[0], state["predictions"])


def test_stopping_where_predictions_cancel_changes_no_bit():
    """Two samples alike with labels that differ: A x is 0 but for rounding at the minimum."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((2, 10))
    A[1] = A[0]
    hull = adafw.Hull(rng.standard_normal((30, 10)))

    def run(most, state=None):
        f = adafw.LinearModel(A, np.array([1.0, -1.0]), losses.SquaredHinge())
        return adafw.minimize(f, hull, adafw.Corrective(), state=state, max_iterations=most)

    whole = run(12)
    for stop in range(1, 12):
        np.testing.assert_array_equal(run(12, run(stop).state).x, whole.x)
