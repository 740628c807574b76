from types import SimpleNamespace

import numpy as np
import pytest

from adafw.experiments import results
from adafw.recorder import Trace


def trace(cpu, gap, iterations=None):
    n = len(cpu)
    table = dict.fromkeys(Trace.columns, np.zeros(n))
    table |= {"cpu_seconds": cpu, "gap": gap, "iteration": iterations or np.arange(n), "value": gap}
    return Trace([tuple(float(table[name][i]) for name in Trace.columns) for i in range(n)])


def line(*traces, status="max_iterations"):
    runs = dict(enumerate(traces))
    return results.Line(None, None, "", runs, dict.fromkeys(runs, status))


def test_band_of_power_laws_is_exact_in_logarithms():
    cpu = np.geomspace(0.01, 10, 20)
    curves = [trace(cpu, c / cpu) for c in (1.0, 2.0, 4.0)]
    x, middle, lower, upper = results.band(line(*curves), "cpu_seconds", "gap")
    np.testing.assert_allclose(middle, 2 / x)
    np.testing.assert_allclose(lower, 1.5 / x)
    np.testing.assert_allclose(upper, 3 / x)


def test_band_covers_what_all_seeds_have_covered():
    a = trace(np.array([0, 1.0, 2, 4]), np.array([8.0, 4, 2, 1]))
    b = trace(np.array([0, 0.5, 3, 9]), np.array([8.0, 4, 2, 1]))
    x, *_ = results.band(line(a, b), "cpu_seconds", "gap")
    assert x[0] == pytest.approx(1.0)
    assert x[-1] == pytest.approx(4.0)


def test_band_of_what_cannot_be_drawn():
    flat = trace(np.array([1.0, 2]), np.array([0.0, 0]))
    assert results.band(line(flat), "cpu_seconds", "gap") is None
    still = trace(np.array([0.0, 0]), np.array([1.0, 1]))
    assert results.band(line(still), "cpu_seconds", "gap") is None


def test_repeats_merge_to_median_times():
    first = [tuple(r) for r in trace(np.array([0.0, 1, 5]), np.array([3.0, 2, 1]))]
    second = [tuple(r) for r in trace(np.array([0.0, 3]), np.array([3.0, 2]))]
    merged = results._merged([{"records": first}, {"records": second}], Trace)
    assert merged["cpu_seconds"].tolist() == [0, 2, 5]
    assert merged["gap"].tolist() == [3, 2, 1]


def test_seconds_to_a_gap():
    a = trace(np.array([0.0, 1, 2]), np.array([8.0, 4, 1]))
    assert line(a).seconds_to(4) == 1
    assert line(a).seconds_to(2) == pytest.approx(1.5)  # even in the logarithm between records
    assert line(a).seconds_to(9) == 0
    assert line(a).seconds_to(0.5) == np.inf


def test_divergence_counts_as_infinite():
    a = trace(np.array([0.0, 1]), np.array([3.0, 2]))
    assert line(a, status="diverged").final("gap").tolist() == [np.inf]
    assert line(a, status="diverged").final("cpu_seconds").tolist() == [1]
    assert results.quartiles(np.array([1.0, np.inf, np.inf]))["median"] == np.inf
    assert results.quartiles(np.array([1.0, 2.0]))["median"] == 1.5


def test_reference_is_the_best_lower_bound():
    table = dict.fromkeys(Trace.columns, 0.0)
    runs = {
        i: Trace([tuple({**table, "lower_bound": b}.values())]) for i, b in enumerate((-1.0, 0.5))
    }
    problem = SimpleNamespace(name="p")
    one = results.Line(problem, None, "", runs, {})
    outcome = results.Outcome(None, {}, (one,), {}, {})
    assert outcome.reference(problem) == 0.5
