"""Spectral steps one by one: lengths, projections, the values looked back on."""

import numpy as np
import pytest

import adafw
from adafw.gradients import CSFW, Full
from adafw.objectives import Line, Quadratic
from adafw.steps import SpectralStep
from adafw.steps.spectral import backtrack


def quadratic(n=4, seed=0):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((n, n))
    return Quadratic(rng.standard_normal(n), rng.standard_normal(n), B @ B.T + 0.1 * np.eye(n))


@pytest.mark.parametrize("scale", [None, np.array([1.0, 4.0, 0.5, 2.0])], ids=["plain", "scaled"])
@pytest.mark.parametrize("memory", [1, 3, 10])
def test_iterates_are_those_of_the_paper(scale, memory):
    """Birgin, Martinez and Raydan's algorithm 2.2, written out."""
    f, ball = quadratic(), adafw.LInfBall(0.6)
    step, x, state = SpectralStep(scale, memory), np.array([0.1, -0.2, 0.3, 0.0]), {}
    h = np.ones(4) if scale is None else scale
    y, last, values = x.copy(), None, []
    for t in range(8):
        g = f.gradient(y)
        a = 0.6 / np.abs(g / h).max()
        if last is not None:
            s, change = y - last[0], g - last[1]
            a = (s @ (h * s)) / (s @ change) if s @ change > 0 else a
        d = np.clip(y - a * g / h, -0.6, 0.6) - y
        if np.abs(d).max() < 1e-7:
            break
        values = [*values, f.value(y)][-memory:]
        gamma = 1.0
        while f.value(y + gamma * d) > max(values) + 1e-4 * gamma * (g @ d):
            gamma = (
                -(g @ d) * gamma**2 / 2 / (f.value(y + gamma * d) - f.value(y) - gamma * (g @ d))
            )
        last, y = (y.copy(), g), y + gamma * d
        x, state = step.update(f, ball, x, f.gradient(x), t, state)
        np.testing.assert_allclose(x, y, atol=1e-9)
        assert state["length"] == pytest.approx(a, rel=1e-6)
        np.testing.assert_allclose(state["values"], values, atol=1e-9)
    assert t > 3


def test_what_a_step_remembers_is_where_it_was():
    f, ball, x = quadratic(), adafw.L2Ball(1.0), np.array([0.5, 0.0, 0.0, 0.1])
    g = f.gradient(x)
    new, state = SpectralStep().update(f, ball, x, g, 0, {})
    assert state["x"] is x
    assert state["g"] is g
    assert new is not x
    same, after = SpectralStep().update(f, ball, x, 0 * g, 1, state)
    assert same is x
    assert after is state


def test_lengths_are_bounded():
    """Far beyond the set all lengths lead to the same point, but for rounding."""
    step, ball = SpectralStep(), adafw.LInfBall(2.0)
    x, g = np.ones(2), np.array([1.0, -4.0])
    flat = {"x": np.zeros(2), "g": g - 1e-30}
    assert step._length(ball, x, g, None, flat) <= 1e10 * 0.5
    bent = {"x": np.zeros(2), "g": g - np.array([1e-12, 0.0])}
    assert step._length(ball, x, g, None, bent) == pytest.approx(1e10 * 0.5)
    assert step._length(ball, x, 1e-308 * g, None, {}) == 1e300
    same = {"x": x, "g": g - 1.0}  # x has not moved
    assert step._length(ball, x, g, None, same) == 0.5


def test_what_it_needs_of_the_set():
    class Round(adafw.L2Ball):
        projection = "euclidean"

    f, plain = quadratic(), Round(1.0)
    for constraint in (adafw.L1Ball(1.0), plain):
        SpectralStep().check(f, constraint, Full())
    SpectralStep(np.ones(4)).check(f, adafw.L1Ball(1.0), Full())
    with pytest.raises(TypeError, match=r"has not in a metric; use a Frank-Wolfe step"):
        SpectralStep(np.ones(4)).check(f, plain, Full())
    with pytest.raises(TypeError, match=r"which UserSet.* has not; use a Frank-Wolfe step"):
        SpectralStep().check(f, adafw.UserSet(lambda g: -np.sign(g), np.zeros(4)), Full())
    with pytest.raises(TypeError, match="SpectralStep needs exact gradients, got those of CSFW"):
        SpectralStep().check(f, adafw.L1Ball(1.0), CSFW())


def asked(value, at=0.0, reference=None, slope=-1.0, dtype=float):
    points = []

    def watched(gamma):
        points.append(gamma)
        return value(gamma)

    start = value(at)
    gamma = backtrack(
        Line(watched, lambda gamma: 0.0), start, start if reference is None else reference, slope,
        np.dtype(dtype),
    )  # fmt: skip
    return gamma, points


def test_backtracking_looks_where_parabolas_say():
    """Between a tenth and nine tenths of the last length, else at half of it."""
    gamma, points = asked(lambda g: -g + 4 * g**2)  # lowest at 1 / 8
    assert (gamma, points) == (0.125, [1.0, 0.125])
    gamma, points = asked(lambda g: -g + 20 * g**2)  # 1 / 40 is too near
    assert points == [1.0, 0.5, 0.25, pytest.approx(0.025)]
    gamma, points = asked(lambda g: -g if g < 0.2 else np.nan)
    assert points == [1.0, 0.5, 0.25, 0.125]
    gamma, points = asked(lambda g: -g if g < 0.2 else -g + 0.9 * g + 1e-9, slope=-1.0)
    assert gamma == 1.0  # a tenth of the promise is enough
    gamma, _ = asked(lambda g: -0.99e-4 * g)
    assert gamma < 1e-9
    gamma, _ = asked(lambda g: -1.01e-4 * g)
    assert gamma == 1.0


def test_backtracking_is_measured_by_what_is_looked_back_on():
    gamma, points = asked(lambda g: 3 - g + 2 * g**2, reference=4.5)
    assert (gamma, points) == (1.0, [1.0])
    gamma, points = asked(lambda g: 3 - g + 2 * g**2, reference=3.9)
    assert (gamma, points) == (0.25, [1.0, 0.25])


def test_backtracking_takes_rounding_for_no_ascent():
    for dtype in (np.float32, np.float64):
        eps = float(np.finfo(dtype).eps)
        for sign in (1.0, -1.0):
            up = lambda g, sign=sign, eps=eps: sign + 3 * eps * (g > 0)  # noqa: E731
            assert asked(up, slope=-1e-30, dtype=dtype)[0] == 1.0
            up = lambda g, sign=sign, eps=eps: sign + 5 * eps * (g > 0)  # noqa: E731
            assert asked(up, slope=-1e-30, dtype=dtype)[0] == 0.0
    assert len(asked(lambda g: float(g > 0), slope=-1.0)[1]) == 60


def test_parabolas_begin_at_the_value_of_x():
    """Not at the largest that is looked back on: of 50 x^2 the first one ends in its minimum."""
    f, ball = Quadratic(np.zeros(1), np.zeros(1), np.full((1, 1), 100.0)), adafw.LInfBall(7.0)
    x = np.ones(1)
    state = {"x": np.zeros(1), "g": np.full(1, 99.0), "length": 1.0, "values": np.array([60.0])}
    new, after = SpectralStep().update(f, ball, x, f.gradient(x), 1, state)
    assert new[0] == pytest.approx(0.0, abs=1e-12)
    assert after["values"].tolist() == [60.0, 50.0]
