"""Float32 masters of weights in half precision."""

import copy
import io

import pytest
import torch
from torch import nn

import adafw
from adafw.torch import SFW, AdamSFW, Lion, Muon, Signum, constrain, make_feasible

BALL = adafw.LInfBall(1.0)
MAKERS = {
    "SFW": lambda p, **k: SFW([{"params": p, "constraint": BALL}], lr=1e-4, **k),
    "AdamSFW": lambda p, **k: AdamSFW([{"params": p, "constraint": BALL}], lr=1e-4, **k),
    "Lion": lambda p, **k: Lion(p, lr=1e-4, weight_decay=0.1, **k),
    "Muon": lambda p, **k: Muon(p, lr=1e-4, **k),
}


def run(make, dtype, steps=50, **options):
    """The weights after steps along one direction, from 0.5."""
    p = nn.Parameter(torch.full((4, 3), 0.5, dtype=dtype))
    rng = torch.Generator().manual_seed(0)
    g = torch.randn(4, 3, generator=rng).bfloat16().to(dtype)
    optimizer = make([p], **options)
    for _ in range(steps):
        p.grad = g.clone()
        optimizer.step()
    return p, optimizer


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_masters_go_where_float32_goes(name, dtype):
    exact, _ = run(MAKERS[name], torch.float32)
    p, optimizer = run(MAKERS[name], dtype, masters=True)
    torch.testing.assert_close(optimizer.state[p]["master"], exact.detach(), rtol=0, atol=1e-6)
    assert torch.equal(p, optimizer.state[p]["master"].to(dtype))
    assert p.dtype is dtype


def test_without_masters_bfloat16_stalls():
    """The steps are below half a unit in the last place, which is what masters are for."""
    stalled, optimizer = run(MAKERS["Lion"], torch.bfloat16)
    assert torch.equal(stalled, torch.full((4, 3), 0.5, dtype=torch.bfloat16))
    assert "master" not in optimizer.state[stalled]
    moved, _ = run(MAKERS["Lion"], torch.bfloat16, masters=True)
    assert not (moved == 0.5).any()


def test_weights_in_full_precision_get_none():
    p, optimizer = run(MAKERS["SFW"], torch.float32, masters=True)
    assert "master" not in optimizer.state[p]


def test_a_resumed_run_goes_on_bit_for_bit():
    p, optimizer = run(MAKERS["AdamSFW"], torch.bfloat16, steps=7, masters=True)
    file = io.BytesIO()
    torch.save((optimizer.state_dict(), p.detach()), file)
    file.seek(0)
    state, at = torch.load(file, weights_only=True)
    q = nn.Parameter(at)
    other = MAKERS["AdamSFW"]([q], masters=True)
    other.load_state_dict(state)
    for _ in range(5):
        for w, o in ((p, optimizer), (q, other)):
            w.grad = torch.ones_like(w)
            o.step()
    assert torch.equal(optimizer.state[p]["master"], other.state[q]["master"])


def test_weights_that_others_changed_count():
    p, optimizer = run(MAKERS["SFW"], torch.bfloat16, masters=True)
    with torch.no_grad():
        p[0, 0] = -0.25
    before = copy.deepcopy(optimizer.state[p]["master"])
    p.grad = torch.zeros_like(p)
    optimizer.zero_grad(set_to_none=False)
    optimizer.param_groups[0]["lr"] = 1e-9
    optimizer.step()
    master = optimizer.state[p]["master"]
    assert master[0, 0] == pytest.approx(-0.25, abs=1e-6)
    torch.testing.assert_close(master[1:], before[1:], rtol=0, atol=1e-6)


def test_the_adamw_part_of_a_recipe_has_masters_too():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2)).bfloat16()
    optimizer = Muon(constrain(model, recipe="muon", show=False), lr=1e-4, masters=True)
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    optimizer.step()
    assert all("master" in optimizer.state[p] for p in model.parameters())


def test_a_momentum_that_comes_later_is_made():
    p = nn.Parameter(torch.zeros(3, dtype=torch.bfloat16))
    group = [{"params": [p], "constraint": BALL}]
    make_feasible(group)
    optimizer = SFW(group, lr=0.1, momentum=0.0, masters=True)
    p.grad = torch.ones_like(p)
    optimizer.step()
    optimizer.param_groups[0]["momentum"] = 0.9
    optimizer.step()
    assert set(optimizer.state[p]) == {"step", "master", "momentum"}


@pytest.mark.parametrize("kind", ["SFW", "Signum"])
def test_a_momentum_that_comes_later_leaves_the_master(kind):
    """What the weights have moved by, below their last place, is not forgotten."""
    make = {"SFW": lambda p: MAKERS["SFW"](p, momentum=0.0, masters=True),
            "Signum": lambda p: Signum(p, lr=1e-4, momentum=0.0, masters=True)}[kind]  # fmt: skip
    p, optimizer = run(make, torch.bfloat16, steps=5)
    assert torch.equal(p, torch.full_like(p, 0.5))
    before = optimizer.state[p]["master"].clone()
    assert not (before == 0.5).any()
    optimizer.param_groups[0].update(momentum=0.9, lr=1e-9)
    optimizer.step()
    torch.testing.assert_close(optimizer.state[p]["master"], before, rtol=0, atol=1e-7)


@pytest.mark.parametrize("kind", ["SFW", "AdamSFW", "Lion"])
def test_masters_may_be_turned_on_later(kind):
    p, optimizer = run(MAKERS[kind], torch.bfloat16, steps=1)
    assert "master" not in optimizer.state[p]
    optimizer.param_groups[0]["masters"] = True
    for _ in range(50):
        optimizer.step()
    master = optimizer.state[p]["master"]
    assert master.dtype is torch.float32
    assert not (p == 0.5).any()
    assert torch.equal(p, master.to(torch.bfloat16))
