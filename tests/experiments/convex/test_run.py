"""A run in a worker is one of `minimize`, a search one of `tune`."""

import json
from dataclasses import replace

import numpy as np
import pytest

import adafw
from adafw.constraints.base import Stalled
from adafw.experiments.convex import run
from adafw.experiments.convex.case import LinearCase
from adafw.experiments.convex.measures import AUDIT, REFERENCE
from adafw.experiments.convex.reference import budget_of
from adafw.experiments.load import load_spec
from adafw.experiments.plan import parts_of, prepare, runs_of, searches_of
from adafw.experiments.tuning import tune_method
from adafw.experiments.work import Stopped
from adafw.recorder import Trace
from adafw.tuning import TUNING_SEED

SPEC = """
loss = "Logistic"
set = { name = "L1Ball", radius = 2.0 }
seeds = [3, 8]
budget = { max_iterations = 12 }
search = { max_iterations = 9, record_every = 2 }
data = { name = "support_vector", m = 40, n = 5, seed = 4 }

[[algorithms]]
name = "CSFW"

[[algorithms]]
name = "AdaCSFW"
learning_rate = "search"

[[algorithms]]
label = "pair"
gradient = "CSFW"
step = { name = "AdaptiveStep", learning_rate = 0.3 }
"""


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(SPEC)
    return load_spec(path)


@pytest.fixture
def items(spec, tmp_path):
    """(runs and what is not compared, searches), the data being there."""
    (case,) = spec.cases
    parts = {case.name: parts_of(case, tmp_path)}
    prepare(spec, case, parts[case.name])
    return runs_of(spec, parts, tmp_path), searches_of(spec, parts, tmp_path)


def problem():
    A, y = adafw.datasets.support_vector(40, 5, 4)
    return adafw.LinearModel(A, y, adafw.losses.Logistic()), adafw.L1Ball(2.0)


def without_times(trace):
    keep = [i for i, name in enumerate(Trace.columns) if "seconds" not in name]
    return [[float(record[i]) for i in keep] for record in trace]


def test_a_run_is_that_of_minimize_from_its_seed(items):
    runs, _ = items
    f, ball = problem()
    for item in runs[:6]:
        found = run.solve(item)
        wanted = adafw.minimize(f, ball, item.method.algorithm, seed=item.seed, max_iterations=12)
        assert without_times(found["records"]) == without_times(wanted.trace)
        assert found["status"] == wanted.status == "max_iterations"
        assert found["path"] == ("generic" if wanted.path == "generic" else "compiled")
    generic = replace(runs[0], method=replace(runs[0].method, table={"name": "AFW"}))
    assert {run.solve(item)["path"] for item in (runs[0], generic)} == {"generic", "compiled"}


def test_runs_that_are_not_compared(spec, items):
    runs, _ = items
    assert [item.role for item in runs[6:]] == [REFERENCE]  # no claim asks for an audit
    found = run.solve(replace(runs[-1], budget={"max_iterations": 50, "gap_tolerance": 1e-9}))
    assert found["status"] == "converged"
    audited = run.solve(replace(runs[1], role=AUDIT))
    assert audited["step"]["inner"] == 12 * runs[1].method.algorithm.step.inner_steps
    assert without_times(audited["records"]) == pytest.approx(
        np.array(without_times(run.solve(runs[1])["records"]))
    )
    assert run.solve(runs[1])["step"] == {}


def test_the_reference_has_the_time_of_a_run():
    assert budget_of({"max_cpu_seconds": 3.0, "max_epochs": 7})["max_cpu_seconds"] == 3.0
    budget = budget_of({"max_epochs": 7})
    assert budget.keys() == {"max_cpu_seconds", "gap_tolerance"}


def test_records_by_the_clock_are_a_table_in_a_file(items):
    runs, _ = items
    item = replace(runs[0], budget={"max_iterations": 12, "record_every": {"seconds": 1e9}})
    assert [record[0] for record in run.solve(item)["records"]] == [0, 12]


