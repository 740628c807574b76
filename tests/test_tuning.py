import inspect
import math

import numpy as np
import pytest

import adafw
from adafw.datasets import support_vector
from adafw.tuning import Trial, Tuning, power_of_ten, search


def problem():
    A, y = support_vector(200, 20, seed=3)
    return adafw.LinearModel(A, y, adafw.losses.SquaredHinge()), adafw.LInfBall(1.0)


def final_gap(eta, seed):
    f, ball = problem()
    algorithm = adafw.AdaCSFW(learning_rate=eta, inner_steps=2)
    return adafw.minimize(f, ball, algorithm, seed=seed, max_epochs=3).gap


def test_finds_the_best_of_the_grid_and_brackets_it():
    f, ball = problem()
    tuned = adafw.tune(
        f, ball, lambda eta: adafw.AdaCSFW(learning_rate=eta, inner_steps=2), max_epochs=3, seed=11
    )
    tried = {t.exponent: t.gap for t in tuned.trials}
    i = tuned.best.exponent
    assert {-2, 0, 2, i - 1, i + 1} <= set(tried)
    assert tried[i] == min(tried.values())
    assert tuned.settled
    assert tuned.learning_rate == 10.0 ** (i / 2)
    for j, gap in tried.items():
        assert gap == final_gap(10.0 ** (j / 2), 11)


def step_length(best):
    """A problem on which 10^(best/2) is best: one exact gradient step must hit a target.

    With f = mean (x - 1)^2 / 2 and the metric's H = |g| + delta at t = 0, one projected AdaGrad
    step from 0 has length eta.
    """
    target = 10.0 ** (best / 2)
    f = adafw.UserSum(
        1,
        lambda x: float(np.abs(np.log(np.maximum(x[0], 1e-30) / target))),
        lambda x, batch: np.array([-1.0]),
    )
    return f, adafw.LInfBall(1e9)


@pytest.mark.parametrize("best", [-9, -3, -1, 0, 1, 2, 5, 8])
def test_extends_at_an_end_until_the_best_is_inside(best):
    f, ball = step_length(best)
    tuned = adafw.tune(
        f,
        ball,
        lambda eta: adafw.AdaGrad(learning_rate=eta),
        max_iterations=1,
        measure="value",
        x0=np.zeros(1),
    )
    assert tuned.best.exponent == best
    assert tuned.settled
    exponents = [t.exponent for t in tuned.trials]
    assert len(set(exponents)) == len(exponents)
    assert exponents[:3] == [-2, 0, 2]


def test_number_of_trials_is_bounded_and_said():
    f, ball = step_length(40)
    tuned = adafw.tune(
        f, ball, lambda eta: adafw.AdaGrad(learning_rate=eta), max_iterations=1, measure="value",
        max_trials=6, x0=np.zeros(1),
    )  # fmt: skip
    assert len(tuned.trials) == 6
    assert not tuned.settled
    assert "stopped at the limit on trials" in str(tuned)


def test_divergence_counts_as_worst():
    """x grows until the value overflows unless eta is small: large etas end as diverged."""
    f = adafw.UserSum(
        1,
        lambda x: float("inf") if abs(x[0]) > 0.5 else float(1 - x[0]),
        lambda x, batch: np.array([-1.0]),
    )
    tuned = adafw.tune(
        f, adafw.LInfBall(10.0), lambda eta: adafw.AdaGrad(learning_rate=eta), max_iterations=1,
        measure="value", x0=np.zeros(1),
    )  # fmt: skip
    status = {t.exponent: t.status for t in tuned.trials}
    assert status[0] == status[2] == "diverged"
    assert tuned.best.exponent == -1  # 10^-1/2 = 0.316 is the largest that stays below 0.5
    assert math.isfinite(tuned.best.value)


def test_is_deterministic_and_reports_every_trial():
    f, ball = problem()

    def run():
        seen = []
        tuned = adafw.tune(
            f, ball, lambda eta: adafw.AdaCSFW(learning_rate=eta), max_epochs=1, report=seen.append
        )
        assert tuple(seen) == tuned.trials
        return tuned

    assert run() == run()


def test_table_marks_the_best():
    f, ball = problem()
    tuned = adafw.tune(f, ball, lambda eta: adafw.AdaCSFW(learning_rate=eta), max_epochs=1)
    lines = str(tuned).splitlines()
    assert lines[0].split() == ["eta", "i", "value", "gap", "status"]
    (marked,) = [line for line in lines if "<- best by gap" in line]
    assert f" {tuned.best.exponent} " in marked
    assert any(line.split()[0] == "10^-1" for line in lines)


def scripted(values, **options):
    """A search over given values: exponent -> (what is reached, status)."""
    asked = []

    def run(i, eta):
        asked.append(i)
        reached, status = values.get(i, (9.0, "max_epochs"))
        return Trial(i, eta, reached, reached, status)

    found = search(run, "value", **options)
    assert [t.exponent for t in found.trials] == asked
    return found, asked


def test_ties_go_to_the_smaller_rate():
    found, _ = scripted({-1: (1.0, ""), 0: (1.0, ""), 1: (1.0, "")})
    assert found.best.exponent == -1
    assert found.settled


def test_what_is_no_number_or_diverged_is_never_the_best():
    bad = {-2: (math.nan, ""), 0: (0.5, "diverged"), 2: (3.0, "")}
    assert scripted(bad)[0].best.exponent == 2


def test_no_run_begins_when_time_is_over_but_one_does():
    found, asked = scripted({}, over=lambda: True)
    assert asked == [-2]
    assert not found.settled
    calls = []
    found, asked = scripted({0: (1.0, "")}, over=lambda: len(calls) > 3 or calls.append(0))
    assert asked == [-2, 0, 2, -1]
    assert not found.settled


