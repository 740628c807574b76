"""Options exist once: command line, header, checkpoint, constructors, docstrings agree."""

import inspect
import json
from dataclasses import MISSING, fields

import numpy as np
import pytest

import adafw
from adafw import losses
from adafw.commands import fit as fit_command
from adafw.commands.options import settings_of
from adafw.fitting import Settings
from adafw.names import LOSSES, VECTOR_SETS
from adafw.sklearn import (
    FrankWolfeClassifier,
    FrankWolfeClassifierCV,
    FrankWolfeRegressor,
    FrankWolfeRegressorCV,
)
from adafw.sklearn.base import OWN, SEARCH

FIELDS = {f.name: f for f in fields(Settings)}
#: Options that mean nothing to one of the estimators, and the one that scikit-learn names.
LEFT_OUT = {
    FrankWolfeClassifier: {"delta", "seed"},
    FrankWolfeRegressor: {"class_weight", "multi_class", "seed"},
}
#: Models that choose the radius themselves, beside those they are made from.
SEARCHES = {
    FrankWolfeClassifierCV: FrankWolfeClassifier,
    FrankWolfeRegressorCV: FrankWolfeRegressor,
}
LOSS = {FrankWolfeClassifier: "logistic", FrankWolfeRegressor: "squared"}


@pytest.mark.parametrize("estimator", LEFT_OUT, ids=lambda e: e.__name__)
def test_constructors_agree(estimator):
    """A new option of Settings must be added to both constructors, with the same default."""
    given = {n: p.default for n, p in inspect.signature(estimator).parameters.items()}
    assert set(given) == set(FIELDS) - LEFT_OUT[estimator] | set(OWN)
    for name in set(given) - set(OWN) - {"loss"}:
        assert given[name] == FIELDS[name].default, name
    assert given["loss"] == LOSS[estimator]
    assert Settings().plan(LOSSES.make(given["loss"]).task).loss == LOSSES.make(given["loss"])
    for name in given:
        assert f"    {name} : " in estimator.__doc__
    assert "{" not in estimator.__doc__.replace("{class", "")
    assert max(map(len, estimator.__doc__.splitlines())) <= 100
    # What was given reaches the settings of a fit.
    model = estimator(tol=0.5, radius=7.0, max_seconds=3.0, n_jobs=2, algorithm="FW")
    settings = model._settings()
    for name in set(given) & set(FIELDS):
        assert getattr(settings, name) == model.get_params()[name]


@pytest.mark.parametrize("search", SEARCHES, ids=lambda e: e.__name__)
def test_searches_agree_with_the_plain_models(search):
    given, plain = (
        {n: p.default for n, p in inspect.signature(estimator).parameters.items()}
        for estimator in (search, SEARCHES[search])
    )
    assert set(given) == set(plain) - {"radius", "warm_start"} | set(SEARCH)
    assert {n: given[n] for n in set(given) - set(SEARCH)}.items() <= plain.items()
    for name in given:
        assert f"    {name} : " in search.__doc__
    assert max(map(len, search.__doc__.splitlines())) <= 100


def test_command_line_agrees():
    options = {p.name: p for p in fit_command.command.params}
    for name, option in FIELDS.items():
        assert option.default is not MISSING
        assert name in options
        assert options[name].default == (() if name == "constraint_params" else option.default)
    assert "--max-seconds" in options["max_seconds"].opts
    assert options["time_limit"].hidden
    context = fit_command.command.make_context("fit", ["data.svm"])
    assert settings_of(context.params) == Settings()
    assert not set(context.params) & set(FIELDS)