def test_a_search_is_that_of_the_paper_by_the_gap(items):
    _, (item,) = items
    f, ball = problem()
    found = run.search_rate(item)
    wanted = adafw.tune(f, ball, adafw.AdaCSFW, seed=TUNING_SEED, max_iterations=9, record_every=2)
    assert [t.exponent for t in found.trials] == [t.exponent for t in wanted.trials]
    assert [t.gap for t in found.trials] == pytest.approx([t.gap for t in wanted.trials])
    assert [t.value for t in found.trials] == pytest.approx([t.value for t in wanted.trials])
    assert len({t.gap for t in found.trials}) > 2


def test_a_search_ends_when_asked_to(items, listen_to):
    _, (item,) = items
    listen_to(3)
    with pytest.raises(Stopped):
        run.search_rate(item)


def test_a_rate_is_tuned_on_a_seed_by_a_measure(spec):
    f, ball = problem()
    ways = [{}, {"seed": 0}, {"seed": 5}, {"measure": "value"}]
    found = [tune_method(spec, "AdaCSFW", None, {"max_iterations": 9}, **way) for way in ways]
    for way, tuned in zip(ways, found, strict=True):
        wanted = adafw.tune(f, ball, adafw.AdaCSFW, max_iterations=9, **way)
        assert tuned.trials == wanted.trials
        assert tuned.learning_rate == wanted.learning_rate
    assert len({tuned.trials for tuned in found[:3]}) == 3
    with pytest.raises(ValueError, match="seed must not be one that judges mine"):
        tune_method(spec, "AdaCSFW", None, {"max_iterations": 9}, seed=8)


def test_a_rate_that_stands_in_a_step_is_tuned_too(spec):
    told = []
    tuned = tune_method(spec, "pair", None, {"max_iterations": 9}, report=told.append)
    assert tuple(told) == tuned.trials
    assert len({trial.gap for trial in tuned.trials}) > 2
    with pytest.raises(ValueError, match="algorithm must have a learning rate, got 'CSFW'"):
        tune_method(spec, "CSFW", None, {"max_iterations": 9})


def test_a_projection_that_gives_up_before_the_clock_runs_is_told_by_the_run(items, monkeypatch):
    runs, _ = items
    method = replace(runs[0].method, table={"name": "AdaGrad", "learning_rate": 1.0}, label="P")

    def project(self, x, h=None):
        raise Stalled("the projection stalled")

    monkeypatch.setattr(adafw.L1Ball, "project", project)
    found = run.solve(replace(runs[0], method=method))
    assert found["status"] == run.STALLED
    assert [record[0] for record in found["records"]] == [0]


def test_losses_that_differ_in_a_setting_are_told_apart():
    table = {
        "name": "p", "data": {"name": "support_vector", "m": 9, "n": 3}, "loss": "huber",
        "set": {"name": "L1Ball", "radius": 1.0}, "algorithms": [{"name": "FW"}],
    }  # fmt: skip
    cases = [LinearCase.read({**table, "loss": loss}, "here", ".")
             for loss in ("huber", {"name": "huber", "delta": 3.0})]  # fmt: skip
    assert cases[0].identity != cases[1].identity
    assert json.loads(json.dumps(cases[1].identity)) == cases[1].identity
    assert cases[1].loss == {"name": "huber", "delta": 3.0}  # as the file has it


def test_the_objective_is_made_anew_for_another_loss_on_the_same_data(items):
    runs, _ = items
    first = run.objective(runs[0])
    assert run.objective(runs[1]) is first
    other = replace(runs[0], case=replace(runs[0].case, loss={"name": "Huber", "delta": 2.0}))
    assert run.objective(other).loss == adafw.losses.Huber(2.0)
    assert run.objective(runs[0]).loss == adafw.losses.Logistic()
