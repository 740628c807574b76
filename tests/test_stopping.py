"""Limits on single states, and whose Ctrl-C it is."""

import math
import os
import signal
from types import SimpleNamespace

import pytest

import adafw
from adafw.recorder import as_record
from adafw.result import conclude
from adafw.stopping import Interrupts, Limits


def limits(**given):
    names = ("iterations", "epochs", "seconds", "cpu_seconds", "lmo_calls")
    return Limits(**{f"max_{name}": given.get(name, math.inf) for name in names})


def state(**given):
    zero = dict(t=0, gradient_evaluations=0, wall_seconds=0.0, cpu_seconds=0.0, lmo_calls=0)
    return SimpleNamespace(**(zero | given))


# Each far from the others: one taken for another would be told.
WORK = state(t=3, gradient_evaluations=70, wall_seconds=11.0, cpu_seconds=23.0, lmo_calls=47)


@pytest.mark.parametrize(
    ("name", "used"),
    [("iterations", 3), ("epochs", 7), ("seconds", 11), ("cpu_seconds", 23), ("lmo_calls", 47)],
)
def test_every_limit_is_held_against_its_own_work(name, used):
    assert limits(**{name: used}).reached(WORK, n_terms=10) == f"max_{name}"
    assert limits(**{name: used + 1}).reached(WORK, n_terms=10) == ""
    assert limits(**{name: 2 * used}).share(WORK, n_terms=10) == 0.5


@pytest.mark.parametrize("name", ["iterations", "seconds", "cpu_seconds", "lmo_calls"])
def test_any_limit_stands_in_the_place_of_a_hundred_epochs(name):
    assert limits().max_epochs == 100
    assert limits(**{name: 5}).max_epochs == math.inf
    assert limits(epochs=7).max_epochs == 7


def test_a_run_is_as_far_as_the_limit_that_will_end_it():
    assert limits(iterations=30, seconds=22.0, epochs=70).share(WORK, n_terms=10) == 0.5
    assert limits(iterations=0, epochs=70).share(WORK, n_terms=10) == 0.1
    assert limits(iterations=0).share(WORK, n_terms=10) is None


def test_the_time_left_is_that_of_the_clock_that_ends_first():
    assert limits(seconds=12.5, cpu_seconds=30.0).seconds_left(WORK) == 1.5
    assert limits(seconds=30.0, cpu_seconds=23.5).seconds_left(WORK) == 0.5
    assert limits(iterations=9).seconds_left(WORK) == math.inf


def test_without_any_limit_there_are_a_hundred_epochs():
    assert limits().max_epochs == 100
    assert limits(iterations=5).max_epochs == math.inf


@pytest.mark.parametrize("ours", [signal.SIG_IGN, lambda signum, frame: None])
def test_a_handler_of_the_users_own_is_left_alone(ours):
    before = signal.signal(signal.SIGINT, ours)
    try:
        with Interrupts() as interrupts:
            assert signal.getsignal(signal.SIGINT) is ours
            os.kill(os.getpid(), signal.SIGINT)
        assert not interrupts.seen
        assert signal.getsignal(signal.SIGINT) is ours
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_second_ctrl_c_breaks_in():
    with Interrupts() as interrupts:
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupts.seen
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_resumed_run_keeps_to_the_beat_of_its_records(logistic):
    ball, algorithm = adafw.L1Ball(2.0), adafw.SFW()
    first = adafw.minimize(logistic, ball, algorithm, max_iterations=5, record_every=4)
    rest = adafw.minimize(
        logistic, ball, algorithm, state=first.state, max_iterations=14, record_every=4
    )
    assert rest.trace["iteration"].tolist() == [0, 4, 5, 8, 12, 14]


def test_the_rate_that_is_told_is_that_of_the_last_iteration(logistic):
    falling = adafw.AdaSFW(lambda t: 0.5 / (t + 1))
    r = adafw.minimize(logistic, adafw.L1Ball(2.0), falling, max_iterations=4)
    assert r.learning_rate == 0.125
    r = adafw.minimize(logistic, adafw.L1Ball(2.0), falling, max_iterations=0)
    assert r.learning_rate == 0.5


def test_a_gap_that_is_no_number_is_never_the_best(logistic):
    ball, fw = adafw.L1Ball(2.0), adafw.FW()
    s = adafw.minimize(logistic, ball, fw, max_iterations=3, record_every=1).state
    s.records[0] = tuple(as_record(s.records[0])._replace(gap=math.nan))
    best = min(range(1, 4), key=lambda t: as_record(s.records[t]).gap)
    r = conclude(s, logistic, ball, fw, "callback", limits(), 0.0, "", "generic", None)
    assert r.best.iteration == best


def left(s=None, at_most=math.inf, algorithm=None, **given):
    """Iterations to go, of 10 evaluations each on 100 terms."""
    algorithm = algorithm or adafw.SFW(batch_size=10)
    return limits(**given).iterations_left(s or state(), algorithm, 100, at_most)


def test_iterations_are_counted_up_to_the_first_limit():
    assert left(epochs=1.0) == 10
    assert left(epochs=0.91) == 10  # the last one begins within the limit
    assert left(state(gradient_evaluations=50), epochs=1.0) == 5
    for epochs in (1.0, math.inf):
        assert left(at_most=4, epochs=epochs) == 4
        assert left(state(t=5), iterations=7, epochs=epochs) == 2
        assert left(state(lmo_calls=2), lmo_calls=6, epochs=epochs) == 4
        three = adafw.AdaSFW(0.1, batch_size=10, inner_steps=3)
        assert left(state(lmo_calls=2), lmo_calls=12, epochs=epochs, algorithm=three) == 3
        assert left(state(lmo_calls=11), lmo_calls=12, epochs=epochs, algorithm=three) == 1
    growing = adafw.SFW(batch_size=lambda t: t + 1)
    assert left(epochs=0.1, algorithm=growing) == 4  # 1 + 2 + 3 + 4 = 10 of 100
    assert left(state(t=4), epochs=0.1, algorithm=growing) == 2  # 5 + 6
