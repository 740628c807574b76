"""Many targets of one design: one digest, any number of threads, deadline, checkpoints."""

import math
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from adafw.fitting import Checkpoint, Deadline, Design, Settings, Targets, fit_targets
from adafw.fitting import checkpoint as files
from adafw.fitting.notices import notices
from adafw.fitting.storage import read_arrays, write_arrays
from adafw.losses import Logistic
from adafw.objectives.base import Unavailable


def problem(seed=0, m=300, n=40, classes=4, dtype=np.float64):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, n)) * (rng.random((m, n)) < 0.3)
    y = (A[:, :classes] + rng.normal(size=(m, classes))).argmax(axis=1)
    return sparse.csr_array(A.astype(dtype)), Targets.of_classes(y)


def plan(**changes):
    return Settings(**{"radius": 3.0, **changes}).plan("classification")


LONG = dict(tol=0, algorithm="CSFW", max_epochs=1e9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("make", [lambda A: A, lambda A: A.toarray()], ids=["csr", "dense"])
@pytest.mark.parametrize("algorithm", ["auto", "AdaCSFW"])
def test_any_number_of_jobs_gives_the_same_bits(algorithm, make, dtype):
    A, targets = problem(dtype=dtype)
    given = dict(algorithm=algorithm, tol=1e-2 if algorithm == "AdaCSFW" else 1e-6, max_epochs=30)
    one, *others = (
        fit_targets(Design(make(A)), targets, plan(**given, n_jobs=n)).fits for n in (None, 2, 4)
    )
    for fits in others:
        for a, b in zip(one, fits, strict=True):
            np.testing.assert_array_equal(a.coef, b.coef)
            assert (a.intercept, a.gap, a.n_iter) == (b.intercept, b.gap, b.n_iter)


def test_data_are_checked_and_digested_once(monkeypatch):
    """However many targets: one look for NaN, one digest of the matrix."""
    from adafw import rows
    from adafw.rows import csr

    looked, digested = [], []
    finite, digest = rows.all_finite, csr.digest
    monkeypatch.setattr(rows, "all_finite", lambda v: (looked.append(1), finite(v))[1])
    monkeypatch.setattr(csr, "digest", lambda a: (digested.append(a.size), digest(a))[1])
    A, targets = problem(classes=6)
    fitted = fit_targets(Design(A), targets, plan())
    assert len(fitted.fits) == 6
    assert len(looked) == 1
    assert len(digested) == 3  # values, columns, rows
    fit_targets(Design(A, finite=True), targets, plan())
    assert len(looked) == 1
    with pytest.raises(ValueError, match="A must be finite"):
        Design(A * np.nan)


def test_deadline_leaves_later_fits_at_their_start():
    A, targets = problem()
    fitted = fit_targets(Design(A), targets, plan(**LONG), deadline=Deadline(0.3))
    assert [fit.status for fit in fitted.fits] == ["max_seconds", *["not started"] * 3]
    assert not fitted.fits[1].coef.any()
    assert np.isfinite(fitted.fits[1].gap)
    assert [n.kind for n in fitted.notices] == ["unfinished", "not started"]
    assert "the time is up" in fitted.notices[0].text
    assert "raise max_seconds or tol" in fitted.notices[0].text
    assert fitted.notices[1].text == "3 of 4 classes were not started."


def test_fits_that_were_not_started_stay_where_they_were_to_start():
    A, targets = problem()
    starts = [np.eye(40)[k] * (k + 1) / 2 for k in range(4)]
    fitted = fit_targets(
        Design(A), targets, plan(**LONG), starts=starts, deadline=Deadline(0.1)
    )  # fmt: skip
    for fit, start in zip(fitted.fits[1:], starts[1:], strict=True):
        assert fit.status == "not started"
        np.testing.assert_array_equal(fit.coef, start)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_deadline_is_that_of_all_classes_and_of_the_search(n_jobs):
    """No time left: nothing is searched, nothing runs, and what there is is told."""
    A, targets = problem()
    spent = Deadline(0.0)
    given = dict(algorithm="AdaCSFW", max_epochs=1e9, tol=0, n_jobs=n_jobs)
    fits = fit_targets(Design(A), targets, plan(**given), deadline=spent).fits
    assert {fit.status for fit in fits} == {"max_seconds", "not started"}
    assert all(fit.n_iter == 0 for fit in fits)
    fits = fit_targets(Design(A), targets, plan(**given, max_seconds=0.2)).fits
    assert {fit.status for fit in fits} <= {"max_seconds", "not started"}


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_ctrl_c_ends_all_fits_and_keeps_them(n_jobs, tmp_path):
    A, targets = problem()
    checkpoint = Checkpoint(tmp_path / "c", {}, every_seconds=1e9)
    running = set()

    def watch(k, record):
        """Strikes once, when all that can run do."""
        if record.iteration and k not in running:
            running.add(k)
            if len(running) == n_jobs:
                os.kill(os.getpid(), signal.SIGINT)

    fitted = fit_targets(
        Design(A), targets, plan(**LONG, n_jobs=n_jobs), checkpoint=checkpoint, watch=watch,
        deadline=Deadline(300.0),
    )  # fmt: skip
    assert fitted.interrupted
    statuses = [fit.status for fit in fitted.fits]
    assert statuses == ["interrupted"] * n_jobs + ["not started"] * (4 - n_jobs)
    back = Checkpoint(tmp_path / "c", {})
    back.load()
    assert sorted(back.current) == list(range(n_jobs))
    for k, now in back.current.items():
        np.testing.assert_array_equal(now.state.x, fitted.fits[k].resume.state.x)


def test_ctrl_c_between_two_submissions_is_not_lost(monkeypatch):
    """Signals come at any line of the main thread, here while it still hands out work."""

    class Struck(ThreadPoolExecutor):
        submitted = 0

        def submit(self, *work):
            future = super().submit(*work)
            self.submitted += 1
            if self.submitted == 2:
                signal.raise_signal(signal.SIGINT)
            return future

    monkeypatch.setattr("adafw.fitting.core.ThreadPoolExecutor", Struck)
    A, targets = problem()
    fitted = fit_targets(
        Design(A), targets, plan(**LONG, n_jobs=2), deadline=Deadline(300.0),
        watch=lambda k, record: None,
    )  # fmt: skip
    assert fitted.interrupted
    assert {fit.status for fit in fitted.fits} <= {"interrupted", "not started"}
    assert fitted.fits[3].status == "not started"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_goes_on_from_a_checkpoint_with_the_same_bits(n_jobs, tmp_path):
    A, targets = problem()
    given = dict(algorithm="AdaCSFW", learning_rate=1.0, tol=0, n_jobs=n_jobs)
    whole = fit_targets(Design(A), targets, plan(**given, max_epochs=12)).fits
    begun = Checkpoint(tmp_path / "c", {"a": 1}, every_seconds=0)

    def watch(k, record):
        if k == 2 and record.epoch > 5:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        fit_targets(Design(A), targets, plan(**given, max_epochs=12), checkpoint=begun, watch=watch)
    back = Checkpoint(tmp_path / "c", {"a": 1}, every_seconds=0)
    back.load()
    assert 2 in back.current
    finished = set(back.finished)
    assert finished & {0, 1}  # the third begins when one of these is done
    seen = []
    rest = fit_targets(
        Design(A), targets, plan(**given, max_epochs=12), checkpoint=back,
        watch=lambda k, record: seen.append(k),
    ).fits  # fmt: skip
    assert not finished & set(seen)
    for a, b in zip(whole, rest, strict=True):
        np.testing.assert_array_equal(a.coef, b.coef)
        assert (a.intercept, a.gap, a.status) == (b.intercept, b.gap, b.status)
    done = Checkpoint(tmp_path / "c", {"a": 1})
    done.load()
    for k, fit in enumerate(rest):
        again = done.finished[k]
        assert (fit.gap, fit.n_iter, fit.radius_matters) == (
            again.gap, again.n_iter, again.radius_matters,
        )  # fmt: skip
        assert fit.trace[-1] == again.trace[-1]


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_data_that_cannot_be_reached_leave_a_checkpoint_to_go_on_from(n_jobs, tmp_path):
    """However long it is to the next write; any other failure is none to go on from."""
    A, targets = problem()
    given = dict(algorithm="AdaCSFW", learning_rate=1.0, tol=0, n_jobs=n_jobs, max_epochs=8)
    whole = fit_targets(Design(A), targets, plan(**given)).fits

    def fails(error):
        def watch(k, record):
            if k == 1 and record.epoch > 3:
                at.append(record.iteration)
                raise error

        return watch

    for error in (RuntimeError("a slip"), Unavailable("gone")):
        at = []
        kept = Checkpoint(tmp_path / "c", {}, every_seconds=1e9)
        with pytest.raises(type(error), match=str(error.args[0])):
            fit_targets(Design(A), targets, plan(**given), checkpoint=kept, watch=fails(error))
        back = Checkpoint(tmp_path / "c", {})
        back.load()
        assert (1 in back.current) == isinstance(error, Unavailable)
    assert back.current[1].state.t == at[0] > 0
    assert 1 not in back.finished
    rest = fit_targets(Design(A), targets, plan(**given), checkpoint=back).fits
    for a, b in zip(whole, rest, strict=True):
        np.testing.assert_array_equal(a.coef, b.coef)
        assert (a.intercept, a.gap, a.status) == (b.intercept, b.gap, b.status)


def test_what_is_kept_of_a_fit_is_what_it_was_then(tmp_path):
    """The run goes on, and another fit's end writes the file again."""
    A, targets = problem()
    fits = fit_targets(Design(A), targets, plan(**{**LONG, "max_epochs": 2})).fits
    kept = Checkpoint(tmp_path / "c", {}, every_seconds=1e9)
    now = fits[0].resume
    kept.begin(0)
    kept.keep(0, now)
    assert not (tmp_path / "c").exists(), "it was not yet time to"
    kept.keep(0, now, always=True)
    then = now.state.x.copy()
    now.state.x += 1.0
    kept.finish(1, fits[1])
    back = Checkpoint(tmp_path / "c", {})
    back.load()
    np.testing.assert_array_equal(back.current[0].state.x, then)
    kept.finish(0, fits[0])
    back = Checkpoint(tmp_path / "c", {})
    back.load()
    assert (sorted(back.finished), back.current) == ([0, 1], {})


@pytest.mark.parametrize("ends", ["time", "keyboard"])
def test_what_had_begun_stays_where_it_was_when_all_end(ends, tmp_path):
    """Neither thrown away nor carried on: the second fit waits for the next call."""
    A, targets = problem(classes=3)
    begun = fit_targets(Design(A), targets, plan(**{**LONG, "max_epochs": 3})).fits
    kept = Checkpoint(tmp_path / "c", {})
    for k in (0, 1):
        kept.current[k] = begun[k].resume

    def watch(k, record):
        if ends == "keyboard":
            os.kill(os.getpid(), signal.SIGINT)

    deadline = Deadline(0.0 if ends == "time" else 300.0)
    settings = plan(**LONG, n_jobs=1)
    fits = fit_targets(
        Design(A), targets, settings, checkpoint=kept, watch=watch, deadline=deadline
    ).fits
    status = "max_seconds" if ends == "time" else "interrupted"
    assert fits[0].status == status
    assert fits[1].status in (status, "max_seconds")
    assert fits[2].status == "not started"
    np.testing.assert_array_equal(fits[1].coef, begun[1].coef)
    assert fits[1].n_iter == begun[1].n_iter > 0
    assert sorted(kept.current) == [0, 1]


def test_every_difference_of_a_checkpoint_is_named(tmp_path):
    A, targets = problem()
    fit = fit_targets(Design(A), targets, plan(max_epochs=1)).fits[0]
    Checkpoint(tmp_path / "c", {"loss": "a", "seed": 1, "tol": 2}).finish(0, fit)
    with pytest.raises(ValueError, match="another fit: loss, tol, new differ"):
        Checkpoint(tmp_path / "c", {"loss": "b", "seed": 1, "tol": 3, "new": 0}).load()


def test_a_failure_in_a_thread_is_raised():
    A, _ = problem()
    bad = Targets((np.ones(300), np.full(300, 5.0)))
    with pytest.raises(ValueError, match=r"labels -1 and \+1, got 5"):
        fit_targets(Design(A), bad, plan(fit_intercept=False, n_jobs=2))


def test_checkpoint_of_another_problem_or_format_is_refused(tmp_path):
    path = tmp_path / "c"
    one = fit_targets(Design(problem()[0]), problem()[1], plan(max_epochs=1)).fits[0]
    Checkpoint(path, {"loss": "a", "seed": 1}).finish(0, one)
    with pytest.raises(ValueError, match="belongs to another fit: loss differ"):
        Checkpoint(path, {"loss": "b", "seed": 1}).load()
    write_arrays(path, "adafw checkpoint", 1, {"problem": {}, "fits": []}, {})
    with pytest.raises(ValueError, match=r"has format 1 of an older adafw, .* start anew"):
        Checkpoint(path, {}).load()
    write_arrays(path, "adafw checkpoint", files.FORMAT + 1, {}, {})
    with pytest.raises(ValueError, match="upgrade adafw"):
        Checkpoint(path, {}).load()
    missing = Checkpoint(tmp_path / "missing", {})
    missing.load()
    assert missing.finished == missing.current == {}


def test_notices():
    A, targets = problem()
    assert fit_targets(Design(A), targets, plan()).notices == ()
    (late,) = fit_targets(Design(A), targets, plan(max_epochs=2, tol=1e-12)).notices
    assert late.kind == "unfinished"
    assert "(max_epochs=2 is used up)" in late.text
    (wide,) = fit_targets(Design(A), targets, plan(radius=1e5)).notices
    assert (wide.kind, "the radius 100000 has no effect" in wide.text) == ("no effect", True)


def fit(**changes):
    whole = fit_targets(Design(problem()[0]), problem()[1], plan(max_epochs=1)).fits[0]
    return replace(whole, value=2.0, radius_matters=True, **changes)


def test_the_fit_that_is_furthest_from_its_tolerance_is_told():
    late = [fit(gap=gap, status=s) for gap, s in ((0.5, "stalled"), (1.0, "max_epochs"))]
    done = fit(gap=1.8, status="converged")
    (one,) = notices([done, *late], plan())
    assert "gap 1 is 0.5 of the value 2, tol=0.0001 was asked for; raise max_epochs" in one.text
    (one,) = notices([late[0]], plan())
    assert "(progress has stopped: the last 1 iterations lowered the value by " in one.text
    assert "was asked for; raise tol, standardise" in one.text
    small = fit(gap=0.5, status="rounding")
    (one,) = notices([small], plan())
    assert "(rounding allows no more progress)" in one.text
    assert "raise tol, standardise" in one.text
    (one,) = notices([replace(small, coef=small.coef.astype(np.float32))], plan())
    assert "raise tol, pass float64 data, standardise" in one.text
    # Of the value: a gap that is larger may be nearer.
    near = replace(fit(gap=3.0, status="max_epochs"), value=60.0)
    (one,) = notices([late[0], near], plan())
    assert "gap 0.5 is 0.25 of the value 2" in one.text


def test_a_radius_that_one_class_feels_has_an_effect():
    flat = replace(fit(gap=0.0, status="converged"), radius_matters=False)
    assert [n.kind for n in notices([flat, flat], plan())] == ["no effect"]
    assert notices([flat, fit(gap=0.0, status="converged")], plan()) == ()


def test_predictor_is_made_of_the_fits():
    A, targets = problem()
    fitted = fit_targets(Design(A), targets, plan())
    scores = fitted.predictor.decision(A)
    for k, fit in enumerate(fitted.fits):
        np.testing.assert_allclose(scores[:, k], A @ fit.coef + fit.intercept, atol=1e-12)
        mean = Logistic().value(scores[:, k], targets.vectors[k]).mean()
        assert fit.value == pytest.approx(mean, rel=1e-12)
    losses = fitted.predictor.losses(A, targets.classes[targets.labels])
    assert losses.mean() == pytest.approx(sum(fit.value for fit in fitted.fits), rel=1e-12)


def test_a_deadline_counts_down_to_zero(clock):
    assert Deadline().left == Deadline(math.inf).left == math.inf
    end = Deadline(5.0)
    clock.sleep(3)
    assert end.left == 2
    clock.sleep(3)
    assert end.left == 0
    later = Deadline(7.0)
    later.cut()
    assert later.left == 0
    with pytest.raises(ValueError, match="max_seconds must be"):
        Deadline(math.nan)


def test_a_checkpoint_is_written_when_it_is_time_to(tmp_path, clock):
    """Each fit has its own time, from its beginning and then from its last write on."""
    A, targets = problem()
    now = fit_targets(Design(A), targets, plan(**{**LONG, "max_epochs": 2})).fits[0].resume
    kept = Checkpoint(tmp_path / "c", {}, every_seconds=8.0)

    def written(k):
        (tmp_path / "c").unlink(missing_ok=True)
        kept.keep(k, now)
        return (tmp_path / "c").exists()

    assert kept.begin(0) is None
    clock.sleep(7)
    kept.begin(1)
    assert not written(0)
    clock.sleep(1)
    assert written(0)
    assert not written(1)
    clock.sleep(7)
    assert not written(0)
    assert written(1)
    clock.sleep(1)
    assert written(0)
    assert kept.begin(0).learning_rate == now.learning_rate
    assert Checkpoint().every_seconds == 10
    Checkpoint(None, {}, 0.0).keep(0, now, always=True)  # to nowhere


@pytest.mark.parametrize("algorithm", ["auto", "SVRF"])
def test_fits_of_several_outputs_survive_in_a_checkpoint(tmp_path, algorithm):
    """Intercepts are then one a class, of finished fits and of those that go on."""
    A, y = problem()
    targets = Targets.of_classes(y.labels, joint=True)

    def settings(**changes):
        given = Settings(algorithm=algorithm, radius=3.0, tol=0, multi_class="multinomial")
        return targets.plan(replace(given, **changes), A.shape[1])

    fitted = fit_targets(Design(A), targets, settings(max_epochs=6))
    whole = fitted.fits[0]
    np.testing.assert_array_equal(fitted.predictor.coef, whole.coef.T)
    assert fitted.predictor.coef.flags.c_contiguous
    begun = Checkpoint(tmp_path / "c", {}, every_seconds=0.0)
    with pytest.raises(RuntimeError, match="killed"):
        fit_targets(
            Design(A), targets, settings(max_epochs=6), checkpoint=begun, watch=killed_after(2)
        )
    back = Checkpoint(tmp_path / "c", {}, every_seconds=0.0)
    back.load()
    known = begun.current[0].batch_intercept
    assert np.shape(known) == (4,)
    np.testing.assert_array_equal(back.current[0].batch_intercept, known)
    (rest,) = fit_targets(Design(A), targets, settings(max_epochs=6), checkpoint=back).fits
    np.testing.assert_array_equal(rest.coef, whole.coef)
    np.testing.assert_array_equal(rest.intercept, whole.intercept)
    done = Checkpoint(tmp_path / "c", {})
    done.load()
    again = done.finished[0]
    np.testing.assert_array_equal(again.coef, whole.coef)
    np.testing.assert_array_equal(again.intercept, whole.intercept)
    for name in ("value", "gap", "lower_bound", "violation", "n_iter", "status", "algorithm"):
        assert getattr(again, name) == getattr(whole, name), name


def killed_after(records):
    seen = []

    def watch(k, record):
        seen.append(k)
        if len(seen) > records:
            raise RuntimeError("killed")

    return watch


def test_a_handler_of_the_users_own_ends_all_fits_too(monkeypatch):
    """It raises KeyboardInterrupt in the main thread, here while that hands out work."""

    class Struck(ThreadPoolExecutor):
        submitted = 0

        def submit(self, *work):
            self.submitted += 1
            if self.submitted == 3:
                signal.raise_signal(signal.SIGINT)
            return super().submit(*work)

    def own(signum, frame):
        raise KeyboardInterrupt

    monkeypatch.setattr("adafw.fitting.core.ThreadPoolExecutor", Struck)
    A, targets = problem()
    old = signal.signal(signal.SIGINT, own)
    try:
        fitted = fit_targets(
            Design(A), targets, plan(**LONG, n_jobs=2), watch=lambda k, record: None,
            deadline=Deadline(300.0),
        )  # fmt: skip
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, old)
    assert fitted.interrupted
    statuses = [fit.status for fit in fitted.fits]
    assert set(statuses) <= {"interrupted", "not started"}
    assert statuses[3] == "not started"


