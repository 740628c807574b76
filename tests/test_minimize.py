import inspect
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw.solver import State

CLIPPED = adafw.metrics.Clipped(adafw.metrics.AMSGrad(), 1e-3, lambda t: 1 + 1 / (t + 1))
ALGORITHMS = [
    adafw.FW(), adafw.SFW(), adafw.SVRF(), adafw.SPIDERFW(), adafw.ORGFW(), adafw.CSFW(),
    adafw.AdaFW(0.1), adafw.AdaSFW(0.1), adafw.AdaSVRF(0.1), adafw.AdaSPIDERFW(0.1),
    adafw.AdaORGFW(0.1), adafw.AdaCSFW(0.1), adafw.AdamSFW(0.01), adafw.AdaGrad(0.1),
    adafw.AMSGrad(0.01), adafw.AdaGrad(0.1, gradient=adafw.gradients.SVRF()),
    adafw.Algorithm(adafw.gradients.CSFW(), adafw.steps.AdaptiveStep(0.1, metric=CLIPPED)),
]  # fmt: skip
BALL = adafw.L1Ball(2.0)


def same_bits(a: State, b: State) -> bool:
    """All that decides the future of a run is equal; clocks and records may differ."""
    one, two = a.to_arrays(), b.to_arrays()
    keys = {k for k in one if not k.endswith("seconds") and k != "records"}
    assert keys <= set(two)
    return all(one[k].tobytes() == two[k].tobytes() for k in keys)


# Stop and go on -----------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_resume_is_bit_exact(algorithm, logistic, tmp_path):
    whole = adafw.minimize(logistic, BALL, algorithm, seed=7, max_iterations=60, record_every=13)
    half = adafw.minimize(logistic, BALL, algorithm, seed=7, max_iterations=30)
    half.state.save(tmp_path / "state.npz")
    loaded = State.load(tmp_path / "state.npz")
    for state in (half.state, loaded):
        before = state.copy()
        rest = adafw.minimize(logistic, BALL, algorithm, state=state, max_iterations=60)
        assert same_bits(rest.state, whole.state)
        assert same_bits(state, before), "the state that was given must not change"
        assert rest.value == whole.value
        assert rest.gap == whole.gap
        assert rest.trace[-1].gradient_evaluations == whole.trace[-1].gradient_evaluations
        assert rest.trace[-1].lmo_calls == whole.trace[-1].lmo_calls
        assert rest.trace[0].iteration == 0, "the trace of the first part is kept"


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_recording_and_stopping_change_no_bit(algorithm, logistic):
    rare = adafw.minimize(logistic, BALL, algorithm, max_iterations=40, record_every=1000)
    often = adafw.minimize(logistic, BALL, algorithm, max_iterations=40, record_every=1)
    assert same_bits(rare.state, often.state)
    state = None
    for t in (1, 2, 5, 17, 39, 40):
        first = {"state": state} if state else {}
        state = adafw.minimize(logistic, BALL, algorithm, max_iterations=t, **first).state
    assert same_bits(rare.state, state)


def test_same_seed_same_result_other_seed_other_result(logistic):
    a, b, c = (
        adafw.minimize(logistic, BALL, adafw.CSFW(), seed=s, max_iterations=50).x for s in (1, 1, 2)
    )
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)


def test_default_seed_is_zero(logistic):
    a = adafw.minimize(logistic, BALL, adafw.CSFW(), max_iterations=50).x
    b = adafw.minimize(logistic, BALL, adafw.CSFW(), max_iterations=50, seed=0).x
    c = adafw.minimize(
        logistic, BALL, adafw.CSFW(), max_iterations=50, seed=np.random.default_rng(0)
    ).x
    assert np.array_equal(a, b)
    assert np.array_equal(a, c)


def test_a_generator_is_drawn_from_and_the_state_keeps_its_own(logistic):
    rng = np.random.default_rng(4)
    first = adafw.minimize(logistic, BALL, adafw.SFW(batch_size=3), seed=rng, max_iterations=10)
    reference = np.random.default_rng(4)
    for _ in range(10):
        reference.integers(0, 60, size=3)
    assert rng.random() == reference.random()
    words = first.state.rng.copy()
    rng.random(100)
    assert np.array_equal(first.state.rng, words)
    assert words.dtype == np.uint64