def test_every_option_reaches_the_settings():
    words = [
        "data.svm", "--loss", "Huber", "--delta", "3", "--constraint", "KSparse", "--radius", "2",
        "-p", "k=4", "--algorithm", "AdaCSFW", "--learning-rate", "0.5", "--no-intercept",
        "--class-weight", "balanced", "--multi-class", "ovr", "--tol", "0.1", "--max-epochs", "7",
        "--max-seconds", "9", "--n-jobs", "-1", "--seed", "5",
    ]  # fmt: skip
    given = settings_of(fit_command.command.make_context("fit", words).params)
    wanted = Settings("Huber", 3.0, "KSparse", 2.0, {"k": 4}, "AdaCSFW", 0.5, False, "balanced",
                      "ovr", 0.1, 7.0, 9.0, -1, 5)  # fmt: skip
    assert given == wanted
    assert all(getattr(given, name) != option.default for name, option in FIELDS.items())
    old = ["data.svm", "--time-limit", "9"]
    assert settings_of(fit_command.command.make_context("fit", old).params).max_seconds == 9


def test_header_and_identity_hold_every_option():
    settings = Settings("Logistic", constraint="L1Ball", max_seconds=2.0, n_jobs=2)
    plain = settings.plain()
    assert set(plain) == set(FIELDS)
    assert (plain["loss"], plain["constraint"]) == ("logistic", "l1")
    json.dumps(plain)
    identity = settings.plan("classification").identity()
    json.dumps(identity)
    limits = {"tol", "max_epochs", "max_seconds", "n_jobs"}
    described = {"delta", "radius", "constraint_params"}  # in the description of loss and set
    assert set(identity) == set(FIELDS) - limits - described
    same = Settings(losses.Logistic(), constraint=adafw.L1Ball(100.0), tol=1.0, n_jobs=3)
    assert same.plan("classification").identity() == identity


@pytest.mark.parametrize(
    "change",
    [
        {"loss": "squared_hinge"}, {"constraint": "l2"}, {"radius": 3.0},
        {"constraint": "ksparse", "constraint_params": {"k": 3}}, {"algorithm": "CSFW"},
        {"algorithm": adafw.CSFW()}, {"algorithm": adafw.AdaCSFW}, {"learning_rate": 0.1},
        {"fit_intercept": False}, {"class_weight": "balanced"}, {"class_weight": {1: 2.0}},
        {"seed": 1},
    ],
)  # fmt: skip
def test_whatever_changes_the_iterates_changes_the_identity(change):
    def identity(**options):
        return json.dumps(Settings(**options).plan("classification").identity(), sort_keys=True)

    base = {"constraint": "ksparse"} if "constraint_params" in change else {}
    assert identity(**base) != identity(**{**base, **change})


