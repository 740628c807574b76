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
    with pytest.raises(ValueError, match="improvement must be a number > 0 and < 1, got 0"):
        BoostedStep(improvement=0.0)
    with pytest.raises(ValueError, match="rounds must be an integer >= 1, got 0"):
        BoostedStep(rounds=0)
    f = adafw.UserSum(1, lambda x: float(x @ x), lambda x, batch: 2 * x, convex=True)
    with pytest.raises(TypeError, match="does not know its smoothness constant L"):
        adafw.minimize(f, adafw.L1Ball(1.0), adafw.BoostFW(), x0=np.zeros(2))