def test_resume_refuses_another_problem(logistic, sparse_logistic, regression):
    r = adafw.minimize(logistic, BALL, adafw.CSFW(), max_iterations=3)
    A, _ = regression
    other_y = adafw.LinearModel(A, np.ones(60), adafw.losses.Logistic())
    go = dict(state=r.state, max_iterations=6)
    with pytest.raises(ValueError, match="another objective"):
        adafw.minimize(sparse_logistic, BALL, adafw.CSFW(), **go)
    with pytest.raises(ValueError, match="another objective"):
        adafw.minimize(other_y, BALL, adafw.CSFW(), **go)
    with pytest.raises(ValueError, match="another set"):
        adafw.minimize(logistic, adafw.L1Ball(2.1), adafw.CSFW(), **go)
    with pytest.raises(ValueError, match="another algorithm"):
        adafw.minimize(logistic, BALL, adafw.CSFW(step_size=lambda t: 1 / (t + 1)), **go)
    with pytest.raises(ValueError, match="x0 must be left out"):
        adafw.minimize(logistic, BALL, adafw.CSFW(), x0=np.zeros(12), **go)
    with pytest.raises(ValueError, match="seed must be left out"):
        adafw.minimize(logistic, BALL, adafw.CSFW(), seed=0, **go)
    with pytest.raises(TypeError, match="state must be"):
        adafw.minimize(logistic, BALL, adafw.CSFW(), state=r, max_iterations=6)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (adafw.CSFW(batch_size=3), adafw.CSFW(batch_size=4)),
        (adafw.SFW(batch_size=3), adafw.SVRF(batch_size=3)),
        (adafw.AdaCSFW(0.1, batch_size=lambda t: 3 + t), adafw.AdaCSFW(0.1, batch_size=3)),
        (adafw.CSFW(), adafw.CSFW(0.1)),
        (adafw.AdaCSFW(0.1), adafw.AdaCSFW(0.1, offset=1e-6)),
        (adafw.AdaCSFW(0.1), adafw.AdaCSFW(0.1, inner_steps=6)),
        (adafw.AdaGrad(0.1), adafw.AdaGrad(0.2)),
    ],
)
def test_resume_refuses_any_change_of_the_algorithm(logistic, one, other):
    state = adafw.minimize(logistic, BALL, one, max_iterations=3).state
    with pytest.raises(ValueError, match="state belongs to another algorithm"):
        adafw.minimize(logistic, BALL, other, state=state, max_iterations=5)


# Limits and counts --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("algorithm", "evaluations"),
    [
        (adafw.FW(), [60] * 6),
        (adafw.SFW(), [1, 1, 1, 2, 3, 4]),
        (adafw.SFW(batch_size=lambda t: t + 0.5), [1, 2, 3, 4, 5, 6]),
        (adafw.CSFW(batch_size=90), [90] * 6),
        (adafw.SVRF(), [60, 2, 4, 6, 8, 10]),
        (adafw.SPIDERFW(), [60, 60, 4, 60, 8, 8]),
        (adafw.ORGFW(batch_size=7), [7] + [14] * 5),
        (adafw.AdaGrad(0.1), [1] * 6),
    ],
    ids=lambda a: getattr(a, "name", ""),
)
def test_work_is_counted_as_the_textbook_does(algorithm, evaluations, logistic):
    r = adafw.minimize(logistic, BALL, algorithm, max_iterations=6, record_every=1)
    assert np.diff(r.trace["gradient_evaluations"]).tolist() == evaluations
    assert np.allclose(r.trace["epoch"], np.cumsum([0, *evaluations]) / 60)


def test_lmo_calls_and_projections_are_counted(logistic):
    def counts(algorithm):
        last = adafw.minimize(logistic, BALL, algorithm, max_iterations=6).trace[-1]
        return last.lmo_calls, last.projections

    assert counts(adafw.FW()) == (6, 0)
    assert counts(adafw.AdaCSFW(0.1, inner_steps=7)) == (42, 0)
    assert counts(adafw.AdaGrad(0.1)) == (0, 6)


def test_limits_stop_before_the_iteration_that_would_start_beyond_them(logistic):
    r = adafw.minimize(logistic, BALL, adafw.CSFW(batch_size=50), max_epochs=2)
    assert (r.status, r.trace[-1].iteration) == ("max_epochs", 3)  # 50, 100, 150 of 120
    r = adafw.minimize(logistic, BALL, adafw.AdaFW(0.1), max_lmo_calls=12)
    assert (r.status, r.trace[-1].lmo_calls) == ("max_lmo_calls", 15)
    r = adafw.minimize(logistic, BALL, adafw.FW(), max_iterations=0)
    assert (r.status, len(r.trace)) == ("max_iterations", 1)
    r = adafw.minimize(logistic, BALL, adafw.FW())
    assert (r.status, r.trace[-1].epoch) == ("max_epochs", 100)


