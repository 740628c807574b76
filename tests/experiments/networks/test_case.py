import subprocess
import sys

import pytest

from adafw.experiments import load_spec, reproduce
from adafw.experiments.networks import NetworksKind
from adafw.experiments.networks.case import NetworkCase, NetworkMethod
from adafw.experiments.tuning import tune_method

# The set's diameter, then the exponent of eta and K.
PAPER = {
    "imdb": (
        6.0,
        {"AdaSFW": (-2.5, 2), "AdamSFW": (-3, 5), "AdaGrad": (-2, None), "AMSGrad": (-3.5, None)},
    ),
    "cifar10": (
        200.0,
        {"AdaSFW": (-1.5, 10), "AdamSFW": (-3.5, 5), "AdaGrad": (-2, None),
         "AMSGrad": (-3.5, None)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PAPER)
def test_the_paper_s_settings(name):
    diameter, wanted = PAPER[name]
    (case,) = load_spec(name).cases
    assert case.set == {"name": "LInfBall", "diameter": diameter}
    lines = {method.label: method.arguments for method in case.methods}
    assert {"SFW", "SVRF", "SPIDER-FW", "ORGFW"} <= set(lines)
    for label, (exponent, inner) in wanted.items():
        assert lines[label]["lr"] == pytest.approx(10**exponent)
        assert lines[label].get("inner_steps") == inner
    assert load_spec("imdb").budget == {"max_epochs": 20}


@pytest.mark.parametrize("name", ["imdb-K", "cifar10-K"])
def test_sensitivity_varies_k_alone(name):
    for case in load_spec(name).cases:
        options = [dict(method.arguments) for method in case.methods]
        assert [o.pop("inner_steps") for o in options] == [1, 2, 3, 5, 10, 20]
        assert all(o == options[0] for o in options)
        assert {method.optimizer for method in case.methods} == {case.name}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"ImdbNet"', '"Resnet"', "network must be one of ImdbNet, CifarNet, .*, got 'Resnet'"),
        ("diameter = 6.0", "size = 6.0", "set of nets must have the keys"),
        (", diameter = 6.0", "", "must have a diameter or a radius"),
        ('"LInfBall"', '"SFW"', "set must be one of l1, .*, got 'SFW'"),
        ('name = "SVRF"', 'name = "CSFW"', "an algorithm for a network must be one of SFW"),
        ('"SFW", learning_rate = "10^-1"', '"SFW"', "'SFW' must have a learning_rate"),
        ("max_epochs = 2", "max_iterations = 2", "budget of networks must be max_epochs alone"),
        ("max_epochs = 2", "max_epochs = 2.5", "max_epochs must be an integer"),
        ("batch_size = 25", "batch_size = 0", "batch_size must be an integer"),
        ("batch_size = 25", 'loss = "Logistic"', "got 'loss'"),
    ],
)
def test_what_is_refused(old, new, message, toml, tmp_path):
    bad = tmp_path / "nets.toml"
    assert old in toml.read_text()
    bad.write_text(toml.read_text().replace(old, new))
    with pytest.raises(ValueError, match=message):
        load_spec(bad)


def test_options_that_no_optimizer_takes_are_refused_before_any_run(toml, tmp_path):
    bad = tmp_path / "nets.toml"
    bad.write_text(toml.read_text().replace("inner_steps = 2", "inner_step = 2"))
    with pytest.raises(ValueError, match=r"algorithm 'AdaSFW' cannot be made.*inner_step"):
        reproduce(bad, tmp_path)
    assert not list(tmp_path.rglob("run*.json"))


