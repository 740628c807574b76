"""Fits to a tolerance: when they stop, and that a resumed one has the same bits."""

import numpy as np
import pytest

import adafw
from adafw import losses
from adafw.fitting import Settings, fit_linear, make_problem
from adafw.fitting.checkpoint import Checkpoint, Run
from adafw.fitting.choice import automatic, stored
from adafw.fitting.linear import Resume


def data(seed=0, m=200, n=20):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, n)) + 0.5
    return A, np.where(A @ rng.normal(size=n) + 3 * rng.normal(size=m) > 1, 1.0, -1.0)


def settings(**changes):
    defaults = dict(loss=losses.Logistic(), constraint=adafw.L1Ball(2.0))
    return Settings(**{**defaults, **changes})


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
def test_stops_at_the_first_record_below_the_tolerance(tol):
    fit = fit_linear(*data(), settings(tol=tol))
    assert fit.status == "converged"
    reached = fit.trace["gap"] <= tol * fit.trace["value"]
    assert reached.tolist() == [False] * (len(reached) - 1) + [True]


def test_limits_and_stalls_are_told():
    assert fit_linear(*data(), settings(tol=0, max_epochs=2)).status == "max_epochs"
    assert fit_linear(*data(), settings(max_seconds=0.0)).status == "max_seconds"
    fit = fit_linear(*data(), settings(tol=1e-17))
    assert fit.status == "stalled"
    assert fit.tolerance_reached < 1e-9


@pytest.mark.parametrize("algorithm", ["auto", "AdaCSFW", "CSFW", "SVRF", "AdaGrad", "FW"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_resume_has_the_same_bits(algorithm, fit_intercept, tmp_path):
    """Stopped anywhere, saved and loaded, also between two records."""
    A, y = data()
    rate = 1.0 if algorithm.startswith("Ada") else "auto"
    given = settings(algorithm=algorithm, learning_rate=rate, tol=0, fit_intercept=fit_intercept)
    whole = fit_linear(A, y, settings_for(given, 6))
    for stop in (0.53, 2, 3.31):
        part = fit_linear(A, y, settings_for(given, stop))
        now = Resume(part.state, part.learning_rate, part.batch_intercept)
        Checkpoint({}, [], now).save(tmp_path / "c")
        back = Checkpoint.load(tmp_path / "c", {}).current
        rest = fit_linear(A, y, settings_for(given, 6), resume=back)
        np.testing.assert_array_equal(rest.coef, whole.coef)
        assert rest.intercept == whole.intercept
        assert rest.gap == whole.gap


def settings_for(given, max_epochs):
    from dataclasses import replace

    return replace(given, max_epochs=max_epochs)


def test_checkpoint_of_another_problem_is_refused(tmp_path):
    Checkpoint({"loss": "a", "seed": 1}).save(tmp_path / "c")
    with pytest.raises(ValueError, match="belongs to another fit: loss differ"):
        Checkpoint.load(tmp_path / "c", {"loss": "b", "seed": 1})


def test_finished_fits_come_back(tmp_path):
    A, y = data()
    run = Run(settings(), tmp_path / "c", every_seconds=0)
    fits = run.fit(A, [y, -y], None, Checkpoint({}))
    back = Checkpoint.load(tmp_path / "c", {}).finished
    for fit, again in zip(fits, back, strict=True):
        np.testing.assert_array_equal(fit.coef, again.coef)
        assert (fit.gap, fit.status, fit.n_iter) == (again.gap, again.status, again.n_iter)
        assert fit.trace[-1] == again.trace[-1]


def test_time_limit_leaves_later_fits_at_their_start():
    A, y = data()
    fits = Run(settings(tol=0, algorithm="CSFW", max_epochs=1e9), time_limit=0.5).fit(
        A, [y, -y], None, Checkpoint({})
    )
    assert [fit.status for fit in fits] == ["max_seconds", "not started"]
    assert not fits[1].coef.any()
    assert np.isfinite(fits[1].gap)


def test_start_outside_is_projected_or_ignored():
    A, y = data()
    far = np.full(20, 5.0)
    best = fit_linear(A, y, settings(tol=1e-8))
    again = fit_linear(A, y, settings(tol=1e-8), start=far)
    assert again.value == pytest.approx(best.value, rel=1e-7)
    bare = adafw.UserSet(
        adafw.L1Ball(2.0).lmo, lambda s, d: np.zeros(s, d), adafw.L1Ball(2.0).contains
    )
    fit_linear(A, y, settings(constraint=bare), start=far)


def test_choice_by_data_and_set():
    A, y = data(n=20)
    problem = make_problem(A, y, losses.Logistic(), None, True)
    wide = make_problem(
        np.ones((4, 501)), np.array([1.0, -1, 1, -1]), losses.Logistic(), None, True
    )
    bare = adafw.UserSet(lambda g: -np.sign(g), np.zeros(501))
    assert automatic(problem, adafw.L1Ball(1.0), "auto")().name == "Newton"
    assert automatic(wide, adafw.L1Ball(1.0), "auto")().name == "Spectral"
    assert automatic(wide, bare, "auto")().name == "FW"
    assert automatic(wide, adafw.L1Ball(1.0), 0.1)(learning_rate=0.1).name == "AdaGrad"
    assert automatic(wide, bare, 0.1)(learning_rate=0.1).name == "AdaCSFW"
    assert stored(wide.rows) == 2004


def test_radius_that_does_not_matter():
    A, y = data()
    assert fit_linear(A, y, settings(constraint=adafw.L1Ball(0.5))).radius_matters
    assert not fit_linear(A, y, settings(constraint=adafw.L1Ball(500.0))).radius_matters
    assert fit_linear(A, y, settings(constraint=adafw.Simplex(500.0))).radius_matters
    # Inside, but far from the minimum: nothing is known, nothing is claimed.
    early = settings(constraint=adafw.L1Ball(500.0), algorithm="CSFW", max_epochs=0.02)
    assert fit_linear(A, y, early).radius_matters