SCHEDULES = {
    "growing": lambda t: 1 + t,
    "shrinking": lambda t: max(1, 40 - 3 * t),
    "saw": lambda t: 1 + 7 * t % 23,
    "theirs": None,
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("preset", ["SFW", "CSFW", "AdaSVRF", "AdaSPIDERFW"])
@pytest.mark.parametrize("path", ["auto", "generic"])
def test_epochs_are_counted_where_the_batch_size_varies(logistic, preset, schedule, path):
    """No iteration begins beyond the limit, whatever is run between two looks at it."""
    rate = {"learning_rate": 0.1} if preset.startswith("Ada") else {}
    algorithm = getattr(adafw, preset)(batch_size=SCHEDULES[schedule], **rate)
    r = adafw.minimize(logistic, BALL, algorithm, max_epochs=4, record_every=1000, path=path)
    done, t = 0, 0
    while done < 4 * logistic.n_terms:
        done += algorithm.gradient.evaluations(t, logistic.n_terms)
        t += 1
    assert (r.status, r.state.t) == ("max_epochs", t)
    assert r.trace[-1].gradient_evaluations == done


CALLERS = {
    "newton": lambda: adafw.Algorithm(adafw.gradients.Full(), adafw.steps.NewtonStep()),
    "gap": lambda: adafw.Algorithm(
        adafw.gradients.Full(), adafw.steps.AdaptiveStep(0.1, inner_steps=9, inner_gap=1e-3)
    ),
    "solved": lambda: adafw.AdaFW(0.1, inner="corrective", inner_steps=None),
    "boosted": adafw.BoostFW,
    "sliding": adafw.CGS,
    "lazy": adafw.BPCG,
}


@pytest.mark.parametrize("name", CALLERS)
def test_lmo_calls_are_limited_where_iterations_differ_in_them(logistic, name):
    """Whatever is run between two looks, the first iteration at the limit is the last."""
    whole = adafw.minimize(logistic, BALL, CALLERS[name](), max_iterations=15, record_every=1)
    calls = whole.trace["lmo_calls"]
    for limit in {1, int(calls[2]), int(calls[2]) + 1, int(calls[-1])} - {0}:
        r = adafw.minimize(
            logistic, BALL, CALLERS[name](), max_lmo_calls=limit, max_iterations=15,
            record_every=1000,
        )  # fmt: skip
        assert r.state.t == np.flatnonzero(calls >= limit)[0]


def takes(clock, seconds):
    """An objective of whose gradients each takes so long, be they measured or the algorithm's."""

    def gradient(x, batch):
        clock.sleep(seconds)
        return 2 * x - 1

    return adafw.UserSum(3, lambda x: float(((x - 0.5) ** 2).sum()), gradient)


@pytest.mark.parametrize("kind", ["wall", "cpu"])
def test_time_limits_use_the_clock_of_the_algorithm(kind, clock):
    """What passes while records are measured, or in callbacks, is no part of the run's time."""
    limit = "max_seconds" if kind == "wall" else "max_cpu_seconds"
    r = adafw.minimize(
        takes(clock, 0.25), adafw.L2Ball(1.0), adafw.SFW(batch_size=1), x0=np.zeros(3),
        record_every=1, callbacks=[lambda state, record: clock.sleep(64.0)], **{limit: 1.125},
    )  # fmt: skip
    assert r.status == limit
    # No iteration starts beyond the limit, the last one ends there.
    assert r.trace[f"{kind}_seconds"].tolist() == [0, 0.25, 0.5, 0.75, 1, 1.25]


def test_gap_tolerance_is_tested_at_records(logistic):
    r = adafw.minimize(logistic, adafw.L2Ball(1.0), adafw.FW(), gap_tolerance=1e-3, max_epochs=1000)
    assert r.status == "converged"
    assert r.gap <= 1e-3
    assert (r.trace["gap"][:-1] > 1e-3).all()
    at_once = adafw.minimize(logistic, BALL, adafw.FW(), gap_tolerance=1e9)
    assert (at_once.status, at_once.trace[-1].iteration) == ("converged", 0)


def test_a_gap_of_the_tolerance_itself_is_small_enough():
    """At the vertex that is best the gap is 0: asked for, it ends the run; not asked for, not."""
    f = adafw.UserSum(3, lambda x: float(-x[0]), lambda x, batch: np.array([-1.0, 0.0]))
    best = np.array([2.0, 0.0])
    for tolerance, status in ((0.0, "converged"), (None, "max_iterations")):
        r = adafw.minimize(f, BALL, adafw.FW(), x0=best, gap_tolerance=tolerance, max_iterations=3)
        assert (r.status, r.gap) == (status, 0.0)
        assert r.state.t == (0 if status == "converged" else 3)
    start = adafw.minimize(f, BALL, adafw.FW(), x0=np.zeros(2), max_iterations=0)
    assert start.gap == 2.0
    r = adafw.minimize(f, BALL, adafw.FW(), x0=np.zeros(2), gap_tolerance=2.0, max_iterations=3)
    assert (r.status, r.state.t) == ("converged", 0)
    r = adafw.minimize(f, BALL, adafw.FW(), x0=np.zeros(2), gap_tolerance=1.99, max_iterations=3)
    assert r.state.t > 0


class Slow(adafw.LinearModel):
    """One whose exact gradients take a second each."""

    def value_and_gradient(self, x):
        if not np.array_equal(x, getattr(self, "last", ())):
            self.clock.sleep(1.0)
        self.last = x.copy()
        return super().value_and_gradient(x)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_gradient_that_a_record_shares_with_the_next_step_counts_as_time(
    regression, clock, dtype
):
    """And may use the time up: then no iteration begins. In float32 records have their own."""
    f = Slow(regression[0].astype(dtype), regression[1], adafw.losses.Squared())
    f.clock = clock
    assert f.remembers
    r = adafw.minimize(f, BALL, adafw.FW(), max_seconds=1.0, max_iterations=2)
    if dtype == np.float64:
        assert (r.status, r.state.t, r.state.wall_seconds) == ("max_seconds", 0, 1.0)
        assert r.trace["wall_seconds"].tolist() == r.trace["cpu_seconds"].tolist() == [1.0]
    else:
        assert (r.status, r.state.t, r.state.wall_seconds) == ("max_iterations", 2, 0.0)


# What is reported ---------------------------------------------------------------------------------


def test_value_and_gap_are_those_of_the_returned_x(regression):
    A, y = regression
    w = np.random.default_rng(0).uniform(0, 2, 60)
    f = adafw.LinearModel(A, y, adafw.losses.Squared(), sample_weight=w)
    r = adafw.minimize(f, BALL, adafw.CSFW(), max_epochs=7)
    residual = A @ r.x - y
    g = 2 * (w * residual) @ A / w.sum()
    assert r.value == pytest.approx((w * residual**2).sum() / w.sum(), rel=1e-12)
    assert r.gap == pytest.approx(g @ r.x + 2.0 * np.abs(g).max(), rel=1e-12)
    assert r.best.gap == r.trace["gap"].min()
    assert r.lower_bound == (r.trace["value"] - r.trace["gap"]).max()


def test_default_records_grow_geometrically(logistic):
    r = adafw.minimize(logistic, BALL, adafw.FW(), max_iterations=50)
    expected = sorted({0, 50} | {t for j in range(30) if (t := int(np.ceil(1.2**j))) < 50})
    assert r.trace["iteration"].tolist() == expected


def test_records_by_number(logistic):
    r = adafw.minimize(logistic, BALL, adafw.FW(), max_iterations=10, record_every=4)
    assert r.trace["iteration"].tolist() == [0, 4, 8, 10]


def test_records_by_time(clock):
    r = adafw.minimize(
        takes(clock, 0.25), adafw.L2Ball(1.0), adafw.SFW(batch_size=1), x0=np.zeros(3),
        max_iterations=14, record_every=adafw.every(seconds=1.0),
    )  # fmt: skip
    assert r.trace["iteration"].tolist() == [0, 4, 8, 12, 14]


def test_records_by_time_come_when_it_is_time_and_not_when_a_stretch_ends(clock):
    """A stretch is of 1000 iterations at first, here of half a second."""
    r = adafw.minimize(
        takes(clock, 2.0**-11), adafw.L2Ball(1.0), adafw.SFW(batch_size=1), x0=np.zeros(3),
        max_iterations=3000, record_every=adafw.every(seconds=1.0),
    )  # fmt: skip
    assert r.trace["iteration"].tolist()[::2] == [0, 3000]
    assert 2048 <= r.trace["iteration"][1] <= 2048 + 205  # looked at every tenth of a second


def test_a_limit_on_time_ends_a_stretch_at_the_first_iteration_beyond_it(clock):
    """Looked at every tenth of a second, and when the time is over."""
    for steps in (5, 20, 33):
        r = adafw.minimize(
            takes(clock, 1 / 128), adafw.L2Ball(1.0), adafw.SFW(batch_size=1), x0=np.zeros(3),
            max_seconds=steps / 128, record_every=10**9,
        )  # fmt: skip
        assert (r.status, r.state.t, r.state.wall_seconds) == ("max_seconds", steps, steps / 128)


def test_an_objective_may_have_something_to_say_beside_the_progress(regression, clock, capfd):
    """To ask it, and to draw the line, is no part of the run's time."""

    class Far(adafw.LinearModel):
        def status(self):
            clock.sleep(64.0)
            return "3 of 4 machines"

        def gradient(self, x, batch=None):
            clock.sleep(1.0)
            return super().gradient(x, batch)

    f = Far(*regression, adafw.losses.Squared())
    how = dict(max_iterations=9, progress=True, record_every=1000)
    r = adafw.minimize(f, BALL, adafw.SFW(batch_size=1), **how)
    assert r.state.wall_seconds == r.state.cpu_seconds == 9.0
    said = capfd.readouterr().err
    assert said.startswith("SFW ")
    assert "epochs" in said
    assert said.count("3 of 4 machines") == len(said.splitlines())


def test_progress_is_shown_within_a_stretch_that_nothing_ends(clock, capfd):
    adafw.minimize(
        takes(clock, 0.25), adafw.L2Ball(1.0), adafw.SFW(batch_size=1), x0=np.zeros(3),
        max_iterations=100, record_every=10**9, progress=True,
    )  # fmt: skip
    assert 4 <= capfd.readouterr().err.count("epochs") <= 9  # 25 s, at intervals that double


def test_a_limit_counts_before_a_callback_that_stops_at_it(logistic):
    r = adafw.minimize(
        logistic, BALL, adafw.FW(), max_iterations=4, callbacks=lambda s, r: s.t == 4
    )
    assert r.status == "max_iterations"


def test_callbacks_see_every_record_and_can_stop(logistic):
    seen = []

    def watch(state, record):
        assert state.t == record.iteration
        seen.append(record)

    after = []
    r = adafw.minimize(
        logistic, BALL, adafw.FW(), max_iterations=30,
        callbacks=[watch, lambda s, r: s.t >= 9, lambda s, r: after.append(r)],
    )  # fmt: skip
    assert r.status == "callback"
    assert seen == after == list(r.trace), "one that says stop does not silence those after it"
    assert r.trace[-1].iteration == 9


def test_the_lower_bound_is_the_best_so_far(logistic):
    r = adafw.minimize(logistic, BALL, adafw.SFW(batch_size=2), max_iterations=60, record_every=1)
    bounds = r.trace["value"] - r.trace["gap"]
    assert (np.diff(bounds) < 0).any(), "a noisy run, or this proves nothing"
    np.testing.assert_array_equal(r.trace["lower_bound"], np.maximum.accumulate(bounds))


def test_what_rounding_leaves_is_no_nonzero(logistic):
    x0 = np.zeros(12)
    x0[:3] = 0.5, 1e-16 * BALL.radius, 1e-14 * BALL.radius
    r = adafw.minimize(logistic, BALL, adafw.FW(), x0=x0, max_iterations=0)
    assert r.trace[0].nonzeros == 2


def test_nonconvex_objectives_get_no_lower_bound():
    f = adafw.UserSum(3, lambda x: float(np.cos(x).sum()), lambda x, batch: -np.sin(x))
    r = adafw.minimize(f, adafw.LInfBall(4.0), adafw.FW(), x0=np.ones(2), max_iterations=50)
    assert np.isnan(r.lower_bound)
    assert np.isnan(r.trace["lower_bound"]).all()
    assert r.value == pytest.approx(-2, abs=0.05)


def test_float32_stays_float32(regression):
    A, y = regression
    f = adafw.LinearModel(A.astype(np.float32), y, adafw.losses.Squared())
    for algorithm in ALGORITHMS:
        r = adafw.minimize(f, BALL, algorithm, max_iterations=20)
        assert r.x.dtype == np.float32
        assert r.trace[-1].violation <= 1e-5


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_certificates_of_float32_runs_are_computed_in_float64(kind, regression):
    A, y = regression
    A = (100 * A).astype(np.float32)
    f = adafw.LinearModel(kind(A), y, adafw.losses.Squared())
    r = adafw.minimize(f, adafw.L2Ball(0.5), adafw.AdaGrad(0.1, gradient=adafw.gradients.Full()),
                       max_iterations=200)  # fmt: skip
    x, A = r.x.astype(np.float64), A.astype(np.float64)
    residual = A @ x - y.astype(np.float32)
    g = 2 * residual @ A / 60
    assert r.value == pytest.approx((residual**2).mean(), rel=1e-13)
    assert r.gap == pytest.approx(max(0, g @ x + 0.5 * np.linalg.norm(g)), rel=1e-6, abs=1e-12)


def test_result_prints_as_a_table(logistic):
    r = adafw.minimize(logistic, BALL, adafw.CSFW(), max_epochs=3)
    text = str(r)
    assert text.splitlines()[0] == (
        "CSFW on LinearModel(60 x 12 dense, Logistic) over L1Ball(radius=2.0)"
    )
    assert f"{r.gap:.4e}" in text
    assert "max_epochs: 3 of 3 used" in text


# Ends that are no end -----------------------------------------------------------------------------


def test_a_value_that_overflows_ends_the_run_as_diverged():
    def gradient(x, batch):
        return np.where(x > 0.5, np.nan, -1.0) * np.ones_like(x)

    def value(x):
        return np.inf if x[0] > 0.5 else -x[0]

    f = adafw.UserSum(5, value, gradient)
    step_size = 0.2
    r = adafw.minimize(
        f, adafw.L1Ball(1.0), adafw.FW(step_size), x0=np.zeros(1), max_iterations=50,
        record_every=50,
    )  # fmt: skip
    assert r.trace["wall_seconds"][-1] == r.state.wall_seconds > 0
    assert r.status == "diverged"
    assert r.x[0] <= 0.5
    assert np.isfinite(r.value)
    assert "known to be finite" in r.message


@pytest.mark.parametrize("every", [1, 50])
def test_where_the_gradient_alone_is_lost_the_last_point_counts(every):
    f = adafw.UserSum(5, lambda x: float(-x[0]), lambda x, batch: np.where(x > 0.5, np.nan, -1.0))
    r = adafw.minimize(
        f, adafw.L1Ball(1.0), adafw.FW(0.2), x0=np.zeros(1), max_iterations=50, record_every=every
    )
    assert (r.status, r.state.t) == ("diverged", 4)
    assert r.x[0] == pytest.approx(1 - 0.8**4)
    assert r.trace["iteration"].tolist() == ([0, 1, 2, 3, 4] if every == 1 else [0, 4])
    assert (r.value, np.isnan(r.gap)) == (-r.x[0], True)


@pytest.mark.parametrize(("every", "last"), [(1, 3), (2, 2), (4, 0)])
def test_a_value_that_overflows_at_a_record_goes_back_to_the_last(every, last):
    """x_t = 1 - 0.8^t passes 0.5 at t = 4, and only the value tells."""
    f = adafw.UserSum(
        5, lambda x: np.inf if x[0] > 0.5 else -x[0], lambda x, batch: -np.ones_like(x)
    )
    r = adafw.minimize(
        f, adafw.L1Ball(1.0), adafw.FW(0.2), x0=np.zeros(1), max_iterations=50, record_every=every
    )
    assert (r.status, r.trace[-1].iteration) == ("diverged", last)
    assert r.x[0] == pytest.approx(1 - 0.8**last)
    assert r.value == r.trace[-1].value == -r.x[0]
    assert np.isfinite(r.trace["value"]).all()
    with pytest.raises(ValueError, match="in the middle of an iteration"):
        adafw.minimize(f, adafw.L1Ball(1.0), adafw.FW(0.2), state=r.state, max_iterations=60)


@pytest.mark.parametrize("path", ["generic", "fused", "lazy"])
def test_what_is_left_of_a_run_that_diverges_is_the_last_finite_point(path):
    """Fast paths move x in place; the point that was recorded stays what it was."""
    rng = np.random.default_rng(0)
    A = sparse.csr_array(1e160 * rng.normal(size=(20, 6)))
    f = adafw.LinearModel(A, rng.normal(size=20), adafw.losses.Squared())
    x0 = np.zeros(6)
    algorithm = adafw.CSFW(0.5, batch_size=20)
    start = adafw.minimize(f, BALL, algorithm, x0=x0, max_iterations=0, path=path)
    for how in ({"x0": x0}, {"state": start.state}):
        r = adafw.minimize(f, BALL, algorithm, max_iterations=9, record_every=9, path=path, **how)
        assert (r.status, r.path) == ("diverged", path)
        assert not r.x.any()
        assert (r.trace["value"] == r.value).all()
        assert r.value == f.value(x0)


def test_overflow_inside_an_iteration_ends_the_run_as_diverged():
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(30, 4)), rng.normal(size=30)
    for scale, dtype in ((1e100, np.float64), (1e12, np.float32)):
        f = adafw.LinearModel((scale * A).astype(dtype), y, adafw.losses.Squared())
        for algorithm in (adafw.AdaFW(1.0), adafw.AdaGrad(1.0)):
            r = adafw.minimize(f, BALL, algorithm, max_iterations=5)
            assert r.status == "diverged"
            assert np.isfinite(r.x).all()