def test_reading_a_file_does_not_import_torch():
    code = (
        "import sys; from adafw.experiments import load_spec, names\n"
        "[load_spec(name) for name in names()]\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_without_torch_it_is_said_what_to_install(toml, tmp_path):
    code = (
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'torch' else find(name, *a)\n"
        "import adafw.cli\n"
        f"adafw.cli.main(['reproduce', {str(toml)!r}, '--out', {str(tmp_path)!r}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 2
    assert "install adafw[torch]" in done.stderr


@pytest.mark.parametrize(
    ("name", "family", "estimator"),
    [
        ("SFW", "frank-wolfe", "Minibatch"), ("SVRF", "frank-wolfe", "SVRF"),
        ("SPIDERFW", "frank-wolfe", "SPIDER"), ("ORGFW", "frank-wolfe", "ORGFW"),
        ("AdaSFW", "adaptive", "Minibatch"), ("AdamSFW", "adaptive", "Minibatch"),
        ("AdaGrad", "projected", "Minibatch"), ("AMSGrad", "projected", "Minibatch"),
        ("Muon", "frank-wolfe", "Minibatch"), ("AdamW", "other", "Minibatch"),
    ],
)  # fmt: skip
def test_families_of_optimizers(name, family, estimator):
    method = NetworkMethod("x", {"name": name, "learning_rate": 0.5, "weight_decay": 0.1})
    assert (method.family, method.estimator) == (family, estimator)
    home = "torch.optim" if name == "AdamW" else "adafw.torch"
    assert method.parts == f"{home}.{name}(lr=0.5, weight_decay=0.1)"
    assert method.arguments == {"lr": 0.5, "weight_decay": 0.1}


def test_parts_tell_a_set_of_one_s_own():
    own = {"name": "KSparse", "share": 0.1, "radius": 2.0, "rest": 3.0}
    method = NetworkMethod("x", {"name": "SFW", "learning_rate": 0.12345678, "set": own})
    assert method.parts == (
        "adafw.torch.SFW(lr=0.1235) in KSparse with 10 % of the entries, radius 2; what is no "
        "hidden matrix in LInfBall, radius 3"
    )
    torchs = NetworkMethod("x", {"name": "TorchMuon", "learning_rate": 1.0})
    assert torchs.parts == "torch.optim.Muon(lr=1)"


def test_whatever_changes_a_run_is_in_the_identity_of_its_case():
    ball = {"name": "LInfBall", "radius": 1.0}
    plain = {"name": "p", "data": {}, "methods": (), "network": "FashionNet", "set": ball}
    changes = [
        {}, {"network": "CharNet"}, {"set": {**ball, "radius": 2.0}}, {"batch_size": 7},
        {"width": 16}, {"probes": True}, {"width": 16, "probes": True}, {"width": 17},
    ]  # fmt: skip
    found = [NetworkCase(**{**plain, **change}).identity for change in changes]
    assert all(a != b for i, a in enumerate(found) for b in found[:i])
    assert found[0] == ["FashionNet", ball, 128]  # of files without the newer keys as it was
    assert "of width 16" in NetworkCase(**plain, width=16).words
    with pytest.raises(ValueError, match="width must be an integer"):
        NetworkCase(**plain, width=0)


def test_budgets_are_whole_epochs_alone(toml, tmp_path):
    kind = NetworksKind()
    assert kind.budget({"max_epochs": 3}, "here") == {"max_epochs": 3}
    with pytest.raises(ValueError, match="must be max_epochs alone in here"):
        kind.budget({"max_epochs": 3, "gap_tolerance": 0.1}, "here")
    assert kind.search_budget({"max_epochs": 3, "trials": 4}, "here") == {
        "max_epochs": 3, "trials": 4,
    }  # fmt: skip
    with pytest.raises(ValueError, match="trials must be an integer >= 3"):
        kind.search_budget({"max_epochs": 3, "trials": 2}, "here")
    with pytest.raises((ValueError, TypeError), match="max_epochs must be an integer"):
        tune_method(load_spec(toml), "SFW", None, {"max_epochs": 2.5})
    text = toml.read_text().replace("seeds = [1, 2]", "seeds = [1, 2]\ngoals = [0.1]")
    (tmp_path / "nets.toml").write_text(text)
    with pytest.raises(ValueError, match="goals are for problems with a series"):
        load_spec(tmp_path / "nets.toml")


@pytest.mark.parametrize("share", [0.0, -0.1])
def test_a_share_of_no_entries_is_refused(share):
    table = {"name": "KSparse", "share": share, "radius": 1.0}
    with pytest.raises(ValueError, match="share of algorithm 'x' must be"):
        NetworkMethod("x", {"name": "SFW", "learning_rate": 1.0, "set": table})


def test_a_set_has_one_size():
    table = {"name": "L1Ball", "diameter": 1.0, "radius": 1.0}
    with pytest.raises(ValueError, match="must have a diameter or a radius, got"):
        NetworkMethod("x", {"name": "SFW", "learning_rate": 1.0, "set": table})