@pytest.mark.parametrize("entry", list(VECTOR_SETS), ids=lambda e: e.name)
def test_every_named_set_can_be_asked_for(entry):
    needs = {
        "p": 1.5, "k": 3, "groups": [0, 0, 1, 1], "shape": (2, 2), "lower": 0.0, "upper": 1.0,
        "vertices": np.eye(3), "A_ub": np.ones((1, 4)), "b_ub": [1.0],
    }  # fmt: skip
    given = {key: needs[key] for key in entry.parameters if key in needs} or None
    for name in (entry.name, entry.long_name):
        made = Settings(constraint=name, radius=2.0, constraint_params=given)._set()
        assert type(made) is entry.make
        assert made.scale == (2.0 if entry.sized else made.scale)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tol": -1.0}, "tol must be"),
        ({"max_epochs": 0.0}, "max_epochs must be"),
        ({"max_seconds": 0.0}, "max_seconds must be a number that is finite and > 0, got 0"),
        ({"n_jobs": 0}, "n_jobs must be None or an integer other than 0, got 0"),
        ({"n_jobs": 1.5}, "n_jobs must be None or an integer"),
        ({"algorithm": "Adam"}, "algorithm must be 'auto', .* one of FW, .* got 'Adam'"),
        ({"learning_rate": "fast"}, "learning_rate must be auto or a number, got 'fast'"),
        ({"loss": "squared"}, "loss must be one of logistic, .* got 'squared'"),
        ({"loss": losses.Squared()}, "loss must be one for classification, such as logistic"),
        ({"constraint": "l3"}, "constraint must be a set or one of l1, l2"),
        ({"constraint": "birkhoff"}, "constraint must be a set or one of l1, l2"),
        ({"constraint": "lp"}, "constraint='lp' needs p: give constraint_params"),
        ({"constraint_params": {"k": 1}}, "constraint_params must be None for constraint='l1'"),
        ({"constraint": "ksparse", "constraint_params": {"p": 1}}, "may hold k for .*, got 'p'"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Settings(**options).plan("classification")


def test_jobs_as_joblib_counts_them(monkeypatch):
    from adafw.kernels import threads

    monkeypatch.setattr(threads, "cores", lambda: 4)
    assert [Settings(n_jobs=n).jobs for n in (None, 1, 3, -1, -2, -9)] == [1, 1, 3, 4, 3, 1]


def test_a_set_that_is_given_itself():
    ball = adafw.L2Ball(3.0)
    assert Settings(constraint=ball).plan("regression").constraint is ball
    with pytest.raises(
        ValueError, match="constraint_params must be None where constraint is a set"
    ):
        Settings(constraint=ball, constraint_params={"k": 1}).plan("regression")
    plan = Settings(constraint=ball).plan("regression", 2, 4)
    assert plan.constraint is ball
    assert plan.outputs == 2
    box = adafw.Box(np.zeros(4), np.ones(4))
    held = Settings(constraint=box).plan("regression", 2, 4).constraint
    assert isinstance(held, adafw.Columns)
    assert held.column is box


def test_numbers_that_json_has_not_and_long_arrays_are_described():
    settings = Settings(
        constraint="box", constraint_params={"lower": -np.inf, "upper": [1.0, np.inf, (2, 3)]}
    )
    assert settings.plain()["constraint_params"] == {"lower": None, "upper": [1.0, None, [2, 3]]}
    short, long = list(range(16)), list(range(17))
    for upper, kept in ((short, True), (long, False), (np.arange(3.0), True)):
        told = Settings(constraint="box", constraint_params={"lower": 0.0, "upper": upper}).plain()
        json.dumps(told)
        found = told["constraint_params"]["upper"]
        assert found == list(upper) if kept else isinstance(found, dict)
    again = [{"lower": 0.0, "upper": [*long[:-1], last]} for last in (16, 99)]
    told = [Settings(constraint="box", constraint_params=given).plain() for given in again]
    assert told[0] != told[1]


def test_one_by_one_or_jointly():
    """By the algorithm and the loss where it is not said."""
    assert Settings().joint
    assert Settings(losses.Logistic()).joint
    assert not Settings("squared_hinge").joint
    assert not Settings(multi_class="ovr").joint
    for name in ("CSFW", "AdaCSFW", "SAGAFW", "LuFreundFW"):
        assert not Settings(algorithm=name).joint, name
        assert Settings(algorithm=name, multi_class="multinomial").joint
    for chosen in ("SVRF", adafw.SVRF, adafw.SVRF(), "FW"):
        assert Settings(algorithm=chosen).joint
    for chosen in (adafw.CSFW, adafw.CSFW(), adafw.AdaCSFW):
        assert not Settings(algorithm=chosen).joint
    with pytest.raises(ValueError, match="needs loss='logistic', got 'hinge'; take multi_class="):
        Settings("hinge", multi_class="multinomial")
    with pytest.raises(ValueError, match="multi_class must be one of auto, ovr, multinomial, got"):
        Settings(multi_class="both")


def test_names_are_refused_before_the_data_are_known():
    """Sets that need groups or a shape of vectors do not need them of matrices."""
    Settings(constraint="group").check("classification")
    Settings(constraint="nuclear").check("regression")
    with pytest.raises(ValueError, match="constraint='group' needs groups"):
        Settings(constraint="group", multi_class="ovr").check("classification")
    with pytest.raises(ValueError, match="constraint='lp' needs p"):
        Settings(constraint="lp").check("regression")
    with pytest.raises(ValueError, match="fit_intercept must be True or False, got 1"):
        Settings(fit_intercept=1)
