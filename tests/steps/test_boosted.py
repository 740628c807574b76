"""Boosted steps: what the pursuit gains, and what it never does."""

import numpy as np
import pytest

import adafw
from adafw import gradients
from adafw.steps import BoostedStep, FrankWolfeStep, LineSearch, ShortStep

SETS = [adafw.L1Ball(2.0), adafw.LInfBall(0.4), adafw.L2Ball(1.0), adafw.Simplex(2.0),
        adafw.UnitSimplex(2.0), adafw.KSparse(0.5, 3)]  # fmt: skip


@pytest.mark.parametrize("constraint", SETS, ids=repr)
def test_one_round_is_frank_wolfe(constraint, logistic):
    for gradient, size in ((gradients.Full(), ShortStep()), (gradients.CSFW(), 0.1)):
        a, b = (
            adafw.minimize(logistic, constraint, adafw.Algorithm(gradient, step), max_iterations=20)
            for step in (FrankWolfeStep(size), BoostedStep(size, rounds=1))
        )
        assert np.abs(a.x - b.x).max() <= 1e-10 * constraint.scale
        assert a.trace[-1].lmo_calls == b.trace[-1].lmo_calls


@pytest.mark.parametrize("constraint", SETS, ids=repr)
def test_the_direction_is_better_aligned_and_stays_inside(constraint, logistic):
    rng = np.random.default_rng(0)
    for _ in range(20):
        points = [constraint.lmo(rng.normal(size=12)) for _ in range(4)]
        x = rng.dirichlet(np.ones(4)) @ points
        g = logistic.gradient(x)
        directions = [BoostedStep(rounds=k)._direction(constraint, x, g) for k in (1, 2, 5, None)]
        cosines = [-g @ d / np.linalg.norm(g) / np.linalg.norm(d) for d in directions]
        assert (np.diff(cosines) >= -1e-12).all()
        assert cosines[0] > 0
        for d in directions:
            assert constraint.violation(x + d) <= 1e-12


@pytest.mark.parametrize("improvement", [1e-3, 1e-17])
def test_the_direction_leads_to_a_mean_of_vertices(improvement):
    """Of vertices at height 1, seen from one at height 0: also after steps back along d."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        top = np.column_stack([rng.normal(size=(8, 4)), np.ones(8)])
        constraint = adafw.Hull(np.vstack([np.zeros(5), top]))
        g = np.append(rng.normal(size=4), -1.0)
        step = BoostedStep(rounds=200, improvement=improvement)
        d = step._direction(constraint, np.zeros(5), g)
        assert d[-1] == pytest.approx(1.0, abs=1e-12)


def test_boosting_needs_fewer_iterations(logistic):
    """Where directions to vertices zigzag; the price is LMO calls."""
    plain = adafw.minimize(logistic, adafw.L1Ball(2.0), adafw.FW(LineSearch()), max_iterations=50)
    boosted = adafw.minimize(
        logistic, adafw.L1Ball(2.0), adafw.BoostFW(LineSearch()), max_iterations=50
    )
    assert boosted.gap < 0.2 * plain.gap
    assert boosted.trace[-1].lmo_calls > plain.trace[-1].lmo_calls
    assert (np.diff(boosted.trace["value"]) <= 1e-15).all()


def test_limits_on_lmo_calls_are_kept(logistic):
    r = adafw.minimize(logistic, adafw.L1Ball(2.0), adafw.BoostFW(rounds=7), max_lmo_calls=100)
    assert 100 <= r.trace[-1].lmo_calls < 107
    assert BoostedStep(improvement=0.1).most_lmo_calls == 21


def test_at_a_minimiser_nothing_moves():
    f = adafw.UserSum(1, lambda x: float(x @ x), lambda x, batch: 2 * x, convex=True)
    for x0 in (np.zeros(3), np.array([1e-200, 0, 0])):  # of the second, ||g||^2 underflows
        step = adafw.Algorithm(gradients.Full(), BoostedStep(ShortStep(L=2.0)))
        r = adafw.minimize(f, adafw.L1Ball(1.0), step, x0=x0, max_iterations=3)
        assert np.abs(r.x).max() <= 1e-199


def test_bad_parameters():
    for bad in (0.0, 1.0):
        with pytest.raises(
            ValueError, match=f"improvement must be a number > 0 and < 1, got {bad}"
        ):
            BoostedStep(improvement=bad)
    with pytest.raises(ValueError, match="rounds must be an integer >= 1, got 0"):
        BoostedStep(rounds=0)
    f = adafw.UserSum(1, lambda x: float(x @ x), lambda x, batch: 2 * x, convex=True)
    with pytest.raises(TypeError, match="does not know its smoothness constant L"):
        adafw.minimize(f, adafw.L1Ball(1.0), adafw.BoostFW(), x0=np.zeros(2))


def pursued(constraint, x, g, rounds, improvement):
    """Algorithm 2 of Combettes and Pokutta, lines 3 to 18, written out."""
    d, total, cosine = np.zeros_like(g), 0.0, -1.0
    for _ in range(rounds):
        left = -g - d
        u = constraint.lmo(-left) - x
        if d.any() and -left @ d / np.linalg.norm(d) > left @ u:
            break  # back along d, which leaves the cosine as it is
        if not left @ u > 0:
            break
        share = left @ u / (u @ u)
        new = d + share * u
        now = -g @ new / (np.linalg.norm(g) * np.linalg.norm(new))
        if now - cosine < improvement:
            break
        d, total, cosine = new, total + share, now
    return d / total


def test_directions_are_those_of_the_paper():
    """From within a set, and from the apex of a cone, where pursuits end with a step back."""
    rng = np.random.default_rng(3)
    for radius in (0.5, 3.0):
        for _ in range(20):
            top = radius * np.column_stack([rng.normal(size=(8, 3)), np.ones(8)])
            g = np.append(rng.normal(size=3), -1.0)
            for constraint in (adafw.Hull(np.vstack([np.zeros(4), top])), adafw.L1Ball(radius)):
                corners = [constraint.lmo(rng.normal(size=4)) for _ in range(3)]
                for x in (np.array([0.5, 0.3, 0.2]) @ corners, np.zeros(4)):
                    step = BoostedStep(rounds=12, improvement=1e-9)
                    found = step._direction(constraint, x, g)
                    d = pursued(constraint, x, g, 12, 1e-9)
                    np.testing.assert_allclose(found, d, rtol=1e-7, atol=1e-9)


def test_step_sizes_are_those_of_their_iteration(logistic):
    sizes = [0.5, 0.25, 0.125]
    step, x = BoostedStep(lambda t: sizes[t], rounds=3), np.full(12, 0.05)
    g, ball = logistic.gradient(x), adafw.L1Ball(2.0)
    d = step._direction(ball, x, g)
    for t, size in enumerate(sizes):
        new, _ = step.update(logistic, ball, x, g, t, {})
        np.testing.assert_allclose(new, x + size * d, atol=1e-15)
