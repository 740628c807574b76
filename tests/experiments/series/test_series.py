"""Series of growing dimension: what is measured, and the verdicts on it."""

import csv
import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import adafw
from adafw.constraints.base import Stalled
from adafw.experiments import load_spec, reproduce, work, workers
from adafw.experiments.convex.case import LinearMethod
from adafw.experiments.convex.run import STALLED
from adafw.experiments.kinds import kind_of
from adafw.experiments.outcome import Curve
from adafw.experiments.plan import parts_of, prepare, runs_of, searches_of, with_rates
from adafw.experiments.series import figures, tables
from adafw.experiments.series.advantage import (
    DOES_NOT_GROW,
    GROWS,
    NO_ADVANTAGE,
    NOT_MONOTONE,
    REVERSED,
    Ratio,
    Size,
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
        ([ratio(9, ">="), ratio(2)], DOES_NOT_GROW),
        ([ratio(2), ratio(1.9, "<=")], DOES_NOT_GROW),
        ([ratio(0.5, spread=1.5), ratio(0.6)], NO_ADVANTAGE),
        ([ratio(0.5, spread=1.5), ratio(0.4)], NO_ADVANTAGE),
        ([ratio(0.3), ratio(27), ratio(26), ratio(10)], NOT_MONOTONE),
        ([ratio(2), ratio(2.4), ratio(2.1), ratio(2), ratio(9)], GROWS),
        ([ratio(2), ratio(2.6), ratio(2.3), ratio(2.1), ratio(9)], NOT_MONOTONE),
        ([ratio(2), ratio(math.nan), ratio(9)], GROWS),
        ([ratio(2), ratio(math.nan)], UNTESTED),
        ([ratio(math.nan), ratio(2)], UNTESTED),
    ],
    ids=str,
)
def test_verdicts(ratios, expected):
    assert verdict(ratios) == expected


def reaching(*times, end=8.0):
    """Runs of 8 seconds, one a seed, whose gap falls to 0.1 after these times; inf: never."""
    traces = {}
    for seed, time in enumerate(times):
        rows = []
        for seconds in sorted({0.0, min(time, end), end}):
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


def test_a_bound_is_the_time_that_the_other_side_spent():
    """Ours runs for 8 seconds, theirs for 16."""
    inf = math.inf
    never = _ratio(reaching(1, 2, 4), reaching(inf, inf, inf, end=16.0), 1.0, 0.1)
    assert (never.ratio, never.bound) == ({"median": 8, "lower": 6, "upper": 12}, ">=")
    lost = _ratio(reaching(inf, inf, inf), reaching(2, 4, 1, end=16.0), 1.0, 0.1)
    assert (lost.ratio["median"], lost.bound) == (0.25, "<=")
    assert lost.ours["median"] == inf
    assert lost.theirs["median"] == 2
    # Bounds on both sides tell nothing; seeds in which nobody gets there do not count.
    mixed = _ratio(reaching(1, inf, 1), reaching(inf, 1, 2), 1.0, 0.1)
    assert not mixed.known
    few = _ratio(reaching(inf, 1, 1), reaching(inf, 3, 3), 1.0, 0.1)
    assert (few.known, few.ratio["median"], few.bound) == (True, 3.0, "")
    half = _ratio(reaching(inf, inf, 1, 1), reaching(inf, inf, 3, 5), 1.0, 0.1)
    assert (half.known, half.ratio["median"]) == (True, 4.0)
    scaled = _ratio(reaching(1, 2), reaching(4, 4), 4.0, 0.025)
    assert scaled.ratio["median"] == 3.0


def test_one_seed_decides_nothing_and_no_claim_is_no_verdict(finished):
    outcome, _ = finished
    judged = kind_of(outcome.spec).judge(outcome)
    assert len(judged) == 2
    assert UNDECIDED not in {claim.verdict for claim in judged[1:]}
    one = replace(outcome, spec=replace(outcome.spec, seeds=(1,)))
    assert [claim.verdict for claim in kind_of(one.spec).judge(one)] == [UNDECIDED] * 2
    none = replace(outcome, spec=replace(outcome.spec, claims=()))
    assert kind_of(none.spec).judge(none) == []


