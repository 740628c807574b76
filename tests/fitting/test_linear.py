"""Fits to a tolerance: when they stop, and that a resumed one has the same bits."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import adafw
from adafw import losses
from adafw.fitting import (
    Checkpoint,
    Design,
    Settings,
    Targets,
    fit_linear,
    fit_targets,
    linear,
)
from adafw.fitting.choice import automatic


def data(seed=0, m=200, n=20):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, n)) + 0.5
    return Design(A), np.where(A @ rng.normal(size=n) + 3 * rng.normal(size=m) > 1, 1.0, -1.0)


def plan(**changes):
    defaults = dict(loss=losses.Logistic(), constraint=adafw.L1Ball(2.0))
    settings = Settings(**{**defaults, **changes})
    return settings.plan(settings.loss.task)


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
def test_stops_at_the_first_record_below_the_tolerance(tol):
    fit = fit_linear(*data(), plan(tol=tol))
    assert fit.status == "converged"
    reached = fit.trace["gap"] <= tol * fit.trace["value"]
    assert reached.tolist() == [False] * (len(reached) - 1) + [True]


def test_limits_and_stalls_are_told():
    assert fit_linear(*data(), plan(tol=0, max_epochs=2)).status == "max_epochs"
    assert fit_linear(*data(), plan(), seconds=0.0).status == "max_seconds"
    # Where rounding leaves a gap of exactly 0, as it may on some machine, nothing stalls.
    fits = [fit_linear(*data(seed), plan(tol=1e-17)) for seed in range(6)]
    assert {fit.status for fit in fits if fit.gap > 1e-17 * fit.value} == {"rounding"}
    assert all(fit.tolerance_reached < 1e-9 for fit in fits)
    slow = plan(tol=1e-9, algorithm=adafw.FW(step_size=1e-14))
    assert fit_linear(*data(), slow).status == "stalled"


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


def test_the_time_of_a_resumed_fit_counts_from_now_on():
    """It has run for hours before; the seconds given are those of this call."""
    given = dict(algorithm="CSFW", tol=0)
    part = fit_linear(*data(), plan(**given, max_epochs=2))
    part.resume.state.wall_seconds = 50_000.0
    rest = fit_linear(*data(), plan(**given, max_epochs=6), resume=part.resume, seconds=1000.0)
    assert rest.status == "max_epochs"
    assert rest.trace[-1].epoch >= 6
    late = fit_linear(*data(), plan(**given, max_epochs=9), resume=rest.resume, seconds=0.0)
    assert late.status == "max_seconds"


def test_start_outside_is_projected_or_ignored():
    far = np.full(20, 5.0)
    best = fit_linear(*data(), plan(tol=1e-8))
    again = fit_linear(*data(), plan(tol=1e-8), start=far)
    assert again.value == pytest.approx(best.value, rel=1e-7)
    ball = adafw.L1Ball(2.0)
    bare = adafw.UserSet(ball.lmo, lambda s, d: np.zeros(s, d), ball.contains)
    fit_linear(*data(), plan(constraint=bare), start=far)

    def begun(start, constraint=ball):
        return fit_linear(*data(), plan(constraint=constraint), start=start, seconds=0.0).coef

    skew, inside = np.arange(20.0), np.linspace(-0.1, 0.1, 20)
    np.testing.assert_array_equal(begun(skew), ball.project(skew))
    np.testing.assert_array_equal(begun(inside), inside)
    np.testing.assert_array_equal(begun(inside, bare), inside)
    assert not begun(skew, bare).any()
    assert not begun(np.zeros(7)).any(), "coefficients of other data say nothing"


def test_records_are_an_epoch_apart_and_never_more_than_a_hundred_iterations():
    def every(algorithm, m):
        return linear._record_every(algorithm, m)

    assert every(adafw.CSFW(batch_size=10), 300) == 30
    assert every(adafw.CSFW(batch_size=1), 10**6) == 100
    assert every(adafw.SFW(batch_size=400), 300) == 1
    assert every(adafw.Corrective(), 300) == 1
    assert every(adafw.FW(), 300) == 5


def test_an_epoch_is_one_of_the_rows():
    """A hundredth of 1000 rows a time: a hundred iterations, however many features there are."""
    fit = fit_linear(*data(m=1000), plan(algorithm="CSFW", tol=0, max_epochs=3))
    assert fit.trace["iteration"].tolist() == [0, 100, 200, 300]


def test_the_bound_is_the_best_of_all_records():
    """Estimated gradients come and go: an earlier iterate may have proved more than the last."""
    given = dict(algorithm="SFW", tol=0)
    fits = [fit_linear(*data(), plan(**given, max_epochs=n)) for n in range(3, 9)]
    last = [fit.trace[-1].value - fit.trace[-1].gap for fit in fits]
    assert any(fit.lower_bound > bound for fit, bound in zip(fits, last, strict=True))
    for fit in fits:
        assert fit.lower_bound == (fit.trace["value"] - fit.trace["gap"]).max()
        assert fit.gap == pytest.approx(fit.value - fit.lower_bound, rel=1e-9)


def test_a_tolerance_that_an_earlier_bound_proves_is_reached():
    """No single record has a gap so small; the last value and the best bound have."""
    tried = 0
    for n in range(3, 12):
        given = dict(algorithm="SFW", max_epochs=n)
        fit = fit_linear(*data(), plan(**given, tol=0))
        least = (fit.trace["gap"] / fit.trace["value"]).min()
        if fit.tolerance_reached < 0.99 * least:
            tol = (fit.tolerance_reached + least) / 2
            again = fit_linear(*data(), plan(**given, tol=tol))
            assert (again.status, again.n_iter) == ("converged", fit.n_iter)
            tried += 1
        assert fit.status == "max_epochs"
    assert tried > 0


def test_exact_steps_on_float32_data_have_iterates_of_float64():
    """In float32 they would stall at a relative gap of 4e-7."""
    rng = np.random.default_rng(0)
    A = (rng.normal(size=(300, 80)) + 0.5).astype(np.float32)
    given = plan(loss=losses.Squared(), constraint=adafw.L2Ball(2.0), tol=1e-10)
    fit = fit_linear(Design(A), A[:, 0] + rng.normal(size=300), given)
    assert (fit.status, fit.algorithm, fit.coef.dtype) == ("converged", "Corrective", np.float32)


def test_newton_steps_on_several_outputs_bring_the_last_digits():
    """Iterations go on after the first that is good enough, to rounding on so few entries."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = (X + rng.normal(size=X.shape)).argmax(axis=1)
    targets = Targets.of_classes(y, joint=True)
    settings = Settings(radius=2.0, tol=1e-2)
    (fit,) = fit_targets(Design(X), targets, targets.plan(settings, 3)).fits
    assert fit.algorithm == "Newton"
    reached = fit.trace["gap"] <= 1e-2 * fit.trace["value"]
    assert 2 <= reached.sum() <= 9
    assert (np.diff(reached.astype(int)) >= 0).all()
    assert fit.trace["gap"][-1] <= 1e-12 * fit.value < fit.trace["gap"][-2]