def test_a_schedule_need_only_be_defined_where_it_is_used(logistic):
    table = [1 / (t + 2) for t in range(50)]
    for step_size in (lambda t: 1 - t / 60, lambda t: table[t]):
        r = adafw.minimize(logistic, BALL, adafw.FW(step_size), max_iterations=50)
        assert r.status == "max_iterations"


def test_a_nan_is_no_certificate():
    f = adafw.UserSum(3, lambda x: float((x**2).sum()), lambda x, batch: 2 * x - 1)
    broken = adafw.UserSet(lambda g: g * np.nan, np.zeros(3))
    with pytest.raises(ValueError, match="the point that lmo returned must be finite"):
        adafw.minimize(f, broken, adafw.FW(), gap_tolerance=1e-6)


@pytest.mark.parametrize("at", [1, 305])
def test_ctrl_c_ends_the_run_after_the_iteration_it_came_in(at):
    calls = []

    def gradient(x, batch):
        calls.append(None)
        if len(calls) == at + 1:  # the first call measures the start
            os.kill(os.getpid(), signal.SIGINT)
        return 2 * x - 1

    f = adafw.UserSum(3, lambda x: float(((x - 0.5) ** 2).sum()), gradient)
    r = adafw.minimize(f, adafw.L2Ball(1.0), adafw.SFW(batch_size=1), x0=np.zeros(3),
                       max_iterations=10_000, record_every=10_000)  # fmt: skip
    assert r.status == "interrupted"
    assert r.trace[-1].iteration == at


