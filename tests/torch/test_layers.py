"""Which parameter gets which set, of which size, and how weights are brought inside."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import adafw
from adafw.torch import (
    AdaSFW,
    NewtonSchulzBall,
    PowerNuclearBall,
    Rule,
    constrain,
    make_feasible,
)
from adafw.torch.layers import glorot_norm


def small_cnn():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(32, 10),
        nn.LayerNorm(10), nn.Linear(10, 1),
    )  # fmt: skip


def sets_of(groups):
    return {name: g["constraint"] for g in groups for name in g["names"]}


@pytest.mark.parametrize("shape", [(64, 8185), (30, 20, 3, 3), (7, 5, 4)])
def test_the_norm_is_what_glorot_s_initialisation_is_expected_to_have(shape):
    torch.manual_seed(0)
    w = nn.init.xavier_uniform_(torch.empty(shape))
    assert torch.linalg.vector_norm(w).item() == pytest.approx(glorot_norm(shape), rel=0.05)
    assert glorot_norm((17,)) == 1.0


@pytest.mark.parametrize(
    "family",
    [adafw.LInfBall, adafw.L1Ball, adafw.L2Ball, adafw.Simplex, adafw.UnitSimplex,
     lambda r: adafw.Box(-r, 2 * r)],
)  # fmt: skip
def test_every_set_has_the_l2_diameter_asked_for(family):
    model = small_cnn()
    rules = {"6.bias": None}  # a simplex in one dimension is a point
    for group in constrain(model, family, diameter=6.0, rules=rules, show=False):
        for p in group["params"]:
            if group["constraint"] is not None:
                got = group["constraint"].diameter(tuple(p.shape))
                assert got == pytest.approx(6.0 * glorot_norm(tuple(p.shape)), rel=1e-12)


def test_the_radius_of_the_linf_ball_is_the_paper_s():
    """diameter * norm / (2 sqrt(size)), as for the networks of section 4.2."""
    model = nn.Linear(8185, 64)
    sets = sets_of(constrain(model, adafw.LInfBall, diameter=6.0, show=False))
    norm = math.sqrt(2 * 8185 * 64 / (8185 + 64))
    assert sets["weight"].radius == pytest.approx(6 * norm / (2 * math.sqrt(8185 * 64)))
    assert sets["bias"].radius == pytest.approx(6 / (2 * math.sqrt(64)))


def test_norm_layers_and_scalars_get_no_set_unless_asked():
    model = small_cnn()
    model.temperature = nn.Parameter(torch.tensor(1.0))
    sets = sets_of(constrain(model, adafw.LInfBall, diameter=6.0, show=False))
    free = {name for name, s in sets.items() if s is None}
    assert free == {"1.weight", "1.bias", "5.weight", "5.bias", "temperature"}
    assert sets["6.bias"].radius == pytest.approx(3.0)
    rules = {nn.LayerNorm: adafw.L2Ball, "temperature": adafw.Box(-1.0, 1.0)}
    sets = sets_of(constrain(model, adafw.LInfBall, radius=9.0, rules=rules, show=False))
    assert sets["5.weight"] == adafw.L2Ball(9.0)
    assert sets["temperature"] == adafw.Box(-1.0, 1.0)
    assert sets["1.weight"] is None


def test_rules_go_by_name_and_type_and_the_first_that_fits_counts():
    rules = {
        "*.bias": None,
        "4.*": Rule(adafw.L1Ball, radius=3.0),
        nn.Linear: Rule(adafw.L2Ball, diameter=2.0),
        nn.Conv2d: partial(lambda r, scale: adafw.L2Ball(scale * r), scale=2),
    }
    sets = sets_of(constrain(small_cnn(), adafw.LInfBall, radius=1.0, rules=rules, show=False))
    assert sets["4.bias"] is None
    assert sets["4.weight"] == adafw.L1Ball(3.0)
    assert sets["6.weight"] == adafw.L2Ball(glorot_norm((1, 10)))
    assert sets["0.weight"] == adafw.L2Ball(2.0)


def test_every_trainable_parameter_is_in_exactly_one_group_and_equal_sets_share_one():
    model = small_cnn()
    groups = constrain(model, adafw.L2Ball, radius=2.0, show=False)
    listed = [p for g in groups for p in g["params"]]
    assert {id(p) for p in listed} == {id(p) for p in model.parameters()}
    assert len(listed) == len(list(model.parameters()))
    assert len(groups) == 2


def test_the_table_says_what_got_which_set(capsys):
    constrain(small_cnn(), adafw.LInfBall, radius=0.25)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["parameter", "layer", "shape", "set"]
    assert lines[1].split() == ["0.weight", "Conv2d", "8x3x3x3", "LInfBall,", "radius", "0.25"]
    assert any(line.split() == ["1.weight", "BatchNorm2d", "8", "none"] for line in lines)
    assert len(lines) == 2 + len(list(small_cnn().parameters()))
    assert lines[-1] == 'first tries: AdamSFW(lr=0.003), SFW(lr=0.3, rescale="gradient")'


def test_every_ball_for_layers_has_a_size_to_start_with(capsys):
    """And the two balls of one length are one ball, so they start as one."""
    model = nn.Linear(5, 7)
    for family in (adafw.LInfBall, adafw.L2Ball, adafw.L1Ball, adafw.SpectralBall, adafw.RowBall,
                   adafw.ColumnBall, adafw.RMSBall, adafw.NuclearBall):  # fmt: skip
        constrain(model, family)
        assert "first tries: SFW(lr=0.001)" in capsys.readouterr().out
    rms, l2 = (constrain(model, family, show=False) for family in (adafw.RMSBall, adafw.L2Ball))
    g = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(rms[0]["constraint"].lmo(g), l2[0]["constraint"].lmo(g))


def test_a_class_of_sets_has_a_size_to_start_with(capsys):
    model = nn.Linear(7, 5)
    groups = constrain(model, adafw.LInfBall)
    assert sets_of(groups)["weight"].diameter((5, 7)) == pytest.approx(20 * glorot_norm((5, 7)))
    told = capsys.readouterr().out.splitlines()[-1]
    assert told.startswith("first tries: SFW(lr=0.001), AdamSFW(lr=0.003)")
    constrain(model, adafw.LInfBall, diameter=40.0)
    assert "SFW(lr=0.0005)" in capsys.readouterr().out  # half the step in twice the set
    constrain(model, lambda r: adafw.LInfBall(r), radius=1.0)
    assert "first tries" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"radius": 1.0, "diameter": 2.0}, ValueError, "give either diameter= or radius="),
        ({"radius": -1.0}, ValueError, "radius must be a number that is finite and > 0, got -1"),
        ({"radius": 1.0, "rules": {3: None}}, TypeError, "a rule's key must be a layer class or"),
        ({"radius": 1.0, "rules": {int: None}}, TypeError, "a rule's key must be a layer class or"),
        ({"radius": 1.0, "split": {}}, ValueError, "split= goes with recipe="),
        ({"recipe": "muon", "rules": {}}, ValueError, "recipe='muon' chooses the sets"),
        ({"radius": 1.0, "rules": {"a": 3}}, TypeError, "a rule must be None, a set, a class"),
    ],
)
def test_what_cannot_be_understood_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        constrain(small_cnn(), adafw.LInfBall, show=False, **arguments)
    with pytest.raises(ValueError, match="got diameter=None and radius=None"):
        constrain(small_cnn(), adafw.Simplex, show=False)
    with pytest.raises(ValueError, match=r"Simplex.* is a single point for parameter '6.bias' of"):
        constrain(small_cnn(), adafw.Simplex, diameter=6.0, show=False)
    with pytest.raises(TypeError, match="a class of sets such as"):
        constrain(small_cnn(), adafw.LInfBall(1.0), radius=1.0, show=False)
    with pytest.raises(ValueError, match="model must have parameters"):
        constrain(nn.ReLU(), adafw.LInfBall, radius=1.0, show=False)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "family", [adafw.LInfBall, adafw.L1Ball, adafw.L2Ball, adafw.Simplex, adafw.UnitSimplex]
)
def test_make_feasible_projects_what_lies_outside_and_only_that(family, dtype):
    model = nn.Linear(6, 4).to(dtype)
    with torch.no_grad():
        model.bias.copy_(family(0.1).start((4,), dtype))
    inside = model.bias.detach().clone()
    before = model.weight.detach().clone()
    groups = constrain(model, family, radius=0.1, show=False)
    with pytest.raises(ValueError, match="'weight' starts outside"):
        AdaSFW(groups, lr=0.1)
    assert make_feasible(groups) == ["weight"]
    AdaSFW(groups, lr=0.1)
    assert torch.equal(model.bias, inside)
    nearest = family(0.1).project(before.double()).to(dtype)
    assert torch.equal(model.weight.detach(), nearest)
    assert make_feasible(groups) == []


def test_make_feasible_without_a_projection_stops_at_the_border():
    p = nn.Parameter(torch.tensor([3.0, 4.0], dtype=torch.float64))
    user = adafw.UserSet(lambda g: -g / g.norm(), np.zeros(2), contains=lambda x: x.norm() <= 1)
    group = {"params": [p], "constraint": user}
    assert make_feasible([group]) == ["parameter 0 of shape (2,)"]
    torch.testing.assert_close(p.detach(), torch.tensor([0.6, 0.8], dtype=torch.float64))
    AdaSFW([group], lr=0.1)
    with pytest.raises(TypeError, match="params must be a list, got generator"):
        make_feasible([{"params": (q for q in [p]), "constraint": user}])


def test_every_kind_of_normalisation_is_left_free():
    model = nn.ModuleList(
        [nn.BatchNorm1d(4), nn.SyncBatchNorm(4), nn.InstanceNorm2d(4, affine=True),
         nn.GroupNorm(2, 4), nn.LayerNorm(4), nn.RMSNorm(4)]
    )  # fmt: skip
    (group,) = constrain(model, adafw.LInfBall, radius=1.0, show=False)
    assert group["constraint"] is None
    assert len(group["params"]) == len(list(model.parameters()))


def test_names_and_rules_are_those_of_the_plain_model_when_it_is_compiled():
    model = small_cnn()
    model[4] = torch.compile(model[4], backend="eager")
    for wrapped in (model, torch.compile(model, backend="eager")):
        groups = constrain(
            wrapped, adafw.LInfBall, radius=1.0, rules={"4.bias": adafw.L2Ball(2.0)}, show=False
        )
        sets = sets_of(groups)
        assert set(sets) == {name for name, _ in small_cnn().named_parameters()}
        assert sets["4.bias"] == adafw.L2Ball(2.0)


def test_rules_that_decide_nothing_are_told(capsys):
    rules = {"*.bias": None, "haed.*": None, "6.bias": adafw.L2Ball(1.0)}
    constrain(small_cnn(), adafw.LInfBall, radius=1.0, rules=rules)
    told = capsys.readouterr().out.splitlines()[-2:]
    assert told == [
        "the rule 'haed.*' decides on no parameter",
        "the rule '6.bias' decides on no parameter",
    ]


def test_make_feasible_says_that_weights_without_data_cannot_be_moved():
    groups = constrain(nn.Linear(2, 2, device="meta"), adafw.L2Ball, radius=1.0, show=False)
    with pytest.raises(ValueError, match="'weight' must have data, got the device meta"):
        make_feasible(groups)


@pytest.mark.parametrize(
    ("family", "diameter", "rate"),
    [(adafw.LInfBall, 20, "0.003"), (adafw.L2Ball, 6, "0.003"), (adafw.RMSBall, 6, "0.003"),
     (adafw.L1Ball, 60, "0.1"), (adafw.SpectralBall, 20, "0.003"), (adafw.NuclearBall, 20, "0.003"),
     (NewtonSchulzBall, 20, "0.003"), (PowerNuclearBall, 20, "0.003"), (adafw.RowBall, 20, "0.003"),
     (adafw.ColumnBall, 20, "0.003")],
)  # fmt: skip
def test_sizes_and_rates_to_start_with(family, diameter, rate, capsys):
    model = nn.Linear(7, 5, bias=False)
    (group,) = constrain(model, family)
    assert group["constraint"].diameter((5, 7)) == pytest.approx(diameter * glorot_norm((5, 7)))
    rest = f'AdamSFW(lr={rate}), SFW(lr=0.3, rescale="gradient")'
    assert capsys.readouterr().out.splitlines()[-1] == f"first tries: SFW(lr=0.001), {rest}"
    for size, step in ((0.1 * diameter, "0.01"), (1e-4 * diameter, "1"), (4 * diameter, "0.00025")):
        constrain(model, family, diameter=size)
        told = capsys.readouterr().out.splitlines()[-1]
        assert told == f"first tries: SFW(lr={step}), {rest}"


def test_names_are_those_of_the_plain_model_in_any_wrapper():
    plain = [name for name, _ in small_cnn().named_parameters()]
    for wrap in (nn.DataParallel, lambda m: nn.DataParallel(torch.compile(m, backend="eager")),
                 lambda m: torch.compile(nn.DataParallel(m), backend="eager")):  # fmt: skip
        groups = constrain(wrap(small_cnn()), adafw.LInfBall, radius=1.0, show=False)
        assert sorted(name for g in groups for name in g["names"]) == sorted(plain)


def test_shared_weights_belong_to_their_first_layer():
    model = nn.ModuleDict({"embed": nn.Embedding(6, 4), "head": nn.Linear(4, 6)})
    model["head"].weight = model["embed"].weight
    rules = {nn.Embedding: adafw.L2Ball(3.0), nn.Linear: adafw.LInfBall(2.0)}
    sets = sets_of(constrain(model, adafw.L1Ball, radius=1.0, rules=rules, show=False))
    assert sets == {"embed.weight": adafw.L2Ball(3.0), "head.bias": adafw.LInfBall(2.0)}


def test_glorots_norm_counts_the_kernel():
    assert glorot_norm((4, 3)) == pytest.approx(math.sqrt(2 * 12 / 7))
    assert glorot_norm((4, 3, 5)) == pytest.approx(math.sqrt(2 * 60 / (7 * 5)))
    assert glorot_norm((4, 3, 5, 2)) == pytest.approx(math.sqrt(2 * 120 / (7 * 10)))
    assert glorot_norm(()) == glorot_norm((9,)) == 1.0
    ball = Rule(adafw.LInfBall, diameter=6.0)(torch.zeros(4, 3), "w")
    assert ball.diameter((4, 3)) == pytest.approx(6 * math.sqrt(24 / 7))
    assert Rule(adafw.LInfBall, radius=0.5)(torch.zeros(4, 3), "w") == adafw.LInfBall(0.5)
    for wrong in ({"diameter": 0.0}, {"radius": -1.0}):
        with pytest.raises(ValueError, match="must be a number that is finite and > 0"):
            Rule(adafw.LInfBall, **wrong)


def test_nothing_is_said_where_nobody_has_looked_for_a_start(capsys):
    constrain(nn.Linear(7, 5), lambda r: adafw.LInfBall(r), radius=1.0)
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.split("\n")[:-1]] == ["parameter", "weight", "bias"]
    constrain(nn.Linear(7, 5), adafw.LInfBall, radius=1.0, show=False)
    assert capsys.readouterr().out == ""


def test_rules_for_a_class_hold_for_what_is_made_of_it():
    """And a family without a size of its own has that of all others."""
    from torch.nn.modules.conv import _ConvNd

    rules = {_ConvNd: adafw.L2Ball, nn.Linear: None}
    model = small_cnn()
    sets = sets_of(constrain(model, adafw.LInfBall, radius=0.5, rules=rules, show=False))
    for name, layer in model.named_modules():
        if isinstance(layer, nn.Conv2d):
            assert sets[f"{name}.weight"] == adafw.L2Ball(0.5)
        elif isinstance(layer, nn.Linear):
            assert sets[f"{name}.weight"] is None
    sets = sets_of(constrain(model, adafw.LInfBall, diameter=6.0, rules=rules, show=False))
    conv = next(n for n, layer in model.named_modules() if isinstance(layer, nn.Conv2d))
    p = model.get_submodule(conv).weight
    assert sets[f"{conv}.weight"].radius == pytest.approx(3 * glorot_norm(tuple(p.shape)))
