"""Small parts of the commands, each by itself: words, names of files, scores, fingerprints."""

import contextlib
import json
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import click
import numpy as np
import pytest

from adafw import losses
from adafw.cli import main
from adafw.commands.cluster import client_of
from adafw.commands.fitting import (
    Files,
    _certificate,
    _choose,
    _data,
    _targets,
    _way_on,
    default_output,
    describe_model,
    describe_scores,
)
from adafw.commands.options import (
    as_number,
    clean,
    in_options,
    parameters,
    refuse_same_file,
    settings_of,
)
from adafw.commands.predict import _lines, columns_of
from adafw.commands.radius import search_radius, write_path
from adafw.commands.reproduce import Display
from adafw.commands.score import _Tally
from adafw.fitting import Deadline, Design, LinearModelFile, LinearPredictor, Settings
from adafw.fitting.radii import Problem
from adafw.objectives.base import Unavailable
from adafw.sklearn import FrankWolfeClassifier


@pytest.mark.parametrize(
    ("data", "model"),
    [
        ("a.svm", "a.model"),
        ("d/a.svm.gz", "d/a.model"),
        ("a.SVM.GZ", "a.model"),
        ("a.csv.bz2.xz", "a.model"),
        ("a.b.svm", "a.b.model"),
        ("plain", "plain.model"),
    ],
)
def test_a_model_is_named_after_its_data(data, model):
    assert default_output(data) == Path(model)


