"""Sliding, boosted and active-set presets against second implementations from their papers."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import gradients, steps
from tests.paper import reference, reference_steps
from tests.paper.conftest import paths_of

SETS = {"l1": adafw.L1Ball, "linf": adafw.LInfBall, "l2": adafw.L2Ball, "simplex": adafw.Simplex}
LOSSES = {"squared": adafw.losses.Squared(), "logistic": adafw.losses.Logistic()}
TIMES = (1, 2, 17, 60)
RADIUS, SEED = 2.5, 3


def data(loss, m=400, n=9):
    rng = np.random.default_rng(11)
    A = rng.normal(size=(m, n)) * rng.uniform(0.2, 2, size=n)
    y = A @ rng.normal(size=n) + 0.3 * rng.normal(size=m)
    return A, (np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y)


def assert_follows(expected, A, y, loss, kind, algorithm, times=TIMES):
    for matrix in (A, sparse.csr_array(A)):
        f = adafw.LinearModel(matrix, y, LOSSES[loss])
        ball = SETS[kind](RADIUS)
        for path, t in product(paths_of(f, ball, algorithm), times):
            r = adafw.minimize(f, ball, algorithm, seed=SEED, max_iterations=t, path=path)
            assert np.abs(r.x - expected[t]).max() <= 1e-9 * RADIUS, (path, t)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("method", ["CGS", "SCGS", "STORC"])
def test_sliding_follows_its_paper(method, kind, loss):
    A, y = data(loss)
    expected = reference_steps.sliding(
        A, y, loss, kind, RADIUS, method=method, T=max(TIMES), seed=SEED
    )
    assert_follows(expected, A, y, loss, kind, getattr(adafw, method)())


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("rounds", [None, 3])
def test_boosted_steps_follow_their_paper(kind, loss, rounds):
    A, y = data(loss)
    L = reference_steps.smoothness(A, loss)
    expected = reference_steps.boosted(
        A, y, loss, kind, RADIUS, T=max(TIMES), K=rounds,
        stream=reference_steps.gradient_of(A, y, loss),
        size=lambda g, d, t: min(1.0, -g @ d / (L * d @ d)),
    )  # fmt: skip
    # On the simplex the pursuit doubles rounding errors in every second iteration.
    times = (1, 2, 17, 40) if kind == "simplex" else TIMES
    assert_follows(expected, A, y, loss, kind, adafw.BoostFW(rounds=rounds), times)


@pytest.mark.parametrize("kind", ["l1", "l2", "simplex"])
def test_boosted_csfw_follows_its_parts(kind):
    A, y = data("logistic")
    slope = reference.losses("logistic")[1]
    stream = reference.estimates("csfw", A, y, slope, SEED)
    next(stream)
    expected = reference_steps.boosted(
        A, y, "logistic", kind, RADIUS, T=max(TIMES), stream=stream.send,
        size=lambda g, d, t: 2 / (t + 2),
    )  # fmt: skip
    assert_follows(expected, A, y, "logistic", kind, adafw.BoostCSFW())


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["l1", "simplex", "linf"])
@pytest.mark.parametrize("method", ["AFW", "PFW", "BPCG"])
def test_active_set_methods_follow_their_papers(method, kind, loss):
    A, y = data(loss)
    expected = reference_steps.active(A, y, loss, kind, RADIUS, method=method, T=max(TIMES))
    assert_follows(expected, A, y, loss, kind, getattr(adafw, method)(steps.ShortStep()))


@pytest.mark.parametrize("kind", ["l1", "l2"])
def test_a_heavy_ball_follows_its_paper(kind):
    """Li, Sadeghi and Giannakis (2021): v from the average of the gradients."""
    A, y = data("logistic")
    gradient = reference_steps.gradient_of(A, y, "logistic")
    x, average, expected = np.zeros(9), np.zeros(9), [np.zeros(9)]
    for k in range(max(TIMES)):
        average = (1 - 2 / (k + 2)) * average + 2 / (k + 2) * gradient(x)
        x = x + 2 / (k + 2) * (reference_steps.vertex(kind, RADIUS, average) - x)
        expected.append(x)
    step = steps.FrankWolfeStep(averaging=lambda t: 2 / (t + 2))
    assert_follows(expected, A, y, "logistic", kind, adafw.Algorithm(gradients.Full(), step))
