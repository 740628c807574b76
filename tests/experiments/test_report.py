import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from adafw.experiments import figures, report
from adafw.experiments.drawing import styles_of
from adafw.experiments.kinds import kind_of

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
