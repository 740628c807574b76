import json
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
    falling = trace(np.array([1.0, 2]), np.array([2.0, 1]))
    assert quartile_band([falling, flat], "cpu_seconds", "gap") is None
    once = trace(np.array([1.0, 2]), np.array([0.0, 1]))
    assert quartile_band([falling, once], "cpu_seconds", "gap") is None


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
    assert seconds_to(curve(a), 8) == 0
    assert seconds_to(curve(a), 1) == 2  # what it ended with was reached
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
    assert doubt(outcome(2.0), CASE) == pytest.approx(2e-15, abs=0)
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
    c = trace(np.array([1.0, 3]), np.array([2.0, 5]))
    assert seconds_to(curve(c), 3) == 1  # from the start on, wherever the run ends


def test_a_diverged_run_has_no_value_either():
    a = trace(np.array([0.0, 1]), np.array([3.0, 2]))
    assert curve(a, status="diverged").final("value").tolist() == [np.inf]
    assert curve(a, status="diverged").final("iteration").tolist() == [1]


def test_quartiles_of_few_numbers_some_of_them_infinite():
    assert quartiles(np.array([1.0, 2.0, np.inf])) == {"median": 2, "lower": 1, "upper": np.inf}
    assert quartiles(np.array([1.0, 2.0, 3.0, np.inf]))["upper"] == 3


def test_a_band_has_the_places_of_all_runs_and_bends_there():
    a = trace(np.array([1.0, 4]), np.array([4.0, 1]))
    b = trace(np.array([1.0, 2, 4]), np.array([4.0, 4, 1]))
    x, middle, *_ = quartile_band([a, b], "cpu_seconds", "gap")
    np.testing.assert_allclose(x, [1, 2, 4])
    np.testing.assert_allclose(middle, [4, 3, 1])


def run(status, seconds, step_seconds, **more):
    """What a run of three records leaves, its wall time ten times its CPU time."""
    records = [
        [{"cpu_seconds": s, "wall_seconds": 10 * s, "iteration": i}.get(name, 0.0)
         for name in Trace.columns] for i, s in enumerate(seconds)
    ]  # fmt: skip
    return {"status": status, "records": records, "step_seconds": step_seconds, **more}


def test_of_repeats_times_are_medians_and_all_else_is_of_the_first():
    repeats = [
        run("max_epochs", [0, 1, 2], 1.0, path="generic", probes={"kept": 1}),
        run("converged", [0, 5, 3], 9.0, path="compiled", probes={"kept": 2}),
        run("converged", [0, 3, 9], 2.0, path="compiled", probes={"kept": 3}),
    ]
    other = [run("diverged", [0, 1, 1], 4.0)] * 3
    found = results._curve(None, None, {7: repeats, 8: other}, Trace)
    assert found.traces[7]["cpu_seconds"].tolist() == [0, 3, 3]
    assert found.traces[7]["wall_seconds"].tolist() == [0, 30, 30]
    assert found.statuses == {7: "max_epochs", 8: "diverged"}
    assert found.step_seconds == {7: 2.0, 8: 4.0}
    assert found.probes == {7: {"kept": 1}}
    assert found.path == "generic"


def test_what_is_known_of_a_minimum_is_read_off_every_run_with_records():
    table = dict.fromkeys(Trace.columns, 0.0)

    def of(*rows):
        return Trace([tuple({**table, "lower_bound": b, "value": v}.values()) for b, v in rows])

    runs = {
        0: of((-8.0, 5.0), (np.nan, 4.0)),
        1: of((-4.0, 7.0), (-6.0, 7.0)),
        2: of((-9.0, -2.0)),
        3: of(),
    }
    outcome = Outcome(None, {}, (Curve(CASE, None, runs, {}),))
    assert lower_bound(outcome, CASE) == -4.0
    assert doubt(outcome, CASE) == 2.0
    low = {0: of((-4.0, -4.0))}
    rounding = doubt(Outcome(None, {}, (Curve(CASE, None, low, {}),)), CASE)
    assert rounding == pytest.approx(4e-15, abs=0)


