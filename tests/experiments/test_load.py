import re

import pytest

import adafw
from adafw.experiments import load_spec, names
from adafw.experiments.kinds import KINDS
from adafw.experiments.plan import parts_of
from adafw.experiments.values import build
from adafw.tuning import TUNING_SEED

MINIMAL = """
loss = "Logistic"
set = { name = "L1Ball", radius = 2.0 }
budget = { max_epochs = 1 }
data = { name = "support_vector", m = 10, n = 3 }
algorithms = [{ name = "CSFW" }]
"""


def load(tmp_path, text, **options):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return load_spec(path, **options)


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", names())
def test_every_experiment_of_the_package_can_be_built(name, quick):
    spec = load_spec(name, quick)
    assert spec.name == name
    assert spec.quick is quick
    assert quick or len(spec.seeds) >= (3 if spec.kind in ("networks", "zoo") else 5)
    assert spec.kind in KINDS
    for case in spec.cases:
        for method in case.methods:
            assert method.family in ("frank-wolfe", "adaptive", "corrective", "projected", "other")
            assert method.parts


def test_a_reduced_experiment_has_a_full_form(tmp_path):
    reduced, full = load_spec("cifar10"), load_spec("cifar10", full=True)
    assert (reduced.reduced, full.reduced) == (True, False)
    assert (full.budget, len(full.seeds)) == ({"max_epochs": 100}, 5)
    assert full.cases[0].data["rows"] == 50_000 > reduced.cases[0].data["rows"]
    whole = load(tmp_path, MINIMAL, full=True)  # a file without the table is the full form already
    assert whole == load(tmp_path, MINIMAL)
    with pytest.raises(ValueError, match="got both"):
        load_spec("cifar10", quick=True, full=True)


def test_the_paper_s_settings():
    def lines(name):
        return {m.label: m.algorithm for m in load_spec(name).cases[0].methods}

    for name, label, eta, inner in (
        ("svm", "AdaCSFW", 10**-1.5, 2), ("year", "AdaSVRF", 10**0.5, 2),
        ("rcv1", "AdaCSFW", 100.0, 5),
    ):  # fmt: skip
        step = lines(name)[label].step
        assert step.learning_rate(0) == pytest.approx(eta)
        assert step.inner_steps == inner
    for name, adagrad, amsgrad in (
        ("svm", 0.1, 0.01),
        ("year", 10**-0.5, 10**-1.5),
        ("rcv1", 1, 0.1),
    ):
        assert lines(name)["AdaGrad"].step.learning_rate(0) == pytest.approx(adagrad)
        assert lines(name)["AMSGrad"].step.learning_rate(0) == pytest.approx(amsgrad)
        assert {"SFW", "SVRF", "SPIDER-FW", "ORGFW", "CSFW"} <= set(lines(name))
    for case in load_spec("sensitivity").cases:
        inner = [m.table["inner_steps"] for m in case.methods if "inner_steps" in m.table]
        assert inner == [1, 2, 3, 5, 7, 10, 20]


def test_a_file_of_one_s_own(tmp_path):
    spec = load(tmp_path, MINIMAL)
    assert spec.name == "mine"
    (case,) = spec.cases
    assert case.constraint == adafw.L1Ball(2.0)
    data = case.dataset()
    f = case.objective(data.A, data.y)
    assert f.rows.shape == (10, 3)
    assert spec.seeds == (1, 2, 3, 4, 5)


def test_short_and_long_names_mean_the_same(tmp_path):
    """One registry serves files, estimators and the command line."""
    long = load(tmp_path, MINIMAL)
    for old, new in (('"Logistic"', '"logistic"'), ('"L1Ball"', '"l1"')):
        (case,), (other,) = long.cases, load(tmp_path, MINIMAL.replace(old, new)).cases
        assert (other.constraint, other.loss_function) == (case.constraint, case.loss_function)
        assert other.words == case.words


