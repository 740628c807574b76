"""Several models in one call: where they lead, and what they say of it."""

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import losses
from adafw.kernels.brief import Rounds, Scored, Setting, brief
from adafw.kernels.codes import LOGISTIC, SQUARED, SQUARED_HINGE

CODES = {
    LOGISTIC: losses.Logistic(), SQUARED: losses.Squared(), SQUARED_HINGE: losses.SquaredHinge(),
}  # fmt: skip
ROUNDS = Rounds(4, 3, 3, 0.1, 0.001, 0)


def problem(code=LOGISTIC, m=300, n=40, scale=1.0, weighted=False):
    rng = np.random.default_rng(code)
    A = sparse.csr_array(rng.standard_normal((m, n)) * (rng.random((m, n)) < 0.1) * scale)
    y = np.where(A @ rng.standard_normal(n) / scale + rng.standard_normal(m) > 0, 1.0, -1.0)
    weight = rng.integers(0, 3, m).astype(float) if weighted else None
    return adafw.LinearModel(A, y, CODES[code], weight)


def call(f, w, radius, rounds=ROUNDS, multiplier=0.0, price=0.0, binding=True, signed=True,
         everything=False, chosen=None, z=None):  # fmt: skip
    """brief from w on the chosen columns, its answer by name."""
    chosen = np.arange(w.size) if chosen is None else chosen
    z = f.rows.dot(w) if z is None else z
    value, slopes, bends = f.curves_at(z)
    g, at = f.rows.combine(slopes)[chosen], w[chosen]
    setting = Setting(
        radius, signed, binding, price, multiplier, False, float(f.rows.largest), everything
    )
    found = brief(
        Scored(f.loss_code, f.y, f.term_weights), f.rows.column_arrays(), chosen.view(np.uint64),
        setting, rounds, at, g, value, z, slopes, bends,
    )  # fmt: skip
    names = ("done", "binding", "left", "multiplier", "value", "z", "slopes", "bends")
    return at, dict(zip(names, found, strict=True))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("code", CODES)
def test_what_is_told_is_what_is_there(code, weighted):
    """Predictions to the last digit, values and slopes there, weights in the set and lower."""
    f = problem(code, weighted=weighted)
    w = np.random.default_rng(1).dirichlet(np.ones(40))
    new, told = call(f, w, 1.0)
    assert told["done"] >= 1
    np.testing.assert_allclose(told["z"], f.rows.dot(new), atol=1e-13)
    value, slopes, bends = f.curves_at(told["z"])
    assert told["value"] == value < f.value(w)
    np.testing.assert_array_equal(told["slopes"], slopes)
    np.testing.assert_array_equal(told["bends"], bends)
    assert np.abs(new).sum() <= 1 + 1e-15
    assert told["binding"]


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("scale", [1e-120, 1.0, 1e120])
@pytest.mark.parametrize("code", CODES)
def test_calls_in_turn_lead_to_the_minimum(code, scale, signed):
    """Single precision in models bounds no accuracy, and units beyond its range are none of its."""
    f = problem(code, scale=scale)
    radius, w, multiplier = 3.0 / scale, np.zeros(40), 0.0
    ball = adafw.L1Ball(radius) if signed else adafw.UnitSimplex(radius)
    for _ in range(20):
        w, told = call(f, w, radius, multiplier=multiplier, signed=signed)
        if not told["done"]:
            break
        multiplier = told["multiplier"]
    g = f.gradient(w)
    assert ball.gap(w, g) <= 1e-9
    assert multiplier == pytest.approx(np.abs(g).max() if signed else -g.min(), rel=1e-5)


def test_a_set_that_does_not_bind_is_told():
    f = problem()
    w, told = call(f, np.zeros(40), 1e6, binding=False)
    for _ in range(6):
        w, told = call(f, w, 1e6, binding=False)
    assert not told["binding"]
    assert np.abs(f.gradient(w)).max() < 1e-9


def test_columns_that_are_not_needed_come_and_go():
    """Of all there are, the steepest make the first model; the others are looked at after it."""
    f = problem(m=600, n=200)
    g = np.abs(f.gradient(np.zeros(200)))
    price = float(np.sort(g)[-10])
    ends = [
        call(f, np.zeros(200), 4.0, price=price, everything=True, rounds=ROUNDS._replace(models=k))
        for k in (1, 4)
    ]
    used = [np.flatnonzero(w) for w, _ in ends]
    assert (g[used[0]] >= 0.8 * price).all()
    assert (g[used[1]] < 0.8 * price).any()
    assert ends[1][1]["value"] < ends[0][1]["value"]


def test_chosen_columns_alone_move():
    f, w = problem(), np.zeros(40)
    w[[3, 7, 20]] = [0.2, -0.3, 0.5]
    chosen = np.array([7, 20, 35, 3])
    new, told = call(f, w, 1.0, chosen=chosen)
    whole = np.zeros(40)
    whole[chosen] = new
    np.testing.assert_allclose(told["z"], f.rows.dot(whole), atol=1e-13)


def test_where_nothing_bends_nothing_is_done():
    """Margins all kept, and far: no slope, no curvature."""
    f = problem(SQUARED_HINGE)
    w, z = np.full(40, 0.02), 5 * f.y
    new, told = call(f, w, 1.0, z=z)
    assert told["done"] == 0
    np.testing.assert_array_equal(new, w)
    assert told["z"] is z or (told["z"] == z).all()


def test_at_the_minimum_nothing_is_done_or_nothing_lost():
    f, w = problem(), np.zeros(40)
    for _ in range(12):
        w, _ = call(f, w, 3.0)
    again, _ = call(f, w, 3.0)
    assert f.value(again) <= f.value(w) * (1 + 1e-14)
    np.testing.assert_allclose(again, w, atol=1e-6)
