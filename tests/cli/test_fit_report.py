"""adafw fit --report and --test: one self-contained page, read by a browser at two widths."""

import json
import re
import shutil
import subprocess
from html import escape
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

from adafw.cli import main
from adafw.fitting import LinearModelFile
from adafw.io.libsvm import write_libsvm
from sklearn import datasets

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))),
    None,
)


def run(capsys, *arguments):
    code = 0
    try:
        main([str(a) for a in arguments])
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    return code, out, err


def write(path, X, y, names):
    rows = (",".join([*map(str, row), str(k)]) for row, k in zip(X, y, strict=True))
    path.write_text(",".join([*names, "kind"]) + "\n" + "\n".join(rows) + "\n")


@pytest.fixture
def wine(tmp_path):
    """Three classes, half of the rows to train; a name with signs that HTML would eat."""
    data = datasets.load_wine()
    X = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    names = ["<alcohol> & more", *data.feature_names[1:]]
    kinds = np.array(["red", "white", "rose"])[data.target]
    write(tmp_path / "train.csv", X[::2], kinds[::2], names)
    write(tmp_path / "test.csv", X[1::2], kinds[1::2], names)
    return tmp_path


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.words = [], [], []
        self.feed(text.replace("<wbr>", ""))

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [v for k, v in attrs if k in ("src", "href", "xlink:href")]

    def handle_data(self, data):
        self.words.append(data)


def test_page_tells_of_data_certificate_and_score(wine, capsys):
    out = ["-o", wine / "m", "--report", wine / "r.html", "--test", wine / "test.csv", "--json"]
    code, text, _ = run(capsys, "fit", wine / "train.csv", "--radius", 2, *out)
    assert code == 0
    shown = json.loads(text)
    score = json.loads(run(capsys, "score", wine / "m", wine / "test.csv", "--json")[1])
    assert shown["test"] == {"file": "test.csv", **score}
    text = (wine / "r.html").read_text()
    page = Page(text)
    assert page.tags.count("svg") == 2
    assert "script" not in page.tags
    assert page.links == []
    assert not re.search(r"url\(|@import", text)
    words = " ".join(page.words)
    assert f"{score['accuracy']:.4g}" in words
    for part in shown["certificate"]:
        assert f"{part['value']:.8g}" in words
    assert "red: 30" in words
    model = LinearModelFile.load(wine / "m")
    for k, row in enumerate(model.coef):
        j = int(np.abs(row).argmax())
        assert model.header["features"][j] in page.words, k
        assert f"{row[j]:.4g}".replace("-", "\u2212") in page.words
    assert "<alcohol> & more" in page.words


def test_score_in_words_and_numbers_of_libsvm_features(tmp_path, capsys):
    X, y = datasets.load_diabetes(return_X_y=True)
    write_libsvm(tmp_path / "d.svm", X, y)
    arguments = ["--task", "regression", "--radius", 300, "-o", tmp_path / "m"]
    arguments += ["--test", tmp_path / "d.svm", "--report", tmp_path / "r.html"]
    code, text, _ = run(capsys, "fit", tmp_path / "d.svm", *arguments)
    assert code == 0
    assert re.search(r"on d\.svm \(442 rows\): r2 0\.\d+, mse \d", text)
    words = Page((tmp_path / "r.html").read_text()).words
    assert "feature 3" in words  # the file counts from 1: body mass index
    assert any(word.startswith("mean 152.1") for word in words)


def test_bad_files_are_refused_before_the_fit(wine, capsys):
    fit = ["fit", wine / "train.csv", "-o", wine / "m"]
    code, _, err = run(capsys, *fit, "--test", wine / "none.csv")
    assert code == 1
    assert "none.csv" in err
    code, _, err = run(capsys, *fit, "--report", wine / "no" / "r.html")
    assert code == 2
    assert "must lie in a directory that exists" in err
    code, _, err = run(capsys, *fit, "--report", wine / "m")
    assert code == 2
    assert "--report must be another file than --output" in err
    assert not (wine / "m").exists()
    (wine / "bad.csv").write_text("a,kind\n1,red\n")
    code, _, err = run(capsys, *fit, "--radius", 1, "--test", wine / "bad.csv")
    assert code == 2
    assert len(err.strip().splitlines()) == 1
    assert (wine / "m").exists()  # the fit is not lost


def test_a_fit_that_stopped_early_is_marked(wine, capsys):
    fit = ["fit", wine / "train.csv", "-o", wine / "m", "--report", wine / "r.html", "--quiet"]
    run(capsys, *fit, "--tol", "1e-14", "--max-epochs", 1, "--radius", 1, "--algorithm", "FW",
        "--multi-class", "ovr")  # fmt: skip
    text = (wine / "r.html").read_text()
    assert 'class="warn"' in text
    assert "0 of 3" in text


