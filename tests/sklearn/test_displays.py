"""Displays: what is drawn is what was fitted, in the manner of scikit-learn's."""

import subprocess
import sys
import warnings
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import adafw
from adafw.sklearn import (
    CoefficientDisplay,
    ConvergenceDisplay,
    FrankWolfeClassifier,
    FrankWolfeRegressor,
    RadiusPathDisplay,
    radius_path,
)
from sklearn import datasets

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def runs():
    A, y = adafw.datasets.support_vector(200, 20, 0)
    f = adafw.LinearModel(A, y, adafw.losses.SquaredHinge())
    return [
        adafw.minimize(f, adafw.L1Ball(2.0), a, max_epochs=5) for a in (adafw.FW(), adafw.SFW())
    ]


@pytest.fixture(scope="module")
def wine():
    X, y = datasets.load_wine(return_X_y=True, as_frame=True)
    return X, y.map({0: "red", 1: "white", 2: "rose"})


def test_a_result_is_drawn(runs):
    shown = ConvergenceDisplay.from_result(runs[0], color="red")
    (line,) = shown.lines_
    np.testing.assert_array_equal(line.get_xdata(), runs[0].trace["epoch"])
    np.testing.assert_array_equal(line.get_ydata(), runs[0].trace["gap"])
    assert line.get_color() == "red"
    assert shown.ax_.get_yscale() == "log"
    assert shown.ax_.get_legend() is None
    assert shown.figure_ is shown.ax_.figure
    ax = pyplot.figure().add_subplot()
    assert shown.plot(ax, x="cpu_seconds", y="value") is shown
    assert shown.ax_ is ax
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("CPU seconds", "objective")
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), runs[0].trace["lower_bound"])


def test_several_results_have_names(runs):
    shown = ConvergenceDisplay.from_result(runs, names=["plain", "stochastic"])
    assert [t.get_text() for t in shown.ax_.get_legend().get_texts()] == ["plain", "stochastic"]
    assert len(ConvergenceDisplay.from_result(runs).ax_.get_legend().get_texts()) == 2


def test_what_cannot_be_drawn_is_refused(runs, wine):
    with pytest.raises(ValueError, match="y must be one of gap, value, got 'loss'"):
        ConvergenceDisplay.from_result(runs[0], y="loss")
    with pytest.raises(ValueError, match="x must be one of epoch, iteration"):
        ConvergenceDisplay.from_result(runs[0], x="hours")
    with pytest.raises(ValueError, match="names must be one a result, 2, got 1"):
        ConvergenceDisplay.from_result(runs, names=["a"])
    with pytest.raises(TypeError, match="result must be what minimize returns"):
        ConvergenceDisplay.from_result([1, 2])
    with pytest.raises(TypeError, match=r"must be a model of adafw\.sklearn.* got Ridge"):
        CoefficientDisplay.from_estimator(Ridge().fit([[1.0], [2.0]], [1, 2]))
    stream = FrankWolfeClassifier(learning_rate=1.0)
    stream.partial_fit(wine[0], wine[1], classes=["red", "white", "rose"])
    with pytest.raises(ValueError, match="partial_fit has no trace"):
        ConvergenceDisplay.from_estimator(stream)


def test_a_model_of_several_classes(wine):
    X, y = wine
    each = FrankWolfeClassifier(radius=3.0, multi_class="ovr")
    model = make_pipeline(StandardScaler(), each).fit(X, y)
    shown = ConvergenceDisplay.from_estimator(model)
    assert [t.get_text() for t in shown.ax_.get_legend().get_texts()] == ["red", "rose", "white"]
    bars = CoefficientDisplay.from_estimator(model, top=4)
    bars.figure_.canvas.draw()
    assert not bars.ax_.get_legend().get_window_extent().overlaps(bars.ax_.get_window_extent())
    coef = model[-1].coef_
    largest = np.argsort(-np.abs(coef).max(axis=0))[:4]
    ticks = [t.get_text() for t in bars.ax_.get_yticklabels()]
    assert ticks == list(X.columns[largest])
    for k, group in enumerate(bars.bars_):
        np.testing.assert_array_equal([bar.get_width() for bar in group], coef[k, largest])
    one = CoefficientDisplay.from_estimator(model, label="white")
    np.testing.assert_array_equal(one.coef[0], coef[2])
    assert len(one.chosen) == np.count_nonzero(coef[2])
    with pytest.raises(ValueError, match="label must be one of red, rose, white, got 'blue'"):
        CoefficientDisplay.from_estimator(model, label="blue")