def written(path, coef=None, good=False, **numbers):
    """A checkpoint of one finished fit, with changes, and if asked for of a good one before it."""
    A, targets = problem()
    fit = fit_targets(Design(A), targets, plan(max_epochs=1)).fits[0]
    kept = Checkpoint(path, {})
    kept.current[1] = replace(fit.resume, learning_rate=math.nan)
    if good:
        kept.finish(5, fit)
    kept.finish(0, replace(fit, coef=fit.coef if coef is None else coef, **numbers))
    return fit


@pytest.mark.parametrize(
    "change",
    [
        {"coef": np.array(1.0)},
        {"coef": np.ones((4, 3))},
        {"coef": np.ones((4, 3)), "intercept": np.ones(2)},
        {"intercept": np.ones(3)},
        {"coef": np.arange(3)},
        {"coef": np.full(3, np.inf)},
    ],
    ids=["single", "one for three", "two for three", "three for one", "whole numbers", "infinite"],
)
def test_coefficients_and_intercepts_of_a_checkpoint_belong_together(tmp_path, change):
    written(tmp_path / "c", good=True, **change)
    back = Checkpoint(tmp_path / "c", {})
    with pytest.raises(ValueError, match="must be a whole checkpoint of adafw, got a damaged one"):
        back.load()
    assert back.finished == back.current == {}