@pytest.mark.browser
@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("width", [375, 1240])
def test_page_in_a_browser(width, wine, capsys, tmp_path):
    """Nothing sticks out of a phone's or a desktop's width, and there is ink in the charts."""
    from matplotlib.image import imread

    out = ["-o", wine / "m", "--report", wine / "r.html", "--test", wine / "test.csv"]
    assert run(capsys, "fit", wine / "train.csv", "--radius", 2, *out)[0] == 0
    frame = tmp_path / "frame.html"
    page = escape((wine / "r.html").read_text())
    frame.write_text(
        f'<body style="margin:0"><iframe id=f style="border:0;width:{width}px;height:1800px" '
        f'srcdoc="{page}"></iframe><script>f.onload = () => {{ const d = f.contentDocument; '
        "document.title = d.documentElement.scrollWidth + ' ' + "
        "Math.min(...[...d.querySelectorAll('svg')].map(s => s.getBoundingClientRect().width)) }"
        "</script></body>"
    )
    options = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--disable-background-networking", f"--user-data-dir={tmp_path / 'profile'}",
        "--window-size=1240,1800", "--hide-scrollbars",
    ]  # fmt: skip
    how = {"capture_output": True, "timeout": 100, "check": True, "text": True}
    dom = subprocess.run([*options, "--dump-dom", frame.as_uri()], **how).stdout
    wide, chart = re.search(r"<title>(\d+) (\d+)", dom).groups()
    assert int(wide) == width
    assert int(chart) >= 300
    shot = tmp_path / "shot.png"
    subprocess.run([*options, f"--screenshot={shot}", frame.as_uri()], **how)
    pixels = imread(shot)[:, :width, :3]
    assert (pixels.min(axis=2) < 0.5).mean() > 0.005  # ink
    assert (pixels.max(axis=2) - pixels.min(axis=2) > 0.3).mean() > 0.001  # colour


def test_bars_are_as_long_as_coefficients_are_large():
    from adafw.commands import report

    page = report._bars(np.array([1.0, -4.0, 0.0, 2.0]), ["a", "b_c", "none", "d"])
    assert re.findall(r'class="(plus|minus)" style="width:([\d.]+)%"', page) == [
        ("minus", "50.0"), ("plus", "25.0"), ("plus", "12.5"),
    ]  # fmt: skip
    assert "none" not in page
    assert "smaller ones" not in page
    assert report._bars(np.zeros(2), ["a", "b"]) == "<p>All coefficients are 0.</p>"
    many = report._bars(np.arange(1.0, report.TOP + 4), [str(k) for k in range(99)])
    assert many.count("<i class") == report.TOP
    assert "and 3 smaller ones" in many


def model(coef, classes=None, parts=1, **changes):
    part = {
        "value": 2.0, "gap": 0.25, "lower_bound": 1.75, "status": "converged", "algorithm": "FW",
        "iterations": 3, "violation": 0.0, "seconds": 1.5,
    }  # fmt: skip
    header = {
        "settings": {"fit_intercept": True, "radius": 10.0}, "features": None, "zero_based": None,
        "certificate": [dict(part) for _ in range(parts)], **changes,
    }  # fmt: skip
    return LinearModelFile(np.array(coef), np.zeros(len(coef)), classes, header)


def test_features_with_negative_coefficients_are_used_and_no_seconds_are_none():
    from adafw.commands.report import _tiles

    one = model([[0.0, -1.0, 2.0, 0.0]])
    assert '<span class="key">2 of 4</span>' in _tiles(one, None)
    two = model([[1.0], [1.0]], parts=2)
    two.header["certificate"][0]["seconds"] = None  # was not started
    assert '<small>seconds</small><span class="key">1.5</span>' in _tiles(two, None)


def test_columns_are_numbered_as_the_file_counts_them():
    from adafw.commands.report import feature_names

    for zero_based, first in ((None, 0), (True, 0), (False, 1)):
        found = feature_names(model([[1.0, 2.0]], zero_based=zero_based))
        assert found == [f"feature {first}", f"feature {first + 1}"]
    assert feature_names(model([[1.0]], features=["a"], zero_based=False)) == ["a"]


