import re
import shutil
import subprocess
from dataclasses import replace
from html import escape
from html.parser import HTMLParser

import numpy as np
import pytest

from adafw.experiments import figures, report
from adafw.experiments.convex.case import LinearMethod
from adafw.experiments.convex.measures import lower_bound
from adafw.experiments.convex.tables import final_numbers
from adafw.experiments.drawing import _handle, draw_band, styles_of
from adafw.experiments.html import case_heading
from adafw.experiments.kinds import kind_of
from adafw.experiments.outcome import Curve
from adafw.experiments.verdicts import Claim
from adafw.recorder import Trace

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))),
    None,
)


def judge(outcome):
    return kind_of(outcome.spec).judge(outcome)


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.text, self.open = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [v for k, v in attrs if k in ("src", "href", "xlink:href")]

    def handle_data(self, data):
        self.text.append(data)


def marked(outcome):
    """The same outcome on data that are a stand-in."""
    data = {
        name: {**about, "is_stand_in": True, "label": "X (1 x 1), STAND-IN: made <up>"}
        for name, about in outcome.data.items()
    }
    return replace(outcome, data=data)


def texts(figure):
    from matplotlib.text import Text

    return "\n".join(t.get_text() for t in figure.findobj(Text))


def test_page_is_whole_and_fetches_nothing(finished):
    outcome, folder = finished
    text = (folder / "report.html").read_text()
    page = Page(text)
    assert "svg" in page.tags
    assert "script" not in page.tags
    assert all(link.startswith("#") for link in page.links)
    assert not re.search(r"url\((?!#)", text)
    shown = " ".join(page.text)
    for claim in judge(outcome):
        assert claim.statement in shown
        assert claim.verdict in shown
    for curve in outcome.curves:
        assert curve.label in shown
        assert curve.method.setting in shown
    assert "A small experiment <with> signs & marks" in shown
    assert outcome.environment["packages"]["numpy"] in shown


def test_stand_ins_are_marked_on_page_and_figure(finished):
    outcome, _ = finished
    plain = report.render(outcome, judge(outcome), "<svg></svg>")
    assert "Stand-in data:" not in plain
    page = report.render(marked(outcome), judge(outcome), "<svg></svg>")
    assert "Stand-in data: X (1 x 1), STAND-IN: made &lt;up&gt;" in page
    assert "STAND-IN: made <up>" in texts(figures.draw(marked(outcome)))


def test_figure_shows_settings_and_six_panels(finished):
    outcome, _ = finished
    figure = figures.draw(outcome)
    shown = texts(figure)
    assert "max_iterations = 60" in shown
    assert "over 3 seeds" in shown
    assert "Ours: everything." in shown
    assert "η = 10^-1/2, K = 2" in shown
    axes = [axis for part in figure.subfigs for axis in part.axes]
    labels = [axis.get_xlabel() for axis in axes]
    assert labels == ["CPU time (s)", "epochs", "LMO calls (broken lines: projections)"] * 2
    for axis in axes:
        assert len(axis.lines) == len(outcome.curves)


def test_curves_are_the_medians_of_the_traces(finished):
    outcome, _ = finished
    figure = figures.draw(outcome)
    axis = figure.subfigs[0].axes[1]  # gap against epochs
    curve = next(curve for curve in outcome.curves if curve.label == "AdaCSFW")
    drawn = axis.lines[outcome.curves.index(curve)]
    final = np.median([trace["gap"][-1] for trace in curve.traces.values()])
    assert drawn.get_ydata()[-1] == pytest.approx(final)
    assert drawn.get_xdata()[-1] == pytest.approx(60 * 3 / 300)


def test_lines_can_be_told_apart(finished):
    outcome, _ = finished
    curve = outcome.curves[1]
    many = [replace(curve, method=replace(curve.method, label=f"K = {k}")) for k in range(7)]
    for curves in (list(outcome.curves), many):
        looks = styles_of(curves).values()
        assert len({(look["color"], look["linestyle"]) for look in looks}) == len(curves)


def test_same_figure_same_bytes(finished):
    outcome, _ = finished
    assert figures.svg(figures.draw(outcome)) == figures.svg(figures.draw(outcome))