def test_user_functions_cannot_move_the_iterate_or_the_estimate():
    buffer = np.empty(3)

    def gradient(x, batch):
        np.subtract(2 * x, 1, out=buffer)
        x -= 100
        return buffer

    def tidy(x, batch):
        return 2 * x - 1

    for algorithm in (adafw.SVRF(), adafw.SPIDERFW(), adafw.ORGFW()):
        xs = [
            adafw.minimize(
                adafw.UserSum(5, lambda x: float(((x - 0.5) ** 2).sum()), function),
                adafw.L2Ball(1.0), algorithm, x0=np.zeros(3), max_iterations=30,
            ).x
            for function in (gradient, tidy)
        ]  # fmt: skip
        assert np.array_equal(*xs)


def test_resume_tells_user_functions_apart_by_what_they_return(logistic):
    def make(shift):
        return adafw.UserSum(
            4, lambda x: float(((x - shift) ** 2).sum()), lambda x, b: 2 * (x - shift)
        )

    r = adafw.minimize(make(0.3), BALL, adafw.FW(), x0=np.zeros(2), max_iterations=3)
    with pytest.raises(ValueError, match="another objective: at its x it recorded"):
        adafw.minimize(make(0.4), BALL, adafw.FW(), state=r.state, max_iterations=6)
    sets = [adafw.UserSet(lambda g, r=r: -r * np.sign(g), np.zeros(12)) for r in (1.0, 2.0)]
    assert sets[0] != sets[1]
    r = adafw.minimize(logistic, sets[0], adafw.FW(), max_iterations=3)
    with pytest.raises(ValueError, match="another set: at its x it recorded"):
        adafw.minimize(logistic, sets[1], adafw.FW(), state=r.state, max_iterations=6)


