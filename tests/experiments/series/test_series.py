"""Series of growing dimension: what is measured, and the verdicts on it."""

import csv
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest

import adafw
from adafw.constraints.base import Stalled
from adafw.experiments import load_spec, reproduce, work, workers
from adafw.experiments.convex.run import STALLED
from adafw.experiments.outcome import Curve
from adafw.experiments.plan import parts_of, prepare, runs_of, searches_of
from adafw.experiments.series.advantage import (
    DOES_NOT_GROW,
    GROWS,
    NO_ADVANTAGE,
    NOT_MONOTONE,
    REVERSED,
    Ratio,
    _ratio,
    sizes,
    verdict,
)
from adafw.experiments.spread import quartiles
from adafw.experiments.verdicts import UNDECIDED, UNTESTED
from adafw.recorder import Trace

HEAD = """
budget = { max_iterations = 30 }
search = { max_iterations = 20 }
goals = [0.5, 1e-9]
seeds = [1, 2]
claims = ["advantage grows with dimension"]
"""
PROBLEM = """
[[problems]]
name = "birkhoff-{n}"
series = "Birkhoff polytope"
data = {{ name = "matching", n = {n}, features = 5 }}
loss = "Squared"
shape = [{n}, {n}]
set = "Birkhoff"
algorithms = [
    {{ name = "AdaCSFW", learning_rate = "search", batch_size = 5 }},
    {{ name = "AdaGrad", learning_rate = "search", gradient.name = "CSFW", gradient.batch_size=5}},
]
"""
TEXT = HEAD + PROBLEM.format(n=5) + PROBLEM.format(n=3)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("series") / "series.toml"
    path.write_text(TEXT)
    return path


class Told:
    """A bar that keeps what it is told."""

    def __init__(self):
        self.started, self.done = [], 0

    def start(self, name, total):
        self.started.append((name, total))

    def advance(self):
        self.done += 1


BAR = Told()


@pytest.fixture(scope="module")
def finished(file):
    return reproduce(file, file.parent, workers=1, bar=BAR), file.parent / "series"


def test_searches_and_runs_are_counted(finished):
    """Four searches, and two methods on two problems from two seeds."""
    assert BAR.started == [("series", 4 + 8)]
    assert BAR.done == 4 + 8


def test_rates_are_searched_for_once_and_used(file, finished):
    outcome, folder = finished
    summary = json.loads((folder / "summary.json").read_text())
    assert len(summary["searches"]) == 4
    for search in summary["searches"]:
        best = min(search["trials"], key=lambda trial: (trial["gap"], trial["exponent"]))
        assert search["exponent"] == best["exponent"]
        (method,) = (
            curve.method for curve in outcome.curves
            if (curve.case.name, curve.label) == (search["problem"], search["algorithm"])
        )  # fmt: skip
        eta = method.algorithm.step.learning_rate(0)
        assert eta == pytest.approx(10 ** (search["exponent"] / 2))
        assert "search on seed 9001" in method.note
    times = {path: path.stat().st_mtime_ns for path in (folder / "work").glob("*.json")}
    assert len([path for path in times if path.name.startswith("search")]) == 4
    before = (folder / "trace.csv").read_text()
    reproduce(file, file.parent, workers=1)
    assert {path: path.stat().st_mtime_ns for path in times} == times
    assert (folder / "trace.csv").read_text() == before


def test_times_to_goals_are_those_of_the_trace(finished):
    outcome, folder = finished
    (row,) = sizes(outcome).values()
    assert [size.n for size in row] == [9, 25]  # the file has them the other way round
    with open(folder / "trace.csv", newline="") as file:
        table = list(csv.DictReader(file))
    for size in row:
        mine = [r for r in table if r["setting"].startswith(f"{size.name}:")]
        low = max(float(r["lower_bound"]) for r in mine)
        scale = float(mine[0]["value"]) - low
        assert size.scale == pytest.approx(scale)
        for curve, name in ((size.ours, "ours"), (size.theirs, "theirs")):
            times = []
            for seed in ("1", "2"):
                run = [
                    (float(r["cpu_seconds"]), math.log(float(r["gap"]))) for r in mine
                    if (r["algorithm"], r["seed"]) == (curve.label, seed)
                ]  # fmt: skip
                goal = math.log(0.5 * scale)
                i = next((i for i, (_, gap) in enumerate(run) if gap <= goal), None)
                if i:  # between the records, in the logarithm of the gap
                    (t0, g0), (t1, g1) = run[i - 1], run[i]
                    times.append(t0 + (g0 - goal) / (g0 - g1) * (t1 - t0))
                else:
                    times.append(math.inf if i is None else run[0][0])
            found, expected = getattr(size.ratios[0], name), quartiles(np.array(times))
            assert found == pytest.approx(expected)
        assert all(seconds > 0 for seconds in size.ours.step_seconds.values())
        assert len(size.theirs.step_seconds) == 2
    assert not row[0].ratios[1].known  # nobody gets to 1e-9 in 30 iterations


