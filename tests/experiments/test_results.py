from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from adafw.experiments import results
from adafw.experiments.convex.measures import doubt, each_seconds_to, lower_bound, seconds_to
from adafw.experiments.outcome import Curve, Outcome
from adafw.experiments.spread import (
    deviation_band,
    mean_and_deviation,
    mean_curve,
    quartile_band,
    quartiles,
)
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


def test_repeats_with_records_at_other_iterations_do_not_tell_the_time():
    first = trace(np.array([0.0, 1, 5]), np.array([3.0, 2, 1]), [0, 10, 20])
    second = trace(np.array([0.0, 9, 7]), np.array([3.0, 2, 1]), [0, 11, 20])
    runs = [{"records": [tuple(r) for r in run]} for run in (first, second)]
    merged = results._merged(runs, Trace)
    assert merged["cpu_seconds"].tolist() == [0, 1, 6]
    assert merged["iteration"].tolist() == [0, 10, 20]


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


def test_long_bands_are_drawn_on_150_places():
    cpu = np.geomspace(1, 100, 400)
    x, middle, _, _ = quartile_band([trace(cpu, 1 / cpu)], "cpu_seconds", "gap")
    np.testing.assert_allclose(x, np.geomspace(1, 100, 150))
    np.testing.assert_allclose(middle, 1 / x)
    x, *_ = quartile_band([trace(cpu[:150], 1 / cpu[:150])], "cpu_seconds", "gap")
    np.testing.assert_allclose(x, cpu[:150])


def test_runs_that_share_no_time_have_no_band():
    early = trace(np.array([1.0, 2]), np.array([2.0, 1]))
    late = trace(np.array([2.0, 3]), np.array([2.0, 1]))
    assert quartile_band([early, late], "cpu_seconds", "gap") is None


def test_of_records_at_one_time_the_last_counts_and_what_is_no_number_does_not():
    one = trace(np.array([1.0, 1, 2, 3]), np.array([9.0, 4, np.inf, 1]))
    x, middle, *_ = quartile_band([one], "cpu_seconds", "gap")
    np.testing.assert_allclose(x, [1, 3])
    np.testing.assert_allclose(middle, [4, 1])
    shifted = quartile_band([one], "cpu_seconds", "gap", 0.5)
    np.testing.assert_allclose(shifted[1], [3.5, 0.5])


def test_means_and_deviations():
    assert mean_and_deviation(np.array([1.0, 3.0])) == {
        "mean": 2,
        "deviation": pytest.approx(2**0.5),
    }
    assert mean_and_deviation(np.array([4.0])) == {"mean": 4, "deviation": 0}
    runs = [trace(np.array([0.0, 1, 2]), np.array(g)) for g in ([9.0, 1, 4], [9.0, 3, 6])]
    np.testing.assert_array_equal(mean_curve(runs, "gap"), [9, 2, 5])
    x, middle, low, high = deviation_band(runs, "cpu_seconds", "gap")
    np.testing.assert_array_equal(x, [1, 2])  # random weights tell nothing
    np.testing.assert_array_equal(middle, [2, 5])
    np.testing.assert_allclose(low, [2 - 2**0.5, 5 - 2**0.5])
    np.testing.assert_allclose(high, [2 + 2**0.5, 5 + 2**0.5])
    _, middle, low, high = deviation_band(runs[:1], "cpu_seconds", "gap")
    assert (low == middle).all()
    assert (high == middle).all()
    named = [{"train_loss": r["gap"], "cpu_seconds": r["cpu_seconds"]} for r in runs]
    low = deviation_band(named, "cpu_seconds", "train_loss")[2]
    np.testing.assert_allclose(low, [1, 4])  # on a logarithmic axis, no lower than the runs


def test_where_and_by_what_runs_were_made():
    made = [
        {"date": "2024-05-02", "source": "b"}, {"date": "2024-05-01", "source": "a"},
        {"date": "2024-05-03", "source": "b"},
    ]  # fmt: skip
    assert results._provenance(made) == {
        "first": "2024-05-01", "last": "2024-05-03", "sources": ["a", "b"],
    }  # fmt: skip
    assert results._provenance([]) == {"first": None, "last": None, "sources": []}
    assert results.version("no such package") == "not installed"
    about = results.environment(3)
    assert (about["processes"], about["threads_per_process"]) == (3, 1)
    assert about["packages"]["numpy"] == np.__version__
    assert about["processor"]


def test_the_doubt_about_a_minimum():
    """The lowest value of all runs above the best bound, but no less than its last digit."""
    table = dict.fromkeys(Trace.columns, 0.0)

    def outcome(*values):
        rows = [tuple({**table, "lower_bound": 2.0, "value": v}.values()) for v in (9.0, *values)]
        return Outcome(None, {}, (Curve(CASE, None, {0: Trace(rows)}, {}),))

    assert doubt(outcome(2.5), CASE) == 0.5
    assert doubt(outcome(2.0), CASE) == pytest.approx(2e-15)
    assert doubt(outcome(2.25, 4.0), CASE) == 0.25  # the best iterate, not the last
    assert doubt(outcome(2.25, np.inf), CASE) == 0.25


CASE = SimpleNamespace(name="p")


def test_a_time_between_records_is_that_of_an_even_fall():
    a = trace(np.array([1.0, 3]), np.array([np.inf, 1]))
    assert seconds_to(curve(a), 4) == 3  # from infinity nothing falls evenly
    b = trace(np.array([0.0, 2, 3]), np.array([8.0, 2, 0]))
    assert seconds_to(curve(b), 4) == pytest.approx(1.0)
    assert seconds_to(curve(b), 1) == 3
    assert each_seconds_to(curve(a, b), 4).tolist() == [3, pytest.approx(1.0)]
    assert seconds_to(curve(a, b, b), 4) == pytest.approx(1.0)