def test_page_is_made_for_phones_too(finished):
    """Claims are stacked there, evidence has room elsewhere, the figure can be enlarged."""
    _, folder = finished
    text = (folder / "report.html").read_text()
    assert '<table class="claims">' in text
    assert text.count('id="zoom"') == 1
    assert text.index('id="zoom"') < text.index("<svg")
    narrow = text.split("@media (max-width: 600px)")[1]
    assert ".claims td { display: block; }" in narrow


def relabelled(curve, table, label):
    return replace(curve, method=LinearMethod(label, table))


def test_what_is_ours_is_thick_and_what_projects_is_broken(finished):
    outcome, _ = finished
    ours = {"name": "AdaCSFW", "learning_rate": 1.0}
    tables = {
        "plain": {"name": "CSFW"}, "ours": ours, "ours too": {**ours, "inner_steps": 9},
        "mini": {"name": "AdaGrad", "learning_rate": 1.0},
        "full": {"name": "AdaGrad", "learning_rate": 1.0, "gradient": "CSFW"},
        "direct": {"gradient": "CSFW", "step": "PreconditionedStep"},
    }  # fmt: skip
    curves = [relabelled(outcome.curves[0], table, label) for label, table in tables.items()]
    looks = styles_of(curves)
    assert {label: look["linestyle"] for label, look in looks.items()} == {
        "plain": "-", "ours": "-", "ours too": "-", "mini": "--", "full": "-.", "direct": ":",
    }  # fmt: skip
    assert [label for label, look in looks.items() if look["linewidth"] > 2] == ["ours"]
    colours = [look["color"] for look in looks.values()]
    assert len(set(colours[:5])) == 5


def test_colours_begin_again_and_a_ramp_is_for_many_of_ours_alone(finished):
    outcome, _ = finished

    def styles(count, **table):
        found = [
            relabelled(outcome.curves[0], {"learning_rate": 1.0, **table}, f"{k}")
            for k in range(count)
        ]
        return list(styles_of(found).values())

    three, four = styles(3, name="AdaCSFW"), styles(4, name="AdaCSFW")
    assert [look["linewidth"] for look in three] == [2.4, 1.4, 1.4]
    assert [look["linewidth"] for look in four] == [1.4] * 4
    assert not {look["color"] for look in three} & {look["color"] for look in four}
    assert styles(3, name="AdaCSFW") == three  # whatever was drawn in between
    many = styles(8, name="AdaGrad")
    assert [look["color"] for look in many[6:]] == [look["color"] for look in many[:2]]
    assert len({look["color"] for look in many[:6]}) == 6


def test_a_band_is_drawn_between_its_quartiles():
    from matplotlib.figure import Figure

    axis = Figure().subplots()
    x, one = np.array([1.0, 2, 3]), np.ones(3)
    draw_band(axis, (x, 4 * one, 2 * one, 7 * one), {"color": "red", "linewidth": 3})
    assert axis.lines[0].get_ydata().tolist() == [4, 4, 4]
    low, high = axis.collections[0].get_datalim(axis.transData).intervaly
    assert (low, high) == (2, 7)
    draw_band(axis, None, {"color": "red"})
    assert len(axis.lines) == 1


def test_the_figure_tells_form_repeats_and_stand_ins(finished):
    from matplotlib.colors import to_hex

    outcome, _ = finished
    spec = replace(outcome.spec, quick=True, repeats=3, title="From $5 to $6")
    plain, other = figures.draw(outcome), figures.draw(replace(marked(outcome), spec=spec))
    assert plain.get_suptitle() == outcome.spec.title
    assert other.get_suptitle() == r"From \$5 to \$6 (quick form)"
    assert "over 3 seeds, one thread" in plain.get_supxlabel()
    assert "over 3 seeds of 3 repeats, one thread" in other.get_supxlabel()
    colours = [to_hex(figure.subfigs[0]._suptitle.get_color()) for figure in (plain, other)]
    assert colours == ["#222222", "#b00020"]