def test_a_model_of_several_targets():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    model = FrankWolfeRegressor(radius=2.0).fit(X, X @ rng.standard_normal((4, 3)))
    bars = CoefficientDisplay.from_estimator(model)
    assert [t.get_text() for t in bars.ax_.get_legend().get_texts()] == ["y0", "y1", "y2"]
    np.testing.assert_array_equal(bars.coef, model.coef_)
    one = CoefficientDisplay.from_estimator(model, label="y1")
    np.testing.assert_array_equal(one.coef, model.coef_[1:2])
    assert one.names == ["y1"]
    with pytest.raises(ValueError, match="label must be one of y0, y1, y2, got 'y3'"):
        CoefficientDisplay.from_estimator(model, label="y3")


@pytest.mark.filterwarnings("ignore:the radius:UserWarning")
def test_names_of_features_are_those_of_the_data(wine):
    X, y = wine
    named = FrankWolfeRegressor(radius=1e-3).fit(X, y == "red")
    assert CoefficientDisplay.from_estimator(named).feature_names == list(X.columns)
    plain = FrankWolfeRegressor(radius=1e-3).fit(X.to_numpy(), y == "red")
    assert CoefficientDisplay.from_estimator(plain).feature_names[:2] == ["x0", "x1"]
    search = GridSearchCV(
        make_pipeline(StandardScaler(), FrankWolfeRegressor()),
        {"frankwolferegressor__radius": [0.1, 1.0]}, cv=2,
    ).fit(X, y == "red")  # fmt: skip
    assert CoefficientDisplay.from_estimator(search).feature_names == list(X.columns)
    with pytest.raises(ValueError, match="feature_names must hold one name a feature, 13, got 1"):
        CoefficientDisplay.from_estimator(plain, feature_names=["a"])
    nothing = CoefficientDisplay(coef=np.zeros(3), feature_names=["a", "b", "c"]).plot()
    assert "all are 0" in nothing.ax_.get_xlabel()


def test_a_path_marks_its_best_radius():
    X, y = datasets.load_diabetes(return_X_y=True)
    path = radius_path(X[:300], y[:300], radii=[1, 10, 100], X_test=X[300:], y_test=y[300:])
    shown = RadiusPathDisplay.from_path(path)
    assert shown.ax_ is not shown.score_ax_
    assert shown.ax_.lines[-1].get_xdata()[0] == path.best.radius
    for k, line in zip(np.flatnonzero(np.abs(path.coefs).max(axis=0)), shown.lines_, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), path.coefs[:, k])
    np.testing.assert_array_equal(shown.score_ax_.lines[0].get_ydata(), path.scores)
    assert shown.score_ax_.get_ylabel() == "held-out score"
    ax = pyplot.figure().add_subplot()
    assert RadiusPathDisplay.from_path(path, ax=ax).ax_ is ax
    assert ax.get_xlabel() == "radius"


def test_displays_without_matplotlib_say_what_is_missing():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import numpy as np\n"
        "from adafw.sklearn import CoefficientDisplay\n"
        "try: CoefficientDisplay(coef=np.ones(1), feature_names=['a']).plot()\n"
        "except ImportError as error: print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == (
        "displays need matplotlib; install it with pip install 'adafw[plot]'."
    )


def test_a_gap_of_zero_is_left_out_of_a_logarithmic_axis(runs):
    shown = ConvergenceDisplay.from_result(runs[0])
    log = shown.ax_.yaxis.get_transform()
    with np.errstate(all="ignore"):
        assert not np.isfinite(log.transform(np.array([0.0]))[0])
    flat = ConvergenceDisplay.from_result(runs[0], y="value")
    assert flat.ax_.get_yscale() == "linear"
    assert (flat.ax_.get_xlabel(), flat.ax_.get_ylabel()) == ("epochs", "objective")
    bound = flat.ax_.lines[1]
    assert (bound.get_linestyle(), bound.get_color()) == ("--", flat.lines_[0].get_color())
    np.testing.assert_array_equal(bound.get_xdata(), runs[0].trace["epoch"])