@pytest.mark.parametrize(
    "change",
    [
        lambda header, arrays: arrays["fit0.records"].fill(np.inf),
        lambda header, arrays: arrays.update({"fit0.records": np.zeros((2, 3))}),
        lambda header, arrays: arrays.update({"fit0.records": np.zeros(())}),
        lambda header, arrays: arrays.pop("fit0.coef"),
        lambda header, arrays: arrays.pop("state1.x"),
        lambda header, arrays: header["fits"]["0"].pop("gap"),
        lambda header, arrays: header["fits"]["0"].pop("radius_matters"),
        lambda header, arrays: header["fits"]["0"].update(more=1.0),
        lambda header, arrays: header["fits"]["0"].update(gap=[1.0]),
        lambda header, arrays: header.update(fits=[1]),
        lambda header, arrays: header.pop("current"),
        lambda header, arrays: header["current"]["1"].update(learning_rate="x"),
        lambda header, arrays: header["current"]["1"].update(batch_intercept=None),
        lambda header, arrays: header["current"]["1"].pop("batch_intercept"),
    ],
    ids=range(14),
)
def test_a_checkpoint_with_anything_amiss_is_refused_as_a_whole(tmp_path, change):
    written(tmp_path / "c")
    header, arrays = read_arrays(tmp_path / "c", files._KIND, files.FORMAT, known=".*")
    write_arrays(tmp_path / "c", files._KIND, files.FORMAT, header, arrays)
    back = Checkpoint(tmp_path / "c", {})
    back.load()
    assert (list(back.finished), list(back.current)) == ([0], [1])
    change(header, arrays)
    write_arrays(tmp_path / "c", files._KIND, files.FORMAT, header, arrays)
    with pytest.raises(ValueError, match="must be a whole checkpoint of adafw, got a damaged one"):
        back.load()
    assert back.finished == back.current == {}