def test_what_a_label_says_is_not_said_again(finished):
    outcome, _ = finished
    ours = outcome.curves[1]
    for label, wanted in (
        ("K = 2 ones", "K = 2 ones\n   η = 10^-1/2"), ("ours", "ours\n   η = 10^-1/2, K = 2"),
        ("η = 10^-1/2, K = 2", "η = 10^-1/2, K = 2"),
    ):  # fmt: skip
        curve = replace(ours, method=replace(ours.method, label=label))
        assert _handle(curve, {}).get_label() == wanted
    plain = relabelled(ours, {"name": "SFW", "step_size": 0.5}, "a $")
    assert _handle(plain, {}).get_label() == r"a \$"


def test_panels_are_logarithmic_and_objectives_are_above_the_bound(finished):
    outcome, _ = finished
    axes = figures.draw(outcome).subfigs[0].axes
    assert {(axis.get_xscale(), axis.get_yscale()) for axis in axes} == {("log", "log")}
    bound = lower_bound(outcome, outcome.spec.cases[0])
    for k, curve in enumerate(outcome.curves):
        final = np.median([trace["value"][-1] for trace in curve.traces.values()]) - bound
        assert axes[4].lines[k].get_ydata()[-1] == pytest.approx(final, rel=1e-6)
        calls = "projections" if curve.method.family == "projected" else "lmo_calls"
        last = curve.traces[1][calls][-1]
        assert axes[2].lines[k].get_xdata()[-1] == pytest.approx(last)


def several(outcome):
    """The same with a second problem, of which nothing ran."""
    other = replace(outcome.spec.cases[0], name="other <one>")
    data = {**outcome.data, other.name: outcome.data["small"]}
    spec = replace(outcome.spec, cases=(*outcome.spec.cases, other))
    return replace(outcome, spec=spec, data=data)


def test_problems_are_named_where_there_are_several(finished):
    outcome, _ = finished
    (case,) = outcome.spec.cases
    assert case_heading(outcome, case) == ""
    both = several(outcome)
    assert case_heading(both, both.spec.cases[1]) == "<h3>other &lt;one&gt;</h3>"
    assert spec_setting(outcome) == "defaults"
    assert spec_setting(both) == "small: defaults"
    claims = [
        Claim("a <b>", "x < y", "p. 1 & 2", "not tested", "from 1e-05 < 2, not e-mail"),
        Claim("c", "z", "p. 3", "holds", ""),
    ]
    alone = report._claims_table(claims, False, "the rule")
    assert "<th>Problem</th>" not in alone
    table = report._claims_table(claims, True, "the rule")
    assert "<th>Problem</th>" in table
    row = ["a &lt;b&gt;", "x &lt; y", "p. 1 &amp; 2", "from 1e\u201105 &lt; 2, not e-mail"]
    badge = '<span class="verdict not">not tested</span>'
    assert "".join(f"<td>{cell}</td>" for cell in (badge, *row)) in table
    assert '<p class="quiet">the rule</p>' in table
    assert report._claims_table([], True, "the rule") == (
        "<p>The experiment's file names no claims.</p>"
    )


def spec_setting(outcome):
    return outcome.spec.setting(outcome.spec.cases[0], outcome.curves[0].method)


def test_the_page_begins_with_form_budget_seeds_and_date(finished):
    outcome, _ = finished
    spec = replace(outcome.spec, quick=True, budget={"max_epochs": 3, "record_every": 2})
    changed = replace(outcome, spec=spec, environment={"date": "2024-05-01"})
    assert report._subtitle(changed) == (
        "quick form; each run max_epochs = 3, record_every = 2; seeds 1, 2, 3; 2024-05-01"
    )


def test_the_figure_follows_the_page():
    svg = '<?xml version="1.0"?>\n<svg width="9pt" height="5pt" viewBox="0 0 9 5"><g width="3"/>'
    assert report._inline(svg) == '<svg viewBox="0 0 9 5"><g width="3"/>'