def size(n, *ratios, scale=2.0, mine=(1.0, 2.0), theirs=(4.0, 2.0)):
    """A problem of a series with (gap, CPU seconds) at the end of its runs."""

    def curve(label, gap, cpu):
        rows = []
        for share, seconds in ((1.0, cpu / 2), (gap, cpu)):
            row = dict.fromkeys(Trace.columns, 0.0)
            row |= {"gap": share, "cpu_seconds": seconds, "iteration": 4}
            rows.append(tuple(row.values()))
        method = LinearMethod(label, {"name": "FW"})
        return Curve(None, method, {0: Trace(rows)}, {0: "x"}, "generic", {0: cpu / 10})

    return Size(f"p{n}", n, scale, curve("a $", *mine), curve("b", *theirs), ratios)


def drawn(*rows):
    """The axes of ratios, then those of curves, of a figure of these series."""
    from matplotlib.figure import Figure

    outcome = SimpleNamespace(spec=SimpleNamespace(goals=(0.5, 0.01)))
    top, bottom = Figure().subfigures(2, 1)
    series = {f"s{k} $": row for k, row in enumerate(rows)}
    figures._draw_ratios(top, outcome, series)
    figures._draw_curves(bottom, outcome, series)
    return top.axes, bottom.axes


def test_ratios_are_drawn_with_their_bands_and_bounds():
    row = [
        size(9, ratio(2), ratio(0.5)), size(25, ratio(4), ratio(3, "<=")),
        size(36, ratio(8, ">="), ratio(math.nan)),
    ]  # fmt: skip
    tops, _ = drawn(row)
    first, second = ([line for line in axis.lines if line.get_marker() == "o"] for axis in tops)
    assert (first[0].get_xdata().tolist(), first[0].get_ydata().tolist()) == (
        [9, 25, 36],
        [2, 4, 8],
    )
    assert (second[0].get_xdata().tolist(), second[0].get_ydata().tolist()) == ([9, 25], [0.5, 3])
    arrows = [
        [(line.get_marker(), line.get_xdata()[0], line.get_ydata()[0]) for line in axis.lines
         if "arrow" in str(line.get_marker())] for axis in tops
    ]  # fmt: skip
    assert arrows == [
        [("$\\uparrow$", 36, pytest.approx(8 * 1.35))],
        [("$\\downarrow$", 25, pytest.approx(3 / 1.35))],
    ]
    low, high = tops[0].collections[0].get_datalim(tops[0].transData).intervaly
    assert (low, high) == (pytest.approx(2 / 1.1), pytest.approx(8 * 1.1))
    assert {(axis.get_xscale(), axis.get_yscale()) for axis in tops} == {("log", "log")}
    assert [axis.get_title() for axis in tops] == [
        "to a relative gap of 0.5", "to a relative gap of 0.01",
    ]  # fmt: skip


def test_curves_are_drawn_relative_to_the_first_objective():
    both = ratio(2), ratio(3)
    _, axes = drawn([size(9, *both)], [size(4, *both, mine=(0.5, 4.0)), size(16, *both)])
    assert [axis.get_visible() for axis in axes] == [True, False, True, True]
    ours, theirs = axes[2].lines[:2]
    assert ours.get_ydata().tolist() == pytest.approx([0.5, 0.25])
    assert ours.get_xdata().tolist() == pytest.approx([2.0, 4.0])
    assert theirs.get_ydata().tolist() == pytest.approx([0.5, 2.0])
    goals = [line.get_ydata()[0] for line in axes[2].lines[2:]]
    assert goals == [0.5, 0.01]
    assert axes[2].get_ylim()[0] == pytest.approx(0.001)
    assert axes[3].get_title() == r"s1 \$, n = 16"