def test_a_fit_comes_back_from_a_checkpoint_with_all_its_numbers(tmp_path):
    """NaN, which JSON has not, among them; a fit that is done is no longer on its way."""
    fit = written(tmp_path / "c", gap=math.nan)
    back = Checkpoint(tmp_path / "c", {})
    back.load()
    assert (list(back.finished), list(back.current)) == ([0], [1])
    again = back.finished[0]
    assert math.isnan(again.gap)
    assert math.isnan(back.current[1].learning_rate)
    assert back.current[1].batch_intercept == fit.resume.batch_intercept
    for name in ("value", "lower_bound", "violation", "n_iter", "status", "algorithm", "intercept"):
        assert getattr(again, name) == getattr(fit, name), name
    assert list(again.trace) == list(fit.trace)
    assert len(again.trace) > 1
    back.finish(1, again)
    last = Checkpoint(tmp_path / "c", {})
    last.load()
    assert (sorted(last.finished), last.current) == ([0, 1], {})


def test_one_target_needs_no_threads(monkeypatch):
    monkeypatch.setattr("adafw.fitting.core.ThreadPoolExecutor", None)
    A, targets = problem(classes=2)
    assert len(targets) == 1
    assert fit_targets(Design(A), targets, plan(n_jobs=4)).fits[0].status == "converged"