def test_runs_that_are_not_compared_are_kept_by_role_and_problem(tmp_path):
    method = SimpleNamespace(label="m")
    cases = [SimpleNamespace(name=name, methods=(method,)) for name in "pq"]
    spec = SimpleNamespace(kind="convex", cases=cases, seeds=(1, 2))
    made = iter(("2024-05-03", "2024-05-01", "2024-05-02", "2024-05-04"))
    items = []
    for case in cases:
        for role, seed in (("run", 2), ("run", 1), ("audit", 1), ("reference", 1)):
            file = tmp_path / f"{role}-{case.name}-{seed}.json"
            left = run("max_epochs", [0, seed, seed], 1.0)
            if role == "run":
                left["made"] = {"date": next(made), "source": case.name}
            file.write_text(json.dumps({**left, "of": file.name}))
            items.append(SimpleNamespace(role=role, case=case, method=method, seed=seed, file=file))
    found = results.collect(spec, {}, items, 3, [{"exponent": 4}])
    assert {(role, name): left["of"] for role, some in found.extras.items()
            for name, left in some.items()} == {
        (role, name): f"{role}-{name}-1.json" for role in ("audit", "reference") for name in "pq"
    }  # fmt: skip
    assert [(c.case.name, list(c.traces)) for c in found.curves] == [("p", [1, 2]), ("q", [1, 2])]
    assert [c.traces[2]["cpu_seconds"][-1] for c in found.curves] == [2, 2]
    assert found.environment["runs"] == {
        "first": "2024-05-01", "last": "2024-05-04", "sources": ["p", "q"],
    }  # fmt: skip
    assert found.searches == [{"exponent": 4}]


def test_null_stands_for_what_is_no_number_wherever_it_stands():
    table = {"a": (1.0, np.nan), "b": [{"c": np.inf}, -np.inf, "inf", None], "d": 2}
    assert results._finite(table) == {"a": [1.0, None], "b": [{"c": None}, None, "inf", None],
                                      "d": 2}  # fmt: skip


def test_the_summary_says_what_was_run(finished):
    outcome, folder = finished
    table = json.loads((folder / "summary.json").read_text())
    spec = outcome.spec
    assert (table["experiment"], table["kind"], table["title"]) == ("small", "convex", spec.title)
    assert (table["quick"], table["reduced"], table["repeats"]) == (False, False, 1)
    assert (table["seeds"], table["budget"]) == ([1, 2, 3], {"max_iterations": 60})
    assert table["notes"] == ["Ours: everything."]
    assert table["data"]["small"]["shape"] == [300, 12]
    lines = {line["algorithm"]: line for line in table["algorithms"]}
    assert [line["note"] for line in lines.values()] == ["", "ours", "", ""]
    assert {line["problem"] for line in lines.values()} == {"small"}
    assert lines["AdaCSFW"]["code"] == outcome.curves[1].path != ""
    assert [claim["problem"] for claim in table["claims"]] == ["small"] * 9
    assert set(lines["CSFW"]["final"]) == {
        "gap", "value", "epoch", "iteration", "lmo_calls", "projections", "cpu_seconds",
        "nonzeros", "violation",
    }  # fmt: skip
    for name, q in lines["AdaCSFW"]["final"].items():
        ends = [float(run[-1]._asdict()[name]) for run in outcome.curves[1].traces.values()]
        assert (q["median"], q["lower"]) == (np.median(ends), np.quantile(ends, 0.25))
    assert "searches" not in table
    audit = outcome.extras["audit"]["small"]["step"]
    assert table["bounds_on_inner_steps"] == {"small": audit}
    assert audit["inner"] == 2 * 60
    for form in ("quick", "reduced"):
        changed = replace(outcome, spec=replace(spec, **{form: True}), searches=[{"exponent": 1}])
        again = results.summary(changed, [])
        assert again[form] is True
        assert again["searches"] == [{"exponent": 1}]