def test_quick_lies_over_the_file(toml):
    full, quick = load_spec(toml), load_spec(toml, quick=True)
    assert (len(full.seeds), len(quick.seeds)) == (3, 1)
    assert quick.budget == {"max_iterations": 10}
    assert quick.cases[0].data == {"name": "support_vector", "m": 100, "n": 12, "seed": 4}


def test_quick_data_of_one_problem_among_several(tmp_path):
    parts = "\n".join(
        f'[[problems]]\nname = "{name}"\nloss = "Logistic"\n'
        'set = { name = "L1Ball", radius = 2.0 }\n'
        'data = { name = "support_vector", m = 10, n = 3 }\nalgorithms = [{ name = "CSFW" }]'
        for name in ("a", "b")
    )
    text = f"budget = {{ max_epochs = 1 }}\n{parts}\n[quick.data.b]\nrows = 5\n"
    with pytest.raises(ValueError, match="names of problems must differ"):
        load(tmp_path, text.replace('name = "b"', 'name = "a"'))
    spec = load(tmp_path, text, quick=True)
    assert [case.dataset().A.shape[0] for case in spec.cases] == [10, 5]
    assert spec.setting(spec.cases[0], spec.cases[0].methods[0]) == "a: defaults"


def test_values_in_words(tmp_path):
    assert build("learning_rate", "10^-3/2") == 10**-1.5
    assert build("learning_rate", 0.5) == 0.5
    assert build("batch_size", {"name": "Share", "parts": 7})(0, 70) == 10
    assert isinstance(build("gradient", "SVRF"), adafw.gradients.SVRF)
    text = MINIMAL.replace(
        '{ name = "CSFW" }', '{ name = "SFW", batch_size = { name = "Share", parts = 7 } }'
    )
    assert load(tmp_path, text).cases[0].methods[0].setting == "batch_size=Share(parts=7)"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"Logistic"', '"Logstic"', "loss must be one of logistic, .*, got 'Logstic'"),
        ('"L1Ball", radius = 2.0', '"L1Ball", radius = 0', "radius must be a number"),
        ('"L1Ball", radius = 2.0', '"minimize"', "set must be one of l1, .*, got 'minimize'"),
        ("radius = 2.0", "radius = 2.0, size = 2.0", "set L1Ball cannot be made: .*size"),
        ("max_epochs = 1", "epochs = 1", "budget must set one of max_iterations"),
        ("max_epochs = 1", "max_epochs = 1, seed = 2", "budget of .* keys .* only, got 'seed'"),
        ('{ name = "CSFW" }', '{ name = "CSFW" }, { name = "CSFW" }', "labels .* must differ"),
        ('{ name = "CSFW" }', '{ label = "mine" }', "an algorithm needs a name"),
        ('{ name = "CSFW" }', '{ name = "AdaCSFW", learning_rate = "10^x" }', 'or "10.<fraction>"'),
        ("algorithms =", "algoritms =", "keys .* only, got 'algoritms'"),
        ("loss =", "seeds = [1, 1]\nloss =", "seeds must be different"),
        ("loss =", f"seeds = [{TUNING_SEED}]\nloss =", "by which learning rates are tuned"),
        ("loss =", "loss ==", "must be a TOML file"),
        ("loss =", 'name = "../x"\nloss =', "name must be letters"),
        ("loss =", "name = 5\nloss =", "name must be a text"),
        ("loss =", "title = 5\nloss =", "title must be a text"),
        ("loss =", "seeds = 5\nloss =", "seeds must be a list of numbers"),
        ("loss =", 'notes = "hello"\nloss =', "notes must be a list of texts"),
        ("loss =", 'claims = "no clipping needed"\nloss =', "claims must be a list of texts"),
        ('[{ name = "CSFW" }]', '"CSFW"', "algorithms must be a list of tables"),
        ('[{ name = "CSFW" }]', '["CSFW"]', "algorithms must be a list of tables"),
        ('[{ name = "CSFW" }]', '{ name = "CSFW" }', "algorithms must be a list of tables"),
        ('{ name = "CSFW" }', '{ name = "CSFW", label = 3 }', "label must be a text"),
        ('{ name = "CSFW" }', '{ label = "a", step = "FrankWolfeStep" }', "a gradient and a step"),
        ('{ name = "CSFW" }', '{ name = "AdaCSFW", learning_rate = "10^1/0" }', "fraction"),
    ],
)
def test_mistakes_are_told_before_any_work(tmp_path, old, new, message):
    with pytest.raises((ValueError, TypeError), match=message):
        load(tmp_path, MINIMAL.replace(old, new))