def test_choice_by_data_and_set():
    few, wide = data(n=20)[0], Design(np.ones((4, 501)))
    bare = adafw.UserSet(lambda g: -np.sign(g), np.zeros(501))
    assert automatic(few, plan())().name == "Corrective"
    assert automatic(few, plan(constraint=adafw.L2Ball(2.0)))().name == "Newton"
    for box in (adafw.LInfBall(2.0), adafw.Box(0.0, 1.0)):
        assert automatic(few, plan(constraint=box))().name == "Corrective"
    assert automatic(wide, plan())().name == "Corrective"
    ball = adafw.LpBall(2.0, 1.5)
    assert automatic(few, plan(constraint=ball))().name == "Newton"
    assert automatic(wide, plan(constraint=adafw.KSparse(2.0, 3)))().name in (
        "Spectral",
        "Corrective",
    )
    assert automatic(wide, plan(constraint=bare))().name == "FW"
    rated = automatic(wide, plan(learning_rate=0.1))
    assert rated(learning_rate=0.1).name == "AdaGrad"
    assert automatic(wide, plan(constraint=bare, learning_rate=0.1)) is adafw.AdaCSFW


def rows_of(m, n, stored):
    """What is asked about the size of data, without the data."""
    rows = SimpleNamespace(shape=(m, n), stored=stored, by_coordinates=True)
    return SimpleNamespace(rows=rows, scale=np.ones(1))


