"""The zoo: every method has a family, the best of each is found, claims follow the numbers."""

import json
import math

import numpy as np
import pytest

from adafw.experiments import load_spec, reproduce
from adafw.experiments.kinds import kind_of
from adafw.experiments.zoo.case import FAMILIES, family_of
from adafw.experiments.zoo.ranking import (
    HIGH,
    LOW,
    _first,
    best,
    of_family,
    reached,
    scale_of,
    work_to,
)
from adafw.names import ALGORITHMS

TOML = """
title = "A small zoo"
seeds = [1]
budget = { max_iterations = 25 }
claims = [
    "adaptive by epochs to low accuracy", "stochastic by time to low accuracy",
    "corrective by time to high accuracy", "adaptive by gap",
]

[[problems]]
name = "small"
zoo = ["exact", "projected"]
data = { name = "support_vector", m = 200, n = 8, seed = 4 }
loss = "SquaredHinge"
set = { name = "LInfBall", radius = 1.0 }
"""


def test_every_preset_is_in_the_zoo_once():
    spec = load_spec("zoo")
    for case in spec.cases:
        labels = [method.label for method in case.methods]
        assert len(set(labels)) == len(labels)
        assert {family_of(method) for method in case.methods} == set(FAMILIES)
    run = {method.table.get("name") for case in spec.cases for method in case.methods}
    assert {entry.name for entry in ALGORITHMS} <= run


def test_a_small_zoo_is_ranked_judged_and_drawn(tmp_path):
    (tmp_path / "small.toml").write_text(TOML)
    outcome = reproduce(tmp_path / "small.toml", tmp_path / "out", workers=1)
    case = outcome.spec.cases[0]
    scale = scale_of(outcome, case)
    exact = of_family(outcome, case, "exact")
    first = best(exact, "epoch", HIGH, scale)
    assert all(
        work_to(first, "epoch", HIGH, scale) <= work_to(c, "epoch", HIGH, scale) for c in exact
    )
    assert reached(first, scale) <= HIGH
    for curve in of_family(outcome, case):
        assert work_to(curve, "epoch", LOW, scale) <= work_to(curve, "epoch", HIGH, scale)
        assert math.isinf(work_to(curve, "epoch", -1.0, scale))
    verdicts = {claim.statement: claim.verdict for claim in kind_of(outcome.spec).judge(outcome)}
    assert "not tested" in verdicts.values()  # no adaptive method ran
    assert {"holds", "fails"} & set(verdicts.values())
    report = (tmp_path / "out" / "small" / "report.html").read_text()
    assert "The best of each family" in report
    assert "Corrective" in report
    # The summary ranks as the report does; null is never.
    rows = json.loads((tmp_path / "out" / "small" / "summary.json").read_text())["ranking"]
    found = {row["algorithm"]: row for row in rows}
    assert len(found) == len(outcome.of(case))
    for curve in outcome.of(case):
        row = found[curve.label]
        assert row["family"] == family_of(curve.method)
        wanted = work_to(curve, "epoch", HIGH, scale)
        assert row["work"]["epoch"][f"{HIGH:g}"] == (wanted if math.isfinite(wanted) else None)


def test_unknown_families_are_refused(tmp_path):
    (tmp_path / "bad.toml").write_text(TOML.replace('"projected"', '"magic"'))
    with pytest.raises(ValueError, match="zoo must be a list of exact, stochastic"):
        load_spec(tmp_path / "bad.toml")


def test_work_is_counted_up_to_the_first_record_that_is_low_enough():
    trace = {"value": np.array([5.0, 3.0, 2.0, 2.5]), "epoch": np.array([0.0, 1.0, 4.0, 9.0])}
    scale = (1.0, 4.0)  # (the bound, the height of the first value above it)
    for level, work in ((1.0, 0.0), (0.5, 1.0), (0.25, 4.0), (0.24, math.inf)):
        assert _first(trace, "epoch", level, scale) == work
