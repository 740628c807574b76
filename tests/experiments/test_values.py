"""What the values and tables of an experiment's file stand for, and what is refused."""

import numpy as np
import pytest

import adafw
from adafw import gradients, metrics, schedules, steps
from adafw.experiments import load_spec
from adafw.experiments.convex.case import LinearCase, LinearMethod
from adafw.experiments.convex.data import load
from adafw.experiments.spec import read_methods
from adafw.experiments.tuning import tune_method
from adafw.experiments.values import build, in_words


def test_values_are_objects():
    assert build("learning_rate", "10^-3/2") == pytest.approx(10**-1.5)
    assert build("learning_rate", "search") == 1.0
    assert build("learning_rate", "auto") == "auto"
    assert build("learning_rate", 0.3) == 0.3
    assert build("batch_size", 7) == 7
    assert build("inner_steps", "any") == "any"
    assert build("loss", "huber") == adafw.losses.Huber()
    assert build("loss", {"name": "Huber", "delta": 3}) == adafw.losses.Huber(3)
    assert build("set", {"name": "L1Ball", "radius": 2.0}).scale == 2.0
    assert isinstance(build("gradient", {"name": "CSFW", "batch_size": 3}), gradients.CSFW)
    assert isinstance(build("metric", "AdaGrad"), metrics.Metric)
    made = build("step", {"name": "AdaptiveStep", "learning_rate": "10^1", "metric": "AdaGrad"})
    assert isinstance(made, steps.AdaptiveStep)
    assert schedules.at(made.learning_rate, 0) == 10


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("learning_rate", "10^x", r'learning_rate must be a number or "10\^<fraction>", got'),
        ("learning_rate", "10^1/0", "learning_rate must be a number or"),
        ("gradient", "Nothing", r"gradient must be a name in adafw\.gradients, got 'Nothing'"),
        ("gradient", {"batch_size": 3}, r"gradient must be a name in adafw\.gradients, got None"),
        ("gradient", "exports", r"gradient must be a name in adafw\.gradients"),
        ("step", {"name": "NewtonStep", "wings": 2}, "step NewtonStep cannot be made: .*wings"),
        ("set", "Sphere", "Sphere"),
    ],
)
def test_values_without_a_meaning_are_refused(key, value, message):
    with pytest.raises(ValueError, match=message):
        build(key, value)


def test_values_in_words():
    assert in_words({"name": "A", "k": 2, "s": {"name": "B", "x": 0.5}}) == "A(k=2, s=B(x=0.5))"
    assert in_words({"name": "A"}) == "A"
    assert in_words({"k": 2}) == "(k=2)"
    assert in_words(0.1) == "0.1"


def test_rates_are_put_where_they_stand():
    named = LinearMethod("a", {"name": "AdaCSFW", "learning_rate": "search"})
    assert named.searched
    assert named.with_rate(0.5).table == {"name": "AdaCSFW", "learning_rate": 0.5}
    assert named.table["learning_rate"] == "search"
    step = {"name": "AdaptiveStep", "learning_rate": "search"}
    paired = LinearMethod("b", {"gradient": "CSFW", "step": step})
    assert paired.searched
    changed = paired.with_rate("10^-1").table
    assert changed == {"gradient": "CSFW", "step": {**step, "learning_rate": "10^-1"}}
    assert step["learning_rate"] == "search"
    assert not paired.with_rate(2.0).searched
    assert paired.options["learning_rate"] == "search"
    assert named.setting == "learning_rate=search"
    assert LinearMethod("c", {"name": "FW"}).setting == "defaults"
    assert not LinearMethod("c", {"name": "FW"}).searched


@pytest.mark.parametrize(
    "entry",
    [
        {"label": "x"}, {"learning_rate": 1.0}, {"label": "x", "gradient": "CSFW"},
        {"name": "FW", "gradient": "CSFW", "step": "NewtonStep"}, {"step": "NewtonStep"},
    ],
)  # fmt: skip
def test_an_algorithm_is_a_name_or_a_pair(entry):
    with pytest.raises(ValueError, match="an algorithm needs a name, or a label, a gradient and a"):
        read_methods([entry], LinearMethod, "here")


def test_labels_differ():
    with pytest.raises(ValueError, match="labels of algorithms must differ in here, got"):
        read_methods([{"name": "FW"}, {"name": "AFW", "label": "FW"}], LinearMethod, "here")
    one, two = read_methods([{"name": "FW", "note": "n"}, {"name": "FW", "label": "b"}],
                            LinearMethod, "here")  # fmt: skip
    assert (one.label, one.note, two.label, two.note) == ("FW", "n", "b", "")
    assert one.algorithm.name == "FW"
    assert two.algorithm.name == "b"