def test_exactly_so_many_runs_as_near_to_the_best_as_there_are():
    found, asked = scripted({0: (1.0, "")}, exactly=True, max_trials=9)
    assert asked == [-2, 0, 2, -1, 1, -3, 3, -4, 4]
    assert found.best.exponent == 0
    assert len(scripted({0: (1.0, "")}, max_trials=9)[1]) == 5


def test_a_search_may_begin_elsewhere():
    assert scripted({4: (1.0, "")}, first=(4,))[1] == [4, 3, 5]


def test_the_time_of_a_run_is_its_own_and_no_more_than_what_is_left(monkeypatch):
    f, ball = problem()
    given = []

    def minimize(*args, max_seconds, **limits):
        given.append(max_seconds)
        return adafw.minimize(*args, **limits)

    monkeypatch.setattr("adafw.tuning.minimize", minimize)
    for total, each in ((1e6, 5.0), (1e6, None), (math.inf, None), (3.0, 5.0)):
        limits = {} if each is None else {"max_seconds": each}
        adafw.tune(f, ball, adafw.AdaCSFW, max_iterations=1, total_seconds=total, max_trials=3,
                   **limits)  # fmt: skip
        least = min(total, math.inf if each is None else each)
        assert given[-1] == least or 0 <= least - given[-1] < 3


@pytest.mark.parametrize(
    ("i", "text"), [(-3, "10^-3/2"), (-2, "10^-1"), (0, "10^0"), (1, "10^1/2"), (4, "10^2")]
)
def test_powers_of_ten_as_the_paper_writes_them(i, text):
    assert power_of_ten(i) == text


def test_bad_arguments():
    f, ball = problem()
    with pytest.raises(ValueError, match="tune needs a budget"):
        adafw.tune(f, ball, adafw.AdaCSFW)
    with pytest.raises(ValueError, match='measure must be "gap" or "value", got \'loss\''):
        adafw.tune(f, ball, adafw.AdaCSFW, measure="loss", max_epochs=1)
    with pytest.raises(ValueError, match="max_trials must be an integer >= 3, got 2"):
        adafw.tune(f, ball, adafw.AdaCSFW, max_trials=2, max_epochs=1)


def test_a_search_ends_when_its_time_is_over(clock):
    """Three runs of a second each in two and a half; each is told what is left."""
    f, ball = step_length(0)
    given = []

    def make(eta):
        clock.sleep(1.0)
        given.append(eta)
        return adafw.AdaGrad(learning_rate=eta)

    options = dict(max_iterations=1, measure="value", x0=np.zeros(1))
    tuned = adafw.tune(f, ball, make, total_seconds=2.5, **options)
    assert [t.exponent for t in tuned.trials] == [-2, 0, 2]
    assert given == [0.1, 1.0, 10.0]
    assert not tuned.settled
    assert len(adafw.tune(f, ball, make, total_seconds=1.0, **options).trials) == 1
    assert adafw.tune(f, ball, make, total_seconds=100.0, **options).settled


def test_without_any_time_one_run_is_made_and_ends_at_once():
    f, ball = problem()
    tuned = adafw.tune(f, ball, adafw.AdaCSFW, total_seconds=0.0, max_epochs=1)
    (only,) = tuned.trials
    assert (only.exponent, only.status) == (-2, "max_seconds")


def test_defaults_of_a_search():
    told = {n: p.default for n, p in inspect.signature(adafw.tune).parameters.items()}
    assert {k: told[k] for k in ("measure", "seed", "max_trials", "report", "total_seconds")} == {
        "measure": "gap", "seed": 9001, "max_trials": 15, "report": None,
        "total_seconds": math.inf,
    }  # fmt: skip
    asked = inspect.signature(search).parameters
    assert asked["max_trials"].default == 15
    assert asked["first"].default == (-2, 0, 2)
    assert asked["exactly"].default is False


def test_a_table_in_the_order_of_the_rates_and_without_gaps_where_none_are_measured():
    trials = tuple(
        Trial(i, 10.0 ** (i / 2), value, math.nan, "max_epochs")
        for i, value in ((-2, 3.0), (0, 1.0), (2, 2.0), (-1, 1.5), (1, 1.25))
    )
    lines = str(Tuning(trials[1], trials, "value", True)).splitlines()
    assert lines[0].split() == ["eta", "i", "value", "status"]
    assert [line.split()[0] for line in lines[1:]] == ["10^-1", "10^-1/2", "10^0", "10^1/2", "10^1"]
    assert [line.split()[2] for line in lines[1:]] == ["3", "1.5", "1", "1.25", "2"]
    assert [line.endswith("<- best by value") for line in lines[1:]] == [False, False, True, False,
                                                                         False]  # fmt: skip
    some = (Trial(0, 1.0, 1.0, 0.5, "x"), Trial(1, 3.0, 1.0, math.nan, "diverged"))
    lines = str(Tuning(some[0], some, "gap", False)).splitlines()
    assert lines[0].split() == ["eta", "i", "value", "gap", "status"]
    assert lines[2].split() == ["10^1/2", "1", "1", "nan", "diverged"]
    assert lines[-1] == "stopped at the limit on trials or time; the best is at an end"


def test_exactly_many_runs_where_the_best_is_at_an_end():
    found, asked = scripted({-2: (1.0, "")}, exactly=True, max_trials=11, first=(-2,))
    assert len(asked) == len(set(asked)) == 11
    assert sorted(asked) == list(range(-7, 4))
    assert found.settled