def test_tables_tell_costs_and_times():
    one = size(25, ratio(2, ">="), ratio(math.nan), mine=(1.0, 8.0), theirs=(1.0, 2.0))
    assert tables._cost("a <b>", one) == [
        "a &lt;b&gt;", "25", "800 ms", "200 ms", "0.25", "2 s", "500 ms", "0.25",
    ]  # fmt: skip
    other = replace(one, theirs=replace(one.theirs, step_seconds={}))
    assert tables._cost("a", other)[2:5] == ["800 ms", "-", "-"]
    known = {"median": 3.0, "lower": 2.0, "upper": 4.0}
    times = replace(one, ratios=(
        Ratio(0.5, {"median": 2.0}, {"median": math.inf}, known, ">="),
        Ratio(0.01, {"median": math.inf}, {"median": 0.5}, dict.fromkeys(known, math.nan), ""),
    ))  # fmt: skip
    assert tables._times("a", times) == [
        "a", "25", "2 s", "never", "≥ 3<br><small>[2, 4]</small>", "never", "500 ms", "-",
    ]  # fmt: skip


def test_a_size_is_told_in_plain_numbers():
    band = {"median": 3.0, "lower": 2.0, "upper": 4.0}
    found = Ratio(0.5, {"median": 1.0}, {"median": 6.0}, band, ">=")
    table = size(25, found, scale=7.0, mine=(1.0, 8.0), theirs=(1.0, 2.0)).table()
    assert (table["problem"], table["dimension"]) == ("p25", 25)
    assert table["first_objective_above_lower_bound"] == 7.0
    for side, label, iteration, step in (
        ("frank_wolfe", "a $", 2.0, 0.8), ("projected", "b", 0.5, 0.2),
    ):  # fmt: skip
        told = table[side]
        assert told["algorithm"] == label
        assert told["seconds_per_iteration"]["median"] == iteration
        assert told["seconds_per_step_alone"]["median"] == step
    assert table["goals"] == [{
        "relative_gap": 0.5, "frank_wolfe_seconds": {"median": 1.0},
        "projected_seconds": {"median": 6.0}, "ratio": band, "bound": ">=",
    }]  # fmt: skip


def test_rates_found_are_those_of_their_problem_and_method(file, tmp_path):
    spec = load_spec(file)
    parts = {case.name: tmp_path / case.name for case in spec.cases}
    searches = searches_of(spec, parts, tmp_path)
    assert {(item.role, item.seed) for item in searches} == {("search", 9001)}
    for k, item in enumerate(searches):
        left = {"exponent": 2 * k - 3, "settled": k > 0, "trials": [k], "made": {}}
        item.file.write_text(json.dumps(left))
    rated, tried = with_rates(spec, searches)
    rates = [m.algorithm.step.learning_rate(0) for case in rated.cases for m in case.methods]
    assert rates == pytest.approx([10**-1.5, 10**-0.5, 10**0.5, 10**1.5])
    keys = ("problem", "algorithm", "exponent", "settled", "trials")
    assert [tuple(found[key] for key in keys) for found in tried] == [
        ("birkhoff-5", "AdaCSFW", -3, False, [0]), ("birkhoff-5", "AdaGrad", -1, True, [1]),
        ("birkhoff-3", "AdaCSFW", 1, True, [2]), ("birkhoff-3", "AdaGrad", 3, True, [3]),
    ]  # fmt: skip
    assert not any(method.searched for case in rated.cases for method in case.methods)
    (first, _), _ = (case.methods for case in rated.cases)
    assert first.note.startswith("η by the paper's search on seed 9001")
    again, tried = with_rates(spec, searches[:1])
    assert [m.searched for case in again.cases for m in case.methods] == [False, True, True, True]


THIRD = '{{ name = "AdaCSFW", label = "third", learning_rate = 0.1, batch_size = 5 }},'


def test_three_algorithms_or_a_series_of_one_are_refused(tmp_path):
    path = tmp_path / "series.toml"
    text = TEXT.replace("algorithms = [\n", f"algorithms = [\n    {THIRD.format()}\n", 1)
    path.write_text(text)
    with pytest.raises(ValueError, match="must have two algorithms, an adaptive Frank-Wolfe"):
        load_spec(path)
    alone = PROBLEM.format(n=4).replace("Birkhoff polytope", "other")
    path.write_text(TEXT + alone)
    with pytest.raises(ValueError, match=r"each series two problems or more.*'other': 1"):
        load_spec(path)


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