def test_report_and_summary_tell_costs_and_verdicts(finished):
    _, folder = finished
    page = (folder / "report.html").read_text()
    for text in ("What a step costs", "CPU time to a relative gap", "Birkhoff polytope", "never"):
        assert text in page
    summary = json.loads((folder / "summary.json").read_text())
    assert [claim["verdict"] for claim in summary["claims"]][1] == UNTESTED
    (row,) = summary["series"].values()
    assert [size["dimension"] for size in row] == [9, 25]
    assert row[0]["projected"]["seconds_per_step_alone"]["median"] > 0
    assert (folder / "figure.png").stat().st_size > 10_000


def ratio(median, bound="", spread=1.1):
    band = {"median": median, "lower": median / spread, "upper": median * spread}
    return Ratio(0.1, {}, {}, band, bound)


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        ([ratio(2), ratio(3), ratio(9)], GROWS),
        ([ratio(0.2), ratio(1.3)], GROWS),
        ([ratio(2), ratio(9, ">=")], GROWS),
        ([ratio(0.5, "<="), ratio(2)], GROWS),
        ([ratio(9), ratio(2)], DOES_NOT_GROW),
        ([ratio(2), ratio(2.1)], DOES_NOT_GROW),
        ([ratio(0.2), ratio(0.95)], DOES_NOT_GROW),
        ([ratio(0.3), ratio(27), ratio(10)], NOT_MONOTONE),
        ([ratio(2), ratio(1.5), ratio(9)], NOT_MONOTONE),
        ([ratio(2), ratio(5, ">="), ratio(9)], GROWS),
        ([ratio(2), ratio(50, ">="), ratio(9)], NOT_MONOTONE),
        ([ratio(0.2), ratio(0.5)], NO_ADVANTAGE),
        ([ratio(math.nan), ratio(0.5)], NO_ADVANTAGE),
        ([ratio(0.9), ratio(0.5)], REVERSED),
        ([ratio(3), ratio(0.5, "<=")], REVERSED),
        ([ratio(5, "<="), ratio(3)], UNDECIDED),
        ([ratio(0.9, "<="), ratio(1)], UNDECIDED),
        ([ratio(0.2), ratio(0.9, ">=")], UNDECIDED),
        ([ratio(0.5), ratio(5, "<=")], UNDECIDED),
        ([ratio(2, ">="), ratio(9, ">=")], UNDECIDED),
        ([ratio(9), ratio(2, ">=")], UNDECIDED),
        ([ratio(2), ratio(0.5, ">=")], UNDECIDED),
        ([ratio(2), ratio(math.nan)], UNTESTED),
        ([ratio(math.nan), ratio(2)], UNTESTED),
    ],
    ids=str,
)
def test_verdicts(ratios, expected):
    assert verdict(ratios) == expected


def reaching(*times):
    """Runs of 8 seconds, one a seed, whose gap falls to 0.1 after these times; inf: never."""
    traces = {}
    for seed, time in enumerate(times):
        rows = []
        for seconds in sorted({0.0, min(time, 8.0), 8.0}):
            gap = 0.1 if seconds >= time else 1.0
            row = dict.fromkeys(Trace.columns, 0.0) | {"cpu_seconds": seconds, "gap": gap}
            rows.append(tuple(row.values()))
        traces[seed] = Trace(rows)
    return Curve(None, None, traces, dict.fromkeys(traces, "max_cpu_seconds"))


def test_ratios_of_those_who_never_got_there_are_bounds():
    inf = math.inf
    both = _ratio(reaching(1, 2, 1), reaching(4, 4, 2), 1.0, 0.1)
    assert (both.ratio["median"], both.bound, str(both)) == (2.0, "", "2")
    never = _ratio(reaching(1, 2, 4), reaching(inf, inf, inf), 1.0, 0.1)
    assert (never.ratio["median"], never.bound, str(never)) == (4.0, ">=", "≥ 4")
    lost = _ratio(reaching(inf, inf, 1), reaching(2, 2, 2), 1.0, 0.1)
    assert (lost.ratio["median"], lost.bound) == (0.25, "<=")
    neither = _ratio(reaching(inf, inf, 1), reaching(inf, inf, 2), 1.0, 0.1)
    assert (neither.known, str(neither)) == (False, "not reached")