FAMILY = {
    "frank-wolfe": {"name": "CSFW"}, "adaptive": {"name": "AdaCSFW"},
    "corrective": {"name": "AdaCSFW", "inner": "corrective"}, "projected": {"name": "AdaGrad"},
    "other": {"gradient": "CSFW", "step": "PreconditionedStep"},
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILY)
def test_families_of_methods(family):
    assert LinearMethod("x", FAMILY[family]).family == family


def test_a_method_that_solves_the_subproblem_is_another():
    step = {"name": "AdaptiveStep", "learning_rate": 1.0, "inner_gap": 0.1}
    method = LinearMethod("x", {"gradient": "CSFW", "step": step})
    assert (method.family, method.estimator) == ("other", "CSFW")


@pytest.mark.parametrize(
    ("table", "name", "same"),
    [
        ({"name": "support_vector", "m": 9, "n": 4, "seed": 2}, "support-vector data",
         lambda: adafw.datasets.support_vector(9, 4, 2)),
        ({"name": "text_like", "m": 9, "n": 20, "nonzeros": 3}, "text-like data",
         lambda: adafw.datasets.text_like(9, 20, 3)),
        ({"name": "low_rank", "n": 6, "rank": 2, "seed": 1},
         "observed entries of a 6 x 6 matrix", lambda: adafw.datasets.low_rank(6, 2, seed=1)),
        ({"name": "matching", "n": 4, "features": 2, "seed": 3}, "features of 4 items to match",
         lambda: adafw.datasets.matching(4, 2, seed=3)),
    ],
)  # fmt: skip
def test_generated_data_by_name(tmp_path, table, name, same):
    data = load(table, tmp_path)
    A, y = same()
    np.testing.assert_array_equal(data.A.toarray(), A.toarray())
    np.testing.assert_array_equal(data.y, y)
    assert data.name == name
    assert not data.is_stand_in
    assert load({**table, "rows": 3}, tmp_path).A.shape[0] == 3


def test_regression_data_are_standardised(tmp_path):
    data = load({"name": "correlated_regression", "m": 50, "n": 3, "seed": 1}, tmp_path)
    X, y = adafw.datasets.correlated_regression(50, 3, 1)
    np.testing.assert_allclose(data.A, (X - X.mean(axis=0)) / X.std(axis=0))
    np.testing.assert_allclose(data.y, y - y.mean())


def test_files_by_name_lie_beside_the_experiment(tmp_path):
    (tmp_path / "d.svm").write_text("1 1:2\n-1 2:3\n")
    data = load({"name": "libsvm", "path": "d.svm", "n_features": 3}, tmp_path)
    assert data.A.toarray().tolist() == [[2, 0, 0], [0, 3, 0]]
    adafw.datasets.save_parts(tmp_path / "p", np.eye(2), np.ones(2))
    assert load({"name": "parts", "path": "p"}, tmp_path).A.shape == (2, 2)
    with pytest.raises(ValueError, match=r"data must be one of support_vector, .*, got 'moon'"):
        load({"name": "moon"}, tmp_path)
    with pytest.raises(ValueError, match="data low_rank cannot be loaded: missing a required"):
        load({"name": "low_rank"}, tmp_path)


def test_a_shape_is_two_whole_numbers(tmp_path):
    table = {
        "name": "p", "data": {"name": "low_rank", "n": 3}, "loss": "Squared",
        "set": {"name": "NuclearBall", "radius": 1.0}, "algorithms": [{"name": "FW"}],
    }  # fmt: skip
    case = LinearCase.read({**table, "shape": [3, 3]}, "here", str(tmp_path))
    assert case.shape == (3, 3)
    assert case.identity == ["Squared", {"name": "NuclearBall", "radius": 1.0}, (3, 3)]
    assert case.words.startswith("Squared loss; NuclearBall(")
    about = case.store(tmp_path / "parts")
    assert about["shape"] == [2, 9]
    assert about["label"].startswith("observed entries of a 3 x 3 matrix (2 x 9)")
    for wrong in ([3], [3, 3, 3], 9):
        with pytest.raises(ValueError, match=r"shape must be two integers such as \[30, 20\]"):
            LinearCase.read({**table, "shape": wrong}, "here", ".")
    with pytest.raises(ValueError, match="each number of shape must be an integer >= 1, got 0"):
        LinearCase.read({**table, "shape": [3, 0]}, "here", ".")


def test_a_search_is_for_a_problem_and_a_method_that_are_there():
    spec = load_spec("dear-sets", quick=True)
    names = ", ".join(case.name for case in spec.cases)
    label = spec.cases[0].methods[0].label
    with pytest.raises(ValueError, match=f"problem must be one of {names}, got 'none'"):
        tune_method(spec, label, "none", {"max_epochs": 1})