@pytest.mark.parametrize(
    ("rows", "name"),
    [
        (rows_of(1000, 50, 50_000), "Newton"),  # the Hessian costs nothing
        (rows_of(1000, 51, 51_000), "Corrective"),
        (rows_of(10**8, 50, 8 * 10**7), "Newton"),  # 4e9 multiplications
        (rows_of(10**8, 50, 8 * 10**7 + 1), "Corrective"),
        (rows_of(10**9, 10**6, 10**11), "Corrective"),
    ],
)
def test_choice_where_steps_can_be_corrective(rows, name):
    assert automatic(rows, plan(constraint=adafw.L2Ball(2.0)))().name == name
    # On few vertices with one entry each, Newton steps are never better.
    assert automatic(rows, plan())().name == "Corrective"


@pytest.mark.parametrize(
    ("rows", "name"),
    [
        (rows_of(1000, 500, 500_000), "Newton"),
        (rows_of(1000, 501, 501_000), "Spectral"),
        (rows_of(10**7, 500, 8 * 10**6), "Newton"),
        (rows_of(10**7, 500, 8 * 10**6 + 1), "Spectral"),
        (rows_of(10**6, 501, 5 * 10**7), "Spectral"),  # passes over all data are cheap enough
    ],
)
def test_choice_where_they_cannot(rows, name):
    assert automatic(rows, plan(constraint=adafw.LpBall(2.0, 1.5)))().name == name


def test_choice_where_a_pass_over_all_data_is_dear():
    many = rows_of(10**6, 501, 5 * 10**7 + 1)
    rated = automatic(many, plan(constraint=adafw.LpBall(2.0, 1.5)))
    assert rated(learning_rate=1.0).name == "AdaGrad"
    assert rated(learning_rate=0.5) == adafw.AdaGrad(0.5, gradient=adafw.gradients.CSFW())
    bare = adafw.UserSet(lambda g: -np.sign(g), np.zeros(501))
    assert automatic(many, plan(constraint=bare))().name == "CSFW"
    assert automatic(many, plan(constraint=bare))() == adafw.CSFW(adafw.schedules.OpenLoop(1, 1))
    assert automatic(rows_of(10**6, 501, 5 * 10**7), plan(constraint=bare))().name == "FW"


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_rate_is_searched_on_the_weighted_problem(fit_intercept, monkeypatch):
    searched = []
    search = linear.search
    monkeypatch.setattr(linear, "search", lambda f, *how: searched.append(f) or search(f, *how))
    design, y = data()
    w = np.random.default_rng(0).integers(0, 5, 200).astype(float)
    given = dict(algorithm="AdaCSFW", max_epochs=1, fit_intercept=fit_intercept)
    fit_linear(Design(design.rows, w), y, plan(**given))
    expected = Design(design.rows, w).risk(y, losses.Logistic(), fit_intercept).f
    (f,), x = searched, np.full(20, 0.05)
    assert f.value(x) == expected.value(x) != data()[0].risk(y, losses.Logistic(), False).f.value(x)


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
    best = fit_linear(A, y, plan(loss=losses.Squared(), **{**how, "tol": 1e-9}))
    start = float(np.mean((y - fit_intercept * y.mean()) ** 2))
    fit = fit_linear(A, y, plan(loss=Lowered(start - 1e-9), **how))
    assert fit.value - fit.gap <= best.value - start + 1e-9
    assert fit.lower_bound <= best.value - start + 1e-9
    assert fit.n_iter > 0


def test_counts_fitted_to_their_last_digit_are_certified_by_the_least_of_their_loss():
    """One coefficient a row, so that every loss can be least; the gap alone is rounding there."""
    y = np.array([1.0, 4.0, 9.0, 2.0])
    given = plan(loss=losses.Poisson(), constraint=adafw.LInfBall(5.0), fit_intercept=False)
    fit = fit_linear(Design(np.eye(4)), y, given)
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

    fit = fit_linear(*data(), plan(loss=Bare(), fit_intercept=False))
    assert fit.status == "converged"
    assert fit.algorithm.startswith("Spectral")
    with pytest.raises(TypeError, match="define `second`, or fit without one"):
        fit_linear(*data(), plan(loss=Bare()))


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
    plain = fit_linear(A, y, plan(loss=losses.Squared(), **given))
    aside = fit_linear(A, y, plan(loss=Aside(), **given))
    np.testing.assert_allclose(aside.coef, plain.coef, atol=1e-7)
    assert aside.intercept == pytest.approx(plain.intercept - 1.5, abs=1e-7)
    assert aside.value == pytest.approx(plain.value - 2.25)


