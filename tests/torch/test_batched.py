"""Many tensors moved together give what each gives alone."""

import pytest
import torch
from torch import nn

import adafw
from adafw.torch import (
    SFW,
    Lion,
    Muon,
    NewtonSchulzBall,
    Scion,
    Signum,
    batched,
    make_feasible,
    matrices,
)
from adafw.torch.matrices import DecomposedBall

#: The kernels of the fourth are a matrix (3, 8).
SHAPES = [(6, 4), (4, 6), (6, 4), (3, 2, 2, 2), (6, 4), (8, 3), (3, 8)]


def spectral(params, **options):
    options = {"lr": 0.1, **options}
    return SFW([{"params": params, "constraint": NewtonSchulzBall(0.7)}], **options)


MAKERS = {
    "SFW": spectral,
    "SFW with betas": lambda p, **k: spectral(p, betas=(0.9, 0.99), start="zero", **k),
    "SFW by gradient": lambda p, **k: spectral(p, rescale="gradient", **k),
    "SFW without momentum": lambda p, **k: spectral(p, momentum=0.0, **k),
    "Muon": lambda p, **k: Muon(p, lr=0.05, **k),
    "Muon, exact": lambda p, **k: Muon(p, lr=0.05, lmo="exact", **k),
    "Scion": lambda p, **k: Scion(p, lr=0.05, **k),
    "Lion": lambda p, **k: Lion(p, lr=0.05, weight_decay=0.2, fused=False, **k),
    "Signum": lambda p, **k: Signum(p, lr=0.05, fused=False, **k),
    "Signum without momentum": lambda p, **k: Signum(p, 0.05, momentum=0.0, fused=False, **k),
}


def end(make, foreach, dtype=torch.float64, steps=4):
    rng = torch.Generator().manual_seed(0)
    params = [nn.Parameter(torch.randn(s, generator=rng, dtype=torch.float64).to(dtype))
              for s in SHAPES]  # fmt: skip
    make_feasible([{"params": params, "constraint": NewtonSchulzBall(0.7)}])
    optimizer = make(params, foreach=foreach)
    for t in range(steps):
        for i, p in enumerate(params):
            p.grad = torch.randn(p.shape, generator=rng, dtype=torch.float64).to(dtype)
            if t == 2 and i == 1:
                p.grad = None
            elif t == 3 and i == 2 and dtype is torch.float64:
                p.grad.zero_()
        optimizer.step()
    assert {optimizer.state[p]["step"] for p in params[2:]} == {steps}
    return params


@pytest.mark.parametrize("name", MAKERS)
def test_together_as_one_by_one(name):
    for p, q in zip(end(MAKERS[name], False), end(MAKERS[name], True), strict=True):
        torch.testing.assert_close(p, q, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["SFW", "Muon", "Lion"])
def test_half_precision_and_masters_together(name):
    alone = end(MAKERS[name], False, torch.bfloat16)
    together = end(MAKERS[name], True, torch.bfloat16)
    for p, q in zip(alone, together, strict=True):
        torch.testing.assert_close(p, q, rtol=0, atol=0.01)


def test_stacks_are_what_is_asked_for(monkeypatch):
    """Matrices of one shape and one ball make one call; foreach=False makes none."""
    stacks = []
    polar = NewtonSchulzBall.polar
    monkeypatch.setattr(
        NewtonSchulzBall, "polar", lambda self, x: stacks.append(tuple(x.shape)) or polar(self, x)
    )
    end(MAKERS["Muon"], None, steps=1)
    assert sorted(stacks) == [(1, 4, 6), (1, 8, 3), (2, 3, 8), (3, 6, 4)]
    stacks.clear()
    end(MAKERS["Muon"], False, steps=1)
    assert all(len(shape) == 2 for shape in stacks)


def test_stacks_of_split_matrices():
    rng = torch.Generator().manual_seed(0)
    ball = NewtonSchulzBall(0.5, 3)
    directions = [torch.randn(6, 4, generator=rng, dtype=torch.float64) for _ in range(4)]
    for d, v in zip(directions, batched.vertices([ball] * 4, directions), strict=True):
        each = torch.cat([NewtonSchulzBall(0.5).lmo(part) for part in d.split(2)])
        torch.testing.assert_close(v, each, rtol=0, atol=1e-13)


def test_large_matrices_and_other_sets_go_alone():
    small, large = torch.zeros(64, 64), torch.zeros(256, 256)
    ball = NewtonSchulzBall(1.0)
    assert batched.may_stack(ball, small, {"foreach": None})
    assert not batched.may_stack(ball, large, {"foreach": None})
    assert batched.may_stack(ball, large, {"foreach": True})
    assert not batched.may_stack(adafw.LInfBall(1.0), small, {"foreach": True})


def test_a_stack_has_one_ball_one_shape_and_one_dtype():
    rng = torch.Generator().manual_seed(0)
    balls = [NewtonSchulzBall(0.5), NewtonSchulzBall(2.0), NewtonSchulzBall(0.5),
             NewtonSchulzBall(0.5, iterations=4), NewtonSchulzBall(0.5, 2),
             DecomposedBall(0.5), NewtonSchulzBall(0.5)]  # fmt: skip
    shapes = [(6, 4)] * 6 + [(4, 6)]
    for dtypes in ([torch.float64] * 7, [torch.float32, torch.float64] * 3 + [torch.float64]):
        directions = [
            torch.randn(s, generator=rng, dtype=torch.float64).to(dtype)
            for s, dtype in zip(shapes, dtypes, strict=True)
        ]
        found = batched.vertices(balls, directions)
        for ball, d, v in zip(balls, directions, found, strict=True):
            assert v.dtype is d.dtype
            exact = 1e-13 if d.dtype is torch.float64 else 1e-5
            torch.testing.assert_close(v, matrices.lmo(ball, d), rtol=0, atol=exact)


@pytest.mark.skipif(not hasattr(torch.Tensor, "grad_dtype"), reason="torch before 2.10")
@pytest.mark.parametrize("name", ["Lion", "Signum without momentum", "Muon"])
def test_gradients_of_lower_precision_than_the_weights_are_taken(name):
    ends = []
    for dtype in (torch.float32, torch.bfloat16):
        params = [nn.Parameter(torch.full((2, 3), 0.5)) for _ in range(3)]
        optimizer = MAKERS[name](params, foreach=True)
        for g in ([1.0, -2.0, 0.5], [-4.0, 0.25, 0.125]):
            for i, p in enumerate(params):
                p.grad_dtype = None
                p.grad = ((1 + i) * torch.tensor([g, g[::-1]])).to(dtype)
            optimizer.step()
        ends.append(torch.stack([p.detach() for p in params]))
    torch.testing.assert_close(*ends, rtol=0, atol=1e-6)
