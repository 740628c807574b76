"""`chars` and `fashion`: optimizers over norm balls, tuned by equally many trials."""

import math

import numpy as np
import pytest
import torch

import adafw.torch
from adafw.experiments import load_spec, reproduce
from adafw.experiments.networks import probes
from adafw.experiments.networks.case import NetworkMethod
from adafw.experiments.networks.claims import judge
from adafw.experiments.networks.data import load
from adafw.experiments.networks.lmo_claims import _least_kept
from adafw.experiments.networks.models import CharNet, FashionNet
from adafw.experiments.networks.optimizers import TorchMuon, make_optimizer, set_groups, violation
from adafw.tuning import Trial, search

TOML = """
network = "FashionNet"
title = "Small perceptrons"
seeds = [1, 2]
budget = { max_epochs = 1 }
search = { max_epochs = 1, trials = 4 }
claims = [
    "spectral steps beat AdamW", "decay is a ball", "rates transfer across width",
    "AdamSFW above SFW on spectral balls", "sparse sets beat pruning", "balls resist noise",
]

[[problems]]
name = "narrow"
network = "FashionNet"
width = 8
probes = true
data = { name = "fashion", source = "stand-in", rows = 400, test_rows = 100, epoch_rows = 256 }
set = { name = "NewtonSchulzBall", radius = 8.0, rest = 1.0 }
algorithms = [
    { name = "AdamW", learning_rate = "search", weight_decay = 0.1 },
    { name = "TorchMuon", label = "torch's Muon", learning_rate = "10^-2" },
    { name = "Muon", learning_rate = "search" },
    { name = "SFW", label = "SFW, spectral", learning_rate = "10^-2", set = { name = "NewtonSchulzBall", radius = 8.0, rest = 1.0 } },
    { name = "AdamSFW", label = "AdamSFW, spectral", learning_rate = "10^-3", inner_steps = 2, set = { name = "NewtonSchulzBall", radius = 8.0, rest = 1.0 } },
    { name = "AdamSFW", label = "AdamSFW, KSparse", learning_rate = "10^-3", set = { name = "KSparse", share = 0.1, diameter = 20.0, rest = 1.0 } },
]

[[problems]]
name = "wide"
network = "FashionNet"
width = 12
data = { name = "fashion", source = "stand-in", rows = 400, test_rows = 100, epoch_rows = 256 }
set = { name = "LInfBall", diameter = 20.0 }
algorithms = [
    { name = "AdamW", learning_rate = "search", weight_decay = 0.1 },
    { name = "Muon", learning_rate = "search" },
    { name = "Signum", learning_rate = "10^-3" },
]
"""  # noqa: E501


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lmo")
    path = folder / "small.toml"
    path.write_text(TOML.replace('network = "FashionNet"\n', "", 1))
    return reproduce(path, folder, workers=1), folder / "small"


def test_equally_many_trials_and_every_claim_judged(finished):
    outcome, folder = finished
    assert {len(found["trials"]) for found in outcome.searches} == {4}
    assert len(outcome.searches) == 4
    for found in outcome.searches:
        tried = sorted(trial["exponent"] for trial in found["trials"])
        assert tried == list(range(tried[0], tried[0] + 4))
    report = (folder / "report.html").read_text()
    assert "What the trained networks can do without" in report
    claims = {(c.problem, c.statement[:24]): c for c in judge(outcome)}
    untested = {key for key, claim in claims.items() if claim.verdict == "not tested"}
    assert ("wide", "Constrained = unconstrai") in untested  # no torch's Muon there
    assert ("narrow", "The learning rate found ") in untested  # told once, of the wide network
    assert len(untested) == 5
    transfer = claims["wide", "The learning rate found "]
    assert "AdamW 10^" in transfer.evidence
    assert "Muon 10^" in transfer.evidence


def test_probes_are_kept_and_seeds_differ(finished):
    outcome, _ = finished
    for curve in outcome.curves:
        assert bool(curve.probes) == (curve.case.name == "narrow")
        for seed, found in curve.probes.items():
            final = curve.traces[seed][-1].test_accuracy
            assert found["kept"]["1"] == pytest.approx(final)
            assert set(found["noise"]) == {f"{level:g}" for level in probes.NOISE}


def test_an_epoch_of_some_rows_has_as_many_steps(finished):
    outcome, _ = finished
    assert {curve.traces[1][-1].iteration for curve in outcome.curves} == {2}  # 256 rows by 128


@pytest.mark.parametrize("name", ["chars", "fashion"])
def test_specs_compare_like_with_like(name):
    spec = load_spec(name)
    narrow, wide = spec.cases
    assert narrow.width < wide.width
    assert narrow.data == wide.data
    assert {m.label for m in wide.methods} == {m.label for m in narrow.methods} - {"torch's Muon"}
    assert all(method.searched for case in spec.cases for method in case.methods)
    assert spec.search["trials"] == 5
    assert load_spec(name, quick=True).search["trials"] == 3
    assert len(load_spec(name, full=True).seeds) == 5


