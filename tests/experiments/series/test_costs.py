"""What a step costs, on a clock of the test's own, and the words for times."""

import math
import time
from types import SimpleNamespace

import numpy as np
import pytest

import adafw
from adafw.constraints.base import Stalled
from adafw.experiments.outcome import Curve
from adafw.experiments.series.advantage import Ratio, per_iteration, step_costs
from adafw.experiments.series.costs import measure_step
from adafw.experiments.series.tables import _spread, _time
from adafw.recorder import Trace
from adafw.steps import FrankWolfeStep


def problem():
    A, y = adafw.datasets.support_vector(50, 4)
    f = adafw.LinearModel(A, y, adafw.losses.SquaredHinge())
    return f, adafw.L1Ball(1.0)


class Timed(FrankWolfeStep):
    """A step that takes the next of some seconds, or gives up."""

    def __init__(self, clock, seconds):
        super().__init__()
        object.__setattr__(self, "clock", clock)
        object.__setattr__(self, "seconds", seconds)
        object.__setattr__(self, "asked", [])

    def update(self, f, constraint, x, g, t, state):
        np.testing.assert_allclose(g, f.gradient(x))
        self.asked.append((t, dict(state)))
        state["spoilt"] = True
        if len(self.asked) > len(self.seconds):
            raise Stalled("no more")
        self.clock.sleep(self.seconds[len(self.asked) - 1])
        return x, state


def measured(clock, seconds, status="max_iterations"):
    f, ball = problem()
    result = adafw.minimize(f, ball, adafw.FW(), max_iterations=3)
    step = Timed(clock, seconds)
    algorithm = adafw.Algorithm(adafw.gradients.Full(), step)
    how = SimpleNamespace(status=status, state=result.state)
    found = measure_step(f, ball, algorithm, how)
    assert all(t == result.state.t and "spoilt" not in state for t, state in step.asked)
    return found, len(step.asked)


def test_a_step_is_timed_at_most_25_times_and_for_a_fifth_of_a_second(clock):
    assert measured(clock, [2.0**-10] * 30) == ({"step_seconds": 2.0**-10}, 25)
    assert measured(clock, [0.125, 0.0625, 0.5, 9.0]) == ({"step_seconds": 0.125}, 3)
    assert measured(clock, [4.0, 1.0]) == ({"step_seconds": 4.0}, 1)


def test_a_step_that_gives_up_or_has_diverged_has_no_cost(clock):
    assert measured(clock, [])[0] == {}
    assert measured(clock, [0.0625])[0] == {}
    assert measured(clock, [0.5], status="diverged") == ({}, 0)
    assert time.process_time() == clock.now


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (math.inf, "never"), (math.nan, "-"), (12.34, "12.3 s"), (1.0, "1 s"), (0.5, "500 ms"),
        (0.001, "1 ms"), (2.5e-5, "25 µs"), (1e-6, "1 µs"), (2.5e-7, "0.25 µs"),
    ],
)  # fmt: skip
def test_times_in_words(seconds, words):
    assert _time(seconds) == words


def test_spreads_of_ratios_in_words():
    known = {"median": 3.14159, "lower": 2.0, "upper": 4.0}
    assert _spread(Ratio(0.1, {}, {}, known, ">=")) == "≥ 3.1<br><small>[2, 4]</small>"
    nothing = dict.fromkeys(known, math.nan)
    assert _spread(Ratio(0.1, {}, {}, nothing, "")) == "-"
    assert str(Ratio(0.1, {}, {}, nothing, "")) == "not reached"
    assert Ratio(0.1, {}, {}, known, ">=").ends == (2.0, math.inf)
    assert Ratio(0.1, {}, {}, known, "<=").ends == (0.0, 4.0)
    assert Ratio(0.1, {}, {}, known, "").ends == (2.0, 4.0)


def curve(path, **rows):
    traces = {}
    for seed, (cpu, iterations) in rows.items():
        row = {**dict.fromkeys(Trace.columns, 0.0), "cpu_seconds": cpu, "iteration": iterations}
        traces[seed] = Trace([tuple(row.values())])
    return Curve(None, None, traces, dict.fromkeys(traces, "x"), path, {"a": 0.5, "b": 0.25})


def test_costs_of_iterations_and_of_steps_alone():
    one = curve("generic", a=(6.0, 3.0), b=(2.0, 0.0))
    assert per_iteration(one).tolist() == [2.0, 2.0]
    assert step_costs(one).tolist() == [0.5, 0.25]
    assert np.isnan(step_costs(curve("compiled", a=(1.0, 1.0)))).tolist() == [True]
