"""Optimizers that experiments put together themselves."""

import copy
import math

import pytest
import torch
from torch import nn

import adafw.torch
from adafw.experiments.networks.case import NetworkMethod
from adafw.experiments.networks.optimizers import TorchMuon, make_optimizer, set_groups, violation


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))


def test_muon_and_adamw_are_one_optimizer():
    """Each of torch's own on its tensors, with the same gradients, ends at the same weights."""
    ours, theirs = network(), network()
    optimizer = TorchMuon(ours, lr=0.02, weight_decay=0.05)
    matrices = {p.shape for p in optimizer.parts[0].param_groups[0]["params"]}
    assert all(len(shape) == 2 for shape in matrices)
    assert len(optimizer.param_groups) == sum(len(part.param_groups) for part in optimizer.parts)
    names = {id(p): name for name, p in ours.named_parameters()}
    other = dict(theirs.named_parameters())
    parts = [
        kind([{**group, "params": [other[names[id(p)]] for p in group["params"]]}
              for group in part.param_groups], lr=0.02)
        for kind, part in zip((torch.optim.Muon, torch.optim.AdamW), optimizer.parts, strict=True)
    ]  # fmt: skip
    assert sum(len(g["params"]) for g in optimizer.param_groups) == len(other) == 6
    x = torch.randn(5, 6)
    for step in range(3):

        def closure(optimizer=optimizer):
            optimizer.zero_grad()
            assert all(p.grad is None for p in ours.parameters())
            loss = ours(x).square().mean()
            loss.backward()
            return loss

        loss = optimizer.step(closure)
        for part in parts:
            part.zero_grad()
        wanted = theirs(x).square().mean()
        wanted.backward()
        for part in parts:
            part.step()
        assert loss.item() == wanted.item()
        for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(p, q, rtol=0, atol=0)
        if step == 0:  # goes on from what was kept
            state = copy.deepcopy(optimizer.state_dict())
            optimizer = TorchMuon(ours, lr=0.02, weight_decay=0.05)
            optimizer.load_state_dict(state)


def method(name, **table):
    return NetworkMethod("it", {"name": name, "learning_rate": 0.01, **table})


def test_the_rate_is_that_of_muon_alone():
    """AdamW's are those of the recipe, whatever rate is searched for the matrices."""
    wanted = [
        (g["lr"], g["weight_decay"])
        for g in adafw.torch.constrain(network(), recipe="muon", show=False) if g.get("adamw")
    ]  # fmt: skip
    muon, adamw = TorchMuon(network(), lr=0.5, weight_decay=0.25, momentum=0.5).parts
    assert [(g["lr"], g["weight_decay"]) for g in adamw.param_groups] == wanted
    assert [(g["lr"], g["weight_decay"], g["momentum"]) for g in muon.param_groups] == [
        (0.5, 0.25, 0.5)
    ]


def test_a_method_s_own_set_goes_before_that_of_the_case():
    default, own = {"name": "LInfBall", "radius": 0.5}, {"name": "L2Ball", "radius": 0.25}
    for given, kind, radius in ((None, adafw.LInfBall, 0.5), (own, adafw.L2Ball, 0.25)):
        model = network()
        some = method("SFW", **({} if given is None else {"set": given}))
        optimizer = make_optimizer(model, some, default)
        held = [group["constraint"] for group in optimizer.held_groups()]
        assert len(held) == 6
        assert {(type(c), c.radius) for c in held} == {(kind, radius)}
        assert violation(optimizer) <= 1e-6  # weights begin inside
        for p in model.parameters():
            found = p.abs().max() if given is None else p.norm()
            assert found <= radius * (1 + 1e-6)


def test_the_smallest_tensors_have_vertices_of_one_entry():
    groups = set_groups(network(), {"name": "KSparse", "share": 0.1, "radius": 1.0})
    assert {group["names"][0]: group["constraint"].k for group in groups} == {
        "0.weight": 5, "0.bias": 1, "2.weight": 6, "2.bias": 1, "4.weight": 2, "4.bias": 1,
    }  # fmt: skip


def test_the_worst_tensor_tells_the_violation_and_nan_is_told():
    model = network()
    optimizer = make_optimizer(model, method("SFW"), {"name": "LInfBall", "radius": 2.0})
    parameters = list(model.parameters())
    with torch.no_grad():
        parameters[1][0] = 5.0
        parameters[4][0, 0] = 3.0
    assert violation(optimizer) == pytest.approx(3.0 / 2.0)
    with torch.no_grad():
        parameters[0][0, 0] = math.nan
    assert math.isnan(violation(optimizer))