def test_a_search_of_exactly_so_many_trials_surrounds_the_best():
    def run(i, eta):
        return Trial(i, eta, abs(i + 6.2), math.nan, "")

    found = search(run, "value", 5, first=(-5, -4, -3), exactly=True)
    assert [trial.exponent for trial in found.trials] == [-5, -4, -3, -6, -7]
    assert found.best.exponent == -6
    assert found.settled
    found = search(run, "value", 6, first=(-7, -6, -5), exactly=True)
    assert sorted(trial.exponent for trial in found.trials) == [-9, -8, -7, -6, -5, -4]


def method(name, **table):
    return NetworkMethod("it", {"name": name, "learning_rate": 0.01, **table})


def test_torch_s_muon_steps_as_torch_does():
    torch.manual_seed(0)
    model = FashionNet(8)
    optimizer = TorchMuon(model, lr=0.02)
    muon, rest = optimizer.parts
    hidden = [p for group in muon.param_groups for p in group["params"]]
    assert [tuple(p.shape) for p in hidden] == [(8, 784), (8, 8)]
    before = {p: p.detach().clone() for p in model.parameters()}

    def closure():
        loss = model(torch.ones(2, 28, 28)).square().mean()
        loss.backward()
        return loss

    optimizer.zero_grad()
    optimizer.step(closure)
    state = optimizer.state_dict()
    assert all(not torch.equal(p, before[p]) for p in hidden)
    other = TorchMuon(FashionNet(8), lr=0.02)
    other.load_state_dict(state)
    assert other.state_dict()["parts"][1]["state"].keys() == rest.state_dict()["state"].keys()


def test_sets_of_hidden_matrices_and_of_the_rest():
    model = FashionNet(8)
    table = {"name": "KSparse", "share": 0.1, "diameter": 20.0, "rest": 2.0}
    groups = {group["names"][0]: group["constraint"] for group in set_groups(model, table)}
    assert groups["1.weight"].k == 627
    assert groups["3.weight"].k == 6
    assert groups["5.weight"].radius == 2.0
    assert groups["1.bias"].radius == 2.0
    assert groups["1.weight"].diameter((8, 784)) == pytest.approx(
        20 * adafw.torch.layers.glorot_norm((8, 784))
    )


def test_shares_are_those_of_every_tensor_where_there_is_no_rest():
    model = FashionNet(8)
    groups = set_groups(model, {"name": "KSparse", "share": 0.1, "diameter": 6.0})
    sizes = {group["names"][0]: (group["constraint"].k, group["params"]) for group in groups}
    assert sizes.keys() == dict(model.named_parameters()).keys()
    assert all(k == max(1, round(0.1 * p.numel())) for k, (p,) in sizes.values())


def test_violations_of_torch_s_optimizers_and_of_presets():
    torch.manual_seed(0)
    model = FashionNet(8)
    assert violation(make_optimizer(model, method("AdamW"), {})) == 0
    muon = make_optimizer(model, method("Muon", weight_decay=1.0), {})
    hidden = [model[k].weight.detach().double() for k in (1, 3)]
    norm = max(torch.linalg.matrix_norm(W, 2).item() for W in hidden)
    assert violation(muon) == pytest.approx(norm - 1, rel=1e-5)


def test_the_transformer_looks_at_no_later_character():
    torch.manual_seed(0)
    model = CharNet(32)
    ids = torch.randint(0, 65, (2, 64))
    changed = ids.clone()
    changed[:, 40:] = 0
    a, b = model(ids), model(changed)
    torch.testing.assert_close(a[:, :40], b[:, :40])
    assert not torch.allclose(a[:, 40:], b[:, 40:])
    assert a.shape == (2, 64, 65)


def test_windows_follow_one_another():
    data = load({"name": "shakespeare", "source": "stand-in"}, "CharNet")
    x, y = data.train["x"], data.train["y"]
    assert x.shape[1] == 64
    assert np.array_equal(x[:, 1:], y[:, :-1])
    assert np.array_equal(x[1:, 0], y[:-1, -1])
    assert len(data.test["y"]) == len(y) // 9


def test_pruning_keeps_the_largest_and_noise_has_its_size():
    w = torch.tensor([[3.0, -1.0], [0.5, -4.0]])
    assert probes._largest(w, 0.5).tolist() == [[3.0, 0.0], [0.0, -4.0]]
    assert probes._largest(w, 1.0) is w
    rng = torch.Generator().manual_seed(0)
    wide = torch.full((200, 200), 2.0)
    noise = probes._noisy(wide, 0.3, rng) - wide
    assert noise.std().item() == pytest.approx(0.6, rel=0.02)
    assert _least_kept({"1": 0.9, "0.1": 0.85, "0.01": 0.3}, 0.84) == 0.1
    assert _least_kept({"1": 0.9}, 0.95) == math.inf


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"name": "KSparse", "radius": 1.0}, "must have a share for KSparse"),
        ({"name": "L1Ball", "share": 0.1, "radius": 1.0}, "must have a share for KSparse"),
        ({"name": "NewtonSchulzBall", "radius": 1.0}, "must have a rest"),
        ({"name": "L1Ball", "radius": 1.0, "rest": 0.0}, "rest of algorithm 'it' must be"),
        ({"name": "L1Ball"}, "must have a diameter or a radius"),
    ],
)
def test_sets_that_are_refused(table, message):
    with pytest.raises(ValueError, match=message):
        method("SFW", set=table)