def test_a_key_is_drawn_where_there_is_something_to_tell(runs):
    one = ConvergenceDisplay.from_result(runs[0], label="mine")
    assert [t.get_text() for t in one.ax_.get_legend().get_texts()] == ["mine"]
    named = ConvergenceDisplay.from_result(runs[:1], names=["mine"])
    assert [t.get_text() for t in named.ax_.get_legend().get_texts()] == ["mine"]
    untold = ConvergenceDisplay.from_result([replace(r, title="") for r in runs])
    assert [t.get_text() for t in untold.ax_.get_legend().get_texts()] == ["run 1", "run 2"]


def test_axes_may_be_one_two_or_new():
    radii, coefs = np.array([1.0, 10.0]), np.array([[0.0, 1.0, 0.0], [2.0, 3.0, 0.0]])
    display = RadiusPathDisplay(
        radii=radii, coefs=coefs, scores=[0.1, 0.4], errors=np.array([0.1, 0.2]), chosen=10.0
    )
    upper, lower = pyplot.figure().subplots(2, 1)
    display.plot([upper, lower])
    assert (display.ax_, display.score_ax_, display.figure_) == (upper, lower, upper.figure)
    assert (upper.get_xlabel(), lower.get_xlabel()) == ("", "radius")
    assert (upper.get_ylabel(), lower.get_ylabel()) == ("coefficient", "score")
    assert upper.get_xscale() == lower.get_xscale() == "log"
    assert len(display.lines_) == 2  # the third is 0 everywhere
    for axes in (upper, lower):
        assert axes.lines[-1].get_xdata() == [10.0, 10.0]
    bars = lower.containers[0][2][0].get_segments()
    np.testing.assert_allclose([bar[:, 1] for bar in bars], [[0.0, 0.2], [0.2, 0.6]])
    alone = RadiusPathDisplay(radii=radii, coefs=coefs, scores=[0.1, 0.4]).plot(upper)
    assert alone.score_ax_ is not upper
    assert upper.get_xlabel() == "radius"
    drawn = alone.plot(linewidth=3)
    assert drawn.lines_[0].get_linewidth() == 3
    assert not any(line.get_linestyle() == "--" for line in drawn.ax_.lines)


def test_bars_stand_side_by_side_in_their_order():
    coef = np.array([[1.0, 0.0, -4.0, 2.0], [0.5, 0.0, 3.0, -2.5]])
    shown = CoefficientDisplay(coef=coef, feature_names="abcd", names=["x", "y"], top=2).plot()
    assert shown.chosen.tolist() == [2, 3]
    assert [t.get_text() for t in shown.ax_.get_yticklabels()] == ["c", "d"]
    assert shown.ax_.yaxis_inverted()
    for k, bars in enumerate(shown.bars_):
        middles = [bar.get_y() + bar.get_height() / 2 for bar in bars]
        np.testing.assert_allclose(middles, np.arange(2) + (k - 0.5) * 0.4)
        np.testing.assert_allclose([bar.get_height() for bar in bars], 0.4)
    assert [t.get_text() for t in shown.ax_.get_legend().get_texts()] == ["x", "y"]
    assert CoefficientDisplay(coef=coef, feature_names="abcd").chosen.tolist() == [2, 3, 0]
    one = CoefficientDisplay(coef=coef[0], feature_names="abcd").plot()
    assert one.ax_.get_legend() is None
    assert one.ax_.get_xlabel() == "coefficient"
    with pytest.raises(ValueError, match="top must be an integer >= 1, got 0"):
        CoefficientDisplay(coef=coef, feature_names="abcd", top=0)


def test_a_step_that_cannot_tell_names_leaves_numbers(wine):
    X, y = wine
    halved = make_pipeline(FunctionTransformer(np.asarray), FrankWolfeRegressor(radius=1e-3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        halved.fit(X, y == "red")
    assert CoefficientDisplay.from_estimator(halved).feature_names[:2] == ["x0", "x1"]
    with pytest.raises(ValueError, match="label must be None for a model of one score, got 'red'"):
        CoefficientDisplay.from_estimator(halved, label="red")