def test_a_limit_that_cannot_bind_is_refused(logistic):
    with pytest.raises(ValueError, match="max_lmo_calls never binds, as AdaGrad calls no LMO"):
        adafw.minimize(logistic, BALL, adafw.AdaGrad(0.1), max_lmo_calls=10)


def test_numpys_true_stops_a_run(logistic):
    r = adafw.minimize(
        logistic, BALL, adafw.FW(), max_iterations=9, callbacks=lambda s, r: np.abs(s.x).max() > 0
    )
    assert (r.status, r.trace[-1].iteration) == ("callback", 1)


@pytest.mark.parametrize("answer", [1, "yes", [0], np.ones(3), None], ids=repr)
def test_a_callback_that_returns_something_else_does_not_stop(logistic, answer):
    r = adafw.minimize(logistic, BALL, adafw.FW(), max_iterations=3, callbacks=lambda s, r: answer)
    assert (r.status, r.trace[-1].iteration) == ("max_iterations", 3)


def test_changing_the_result_does_not_change_the_state(logistic):
    r = adafw.minimize(logistic, BALL, adafw.FW(), max_iterations=9)
    r.x[:] = 0
    assert r.state.x.any()


def test_signature_of_the_contract():
    parameters = inspect.signature(adafw.minimize).parameters
    assert list(parameters)[:14] == [
        "f", "constraint", "algorithm", "x0", "state", "seed", "gap_tolerance", "max_iterations",
        "max_epochs", "max_seconds", "max_cpu_seconds", "max_lmo_calls", "record_every",
        "callbacks",
    ]  # fmt: skip
    assert parameters["seed"].default == 0