def test_unknown_experiment_and_data(tmp_path):
    with pytest.raises(ValueError, match=r"experiment must be one of .*rcv1, .* or a TOML file"):
        load_spec("nothing")
    spec = load(tmp_path, MINIMAL.replace("support_vector", "vectors"))
    with pytest.raises(ValueError, match="data must be one of support_vector"):
        spec.cases[0].dataset()
    spec = load(tmp_path, MINIMAL.replace('"support_vector"', '"support_vector", width = 3'))
    with pytest.raises(ValueError, match=r"support_vector cannot be loaded: .*'width'"):
        spec.cases[0].dataset()
    with pytest.raises(ValueError, match="data must be a table"):
        load(tmp_path, re.sub(r"data = .*", 'data = "rcv1"', MINIMAL))


def test_data_paths_are_relative_to_the_file(tmp_path):
    adafw.datasets.write_libsvm(tmp_path / "a.svm", [[1.0, 2.0], [3.0, 0.0]], [1, -1])
    text = MINIMAL.replace('"support_vector", m = 10, n = 3', '"libsvm", path = "a.svm"')
    assert load(tmp_path, text).cases[0].dataset().A.shape == (2, 2)


def test_data_of_another_folder_are_kept_apart(tmp_path, monkeypatch):
    """However the file is called: its runs must not be taken for those of its namesake."""
    text = MINIMAL.replace('"support_vector", m = 10, n = 3', '"libsvm", path = "a.svm"')
    read, generated = [], []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "mine.toml").write_text(text)
        (folder / "made.toml").write_text(MINIMAL)
        monkeypatch.chdir(folder)
        near, far = (load_spec(path).cases[0] for path in ("mine.toml", folder / "mine.toml"))
        assert parts_of(near, tmp_path) == parts_of(far, tmp_path)
        read.append(parts_of(near, tmp_path))
        generated.append(parts_of(load_spec("made.toml").cases[0], tmp_path))
    assert read[0] != read[1]
    assert generated[0] == generated[1]  # they lie in no folder


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('{ name = "CSFW" }', '{ name = "CSFW", note = 3 }', "note must be a text"),
        ("loss =", "goals = 0.5\nloss =", "goals must be a list of numbers"),
        ("loss =", "goals = [0]\nloss =", "goals must be a number"),
        ("loss =", "search = 3\nloss =", "search must be a table"),
        ("loss =", "repeats = 0\nloss =", "repeats must be an integer"),
        ("loss =", "repeats = 1.5\nloss =", "repeats must be an integer"),
        ("loss =", "seeds = [1, -1]\nloss =", "seeds must be an integer"),
        ("loss =", "seeds = []\nloss =", "seeds must be different, at least one"),
        ("loss =", "search = { max_epochs = 1 }\nloss =", "must come together"),
        ('[{ name = "CSFW" }]', "[]", "algorithms must be given"),
        ('{ name = "support_vector", m = 10, n = 3 }', "{}", "data must be given"),
        ("loss =", 'problems = "none"\nloss =', "problems must be a list of tables"),
        ('{ name = "CSFW" }', '{ label = "a", gradient = "CSFW", step = "NewtonStep", k = 2 }',
         "algorithm 'a' must have the keys gradient, step only, got 'k'"),
    ],
)  # fmt: skip
def test_more_mistakes_are_told_before_any_work(tmp_path, old, new, message):
    assert old in MINIMAL
    with pytest.raises((ValueError, TypeError), match=message):
        load(tmp_path, MINIMAL.replace(old, new, 1))


