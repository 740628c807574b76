"""Fits to a tolerance: when they stop, and that a resumed one has the same bits."""

import numpy as np
import pytest

import adafw
from adafw import losses
from adafw.fitting import Settings, fit_linear, make_problem
from adafw.fitting.checkpoint import Checkpoint, Run
from adafw.fitting.choice import automatic
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
    assert wide.rows.stored == 2004


def test_radius_that_does_not_matter():
    A, y = data()
    assert fit_linear(A, y, settings(constraint=adafw.L1Ball(0.5))).radius_matters
    assert not fit_linear(A, y, settings(constraint=adafw.L1Ball(500.0))).radius_matters
    assert fit_linear(A, y, settings(constraint=adafw.Simplex(500.0))).radius_matters
    # Inside, but far from the minimum: nothing is known, nothing is claimed.
    early = settings(constraint=adafw.L1Ball(500.0), algorithm="CSFW", max_epochs=0.02)
    assert fit_linear(A, y, early).radius_matters


class Lowered(losses.Loss):
    """(z - y)^2 less a number, which no one declares: values of both signs."""

    curvature = 2.0

    def __init__(self, by):
        self.by = by

    def value(self, z, y):
        return (z - y) ** 2 - self.by

    def slope(self, z, y):
        return 2 * (z - y)

    def second(self, z, y):
        return np.full_like(z, 2)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("algorithm", ["auto", "FW"])
def test_a_loss_below_zero_gets_no_false_certificate(algorithm, fit_intercept):
    """At the start the value is about 0: that says nothing of how far the minimum is below."""
    A, y = data(n=5)
    how = dict(algorithm=algorithm, fit_intercept=fit_intercept, tol=1e-3)
    best = fit_linear(A, y, settings(loss=losses.Squared(), **{**how, "tol": 1e-9}))
    start = float(np.mean((y - fit_intercept * y.mean()) ** 2))
    fit = fit_linear(A, y, settings(loss=Lowered(start - 1e-9), **how))
    assert fit.value - fit.gap <= best.value - start + 1e-9
    assert fit.lower_bound <= best.value - start + 1e-9
    assert fit.n_iter > 0


def test_counts_fitted_to_their_last_digit_are_certified_by_the_least_of_their_loss():
    """One coefficient a row, so that every loss can be least; the gap alone is rounding there."""
    y = np.array([1.0, 4.0, 9.0, 2.0])
    given = settings(loss=losses.Poisson(), constraint=adafw.LInfBall(5.0), fit_intercept=False)
    fit = fit_linear(np.eye(4), y, given)
    least = float(np.mean(y - y * np.log(y)))
    assert fit.status == "converged"
    assert fit.lower_bound == pytest.approx(least, abs=1e-3)
    assert fit.value - fit.gap <= least + 1e-15


def test_a_loss_without_second_derivatives_is_fitted_by_first_order_steps():
    class Bare(losses.Loss):
        curvature = 1.0

        def value(self, z, y):
            return np.sqrt(1 + (z - y) ** 2)

        def slope(self, z, y):
            return (z - y) / np.sqrt(1 + (z - y) ** 2)

    fit = fit_linear(*data(), settings(loss=Bare(), fit_intercept=False))
    assert fit.status == "converged"
    assert fit.algorithm.startswith("Spectral")
    with pytest.raises(TypeError, match="define `second`, or fit without one"):
        fit_linear(*data(), settings(loss=Bare()))


def test_squares_with_their_least_beside_the_target_are_centred_too():
    class Aside(losses.Squared):
        """(z - y)^2 + 3 (z - y), least at y - 3/2."""

        lower_bound = -2.25

        def value(self, z, y):
            return (z - y) ** 2 + 3 * (z - y)

        def slope(self, z, y):
            return 2 * (z - y) + 3

    A, y = data(n=4)
    given = dict(constraint=adafw.L1Ball(0.5), tol=1e-10)
    plain = fit_linear(A, y, settings(loss=losses.Squared(), **given))
    aside = fit_linear(A, y, settings(loss=Aside(), **given))
    np.testing.assert_allclose(aside.coef, plain.coef, atol=1e-7)
    assert aside.intercept == pytest.approx(plain.intercept - 1.5, abs=1e-7)
    assert aside.value == pytest.approx(plain.value - 2.25)