def test_a_resumed_fit_keeps_the_rate_that_was_found(monkeypatch):
    """Nothing is searched again: the rate decides the iterates."""
    given = dict(algorithm="AdaCSFW", tol=0)
    monkeypatch.setattr(linear, "search", lambda *a: 0.37)
    whole = fit_linear(*data(), plan(**given, max_epochs=4))
    part = fit_linear(*data(), plan(**given, max_epochs=2))
    assert part.learning_rate == part.resume.learning_rate == 0.37
    monkeypatch.setattr(linear, "search", lambda *a: 5.0)
    rest = fit_linear(*data(), plan(**given, max_epochs=4), resume=part.resume)
    assert rest.learning_rate == 0.37
    np.testing.assert_array_equal(rest.coef, whole.coef)


def test_a_rate_is_searched_in_the_seconds_given_on_a_sample(monkeypatch):
    asked = []

    def search(f, constraint, preset, seconds):
        asked.append((f.rows.shape[0], constraint.scale, preset, seconds))
        return 0.1

    monkeypatch.setattr(linear, "search", search)
    monkeypatch.setattr(linear, "SAMPLE", 50)
    fit_linear(*data(), plan(algorithm="AdaCSFW", fit_intercept=False), seconds=7.0)
    ((rows, *rest),) = asked
    assert 48 <= rows <= 50
    assert rest == [2.0, adafw.AdaCSFW, 7.0]


def test_newton_steps_on_many_entries_go_on_once(monkeypatch):
    monkeypatch.setattr("adafw.fitting.judge.FEW_ENTRIES", 269)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = (X + rng.normal(size=X.shape)).argmax(axis=1)
    targets = Targets.of_classes(y, joint=True)
    settings = Settings(radius=2.0, tol=1e-2)
    (fit,) = fit_targets(Design(X), targets, targets.plan(settings, 3)).fits
    reached = fit.trace["gap"] <= 1e-2 * fit.trace["value"]
    assert (fit.algorithm, reached.sum()) == ("Newton", 2)
    monkeypatch.setattr("adafw.fitting.judge.FEW_ENTRIES", 270)
    (fit,) = fit_targets(Design(X), targets, targets.plan(settings, 3)).fits
    assert (fit.trace["gap"] <= 1e-2 * fit.trace["value"]).sum() > 2


@pytest.mark.parametrize("constraint", [adafw.L1Ball(2.0), adafw.L2Ball(1.0)])
def test_what_is_said_to_have_converged_is_so_as_it_is_rounded(constraint):
    """Coefficients of float32 are measured as they are returned, by hand in float64."""
    stalled = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        A = (rng.normal(size=(60, 8)) + 0.5).astype(np.float32)
        y = A[:, 0] + rng.normal(size=60)
        for tol in (1e-6, 1e-8, 1e-10, 1e-12):
            given = plan(loss=losses.Squared(), constraint=constraint, tol=tol)
            fit = fit_linear(Design(A), y, given)
            assert fit.coef.dtype == np.float32
            X, x = A.astype(float), fit.coef.astype(float)
            r = X @ x + fit.intercept - y
            assert fit.value == pytest.approx((r**2).mean(), rel=1e-9)
            assert (fit.status == "converged") == (fit.tolerance_reached <= tol)
            assert fit.lower_bound <= fit.value
            stalled += fit.status != "converged"
    assert stalled > 0


def test_the_rate_of_spectral_steps_is_their_last_length():
    design, y = data(n=60)
    fit = fit_linear(design, y, plan(constraint=adafw.LpBall(2.0, 3.0), algorithm=SPECTRAL))
    assert fit.algorithm.startswith("Spectral")
    assert fit.learning_rate == fit.resume.state.step["length"] > 0
    assert np.isnan(fit.resume.learning_rate)
    assert fit_linear(design, y, plan(algorithm="FW")).learning_rate == np.inf


SPECTRAL = adafw.Algorithm(adafw.gradients.Full(), adafw.steps.SpectralStep(None), "Spectral")


def test_how_far_coefficients_are_outside_is_measured_as_they_are_returned():
    """Rounded to float32 they may be outside the set by their last digit."""
    outside = 0.0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        A = (rng.normal(size=(60, 8)) + 0.5).astype(np.float32)
        given = plan(loss=losses.Squared(), constraint=adafw.L1Ball(0.3), tol=1e-4)
        fit = fit_linear(Design(A), A[:, 0] + A[:, 1] - A[:, 2], given)
        assert fit.violation == given.constraint.violation(fit.coef)
        outside = max(outside, fit.violation)
    assert 0 < outside < 1e-6
