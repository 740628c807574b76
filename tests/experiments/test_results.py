from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from adafw.experiments import results
from adafw.experiments.convex.measures import lower_bound, seconds_to
from adafw.experiments.outcome import Curve, Outcome
from adafw.experiments.spread import quartile_band, quartiles
from adafw.recorder import Trace


def trace(cpu, gap, iterations=None):
    n = len(cpu)
    table = dict.fromkeys(Trace.columns, np.zeros(n))
    table |= {"cpu_seconds": cpu, "gap": gap, "iteration": iterations or np.arange(n), "value": gap}
    return Trace([tuple(float(table[name][i]) for name in Trace.columns) for i in range(n)])


def curve(*traces, status="max_iterations"):
    runs = dict(enumerate(traces))
    return Curve(None, None, runs, dict.fromkeys(runs, status))


def test_band_of_power_laws_is_exact_in_logarithms():
    cpu = np.geomspace(0.01, 10, 20)
    curves = [trace(cpu, c / cpu) for c in (1.0, 2.0, 4.0)]
    x, middle, lower, upper = quartile_band(curves, "cpu_seconds", "gap")
    np.testing.assert_allclose(middle, 2 / x)
    np.testing.assert_allclose(lower, 1.5 / x)
    np.testing.assert_allclose(upper, 3 / x)


def test_band_covers_what_all_seeds_have_covered():
    a = trace(np.array([0, 1.0, 2, 4]), np.array([8.0, 4, 2, 1]))
    b = trace(np.array([0, 0.5, 3, 9]), np.array([8.0, 4, 2, 1]))
    x, *_ = quartile_band([a, b], "cpu_seconds", "gap")
    assert x[0] == pytest.approx(1.0)
    assert x[-1] == pytest.approx(4.0)


def test_band_of_what_cannot_be_drawn():
    flat = trace(np.array([1.0, 2]), np.array([0.0, 0]))
    assert quartile_band([flat], "cpu_seconds", "gap") is None
    still = trace(np.array([0.0, 0]), np.array([1.0, 1]))
    assert quartile_band([still], "cpu_seconds", "gap") is None


def test_repeats_merge_to_median_times():
    first = [tuple(r) for r in trace(np.array([0.0, 1, 5]), np.array([3.0, 2, 1]))]
    second = [tuple(r) for r in trace(np.array([0.0, 3]), np.array([3.0, 2]))]
    merged = results._merged([{"records": first}, {"records": second}], Trace)
    assert merged["cpu_seconds"].tolist() == [0, 2, 5]
    assert merged["gap"].tolist() == [3, 2, 1]


def test_seconds_to_a_gap():
    a = trace(np.array([0.0, 1, 2]), np.array([8.0, 4, 1]))
    assert seconds_to(curve(a), 4) == 1
    assert seconds_to(curve(a), 2) == pytest.approx(1.5)  # even in the logarithm between records
    assert seconds_to(curve(a), 9) == 0
    assert seconds_to(curve(a), 0.5) == np.inf


def test_divergence_counts_as_infinite():
    a = trace(np.array([0.0, 1]), np.array([3.0, 2]))
    assert curve(a, status="diverged").final("gap").tolist() == [np.inf]
    assert curve(a, status="diverged").final("cpu_seconds").tolist() == [1]
    assert quartiles(np.array([1.0, np.inf, np.inf]))["median"] == np.inf
    assert quartiles(np.array([1.0, 2.0]))["median"] == 1.5


def test_reference_is_the_best_lower_bound():
    table = dict.fromkeys(Trace.columns, 0.0)
    runs = {
        i: Trace([tuple({**table, "lower_bound": b}.values())]) for i, b in enumerate((-1.0, 0.5))
    }
    case = SimpleNamespace(name="p")
    outcome = Outcome(None, {}, (Curve(case, None, runs, {}),))
    assert lower_bound(outcome, case) == 0.5
    better = {**table, "lower_bound": 0.75}
    extras = {"reference": {"p": {"records": [list(better.values())]}}}
    assert lower_bound(replace(outcome, extras=extras), case) == 0.75
