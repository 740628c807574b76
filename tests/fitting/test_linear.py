"""Fits to a tolerance: when they stop, and that a resumed one has the same bits."""

from dataclasses import replace

import numpy as np
import pytest

import adafw
from adafw import losses
from adafw.fitting import Checkpoint, Design, Settings, fit_linear
from adafw.fitting.choice import automatic


def data(seed=0, m=200, n=20):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, n)) + 0.5
    return Design(A), np.where(A @ rng.normal(size=n) + 3 * rng.normal(size=m) > 1, 1.0, -1.0)


def plan(**changes):
    defaults = dict(loss=losses.Logistic(), constraint=adafw.L1Ball(2.0))
    return Settings(**{**defaults, **changes}).plan("classification")


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
def test_stops_at_the_first_record_below_the_tolerance(tol):
    fit = fit_linear(*data(), plan(tol=tol))
    assert fit.status == "converged"
    reached = fit.trace["gap"] <= tol * fit.trace["value"]
    assert reached.tolist() == [False] * (len(reached) - 1) + [True]


def test_limits_and_stalls_are_told():
    assert fit_linear(*data(), plan(tol=0, max_epochs=2)).status == "max_epochs"
    assert fit_linear(*data(), plan(), seconds=0.0).status == "max_seconds"
    fit = fit_linear(*data(), plan(tol=1e-17))
    assert fit.status == "stalled"
    assert fit.tolerance_reached < 1e-9


@pytest.mark.parametrize("algorithm", ["auto", "AdaCSFW", "CSFW", "SVRF", "AdaGrad", "FW"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_resume_has_the_same_bits(algorithm, fit_intercept, tmp_path):
    """Stopped anywhere, saved and loaded, also between two records."""
    rate = 1.0 if algorithm.startswith("Ada") else "auto"
    given = dict(algorithm=algorithm, learning_rate=rate, tol=0, fit_intercept=fit_intercept)
    whole = fit_linear(*data(), plan(**given, max_epochs=6))
    for stop in (0.53, 2, 3.31):
        part = fit_linear(*data(), plan(**given, max_epochs=stop))
        Checkpoint(tmp_path / "c").keep(3, part.resume)
        back = Checkpoint(tmp_path / "c")
        back.load()
        assert list(back.current) == [3]
        rest = fit_linear(*data(), plan(**given, max_epochs=6), resume=back.current[3])
        np.testing.assert_array_equal(rest.coef, whole.coef)
        assert rest.intercept == whole.intercept
        assert rest.gap == whole.gap


def test_start_outside_is_projected_or_ignored():
    far = np.full(20, 5.0)
    best = fit_linear(*data(), plan(tol=1e-8))
    again = fit_linear(*data(), plan(tol=1e-8), start=far)
    assert again.value == pytest.approx(best.value, rel=1e-7)
    ball = adafw.L1Ball(2.0)
    bare = adafw.UserSet(ball.lmo, lambda s, d: np.zeros(s, d), ball.contains)
    fit_linear(*data(), plan(constraint=bare), start=far)


def test_choice_by_data_and_set():
    few, wide = data(n=20)[0], Design(np.ones((4, 501)))
    bare = adafw.UserSet(lambda g: -np.sign(g), np.zeros(501))
    assert automatic(few, plan())().name == "Newton"
    assert automatic(wide, plan())().name == "Spectral"
    assert automatic(wide, plan(constraint=bare))().name == "FW"
    rated = automatic(wide, plan(learning_rate=0.1))
    assert rated(learning_rate=0.1).name == "AdaGrad"
    assert automatic(wide, plan(constraint=bare, learning_rate=0.1)) is adafw.AdaCSFW


def test_a_loss_without_second_derivative_gets_no_newton_steps():
    class Bare(losses.Loss):
        curvature = 0.25
        task = "classification"
        value, slope = losses.Logistic.value, losses.Logistic.slope

    bare = plan(loss=Bare(), fit_intercept=False, tol=1e-6)
    assert automatic(data()[0], bare)().name == "Spectral"
    fit = fit_linear(*data(), bare)
    best = fit_linear(*data(), plan(fit_intercept=False, tol=1e-6))
    assert fit.value == pytest.approx(best.value, rel=1e-5)
    # Nothing is known to be below the losses: the gap alone certifies.
    assert fit.gap == fit.trace[-1].gap


def test_radius_that_does_not_matter():
    assert fit_linear(*data(), plan(constraint=adafw.L1Ball(0.5))).radius_matters
    assert not fit_linear(*data(), plan(constraint=adafw.L1Ball(500.0))).radius_matters
    assert fit_linear(*data(), plan(constraint=adafw.Simplex(500.0))).radius_matters
    # Inside, but far from the minimum: nothing is known, nothing is claimed.
    early = plan(constraint=adafw.L1Ball(500.0), algorithm="CSFW", max_epochs=0.02)
    assert fit_linear(*data(), early).radius_matters


def test_sample_keeps_both_labels_and_their_weights():
    A, y = np.arange(50.0)[:, None], np.full(50, -1.0)
    y[7] = 1.0
    weights = np.arange(50.0)
    part, targets = Design(A, weights).sample(y, 10, seed=0)
    assert set(targets) == {-1.0, 1.0}
    np.testing.assert_array_equal(part.rows.array.ravel(), part.weights)
    np.testing.assert_array_equal(targets, y[part.weights.astype(int)])
    whole = Design(A)
    assert whole.sample(y, 50, seed=0) == (whole, y)
    assert replace(plan().settings, seed=3).seed == 3