def files(*parts, **changes):
    given = dict(
        data=parts[0], parts=parts, output=None, format_=None, target=None, labels=None,
        n_features=None, dtype="float64", task="auto", choose=False, folds=5, rule="best",
        radius_path=None, checkpoint=None, checkpoint_every=1.0, resume=False, plot=None,
        test=None, report=None, quiet=True,
    )  # fmt: skip
    return Files(**(given | changes))


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        (["a-00.svm"], "a-00.svm"),
        (["a-00.svm", "a-01.svm", "a-12.svm"], "a"),
        (["a-12.svm", "a-01.svm"], "a"),
        (["1.svm", "2.svm"], "parts"),
        (["x/b.svm", "x/c.svm"], "x/parts"),
        (["ab-1.svm", "c.svm", "ab-2.svm"], "parts"),
        (["ac.svm", "ab.svm", "ad.svm", "ac.svm"], "a"),
    ],
)
def test_parts_are_named_by_what_they_begin_with(parts, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("x").mkdir()
    assert files(*parts, workers=2).name == name


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(test="t.svm", output="t.svm"), "--output must be another file than --test"),
        (dict(report="r", output="m", radius_path="r"), "--radius-path must be another file"),
        (dict(workers=2, output="b.svm"), "--output must be another file than b.svm"),
        (dict(resume=True, output="m"), "--resume needs --checkpoint"),
        (dict(workers=2, output="m", choose=True), "--radius cv cannot be used"),
        (dict(workers=2, output="m", scheduler="tcp://x"), "--scheduler with --workers cannot"),
        (dict(output="m"), "DATA must be one file, got 2"),
        (dict(workers=2, output="none/m"), "none/m must lie in a directory that exists"),
        (dict(output="m", radius_path="none/p"), "none/p must lie in a directory that exists"),
        (dict(output="m", checkpoint="none/c"), "none/c must lie in a directory that exists"),
        (dict(output="m", plot="none/p.png"), "none/p.png must lie in a directory that exists"),
        (dict(output="m", plot="p", checkpoint="p"), "--plot must be another file"),
        (
            dict(output="m", report="t.svm", test="t.svm"),
            "--report must be another file than --test",
        ),
        (dict(output="m", radius_path="a.svm"), "--radius-path must be another file"),
    ],
)
def test_what_cannot_be_is_refused_before_any_work(changes, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.svm").write_text("1 1:1\n")
    parts = ("a.svm", "b.svm") if "DATA" in message or "workers" in changes else ("a.svm",)
    with pytest.raises(click.UsageError, match=message):
        files(*parts, **changes)


def test_two_files_that_are_read_may_be_one():
    refuse_same_file({"DATA": "a", "--test": "a"}, {"--output": "b", "--plot": None})
    with pytest.raises(click.UsageError, match="--output must be another file than DATA"):
        refuse_same_file({"DATA": "a", "--test": "a"}, {"--output": "a"})


def test_a_fingerprint_depends_on_labels_of_any_kind():
    design = Design(np.eye(3))
    kinds = [["a", "b", "b"], ["a", "a", "b"], [1.0, 2.0, 2.0], [1.0, 1.0, 2.0]]
    assert len({json.dumps(_data(design, np.array(y))["y"]) for y in kinds}) == 4
    assert _data(design, np.array(kinds[0])) == _data(design, np.array(["x", "y", "y"]))


def test_words_become_numbers():
    assert as_number("3") == 3
    assert isinstance(as_number("3"), int)
    assert as_number("3.0") == 3.0
    assert as_number("1e3,x,-2") == [1000.0, "x", -2]
    assert as_number("auto") == "auto"


def test_parameters_from_words_and_files(tmp_path):
    (tmp_path / "v").write_text("1\n\n2.5\nnone\n")
    (tmp_path / "m").write_text("1,2\n3 4\n")
    np.save(tmp_path / "a.npy", np.arange(3))
    given = parameters(
        ("k=2", "shape=3,4", "lower=0,none", "upper=none", f"v=@{tmp_path}/v", f"m=@{tmp_path}/m",
         f"a=@{tmp_path}/a.npy", "word=a=b")
    )  # fmt: skip
    assert given.pop("a").tolist() == [0, 1, 2]
    assert given == {
        "k": 2, "shape": (3, 4), "lower": [0, None], "upper": None, "v": [1, 2.5, None],
        "m": [[1, 2], [3, 4]], "word": "a=b",
    }  # fmt: skip
    with pytest.raises(click.UsageError, match="--param must be key=value, got 'k'"):
        parameters(("k",))


def test_sentences_name_options():
    assert in_options("give constraint_params={'lower': ...}") == "give -p lower=VALUE"
    assert in_options("max_epochs must be > 0") == "--max-epochs must be > 0"
    assert in_options("constraint='box' needs it") == "--constraint box needs it"
    assert in_options("the radius is small") == "the radius is small"


def test_what_json_has_no_number_for_is_null():
    assert clean({"a": [np.inf, (1.0, float("nan"))], "b": "x"}) == {
        "a": [None, [1.0, None]], "b": "x"
    }  # fmt: skip


def test_predictions_are_written_with_all_their_digits():
    assert _lines(np.array([1.0, 0.1 + 0.2])) == "1\n0.30000000000000004\n"
    assert _lines(np.array([[1, 2], [3, 4]])) == "1,2\n3,4\n"
    assert _lines(np.array(["a.0", "b"])) == "a.0\nb\n"


@pytest.mark.parametrize("pieces", [[40], [1, 39], [7, 13, 20], [20, 19, 1]])
def test_scores_of_pieces_are_those_of_the_whole(pieces):
    """Targets far from 0 whose mean drifts from piece to piece."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = 100 + X @ [1.0, -2.0] + np.linspace(0, 9, 40) + rng.normal(size=40)
    model = LinearPredictor(np.array([[1.0, -2.0]]), np.array([104.0]), None, losses.Squared())
    tally = _Tally(model)
    for part in np.split(np.arange(40), np.cumsum(pieces)[:-1]):
        tally.add(X[part], y[part])
    mse = ((model.predict(X) - y) ** 2).mean()
    found = tally.scores()
    assert found["mse"] == pytest.approx(mse, rel=1e-12)
    assert found["r2"] == pytest.approx(1 - mse / y.var(), rel=1e-9)
    assert found["mean_loss"] == pytest.approx(losses.Squared().value(model.predict(X), y).mean())


def test_scores_of_targets_that_do_not_vary_have_no_r2():
    model = LinearPredictor(np.ones((1, 1)), np.zeros(1), None, losses.Squared())
    tally = _Tally(model)
    tally.add(np.zeros((3, 1)), np.full(3, 2.0))
    assert np.isnan(tally.scores()["r2"])
    assert tally.scores()["mse"] == 4
    with pytest.raises(ValueError, match="targets must be numbers, got"):
        tally.add(np.zeros((1, 1)), np.array(["a"]))


def test_labels_of_a_model_are_counted_and_others_refused():
    labels = np.array(["no", "yes"])
    tally = _Tally(LinearPredictor(np.ones((1, 1)), np.zeros(1), labels, losses.Logistic()))
    tally.add(np.array([[1.0], [2.0]]), np.array(["yes", "no"]))
    tally.add(np.array([[-1.0]]), np.array(["no"]))
    assert tally.scores()["accuracy"] == pytest.approx(2 / 3)
    each = np.log1p(np.exp(np.array([-1.0, 2.0, -1.0])))
    assert tally.scores()["mean_loss"] == pytest.approx(each.mean())
    with pytest.raises(ValueError, match="among the model's classes, got maybe"):
        tally.add(np.ones((2, 1)), np.array(["no", "maybe"]))
    with pytest.raises(ValueError, match="labels such as no, got"):
        tally.add(np.ones((1, 1)), np.array([1.0]))


def test_scores_in_a_line():
    line = describe_scores({"file": "t.svm", "rows": 3, "accuracy": 0.5, "mean_loss": 1 / 3})
    assert line == "  on t.svm (3 rows): accuracy 0.5, mean loss 0.333333"


def test_classes_are_weighed_by_their_rarity(tmp_path, capsys):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(120, 3))
    y = (X[:, 0] + rng.normal(size=120) > 1.2).astype(float)
    np.save(tmp_path / "d.npy", np.column_stack([X, y]))
    words = [tmp_path / "d.npy", "-o", tmp_path / "m", "--radius", 2, "--tol", 1e-8, "--json"]
    with contextlib.suppress(SystemExit):
        main(["fit", *map(str, words), "--class-weight", "balanced"])
    shown = json.loads(capsys.readouterr().out)
    same = FrankWolfeClassifier(radius=2.0, tol=1e-8, class_weight="balanced").fit(X, y)
    plain = FrankWolfeClassifier(radius=2.0, tol=1e-8).fit(X, y)
    assert abs(plain.value_ - same.value_) > 0.01
    assert shown["certificate"][0]["value"] == pytest.approx(same.value_, rel=1e-6)
    np.testing.assert_allclose(LinearModelFile.load(tmp_path / "m").coef, same.coef_, atol=1e-5)


def model(classes=None, **changes):
    certificate = {
        "value": 1.0, "gap": 0.5, "status": "converged", "algorithm": "FW", "iterations": 3,
        "nonzeros": 2, "seconds": 0.1,
    }  # fmt: skip
    header = {
        "settings": {"task": "classification", "loss": "logistic", "constraint": "l1",
                     "radius": 2.0},
        "certificate": [certificate], "data": {"file": "d", "X": {"shape": [9, 2], "name": "csr"}},
        "features": None, "target": None, "zero_based": None, **changes,
    }  # fmt: skip
    scores = 1 if classes is None or len(classes) == 2 else len(classes)
    return LinearModelFile(np.ones((scores, 2)), np.zeros(scores), classes, header)


@pytest.mark.parametrize(("count", "end"), [(10, ", 9"), (11, ", 9, ...")])
def test_ten_classes_are_named_at_most(count, end):
    (line,) = (
        x for x in describe_model(model(np.arange(count)), "m").split("\n") if "classes" in x
    )
    assert line.endswith(end)


@pytest.mark.parametrize(("known", "asked"), [(None, "auto"), (True, True), (False, False)])
def test_ids_are_counted_as_they_were_when_the_model_was_fitted(known, asked):
    columns = columns_of(model(zero_based=known, features=["a", "b"], target="t"))
    assert columns.zero_based is asked or columns.zero_based == "auto" == asked
    assert (columns.features, columns.target, columns.n_features) == (("a", "b"), "t", 2)


@pytest.mark.parametrize(("total", "told"), [(10, 10), (3, 3), (25, 10), (100, 10)])
def test_a_log_has_a_line_for_every_tenth_of_the_way(total, told, capsys):
    display = Display()
    with display:
        display.start("svm", total)
        for _ in range(total):
            display.advance()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == told
    assert lines[-1].startswith(f"svm: {total} of {total} runs")


@pytest.mark.parametrize(
    ("limit", "shares"), [(1000.0, [0.7, 0.5]), (None, [np.inf, np.inf])], ids=["some", "any"]
)
def test_a_search_and_a_path_leave_time_for_the_fit(limit, shares, monkeypatch, tmp_path):
    seen = []

    def search(problem, folds, rule, deadline):
        seen.append(deadline.left)
        return SimpleNamespace(radius=3.0)

    def path(name, problem, search, deadline):
        seen.append(deadline.left)

    monkeypatch.setattr("adafw.commands.fitting.search_radius", search)
    monkeypatch.setattr("adafw.commands.fitting.write_path", path)
    settings = Settings(max_seconds=limit)
    problem = Problem(np.eye(4), np.array([0, 1, 0, 1]), None, settings, "classification")
    asked = files("d", output=tmp_path / "m", choose=True, radius_path=str(tmp_path / "p"))
    _, chosen = _choose(problem, asked, Deadline(limit))
    assert chosen.radius == 3.0
    assert seen == pytest.approx([1000 * share for share in shares], rel=0.02)


def test_what_was_done_before_a_cluster_was_lost():
    lost = Unavailable("it is gone")
    lost.resume = None
    assert _way_on(lost, files("d", output="m")).startswith(", with --checkpoint FILE if")
    kept = files("d", output="m", checkpoint="c")
    assert _way_on(lost, kept) == ""
    lost.resume = "state"
    assert _way_on(lost, kept) == " with --resume: c is where it was"


def test_targets_are_of_the_precision_asked_for():
    y = np.array([0.1, 0.7, 0.3])
    for dtype in ("float32", "float64"):
        (vector,) = _targets(y, Settings(), "regression", dtype).vectors
        assert vector.dtype == np.dtype(dtype)
    found = _targets(np.array(["b", "a", "c"]), Settings(), "classification", "float32")
    assert found.classes.tolist() == ["a", "b", "c"]


def test_a_certificate_is_that_of_the_fit_and_of_its_last_record():
    rows = [SimpleNamespace(epoch=k, nonzeros=10 + k, wall_seconds=0.5 * k) for k in (1, 2, 3)]
    fit = SimpleNamespace(
        value=4.0, gap=0.5, lower_bound=3.5, violation=0.25, status="converged", n_iter=7,
        algorithm="FW", learning_rate=None, trace=rows,
    )  # fmt: skip
    assert _certificate(fit) == {
        "value": 4.0, "gap": 0.5, "lower_bound": 3.5, "violation": 0.25, "status": "converged",
        "iterations": 7, "epochs": 3, "algorithm": "FW", "learning_rate": None, "nonzeros": 13,
        "seconds": 1.5,
    }  # fmt: skip


def test_a_model_whose_radius_was_chosen_tells_its_score():
    search = {"folds": 4, "rule": "one_se", "radii": [1.0, 2.0, 4.0],
              "mean_scores": [0.5, 0.75, 0.8]}  # fmt: skip
    text = describe_model(model(search=search), "m")
    assert "chosen by 4 folds (rule one_se): mean score 0.75" in text
    search["mean_scores"][1] = None
    assert "mean score nan" in describe_model(model(search=search), "m")


def test_an_older_word_for_seconds_counts_where_the_new_one_is_missing():
    given = {option.name: option.default for option in fields(Settings)}
    given |= {"constraint_params": (), "learning_rate": "auto", "radius": "2.5"}
    for limit, older, found in ((None, 5.0, 5.0), (3.0, 5.0, 3.0), (3.0, None, 3.0)):
        options = {**given, "max_seconds": limit, "time_limit": older, "other": 1}
        settings = settings_of(options)
        assert settings.max_seconds == found
        assert (settings.radius, settings.constraint_params) == (2.5, None)
        assert options == {"other": 1}


def test_numbers_are_no_labels_of_words_nor_words_of_numbers():
    for classes, wrong in ((np.array([1.0, 2.0]), ["1.0"]), (np.array(["a", "b"]), [1.0])):
        tally = _Tally(LinearPredictor(np.ones((1, 1)), np.zeros(1), classes, losses.Logistic()))
        with pytest.raises(ValueError, match=f"targets must be labels such as {classes[0]}, got"):
            tally.add(np.ones((1, 1)), np.array(wrong))


def test_the_rule_chooses_the_radius():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 3))
    y = X[:, 0] + rng.normal(size=40)
    given = Problem(X, y, None, Settings(tol=1e-3), "regression", None)
    best, small = (search_radius(given, 4, rule, Deadline(None)) for rule in ("best", "one_se"))
    assert best.scores.means.tolist() == small.scores.means.tolist()
    assert small.chosen < best.chosen == best.scores.means.argmax()
    assert small.radius < best.radius
    assert small.plain()["rule"] == "one_se"


@pytest.mark.parametrize(("given", "told"), [((2, None), "2 here"), ((None, "tcp://x"), "tcp://x")])
def test_a_client_is_of_so_many_workers_or_of_a_scheduler(given, told, monkeypatch):
    cluster = pytest.importorskip("adafw.distributed.cluster")
    ended = []

    @contextlib.contextmanager
    def there(what):
        yield what
        ended.append(what)

    monkeypatch.setattr(cluster, "local_client", lambda workers: there(f"{workers} here"))
    monkeypatch.setattr(cluster, "connected", there)
    with client_of(*given) as client:
        assert client == told
    assert ended == [told]
    with client_of(None, None) as client:
        assert client is None


def test_folds_of_classes_have_as_many_of_each():
    """At the smallest radius all are taken for the common class: one of each fold is not."""
    rng = np.random.default_rng(3)
    y = np.array(["no"] * 36 + ["yes"] * 3)
    given = Problem(rng.normal(size=(39, 2)), y, None, Settings(), "classification", np.unique(y))
    found = search_radius(given, 3, "best", Deadline(None))
    np.testing.assert_allclose(found.scores.scores[0], 12 / 13)


def test_a_search_that_has_no_time_left_says_so():
    X = np.random.default_rng(3).normal(size=(30, 2))
    given = Problem(X, X[:, 0], None, Settings(), "regression", None)
    with pytest.raises(ValueError, match="no radius has a finite score"):
        search_radius(given, 3, "best", Deadline(0.0))


def test_features_of_either_sign_are_counted_along_a_path(tmp_path):
    X = np.random.default_rng(3).normal(size=(30, 4))
    given = Problem(X, X @ [1.0, -2.0, 0.0, -0.5], None, Settings(), "regression", None)
    write_path(str(tmp_path / "p"), given, None, Deadline(None))
    rows = [line.split(",") for line in (tmp_path / "p").read_text().splitlines()]
    counts = [int(row[3]) for row in rows[1:]]
    assert counts[:2] == [1, 1]
    assert counts[-1] >= 3
    assert [float(row[0]) for row in rows[1:]] == sorted(float(row[0]) for row in rows[1:])