def test_certificates_are_named_by_class_where_there_are_several():
    from adafw.commands.report import _certificate

    def cells(some):
        return [re.findall(r"<td([^>]*)>(.*?)</td>", row) for row in some.split("<tr")[2:]]

    classes = np.array(["a", "<b>", "c"])
    rows = cells(_certificate(model(np.ones((3, 2)), classes, parts=3)))
    assert [row[0][1] for row in rows] == ["a", "&lt;b&gt;", "c"]
    assert [k for k, (style, _) in enumerate(rows[0]) if "class=n" in style] == [1, 2, 3, 6, 7]
    (row,) = cells(_certificate(model(np.ones((3, 2)), classes)))  # all classes in one fit
    assert [k for k, (style, _) in enumerate(row) if "class=n" in style] == [0, 1, 2, 5, 6]
    assert [text for _, text in row] == ["2", "0.25", "1.75", "converged", "FW", "3", "0"]


def fits(*runs):
    """Fits with (value, lower bound) of their records."""
    made = []
    for run in runs:
        value, bound = np.array(run, float).T
        trace = {"epoch": np.arange(1.0, len(run) + 1), "gap": value - bound, "value": value,
                 "lower_bound": bound}  # fmt: skip
        made.append(SimpleNamespace(trace=trace, value=value[-1]))
    return SimpleNamespace(fits=tuple(made))


def lines(page):
    return [len(points.split()) for points in re.findall(r'<polyline points="([^"]*)"', page)]


def test_bounds_are_drawn_once_they_say_something():
    from adafw.commands.report import _convergence

    one = model([[1.0]])
    page = _convergence(one, fits([(4, -9), (3, 1), (3, 2)]))
    assert lines(page) == [3, 3, 2]  # of the first record the bound says nothing
    assert "proven lower bound" in page
    # Below 0, as Poisson's loss may be, no further down than the objective came.
    page = _convergence(one, fits([(-1, -99), (-3, -6), (-4, -6), (-4, -5)]))
    assert lines(page) == [4, 4, 3]
    several = model([[1.0], [1.0], [1.0]], np.array(["a", "b", "c"]), parts=3)
    page = _convergence(several, fits(*[[(4, 0), (3, 1)]] * 3))
    assert lines(page) == [2] * 6
    assert "proven lower bound" not in page


def test_the_choice_of_a_radius_is_drawn_with_its_errors():
    from adafw.commands.report import _search

    search = {
        "folds": 3, "rule": "one_se", "radii": [1.0, 10.0, 100.0, 1000.0],
        "mean_scores": [0.5, 0.75, 1.0, None], "standard_errors": [0.25, 0.25, 0.25, None],
    }  # fmt: skip
    page = "".join(_search(model([[1.0]], search=search)))
    assert "Radius 10 has the smallest within one standard error of the best of 4 radii" in page
    curves = [
        [float(point.split(",")[1]) for point in points.split()]
        for points in re.findall(r'<polyline points="([^"]*)"', page)
    ]
    mean, low, high = curves  # pixels count from above
    assert all(h < m < b for h, m, b in zip(high, mean, low, strict=True))
    assert len(mean) == 3
    assert _search(model([[1.0]])) == []


def test_numbers_and_settings_that_are_zero_are_told(wine, capsys):
    from adafw.commands.report import _number

    assert [_number(v) for v in (None, 0.0, -1.5e-9)] == ["nan", "0", "\u22121.5e\u221209"]
    words = ["--radius", 2, "--no-intercept", "--seed", 0, "-o", wine / "m"]
    assert run(capsys, "fit", wine / "train.csv", *words, "--report", wine / "r.html")[0] == 0
    page = (wine / "r.html").read_text().split("<h2>Settings</h2>")[1]
    assert "<dt>fit intercept</dt><dd>False</dd>" in page
    assert "<dt>seed</dt><dd>0</dd>" in page
    assert "<dd>None</dd>" not in page


def test_coefficients_of_twenty_classes_are_shown_and_the_others_counted():
    from adafw.commands.report import MOST_SCORES, _coefficients

    for more, told in ((0, ""), (1, "and 1 more classes"), (3, "and 3 more classes")):
        count = MOST_SCORES + more
        page = _coefficients(model(np.ones((count, 2)), np.arange(float(count)), parts=count))
        assert re.findall(r"<h3>(.*?)</h3>", page) == [str(k) for k in range(MOST_SCORES)]
        assert page.count("intercept 0") == MOST_SCORES
        assert ("more classes" in page) == bool(told)
        assert told in page
    page = _coefficients(model([[1.0, -2.0]], np.array(["no", "yes <"])))
    assert "Positive coefficients speak for yes &lt;, negative ones for no." in page
    assert "<h3>" not in page