def test_names_of_problems_become_names_of_files(tmp_path):
    problem = MINIMAL.replace("budget = { max_epochs = 1 }\n", "")
    text = f"budget = {{ max_epochs = 1 }}\n[[problems]]\nname = 'a'\n{problem}"
    assert load(tmp_path, text).cases[0].name == "a"
    for wrong in ("../a", "a b", "..", ""):
        with pytest.raises(ValueError, match=r"the name of a problem must be|name must be given"):
            load(tmp_path, text.replace("'a'", f"'{wrong}'"))


def test_a_search_has_a_budget_of_its_own_that_is_checked(tmp_path):
    text = MINIMAL.replace('{ name = "CSFW" }', '{ name = "AdaCSFW", learning_rate = "search" }')
    spec = load(tmp_path, "search = { max_iterations = 7 }\n" + text)
    assert spec.search == {"max_iterations": 7}
    with pytest.raises(ValueError, match="budget must set one of"):
        load(tmp_path, "search = { gap_tolerance = 0.1 }\n" + text)


@pytest.mark.parametrize(
    "limit", ["max_iterations", "max_epochs", "max_seconds", "max_cpu_seconds", "max_lmo_calls"]
)
def test_every_limit_alone_is_a_budget(tmp_path, limit):
    spec = load(tmp_path, MINIMAL.replace("max_epochs", limit))
    assert spec.budget == {limit: 1}


def test_a_tolerance_goes_without_claims(tmp_path):
    text = MINIMAL.replace("max_epochs = 1", "max_epochs = 1, gap_tolerance = 0.1, record_every=3")
    assert load(tmp_path, text).budget == {
        "max_epochs": 1, "gap_tolerance": 0.1, "record_every": 3,
    }  # fmt: skip


def test_what_a_file_says_of_itself(tmp_path):
    spec = load(tmp_path, MINIMAL)
    assert (spec.title, spec.repeats, spec.notes, spec.claims, spec.goals) == (
        "mine",
        1,
        (),
        (),
        (),
    )
    text = 'name = "x"\ntitle = "T"\nrepeats = 3\nnotes = ["n"]\nseeds = [4, 2]\n' + MINIMAL
    spec = load(tmp_path, text + "[quick]\nseeds = [2]\n[full]\nrepeats = 9\n")
    assert (spec.name, spec.title, spec.repeats, spec.notes) == ("x", "T", 3, ("n",))
    assert spec.seeds == (4, 2)
    assert (spec.form, spec.quick, spec.reduced) == ("reduced", False, True)
    forms = {form: load(tmp_path, text + "[quick]\nseeds = [2]\n[full]\nrepeats = 9\n",
                        **{form: True}) for form in ("quick", "full")}  # fmt: skip
    assert {form: found.form for form, found in forms.items()} == {"quick": "quick", "full": "full"}
    assert (forms["quick"].seeds, forms["full"].seeds) == ((2,), (4, 2))
    assert (forms["quick"].repeats, forms["full"].repeats) == (3, 9)


def test_data_of_another_home_are_kept_apart(tmp_path, monkeypatch):
    case = load(tmp_path, MINIMAL).cases[0]
    found = set()
    for home in ("one", "two", None):
        if home is None:
            monkeypatch.delenv("ADAFW_DATA")
        else:
            monkeypatch.setenv("ADAFW_DATA", str(tmp_path / home))
        found.add(parts_of(case, tmp_path))
        assert parts_of(case, tmp_path) in found
    assert len(found) == 3


def test_a_shape_is_height_and_width(tmp_path):
    text = MINIMAL.replace('"L1Ball"', '"NuclearBall"').replace("n = 3", "n = 6")
    case = load(tmp_path, "shape = [3, 2]\n" + text).cases[0]
    data = case.dataset()
    assert case.shape == (3, 2)
    assert case.objective(data.A, data.y).shape == (3, 2)