def test_settings_tell_data_code_and_notes(finished):
    outcome, _ = finished
    (case,) = outcome.spec.cases
    about = outcome.data["small"]
    page = report._settings_table(outcome, case)
    what = escape(f"{about['label']}, {about['description']}; {case.words}")
    assert f"<p>{what}</p>" in page
    assert page.count(f"; {outcome.curves[0].path} code</small>") >= 1
    assert "<td>ours</td>" in page
    stand_in = marked(outcome)
    assert stand_in.data["small"]["description"] not in report._settings_table(stand_in, case)
    bare = replace(outcome, curves=tuple(replace(c, path="") for c in outcome.curves))
    assert " code</small>" not in report._settings_table(bare, case)
    assert report._notes(outcome) == "<ul><li>Ours: everything.</li></ul>"
    assert report._notes(replace(outcome, spec=replace(outcome.spec, notes=()))) == ""
    table = {"date": "today", "packages": {"numpy": "9.9"}, "cores": 2}
    shown = report._environment(table)
    assert all(f"<dd>{word}</dd>" in shown for word in ("today", "9.9", "2"))
    assert "packages" not in shown


def ended(outcome, label, finals, statuses):
    """A curve of runs of one record: (gap, value, CPU seconds, iterations) for each seed."""
    traces = {}
    for seed, (gap, value, cpu, iterations) in enumerate(finals):
        row = dict.fromkeys(Trace.columns, 0.0)
        row |= {"gap": gap, "value": value, "cpu_seconds": cpu, "iteration": iterations,
                "lower_bound": 5.0}  # fmt: skip
        traces[seed] = Trace([tuple(row.values())])
    method = LinearMethod(label, {"name": "CSFW"})
    return Curve(outcome.spec.cases[0], method, traces, dict(enumerate(statuses)))


def test_final_numbers_are_medians_above_the_bound(finished):
    outcome, _ = finished
    some = replace(outcome, extras={}, curves=(
        ended(outcome, "high", [(4, 6, 99.6, 7), (2, 7, 99.6, 7), (3, 8, 99.6, 7)],
              ["max_epochs", "converged", "max_epochs"]),
        ended(outcome, "low", [(1, 9, 1234.4, 12345), (2, 9, 1234.4, 12345)], ["diverged", "x"]),
        ended(outcome, "lost", [(1, 9, 1, 100), (2, 9, 1, 100)], ["diverged"] * 2),
    ))  # fmt: skip
    table = final_numbers(some)[2]
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in table.split("<tr")[2:]]
    high, low, lost = rows
    assert high[1] == "3.00e+00<br><small>[2.5e+00, 3.5e+00]</small>"
    assert high[2] == "2.00e+00<br><small>[1.5e+00, 2.5e+00]</small>"
    assert high[3] == "99.6"
    assert high[-1] == "converged, max_epochs"
    assert low[3] == "1\u202f234"
    assert low[5] == "12\u202f345"
    assert lost[1] == lost[2] == "diverged"
    assert lost[5] == "100"
    best = re.findall(r"<tr class=best>.*?</tr>", table)
    assert len(best) == 1
    assert "<td>low</td>" in best[0]
    assert "at least 5, the bound, and at most 1.0e+00 above it" in table
    one = ended(outcome, "one", [(1, 9, 1, 1), (2, 9, 1, 1), (2, 9, 1, 1)], ["diverged", "x", "x"])
    first = final_numbers(replace(some, curves=(one,)))[2]
    assert "<td class=n>2.00e+00<br><small>[2.0e+00, inf]</small></td>" in first


@pytest.mark.browser
@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
def test_page_in_a_browser(finished, tmp_path):
    from matplotlib.image import imread

    outcome, folder = finished
    options = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--disable-background-networking", f"--user-data-dir={tmp_path / 'profile'}",
        "--window-size=1240,1800", "--hide-scrollbars",
    ]  # fmt: skip
    page = (folder / "report.html").as_uri()
    shot = tmp_path / "shot.png"
    run = {"capture_output": True, "timeout": 100, "check": True, "text": True}
    subprocess.run([*options, f"--screenshot={shot}", page], **run)
    dom = subprocess.run([*options, "--dump-dom", page], **run).stdout
    assert dom.count('class="verdict') == len(judge(outcome))
    assert dom.count("<svg") == 1
    pixels = imread(shot)[..., :3]
    assert pixels.shape[:2] == (1800, 1240)
    inside = pixels[:, 150:1090]
    assert (inside.min(axis=2) < 0.5).mean() > 0.005  # ink
    assert (inside.max(axis=2) - inside.min(axis=2) > 0.3).mean() > 0.001  # colour
