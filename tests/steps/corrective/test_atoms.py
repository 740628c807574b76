"""Working sets of signed coordinates: how they grow, what is remembered, and where x ends."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import losses
from adafw.constraints.counted import CountedSet
from adafw.objectives import WithIntercept
from adafw.rows import EntryRows, as_rows
from adafw.steps.corrective import atoms
from adafw.steps.corrective.atoms import AtomCorrector, _room


def test_how_many_may_join():
    assert _room(0, 128) == _room(64, 128) == 128
    assert _room(65, 128) == 130
    assert _room(350, 128) == 700
    assert _room(351, 128) == 4 * 702


def problem(n, kind="csr", m=400, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, n)) * (rng.random((m, n)) < 0.05)
    y = np.where(A @ rng.standard_normal(n) + rng.standard_normal(m) > 0, 1.0, -1.0)
    stored: Any = sparse.csr_array(A.astype(dtype)) if kind == "csr" else A.astype(dtype)
    return adafw.LinearModel(stored, y.astype(dtype), losses.Logistic()), A, y


def improve(f, constraint, x, state, t=1):
    return AtomCorrector().improve(f, constraint, x, f.gradient(x), t, state)


@pytest.mark.parametrize(
    ("n", "kind", "state", "size"),
    [
        (512, "csr", {}, 512),
        (513, "csr", {}, 128),
        (513, "csr", {"sample": 1}, 32),
        (512, "csr", {"sample": 1}, 512),
        (100, "dense", {}, 100),
        (101, "dense", {"sample": 1}, 32),
        (400, "dense", {}, 128),
    ],
)
def test_of_few_columns_all_join_at_once_of_many_some(n, kind, state, size):
    f, _, _ = problem(n, kind)
    assert (f.gradient(np.zeros(n)) != 0).all()
    x, note = improve(f, adafw.L1Ball(1.0), np.zeros(n), dict(state))
    assert note["chosen"].size == size
    steep = np.sort(np.abs(f.gradient(np.zeros(n))))[::-1]
    np.testing.assert_array_equal(
        np.sort(np.abs(f.gradient(np.zeros(n)))[note["chosen"]])[::-1], steep[:size]
    )
    whole = size == n
    left_out = 0.0 if whole else max(0.3 * steep[size], 0.1 * steep[0])
    assert note["level"] == pytest.approx(left_out)
    assert note["norm"] == 0.0
    assert note["bound"] == 0
    assert note.get("sample", 0) == state.get("sample", 0)
    assert f.value(x) < f.value(np.zeros(n))


def test_what_an_iteration_notes():
    """The price falls while weight grows, and is gone once that does no longer."""
    f, A, _ = problem(600)
    ball, counted = adafw.L1Ball(400.0), CountedSet(adafw.L1Ball(400.0))
    x, state = improve(f, counted, np.zeros(600), {"related": 1})
    assert counted.lmo_calls == 1
    norm = float(np.abs(x).sum())
    assert 0 < norm < 300
    np.testing.assert_allclose(state["predictions"], A @ x, atol=1e-12)
    assert f.predictions(x)[0] is state["predictions"]
    assert state["reach"] == pytest.approx(np.abs(A @ x).max())
    assert state["calm"] == 1
    x2, second = improve(f, ball, x, dict(state))
    assert 0 < second["level"] < state["level"]
    assert second["norm"] == pytest.approx(norm)
    assert ball.gap(x2, f.gradient(x2)) < ball.gap(x, f.gradient(x))
    steep = np.abs(f.gradient(x2))
    for grown, level in ((0.9, min(0.1 * second["level"], steep.max())), (0.995, 0.0)):
        before = {**second, "norm": grown * float(np.abs(x2).sum()), "level": second["level"]}
        fresh = np.count_nonzero((steep > level) & (x2 == 0))
        assert fresh < 2 * np.count_nonzero(x2)  # there is room for all
        _, third = improve(f, ball, x2, before)
        assert third["level"] == pytest.approx(level, rel=1e-9, abs=0)


@pytest.mark.parametrize(
    ("share", "known", "bound"),
    [(1.0, 0, 1), (1 - 1e-10, 0, 1), (0.95, 0, 0), (0.95, 1, 1), (0.85, 1, 0), (0.5, 0, 0)],
)
def test_whether_the_set_binds(share, known, bound):
    """Where all weight is used; where some is left after a cut step, if it did before."""
    f, _, _ = problem(600)
    ball = adafw.L1Ball(0.01)
    x = np.where(np.arange(600) < 10, share * 0.001, 0.0)
    _, state = improve(f, ball, x, {"bound": known})
    assert state["bound"] == bound
    if bound:
        assert state["level"] == 0.0


@pytest.mark.parametrize("make", [adafw.L1Ball, adafw.UnitSimplex, adafw.Simplex])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_x_is_in_the_set_to_the_last_digit(make, dtype):
    for radius in (0.3, 2.0):
        f, _, _ = problem(40, dtype=dtype)
        ball = make(radius)
        x, state = ball.start((40,)).astype(dtype), {}
        for _ in range(5):
            x, state = improve(f, ball, x, state)
            assert x.dtype == dtype
            assert ball.violation(x) <= (1e-15 if dtype == np.float64 else 1e-6)
            assert not np.signbit(x[x == 0]).any()
            assert ("predictions" in state) is (dtype == np.float64)
        assert ball.gap(x, f.gradient(x)) <= 1e-4


@pytest.mark.parametrize("shift", [0.0, 3.0, -3.0])
def test_on_a_simplex_a_constant_slope_makes_the_multiplier_positive(shift, monkeypatch):
    """m + c with c the least that makes it as large as every |slope + m|: no other is told."""
    monkeypatch.setattr(atoms, "MANY", 0)
    f, _, _ = problem(40)
    seen, plain = [], atoms.descent
    monkeypatch.setattr(atoms, "descent", lambda at, point: seen.append(at) or plain(at, point))
    x = np.where(np.arange(40) < 4, 1.5, 0.0)
    g = f.gradient(x) + shift
    new, state = AtomCorrector().improve(f, adafw.Simplex(6.0), x, g, 1, {})
    (at,) = seen
    slopes, w = g[at.chosen], x[at.chosen]
    multiplier = -float(slopes @ w) / 6.0
    wanted = max(multiplier, float(np.abs(slopes + multiplier).max()))
    np.testing.assert_allclose(at.g, slopes + multiplier - wanted, atol=1e-12)
    np.testing.assert_array_equal(at.x, w)
    assert (at.radius, at.signed, at.bound, at.seed) == (6.0, False, True, 1)
    assert new.sum() == pytest.approx(6.0)
    assert new.min() >= 0
    assert f.value(new) < f.value(x)
    assert (state["bound"], state["calm"]) in ((1, 0), (1, 1))
    np.testing.assert_allclose(state["predictions"], f.rows.dot(new), atol=1e-12)


@pytest.mark.parametrize("bound", [False, True])
def test_descents_are_told_of_the_ball(bound, monkeypatch):
    monkeypatch.setattr(atoms, "MANY", 0)
    monkeypatch.setattr(atoms, "MOST_ATOMS", 0)
    f, _, _ = problem(600)
    seen, plain = [], atoms.descent
    monkeypatch.setattr(atoms, "descent", lambda at, point: seen.append(at) or plain(at, point))
    x = np.where(np.arange(600) < 10, 0.1, 0.0)
    radius = 1.0 if bound else 50.0
    _, state = improve(f, adafw.L1Ball(radius), x, {"level": 0.02, "norm": 0.5, "calm": 1}, t=7)
    (at,) = seen
    np.testing.assert_array_equal(at.g, f.gradient(x)[at.chosen])
    np.testing.assert_array_equal(at.x, x[at.chosen])
    assert (at.radius, at.signed, at.bound, at.seed) == (radius, True, bound, 7)
    assert (at.price == 0) is bound
    assert at.price == state["level"]
    assert not at.calm  # many join
    assert state["bound"] in (0, 1)


def test_at_a_minimum_nothing_is_done():
    f, _, _ = problem(40)
    x, state = np.eye(40)[3], {"level": 0.5}
    new, after = AtomCorrector().improve(f, adafw.L1Ball(1.0), x, -np.eye(40)[3], 1, state)
    assert new is x
    assert after is state


def test_which_problems_fit():
    f, A, y = problem(40)
    fits = AtomCorrector().fits
    for constraint in (adafw.L1Ball(1.0), adafw.Simplex(1.0), adafw.UnitSimplex(1.0)):
        assert fits(f, constraint)
        assert fits(WithIntercept(f), CountedSet(constraint))
    assert not fits(f, adafw.L2Ball(1.0))
    entries = EntryRows(np.array([0, 1, 1]), np.array([2, 0, 1]), (2, 3), np.dtype(float))
    assert not fits(adafw.LinearModel(entries, y[:3], losses.Squared()), adafw.L1Ball(1.0))
    assert not fits(adafw.UserSum(1, lambda x: 0.0, lambda x, batch=None: x), adafw.L1Ball(1.0))
    centred = as_rows(sparse.csr_array(A)).centred()[0]
    assert not fits(adafw.LinearModel(centred, y, losses.Logistic()), adafw.L1Ball(1.0))
    assert fits(adafw.LinearModel(centred, y, losses.Squared()), adafw.L1Ball(1.0))


@pytest.mark.parametrize("sets", [adafw.L1Ball(2.0), adafw.UnitSimplex(2.0), adafw.Simplex(2.0)])
def test_the_active_set_of_a_point(sets):
    x = np.array([0.5, 0.0, 1.0, 0.0])
    x = x / 0.75 if isinstance(sets, adafw.Simplex) else x
    weights, atoms = AtomCorrector().active_set(sets, x, {})
    rows = atoms.toarray()
    np.testing.assert_allclose(weights @ rows, x, atol=1e-15)
    assert weights.sum() == pytest.approx(1)
    if isinstance(sets, adafw.L1Ball):
        np.testing.assert_allclose(weights, [0.25, 0.5, 0.125, 0.125])
        np.testing.assert_array_equal(rows[2:], [[0, 2, 0, 0], [0, -2, 0, 0]])
    elif isinstance(sets, adafw.UnitSimplex):
        np.testing.assert_allclose(weights, [0.25, 0.5, 0.25])
        assert not rows[2].any()
    else:
        np.testing.assert_allclose(weights, [1 / 3, 2 / 3])
    np.testing.assert_array_equal(rows[:2], [[2, 0, 0, 0], [0, 0, 2, 0]])


def test_active_sets_of_signed_points_and_of_points_on_the_sphere():
    corrector, x = AtomCorrector(), np.array([0.0, -0.5, 0.25, 0.0, -1.0], np.float32)
    weights, vertices = corrector.active_set(adafw.L1Ball(4.0), x, {})
    assert weights.dtype == np.float64
    np.testing.assert_allclose(weights, [0.125, 0.0625, 0.25, 0.28125, 0.28125])
    np.testing.assert_allclose(weights @ vertices, x)
    assert np.abs(vertices).sum(axis=1).tolist() == [4.0] * 5
    for ball in (adafw.L1Ball(1.75), adafw.L1Ball(1.75 * (1 + 2.0**-52))):
        weights, vertices = corrector.active_set(ball, x, {})
        assert weights.size == 3  # rounding is no weight of the origin
        np.testing.assert_allclose(weights, [2 / 7, 1 / 7, 4 / 7])
        np.testing.assert_allclose(weights @ vertices, x)
    whole = np.array([0.5, -0.25])  # no coordinate is left for the origin
    weights, vertices = corrector.active_set(adafw.L1Ball(1.0), whole, {})
    np.testing.assert_allclose(weights, [0.5, 0.25, 0.125, 0.125])
    np.testing.assert_allclose(weights @ vertices, whole)


def test_a_descent_notes_when_hardly_anything_changes(monkeypatch):
    monkeypatch.setattr(atoms, "MANY", 0)
    monkeypatch.setattr(atoms, "MOST_ATOMS", 0)
    f, _, _ = problem(40)
    ball, x, state, calm = adafw.L1Ball(2.0), np.zeros(40), {}, []
    for t in range(8):
        x, state = improve(f, ball, x, state, t)
        calm.append(state["calm"])
    assert set(calm) == {0, 1}
    assert calm[0] == 0
    assert state["bound"] == 1
    for radius, bound in ((0.3, 1), (1e4, 0)):  # in the end, not where it began
        x, state = improve(f, adafw.L1Ball(radius), np.zeros(40), {})
        assert state["bound"] == bound
        assert bool(np.abs(x).sum() == pytest.approx(radius)) is bool(bound)


@pytest.mark.parametrize("way", ["newton", "descent"])
@pytest.mark.parametrize("kind", ["intercept", "centred"])
def test_predictions_are_without_the_intercept(kind, way, monkeypatch):
    if way == "descent":
        monkeypatch.setattr(atoms, "MANY", 0)
        monkeypatch.setattr(atoms, "MOST_ATOMS", 0)
    f, A, y = problem(40)
    rows = as_rows(sparse.csr_array(A + 1.0))
    if kind == "intercept":
        f: Any = WithIntercept(adafw.LinearModel(rows, y, losses.Logistic()))
    else:
        f = adafw.LinearModel(rows.centred()[0], y, losses.Squared())
    x, state = np.zeros(40), {}
    for _ in range(4):
        x, state = improve(f, adafw.L1Ball(1.5), x, state)
        np.testing.assert_allclose(state["predictions"], f.rows.dot(x), atol=1e-12)
        assert f.predictions(x)[0] is state["predictions"]


def test_descents_are_told_of_single_numbers_in_double(monkeypatch):
    monkeypatch.setattr(atoms, "MANY", 0)
    f, _, _ = problem(600, dtype=np.float32)
    seen, plain = [], atoms.descent
    monkeypatch.setattr(atoms, "descent", lambda at, point: seen.append(at) or plain(at, point))
    x = np.where(np.arange(600) < 10, 0.1, 0.0).astype(np.float32)
    new, _ = improve(f, adafw.L1Ball(1.0), x, {})
    assert new.dtype == np.float32
    assert (seen[0].g.dtype, seen[0].x.dtype) == (np.float64, np.float64)
