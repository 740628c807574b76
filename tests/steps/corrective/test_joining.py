"""Which atoms join a working set, which of them must, and what weight costs meanwhile."""

import numpy as np
import pytest

from adafw.steps.corrective.joining import FALL, PRICE, Shape, filling, steepest

G = np.array([-5.0, 4.0, -0.45, 0.4, 3.0, -1.0, 2.0])


def ask(x, bound, level, room, shape=Shape(2.0), g=G, least=0.0):
    x, before = np.array(x, float), g.copy()
    support = np.flatnonzero(x)
    fresh, must, price = steepest(shape, x, g.copy(), support, bound, level, room, least)
    np.testing.assert_array_equal(g, before)
    return fresh.tolist(), must, price


def test_at_first_those_join_that_are_steeper_than_a_tenth_of_the_steepest():
    assert ask(np.zeros(7), False, -1.0, 7) == ([0, 1, 4, 5, 6], 5, FALL * 5)


def test_the_price_falls_to_a_tenth_an_iteration():
    assert ask(np.zeros(7), False, 4.2, 7) == ([0, 1, 2, 4, 5, 6], 6, FALL * 4.2)
    assert ask(np.zeros(7), False, 99.0, 7) == (
        [0, 1, 4, 5, 6],
        5,
        FALL * 5,
    )  # the steepest at most
    assert ask(np.zeros(7), False, 0.0, 7) == ([*range(7)], 7, 0.0)


def test_the_steepest_join_where_there_is_no_room_for_all():
    """Weight then costs a share of the steepest slope that is left out."""
    assert ask(np.zeros(7), False, -1.0, 3) == ([0, 1, 4], 3, PRICE * 2.0)
    assert ask(np.zeros(7), False, 4.0, 4) == ([0, 1, 4, 6], 4, FALL * 4.0)  # more than 0.3
    assert ask(np.zeros(7), False, -1.0, 5) == ([0, 1, 4, 5, 6], 5, FALL * 5)


def test_those_in_use_pay_what_the_others_have_to_beat():
    """-<g, x> / radius: (5 * 1.0 - 3 * 0.5) / 2 = 1.75, of which the set itself pays nothing."""
    x = [1.0, 0, 0, 0, 0.5, 0, 0]
    assert ask(x, False, 0.0, 7) == ([1, 6], 2, 0.0)
    assert ask(x, False, 30.0, 7) == ([1, 6], 2, FALL * 5)  # a price of 0.5 is less
    assert ask(x, True, 30.0, 7)[2] == 0.0
    assert ask(x, True, 30.0, 1) == ([1], 1, 0.0)


def test_once_the_set_binds_those_that_nearly_must_come_along():
    """Within 2 % of the multiplier, 2.5: never more than there is room for."""
    g = np.array([-5.0, 4.0, -2.49, 2.46, 2.44, -2.6, 0.0])
    x = [1.0, 0, 0, 0, 0, 0, 0]
    assert ask(x, True, 0.0, 7, g=g) == ([1, 2, 3, 5], 2, 0.0)
    assert ask(x, True, 0.0, 3, g=g) == ([1, 2, 5], 2, 0.0)
    assert ask(x, False, 0.0, 7, g=g) == ([1, 5], 2, 0.0)
    g[[1, 5]] = 0.0
    assert ask(x, True, 0.0, 7, g=g) == ([], 0, 0.0)


@pytest.mark.parametrize("open_", [False, True])
def test_atoms_of_one_sign_join_where_slopes_fall(open_):
    shape = Shape(2.0, signed=False, open=open_)
    assert ask(np.zeros(7), True, 0.0, 7, shape)[0] == [0, 2, 5]
    # Uphill everywhere: on sum x = radius the multiplier is negative, and others may be better.
    x = [0, 2.0, 0, 0, 0, 0, 0]
    found = ask(x, True, 0.0, 7, shape, np.abs(G))
    assert found == (([], 0, 0.0) if open_ else ([2, 3, 4, 5, 6], 5, 0.0))


def test_a_least_price_is_paid_as_long_as_the_set_does_not_bind():
    assert ask(np.zeros(7), False, -1.0, 7, least=2.5) == ([0, 1, 4], 3, 2.5)
    assert ask(np.zeros(7), False, -1.0, 7, least=0.3) == ([0, 1, 4, 5, 6], 5, FALL * 5)
    assert ask(np.zeros(7), False, 0.0, 2, least=0.3) == ([0, 1], 2, PRICE * 3.0)
    x = [1.0, 0, 0, 0, 0.5, 0, 0]
    assert ask(x, True, 0.0, 7, least=3.5) == ask(x, True, 0.0, 7)


def filled(shape, x, g, bends, price):
    """The sum of the sizes at the minimum of the separable model, where weight has a price."""
    known = bends > 0
    ends = bends[known] * x[known] - g[known]
    ends = np.abs(ends) if shape.signed else ends
    return float((np.maximum(ends - price, 0) / bends[known]).sum())


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_the_price_at_which_a_separable_model_fills_the_set(signed, scale):
    """By bisection; columns of no curvature do not count."""
    some = none = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        bends = scale * rng.exponential(size=50) ** 3 * (rng.random(50) < 0.8)
        x = rng.standard_normal(50) * (rng.random(50) < 0.2) * (seed % 2)
        x = x if signed else np.abs(x)
        g = scale * rng.standard_normal(50)
        radius = float(np.exp(rng.uniform(-3, 3))) * 0.3 * filled(Shape(1, signed), x, g, bends, 0)
        shape = Shape(radius, signed)
        price = filling(shape, x, g, bends)
        if filled(shape, x, g, bends, 0.0) <= radius:
            assert price == 0.0
            none += 1
            continue
        low, high = 0.0, 100 * scale * (1 + bends.max() / scale) * (1 + np.abs(x).max())
        for _ in range(200):
            middle = (low + high) / 2
            above = filled(shape, x, g, bends, middle) > radius
            low, high = (middle, high) if above else (low, middle)
        assert filled(shape, x, g, bends, price) == pytest.approx(radius, rel=2e-6)
        assert price == pytest.approx(high, rel=1e-5)
        some += 1
    assert some > 10
    assert none > 2


def test_nothing_fills_a_set_without_curvature_or_slopes():
    x, g = np.zeros(7), G
    assert filling(Shape(2.0), x, g, np.zeros(7)) == 0.0
    assert filling(Shape(2.0), x, 0 * g, np.ones(7)) == 0.0
    assert filling(Shape(2.0, False), x, np.abs(g), np.ones(7)) == 0.0  # uphill everywhere
    assert filling(Shape(2.0), x, np.abs(g), np.ones(7)) > 0.0