def test_control_c_returns_what_there_is_and_can_go_on(logistic):
    def press(state, record):
        if state.t == 7:
            os.kill(os.getpid(), signal.SIGINT)

    r = adafw.minimize(
        logistic, BALL, adafw.CSFW(), max_iterations=40, record_every=1, callbacks=[press]
    )
    assert r.status == "interrupted"
    assert r.trace[-1].iteration == 7
    rest = adafw.minimize(logistic, BALL, adafw.CSFW(), state=r.state, max_iterations=40)
    whole = adafw.minimize(logistic, BALL, adafw.CSFW(), max_iterations=40)
    assert same_bits(rest.state, whole.state)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_raised_inside_an_iteration_is_told_from_a_clean_one():
    calls = []

    def gradient(x, batch):
        calls.append(batch)
        if len(calls) == 12:
            raise KeyboardInterrupt
        return 2 * x - 1

    f = adafw.UserSum(5, lambda x: float(((x - 0.5) ** 2).sum()), gradient, convex=True)
    ball = adafw.L2Ball(1.0)
    r = adafw.minimize(f, ball, adafw.SFW(batch_size=1), x0=np.zeros(3), record_every=100)
    assert r.status == "interrupted"
    assert np.isfinite(r.gap)
    with pytest.raises(ValueError, match="middle of an iteration"):
        adafw.minimize(f, ball, adafw.SFW(batch_size=1), state=r.state)


@pytest.mark.parametrize("place", ["value", "callback"])
def test_an_interrupt_raised_at_a_record_ends_the_run_there(place):
    """As a handler of the user's own may raise it; what was being measured is measured again."""
    raised = []

    def interrupt(t):
        if t == 3 and not raised:
            raised.append(t)
            raise KeyboardInterrupt

    def value(x):
        if place == "value" and len(measured) == 3:
            interrupt(3)
        return float(((x - 0.5) ** 2).sum())

    def watch(state, record):
        measured.append(record)
        if place == "callback":
            interrupt(state.t)

    f = adafw.UserSum(5, value, lambda x, batch: 2 * x - 1)
    ball, algorithm, measured = adafw.L2Ball(1.0), adafw.SFW(batch_size=1), []
    how = dict(record_every=1, callbacks=watch)
    r = adafw.minimize(f, ball, algorithm, x0=np.zeros(3), max_iterations=9, **how)
    assert raised == [3]
    assert r.status == "interrupted"
    assert r.trace["iteration"].tolist() == [0, 1, 2, 3]
    assert r.value == value(r.x)
    rest = adafw.minimize(f, ball, algorithm, state=r.state, max_iterations=9, **how)
    whole = adafw.minimize(f, ball, algorithm, x0=np.zeros(3), max_iterations=9)
    assert same_bits(rest.state, whole.state)