def test_ctrl_c_before_any_fit_has_begun_is_told(monkeypatch):
    class Struck(ThreadPoolExecutor):
        def submit(self, *work):
            if self.__dict__.setdefault("first", True):
                self.first = False
                signal.raise_signal(signal.SIGINT)
            return super().submit(*work)

    monkeypatch.setattr("adafw.fitting.core.ThreadPoolExecutor", Struck)
    A, targets = problem()
    fitted = fit_targets(Design(A), targets, plan(**LONG, n_jobs=2), deadline=Deadline(300.0))
    assert {fit.status for fit in fitted.fits} == {"not started"}
    assert fitted.interrupted


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_deadline_that_is_cut_ends_fits_at_their_next_record(n_jobs):
    """Those that are not begun are told by plain Frank-Wolfe, which has no learning rate."""
    A, targets = problem()
    deadline = Deadline(None)
    given = {**LONG, "algorithm": "AdaCSFW", "learning_rate": 1.0, "n_jobs": n_jobs}

    def watch(k, record):
        assert record.iteration < 5000, "it goes on"
        if record.iteration:
            deadline.cut()

    fitted = fit_targets(Design(A), targets, plan(**given), deadline=deadline, watch=watch)
    statuses = [fit.status for fit in fitted.fits]
    assert set(statuses) == {"max_seconds", "not started"}
    assert 1 <= statuses.count("max_seconds") <= n_jobs
    assert all(fit.n_iter < 5000 for fit in fitted.fits)
    assert fitted.fits[3].value == pytest.approx(np.log(2), abs=0.2)
    assert not fitted.interrupted
