"""The zoo: every method has a family, the best of each is found, claims follow the numbers."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from adafw.experiments import load_spec, reproduce
from adafw.experiments.convex.case import LinearMethod
from adafw.experiments.kinds import kind_of
from adafw.experiments.outcome import Curve, Outcome
from adafw.experiments.zoo import tables
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
from adafw.recorder import Trace

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


def small(path, entries, seeds=(0,), bound=0.0):
    """An outcome of (name, values, cpu seconds, epochs, gap) whose bound is 0 and start 1."""
    path.write_text(TOML)
    spec = load_spec(path)
    case = spec.cases[0]
    curves = []
    for name, values, cpu, epochs, gap in entries:
        rows = []
        for value, seconds, epoch in zip(values, cpu, epochs, strict=True):
            row = dict.fromkeys(Trace.columns, 0.0)
            calls = 10 * epoch if math.isfinite(epoch) else 0
            row |= {"value": value, "cpu_seconds": seconds, "epoch": epoch, "gap": gap}
            row |= {"lower_bound": bound, "lmo_calls": calls}
            rows.append(tuple(row.values()))
        runs = {seed: Trace(rows) for seed in seeds}
        method = LinearMethod(name, {"name": name})
        curves.append(Curve(case, method, runs, dict.fromkeys(runs, "max_iterations")))
    about = {"label": "data of $5", "is_stand_in": False}
    return Outcome(spec, {case.name: about}, tuple(curves))


@pytest.mark.parametrize(
    ("entries", "verdicts"),
    [
        (
            [
                ("AdaCSFW", [1, 1e-3, 1e-4], [0, 9, 10], [0, 1, 2], 1e-5),
                ("CSFW", [1, 1e-3, 1e-4], [0, 1, 2], [0, 3, 4], 1e-4),
                ("FW", [1, 1e-3, 1e-5], [0, 5, 6], [0, 2, 3], 1e-9),
                ("Corrective", [1, 0.5, 1e-7], [0, 20, 30], [0, 8, 9], 1e-9),
            ],
            ["holds", "holds", "holds", "holds"],
        ),
        (
            [
                ("AdaCSFW", [1, 1e-3, 1e-4], [0, 9, 10], [0, 3, 4], 1e-3),
                ("CSFW", [1, 1e-3, 1e-4], [0, 7, 8], [0, 5, 6], 1e-4),
                ("FW", [1, 1e-3, 1e-8], [0, 5, 6], [0, 2, 3], 1e-9),
                ("Corrective", [1, 0.5, 1e-7], [0, 20, 30], [0, 8, 9], 1e-9),
            ],
            ["fails", "fails", "fails", "fails"],
        ),
        (
            [
                ("AdaCSFW", [1, 0.5, 0.4], [0, 9, 10], [0, 3, 4], 1e-3),
                ("CSFW", [1, 0.5, 0.4], [0, 7, 8], [0, 5, 6], 1e-3),
                ("FW", [1, 0.5, 0.4], [0, 5, 6], [0, 2, 3], 1e-9),
                ("Corrective", [1, 0.5, 0.4], [0, 20, 30], [0, 8, 9], 1e-9),
            ],
            ["undecided", "undecided", "undecided", "fails"],
        ),
    ],
)
def test_claims_follow_the_work_to_their_levels(tmp_path, entries, verdicts):
    outcome = small(tmp_path / "z.toml", entries)
    claims = kind_of(outcome.spec).judge(outcome)
    assert [claim.verdict for claim in claims] == verdicts
    if verdicts[0] == "holds":
        assert claims[0].evidence == "AdaCSFW 1 epochs, FW 2 epochs"
        assert claims[1].evidence == "CSFW 1 CPU s, FW 5 CPU s"
        assert claims[2].evidence == "Corrective 30 CPU s, FW never"
        assert claims[3].evidence == "AdaCSFW 1.00e-05, CSFW 1.00e-04"


def test_work_over_seeds_is_that_of_most(tmp_path):
    """Of an even number of seeds the larger of the middle two; the best has the least."""
    outcome = small(tmp_path / "z.toml", [
        ("FW", [1, 1e-3], [0, 5], [0, 2], 1.0), ("AFW", [1, 0.5], [0, 1], [0, 1], 1.0),
        ("PFW", [1, 0.4], [0, 1], [0, 1], 1.0),
    ])  # fmt: skip
    case = outcome.spec.cases[0]
    scale = scale_of(outcome, case)
    assert scale == (0.0, 1.0)
    fast, slow, lower = outcome.of(case)
    assert best([slow, lower, fast], "epoch", LOW, scale) is fast
    assert best([slow, lower], "epoch", LOW, scale) is lower  # none got there: the lowest
    both = replace(fast, traces={0: fast.traces[0], 1: slow.traces[0]},
                   statuses=dict.fromkeys((0, 1), "max_iterations"))  # fmt: skip
    assert math.isinf(work_to(both, "epoch", LOW, scale))
    assert reached(both, scale) == pytest.approx((1e-3 + 0.5) / 2)


@pytest.mark.parametrize(
    ("works", "middle"),
    [
        ([3.0], 3.0),
        ([2.0, 4.0], 4.0),
        ([9.0, 2.0, 4.0], 4.0),
        ([8.0, 1.0, 5.0, 2.0], 5.0),
        ([8.0, math.inf, 5.0, 2.0], 8.0),
        ([8.0, math.inf, 5.0, math.inf], math.inf),
    ],
)
def test_work_is_one_that_a_seed_has_used(tmp_path, works, middle):
    """Of two in the middle the larger; a seed that never got there needs more than any."""
    entries = [
        ("FW", [1, 1e-3 if math.isfinite(work) else 0.5], [0, 10 * work], [0, work], 1.0)
        for work in works
    ]
    outcome = small(tmp_path / "z.toml", entries)
    curves = outcome.of(outcome.spec.cases[0])
    traces = {seed: curve.traces[0] for seed, curve in enumerate(curves)}
    whole = replace(curves[0], traces=traces, statuses=dict.fromkeys(traces, "max_iterations"))
    assert work_to(whole, "epoch", LOW, (0.0, 1.0)) == middle
    assert work_to(whole, "cpu_seconds", LOW, (0.0, 1.0)) == 10 * middle


def test_what_is_reached_is_a_share_of_the_first_height_above_the_bound(tmp_path):
    outcome = small(tmp_path / "z.toml", [
        ("FW", [7, 5.02, 5.01], [0, 5, 6], [0, 2, 3], 1.0),
        ("AFW", [7, 6, 5.5], [0, 1, 2], [0, 1, 2], 2.0),
    ], bound=5.0)  # fmt: skip
    case = outcome.spec.cases[0]
    scale = scale_of(outcome, case)
    assert scale == (5.0, 2.0)
    fw, afw = outcome.of(case)
    assert work_to(fw, "cpu_seconds", LOW, scale) == 5
    assert (reached(fw, scale), reached(afw, scale)) == (pytest.approx(0.005), 0.25)
    table = kind_of(outcome.spec).summary(outcome)
    assert table["lower_bound"] == {"small": 5.0}
    assert table["minimum_above_it_by_at_most"] == {"small": pytest.approx(0.01)}
    ranked = {row["algorithm"]: row for row in table["ranking"]}
    assert ranked["FW"]["work"] == {
        "cpu_seconds": {"0.01": 5, "1e-06": math.inf}, "epoch": {"0.01": 2, "1e-06": math.inf},
        "lmo_calls": {"0.01": 20, "1e-06": math.inf},
    }  # fmt: skip
    assert (ranked["AFW"]["reached"], ranked["AFW"]["gap"]) == (0.25, 2.0)


def test_adaptive_methods_are_stochastic_too_and_a_draw_decides_nothing(tmp_path):
    outcome = small(tmp_path / "z.toml", [
        ("AdaCSFW", [1, 1e-3], [0, 1], [0, 2], 1e-2), ("AdaSFW", [1, 1e-3], [0, 9], [0, 4], 1e-5),
        ("CSFW", [1, 1e-3], [0, 7], [0, 2], 1e-4), ("SFW", [1, 1e-3], [0, 7], [0, 5], 1e-3),
        ("FW", [1, 1e-3], [0, 5], [0, 3], 1e-9),
    ])  # fmt: skip
    claims = kind_of(outcome.spec).judge(outcome)
    assert [c.verdict for c in claims] == ["undecided", "holds", "not tested", "holds"]
    assert claims[0].evidence == "AdaCSFW 2 epochs, CSFW 2 epochs"
    assert claims[1].evidence == "AdaCSFW 1 CPU s, FW 5 CPU s"
    assert claims[3].evidence == "AdaSFW 1.00e-05, CSFW 1.00e-04"


MIXED = [
    ("FW", [9, 5.03, 5.02], [1, 2, 3], [1, 2, 3], 1e-2),
    ("AFW", [9, 6, 5.000001], [1, 4, 5], [1, 4, 5], 1e-3),
    ("AdaGrad", [9, 8, 7], [1, 2, 3], [1, 2, 3], 3e-1),
]


def test_the_best_of_each_family_is_thick_and_named_to_high_accuracy(tmp_path):
    outcome = small(tmp_path / "z.toml", MIXED, bound=5.0)
    axes = kind_of(outcome.spec).draw(outcome).axes
    assert [axis.get_xlabel() for axis in axes] == ["CPU s", "epochs", "LMO calls"]
    lines = [[line for line in axis.lines if line.get_linestyle() == "-"] for axis in axes]
    assert [len(some) for some in lines] == [3, 3, 2]  # a projected method calls none
    assert [line.get_linewidth() > 2 for line in lines[0]] == [False, True, True]
    assert lines[0][0].get_ydata().tolist() == pytest.approx([1, 0.0075, 0.005])
    assert lines[2][1].get_xdata().tolist() == pytest.approx([10, 40, 50])
    assert [text.get_text() for text in axes[0].texts] == ["AFW", "AdaGrad"]
    assert axes[1].get_title().startswith(r"data of \$5; SquaredHinge loss")
    assert {(axis.get_xscale(), axis.get_yscale()) for axis in axes} == {("log", "log")}


def test_the_tables_tell_leaders_and_all(tmp_path):
    outcome = small(tmp_path / "z.toml", MIXED, bound=5.0)
    case = outcome.spec.cases[0]

    def rows(table):
        return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in table.split("<tr")[2:]]

    assert rows(tables._leaders(outcome, case)) == [
        ["exact", "FW: 2", "FW: 2", "AFW: 5", "AFW: 5", "AFW: 1.0e-03"],
        ["projected", "never", "never", "never", "never", "AdaGrad: 3.0e-01"],
    ]
    assert rows(tables._all(outcome, case)) == [
        ["FW", "exact", "", "2", "-", "2", "-", "20", "-", "5.0e-03", "1.0e-02"],
        ["AFW", "exact", "", "5", "5", "5", "5", "50", "50", "2.5e-07", "1.0e-03"],
        ["AdaGrad", "projected", "", "-", "-", "-", "-", "-", "-", "5.0e-01", "3.0e-01"],
    ]


def test_methods_of_the_zoo_are_what_their_labels_say():
    for case in load_spec("zoo").cases:
        made = {method.label: method for method in case.methods}
        assert made["AdaCSFW, corrective"].family == "corrective"
        assert made["AdaCSFW"].family == "adaptive"
        assert made["AdaGrad + CSFW"].estimator == made["AMSGrad + CSFW"].estimator == "CSFW"
        assert made["AdaGrad"].estimator == made["AMSGrad"].estimator == "Minibatch"
        pairs = {"AdaSAGA-FW": "SAGA", "AdaLSVR-FW": "LSVRG", "AdaPAGE-FW": "PAGE"}
        assert {label: made[label].estimator for label in pairs} == pairs


def test_only_the_families_named_run_in_their_order(tmp_path):
    (tmp_path / "z.toml").write_text(
        TOML.replace('["exact", "projected"]', '["projected", "exact"]')
    )
    (case,) = load_spec(tmp_path / "z.toml").cases
    families = list(dict.fromkeys(family_of(method) for method in case.methods))
    assert families == ["exact", "projected"]
    for wrong in ('"exact"', '["exact", "magic"]', "[3]"):
        (tmp_path / "z.toml").write_text(TOML.replace('["exact", "projected"]', wrong))
        with pytest.raises(ValueError, match="zoo must be a list of exact, stochastic"):
            load_spec(tmp_path / "z.toml")