def test_a_second_interrupt_is_handed_on(logistic):
    def press(state, record):
        raise KeyboardInterrupt

    def hold(state, record):
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        adafw.minimize(logistic, BALL, adafw.FW(), max_iterations=9, callbacks=[hold, press])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_runs_in_threads(logistic):
    results = []
    worker = threading.Thread(
        target=lambda: results.append(adafw.minimize(logistic, BALL, adafw.FW(), max_epochs=2))
    )
    worker.start()
    worker.join()
    assert results[0].status == "max_epochs"


# Bad input ----------------------------------------------------------------------------------------

GOOD = dict(max_iterations=1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (dict(x0=np.full(12, 1.0)), "x0 must lie in L1Ball"),
        (dict(x0=np.zeros(11)), r"x0 must have shape \(12,\), got \(11,\)"),
        (dict(x0=np.full(12, np.nan)), "x0 must be finite"),
        (dict(x0="zero"), "x0 must be an array of real numbers"),
        (dict(seed="x"), "seed must be an integer"),
        (dict(seed=-1), "seed must be an integer"),
        (dict(max_epochs=-1), "max_epochs must be a number"),
        (dict(max_seconds=np.nan), "max_seconds must be a number"),
        (dict(max_iterations="3"), "max_iterations must be a number"),
        (dict(gap_tolerance=-1e-9), "gap_tolerance must be a number"),
        (dict(record_every=0), "record_every must be an integer >= 1"),
        (dict(callbacks=[3]), "callbacks must be functions"),
        (dict(callbacks=None), "callbacks must be functions"),
    ],
)
def test_bad_arguments_are_refused(wrong, message, logistic):
    with pytest.raises((ValueError, TypeError), match=message):
        adafw.minimize(logistic, BALL, adafw.CSFW(), **{**GOOD, **wrong})


def test_bad_parts_are_refused(logistic):
    with pytest.raises(TypeError, match=r"such as adafw.CSFW\(\), got the function CSFW"):
        adafw.minimize(logistic, BALL, adafw.CSFW)
    with pytest.raises(TypeError, match="constraint must be a set"):
        adafw.minimize(logistic, 3.0, adafw.CSFW())
    with pytest.raises(TypeError, match="f must be an objective"):
        adafw.minimize(lambda x: x, BALL, adafw.CSFW())
    user = adafw.UserSum(3, lambda x: 0.0, lambda x, batch: x)
    with pytest.raises(TypeError, match="CSFW needs an objective of terms"):
        adafw.minimize(user, BALL, adafw.CSFW(), x0=np.zeros(2))
    with pytest.raises(ValueError, match="x0 must be given"):
        adafw.minimize(user, BALL, adafw.SFW())
    only_lmo = adafw.UserSet(lambda g: -np.sign(g), np.zeros(12))
    with pytest.raises(TypeError, match="needs a set with a projection"):
        adafw.minimize(logistic, only_lmo, adafw.AdaGrad(0.1))
    with pytest.raises(ValueError, match=r"holds points of shape|of shape \(3,\)"):
        adafw.minimize(logistic, adafw.Box(np.zeros(3), np.ones(3)), adafw.FW())
    wrong = adafw.UserSum(3, lambda x: 0.0, lambda x, batch: np.zeros(5))
    with pytest.raises(ValueError, match="gradient must return an array of the shape of x"):
        adafw.minimize(wrong, BALL, adafw.SFW(), x0=np.zeros(2))


def test_the_callers_arrays_are_never_changed(regression):
    A, y = regression
    x0 = np.full(12, 0.1)
    copies = A.copy(), y.copy(), x0.copy()
    f = adafw.LinearModel(A, y, adafw.losses.Squared())
    for algorithm in ALGORITHMS:
        adafw.minimize(f, BALL, algorithm, x0=x0, max_iterations=10)
    assert all(np.array_equal(a, b) for a, b in zip((A, y, x0), copies, strict=True))


# Start-up ----------------------------------------------------------------------------------------


def test_importing_adafw_imports_nothing_heavy():
    """Nor what a program may never ask for: sets, presets, losses, rows."""
    code = "import sys, adafw; print([m for m in ('torch', 'numba', 'sklearn', 'matplotlib', "
    code += "'pandas', 'rich', 'click', 'adafw.algorithms', 'adafw.constraints.exports', "
    code += "'adafw.losses', 'adafw.rows', 'zipfile', 'html') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