def prepared(file, work):
    """The experiment, and where the data of its first problem lie, taken for those of all."""
    spec = load_spec(file)
    parts = parts_of(spec.cases[0], work)
    prepare(spec, spec.cases[0], parts)
    return spec, {case.name: parts for case in spec.cases}


def test_a_projection_that_gives_up_ends_its_run_only(file, tmp_path, monkeypatch):
    """The records so far are kept, and a search goes on with other rates."""
    spec, parts = prepared(file, tmp_path)
    calls = []

    def project(self, x, h=None, original=adafw.Birkhoff.project):
        calls.append(1)
        if len(calls) > 9:
            raise Stalled("the projection stalled")
        return original(self, x, h)

    monkeypatch.setattr(adafw.Birkhoff, "project", project)
    item = next(i for i in runs_of(spec, parts, tmp_path) if "Grad" in i.method.label)
    workers.perform(item)
    outcome = json.loads(item.file.read_text())
    assert outcome["status"] == STALLED
    assert 0 < outcome["records"][-1][0] <= 9
    calls.clear()
    search = next(s for s in searches_of(spec, parts, tmp_path) if "Grad" in s.method.label)
    workers.perform(search)
    assert STALLED in {t["status"] for t in json.loads(search.file.read_text())["trials"]}


def test_a_run_that_goes_on_and_stalls_at_once_keeps_its_records(file, tmp_path, monkeypatch):
    spec, parts = prepared(file, tmp_path)
    item = next(i for i in runs_of(spec, parts, tmp_path) if "Grad" in i.method.label)
    looks = iter([False] * 4 + [True] * 99)
    with monkeypatch.context() as patch:
        patch.setattr(work, "_stop", SimpleNamespace(is_set=lambda: next(looks)))
        with pytest.raises(work.Stopped):
            workers.perform(item)
    before = len(adafw.State.load(item.state_file).records)

    def project(self, x, h=None):
        raise Stalled("the projection stalled")

    monkeypatch.setattr(adafw.Birkhoff, "project", project)
    workers.perform(item)
    outcome = json.loads(item.file.read_text())
    assert outcome["status"] == STALLED
    assert len(outcome["records"]) == before > 1
    assert set(outcome["made"]) == {"date", "source"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("goals = [0.5, 1e-9]", "", "goals must be given with series"),
        ("goals = [0.5, 1e-9]", "goals = [2]", "goals must be a number"),
        ('"birkhoff-3"\nseries = "Birkhoff polytope"', '"birkhoff-3"', "must all have a series"),
        (PROBLEM.format(n=3), "", "each series two problems or more"),
        (
            'gradient.name = "CSFW"',
            'gradient.name = "SVRF"',
            "must have the same gradient estimator",
        ),
        ('"AdaGrad",', '"AdaGrad", offset = 1e-3,', "same gradient .* metric"),
        ('"AdaCSFW", learning_rate = "search"', '"CSFW"', "an adaptive Frank-Wolfe method"),
        ("search = { max_iterations = 20 }", "", "must come together"),
        ('learning_rate = "search"', "learning_rate = 0.1", "must come together"),
        ("shape = [3, 3]", "shape = 9", "shape must be two integers"),
        ('["advantage', '["disadvantage', "claims must be among advantage grows"),
    ],
)
def test_mistakes_are_told_before_any_work(tmp_path, old, new, message):
    assert old in TEXT
    path = tmp_path / "series.toml"
    path.write_text(TEXT.replace(old, new))
    with pytest.raises((ValueError, TypeError), match=message):
        reproduce(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_shape_that_does_not_fit_is_told_before_any_run(tmp_path):
    path = tmp_path / "series.toml"
    path.write_text(TEXT.replace("shape = [3, 3]", "shape = [3, 4]"))
    with pytest.raises(ValueError, match=r"as many entries as a row of A, 9, got 3 x 4"):
        reproduce(path, tmp_path)


def test_goals_without_series_are_refused(toml, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("goals = [0.1]\n" + toml.read_text())
    with pytest.raises(ValueError, match="goals are for problems with a series"):
        load_spec(path)


def test_the_package_s_series():
    spec = load_spec("dear-sets")
    counts = {}
    for case in spec.cases:
        counts[case.series] = counts.get(case.series, 0) + 1
    assert len(counts) == 10  # seven sets, three of them with corrective inner steps, too
    # To see a trend takes three sizes; against the projection itself two are enough.
    assert all(count >= (2 if "corrective" in name else 3) for name, count in counts.items())
