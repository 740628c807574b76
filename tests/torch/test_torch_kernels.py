"""The compiled updates give what plain torch gives."""

import numpy as np
import pytest
import torch
from torch import nn

import adafw
from adafw.torch import SFW, AdamSFW, AdaSFW, Lion, Signum, fast, kernels, lists

MAKERS = {
    "sfw": lambda p, **k: SFW(p, lr=0.1, **k),
    "sfw_plain": lambda p, **k: SFW(p, lr=0.1, momentum=0.0, **k),
    "adasfw": lambda p, **k: AdaSFW(p, lr=0.05, inner_steps=1, **k),
    "adasfw5": lambda p, **k: AdaSFW(p, lr=0.05, inner_steps=5, max_step=0.3, **k),
    "adamsfw": lambda p, **k: AdamSFW(p, lr=0.05, inner_steps=5, **k),
    "adamsfw2": lambda p, **k: AdamSFW(p, lr=0.05, inner_steps=2, **k),
}


def group_of(size, dtype, start=None):
    p = nn.Parameter(torch.zeros(size, dtype=dtype) if start is None else start.clone())
    return p, [{"params": [p], "constraint": adafw.LInfBall(0.7)}]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("size", [1, 7, 2047, 2048, 2049, 5000])
@pytest.mark.parametrize("name", MAKERS)
def test_equals_plain_torch(name, size, dtype):
    rng = torch.Generator().manual_seed(size)
    p, fast = group_of(size, dtype)
    q, slow = group_of(size, dtype)
    a, b = MAKERS[name](fast), MAKERS[name](slow, fused=False)
    tolerance = 1e-13 if dtype == torch.float64 else 3e-6
    for t in range(12):
        g = torch.randn(size, generator=rng, dtype=torch.float64).to(dtype)
        g[torch.rand(size, generator=rng) < 0.3] = 0  # as in embeddings
        p.grad, q.grad = g.clone(), g.clone()
        if t == 5:
            p.grad, q.grad = torch.zeros_like(p), torch.zeros_like(q)
        a.step()
        b.step()
        torch.testing.assert_close(p, q, rtol=0, atol=tolerance)
        assert adafw.LInfBall(0.7).contains(p.detach())
        for key in a.state[p]:
            torch.testing.assert_close(a.state[p][key], b.state[q][key], rtol=0, atol=5 * tolerance)


@pytest.mark.skipif(
    not torch.backends.cpu.get_cpu_capability().startswith("AVX"), reason="no fused products"
)
@pytest.mark.parametrize("options", [{}, {"momentum": 0.0}, {"momentum": 0.95, "nesterov": True},
                                     {"betas": (0.9, 0.99), "start": "zero"}])  # fmt: skip
def test_steps_along_signs_equal_plain_torch_to_the_bit(options):
    rng = torch.Generator().manual_seed(3)
    p, quick = group_of(5003, torch.float32)
    q, slow = group_of(5003, torch.float32)
    a, b = SFW(quick, lr=0.1, **options), SFW(slow, lr=0.1, fused=False, **options)
    for _ in range(8):
        p.grad = q.grad = torch.randn(5003, generator=rng)
        a.step()
        b.step()
    assert torch.equal(p, q)


MORE = {
    "box": adafw.Box(-0.2, 0.4),
    "l1": adafw.L1Ball(5.0),
    "l2": adafw.L2Ball(3.0),
    "k_sparse": adafw.KSparse(0.3, 7),
    "one": adafw.KSparse(0.3, 1),
    "all": adafw.KSparse(0.3, 10**6),
}


CHOOSING = ("l1", "k_sparse", "one")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("size", [1, 7, 2049, 5000])
@pytest.mark.parametrize("name", MORE)
@pytest.mark.parametrize("kind", [AdaSFW, AdamSFW])
def test_other_sets_equal_plain_torch(kind, name, size, dtype):
    rng = torch.Generator().manual_seed(size)
    ends = [nn.Parameter(MORE[name].start((size,), dtype)) for _ in range(2)]
    pair = [kind([{"params": [p], "constraint": MORE[name]}], lr=0.05, inner_steps=4, fused=fused)
            for p, fused in zip(ends, (True, False), strict=True)]  # fmt: skip
    for t in range(10):
        g = torch.randn(size, generator=rng, dtype=torch.float64).to(dtype)
        g[torch.rand(size, generator=rng) < 0.3] = 0
        if t in (4, 6):  # ties everywhere, and nothing at all
            g = g.round() if t == 4 else 0 * g
        for p, optimizer in zip(ends, pair, strict=True):
            p.grad = g.clone()
            optimizer.step()
        if dtype == torch.float32 and name in CHOOSING:
            break  # see the next test
        tolerance = 1e-12 if dtype == torch.float64 else 1e-5
        torch.testing.assert_close(*ends, rtol=0, atol=tolerance)
        assert MORE[name].contains(ends[0].detach())


@pytest.mark.parametrize("size", [7, 2049, 5000])
@pytest.mark.parametrize("name", CHOOSING)
@pytest.mark.parametrize("seed", range(3))
def test_sets_that_choose_entries_reach_the_same_value_in_float32(name, size, seed):
    """Inner steps make the entries of the gradient of Q that matter as equal as they can, and which
    of two that differ by a rounding is the larger decides on a vertex: so points may differ by a
    step, and what is compared is Q, which both minimise."""
    rng = torch.Generator().manual_seed(seed)
    p = nn.Parameter(MORE[name].start((size,), torch.float32))
    q = nn.Parameter(p.detach().clone())
    fast, plain = (
        AdamSFW([{"params": [w], "constraint": MORE[name]}], lr=0.05, inner_steps=4, fused=fused)
        for w, fused in ((p, True), (q, False))
    )
    for _ in range(10):
        g = torch.randn(size, generator=rng)
        start = p.detach().double()
        for w, optimizer in ((p, fast), (q, plain)):
            w.grad = g.clone()
            optimizer.step()
        state = {key: value.double() for key, value in fast.state[p].items() if key != "step"}
        h = 1e-8 + state["max_squares"].sqrt()
        values = [
            float(state["momentum"] @ (w - start) + (h * (w - start) ** 2).sum() / 0.1)
            for w in (p.detach().double(), q.detach().double())
        ]
        assert values[0] <= 0
        assert values[0] == pytest.approx(values[1], rel=1e-4)
        assert MORE[name].contains(p.detach())
        with torch.no_grad():  # on from the same point, as one choice leads to another
            q.copy_(p)
            for key, value in fast.state[p].items():
                if key != "step":
                    plain.state[q][key].copy_(value)


def test_squares_out_of_range_of_float32_do_not_stop_the_l2_ball():
    for scale in (1e-25, 3e18):  # AdaGrad's own sum of squares is float32, and finite up to here
        p = nn.Parameter(torch.zeros(5))
        p.grad = scale * torch.tensor([1.0, -2.0, 0.5, 0.0, 3.0])
        group = [{"params": [p], "constraint": adafw.L2Ball(1.0)}]
        AdaSFW(group, lr=0.1, inner_steps=1, offset=1e-30, fused=True).step()
        assert torch.isfinite(p).all()
        assert p.any()


def test_the_same_bits_in_every_run():
    ends = []
    for _ in range(2):
        rng = torch.Generator().manual_seed(0)
        p, group = group_of(4097, torch.float32)
        optimizer = AdamSFW(group, lr=0.01)
        for _ in range(5):
            p.grad = torch.randn(4097, generator=rng)
            optimizer.step()
        ends.append(p.detach().clone())
    assert torch.equal(*ends)


def test_only_plain_contiguous_tensors_of_one_kind_are_taken():
    x = torch.zeros(4, 3)
    assert lists.alike([x, nn.Parameter(x), x])
    for other in (x.t(), x.to("meta"), x.double(), x.half(), torch.zeros(4, 2), x.to_sparse()):
        assert not lists.alike([x, other])
    assert not lists.alike([x.half(), x.half()])
    assert not lists.alike([x, torch._neg_view(x)])

    class Own(torch.Tensor):
        pass

    own = x.clone().as_subclass(Own)
    assert not lists.alike([own, x])
    assert not lists.alike([x, x, own])
    assert not lists.is_plain(own)


def test_lists_know_linf_balls_only():
    options = {"fused": None, "constraint": adafw.LInfBall(1.0), "rescale": None, "lr": 0.1,
               "momentum": 0.9, "nesterov": False, "start": "gradient"}  # fmt: skip
    assert fast.numbers("sfw", options) == ((0.0, 0.0, 0.1, 1.0), (0.9, 0.9, 0.1, 1.0))
    assert fast.numbers(None, options) is None
    for change in ({"fused": False}, {"constraint": adafw.L1Ball(1.0)}, {"constraint": None},
                   {"rescale": "gradient"}):  # fmt: skip
        assert fast.numbers("sfw", {**options, **change}) is None


LISTED = {
    **MAKERS,
    "nesterov": lambda p, **k: SFW(p, lr=0.1, nesterov=True, **k),
    "betas": lambda p, **k: SFW(p, lr=0.1, betas=(0.9, 0.99), start="zero", **k),
    "lion": lambda p, **k: Lion([g["params"][0] for g in p], lr=0.01, weight_decay=0.1, **k),
    "signs": lambda p, **k: Signum([g["params"][0] for g in p], lr=0.01, momentum=0.0, **k),
}


def mixed_network(seed):
    """Tensors of many kinds, each in a ball of its own size: all may be in one optimizer."""
    rng = torch.Generator().manual_seed(seed)
    shapes = [(16, 16), (3,), (1,), (70, 80), (2, 3, 4, 4), ()]
    kinds = [torch.float32, torch.float64, torch.bfloat16, torch.float32, torch.float32,
             torch.float64]  # fmt: skip
    made = [nn.Parameter(0.1 * torch.randn(shape, generator=rng).to(kind))
            for shape, kind in zip(shapes, kinds, strict=True)]  # fmt: skip
    made.append(nn.Parameter(0.1 * torch.randn(5, 4, generator=rng).t()))  # columns, not rows
    groups = [{"params": [p], "constraint": adafw.LInfBall(2.0 + i)} for i, p in enumerate(made)]
    return made, groups


@pytest.mark.parametrize("name", LISTED)
def test_one_call_for_all_tensors_gives_the_bits_of_one_call_each(name):
    (ps, together), (qs, apart) = mixed_network(1), mixed_network(1)
    a, b = LISTED[name](together), LISTED[name](apart, foreach=False)
    rng = torch.Generator().manual_seed(2)
    for t in range(4):
        for p, q in zip(ps, qs, strict=True):
            p.grad = torch.randn(p.shape, generator=rng).to(p.dtype)
            p.grad = p.grad if t != 2 else torch.zeros_like(p)
            q.grad = p.grad.clone()
        a.step()
        b.step()
    for p, q in zip(ps, qs, strict=True):
        assert torch.equal(p, q)
        assert a.state[p]["step"] == b.state[q]["step"] == 4
        for key in a.state[p].keys() - {"step"}:
            assert torch.equal(a.state[p][key], b.state[q][key])


@pytest.mark.parametrize("kind", [SFW, AdaSFW, AdamSFW, Lion])
def test_state_laid_out_otherwise_than_its_parameter_is_not_lost(kind):
    """A network that was in channels_last when its state was made, and is not any more."""
    ends = []
    for turned in (True, False):
        rng = torch.Generator().manual_seed(0)
        p = nn.Parameter(0.1 * torch.randn(3, 4, 2, 2, generator=rng))
        if turned:
            p.data = p.data.contiguous(memory_format=torch.channels_last)
        sets = {} if kind is Lion else {"constraint": adafw.L1Ball(9.0)}
        sets = {"constraint": adafw.LInfBall(1.0)} if kind is SFW else sets
        optimizer = kind([{"params": [p], **sets}], lr=0.01)
        for t in range(6):
            if t == 3:
                p.data = p.data.contiguous()
            p.grad = torch.randn(3, 4, 2, 2, generator=rng)
            optimizer.step()
        ends.append(p.detach().clone())
        state = {k: v.clone() for k, v in optimizer.state[p].items() if k != "step"}
        ends.append(state)
    torch.testing.assert_close(ends[0], ends[2], rtol=0, atol=2e-6)
    for key, value in ends[1].items():
        torch.testing.assert_close(value.contiguous(), ends[3][key], rtol=1e-5, atol=1e-6)


def test_a_network_that_changes_its_precision_keeps_its_state():
    for kind in (SFW, AdaSFW, AdamSFW):
        p = nn.Parameter(torch.zeros(9))
        optimizer = kind([{"params": [p], "constraint": adafw.LInfBall(1.0)}], lr=0.1)
        for dtype in (torch.float32, torch.float64):
            p.data = p.data.to(dtype)
            p.grad = torch.linspace(-1, 1, 9, dtype=dtype)
            optimizer.step()
        assert p.dtype == torch.float64
        assert p.abs().max() > 0.1


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_look_at_all_gradients_finds_what_is_not_finite(bad, dtype):
    gradients = [torch.full((5,), 1e38, dtype=dtype) for _ in range(3)]  # their sum overflows
    assert lists.surely_finite(gradients)
    gradients[1][3] = bad
    assert not lists.surely_finite(gradients)
    assert not lists.surely_finite([gradients[0], gradients[0].half()])  # not looked at


def test_working_memory_grows_and_large_rooms_are_not_kept(monkeypatch):
    monkeypatch.setattr(kernels, "_KEPT", 10)
    kernels._memory.__dict__.clear()
    assert kernels.workspace(50, np.dtype(float))[0].size == 50
    assert not kernels._memory.__dict__
    kept = kernels.workspace(8, np.dtype(float))[0]
    assert kernels.workspace(3, np.dtype(float))[0] is kept
    kernels._memory.__dict__.clear()


ADAPTIVE = {**MORE, "linf": adafw.LInfBall(1.0)}


@pytest.mark.parametrize("fused", [None, False])
@pytest.mark.parametrize("foreach", [None, False])
@pytest.mark.parametrize(("kind", "name"), [(SFW, "linf"), (SFW, "l1")] + [
    (kind, name) for kind in (AdaSFW, AdamSFW) for name in ADAPTIVE])  # fmt: skip
def test_autograd_is_told_that_weights_have_moved(kind, name, fused, foreach):
    """Else a backward pass through the old weights would take the new ones, and say nothing."""
    ball = ADAPTIVE[name]
    params = [nn.Parameter(ball.start((5,), torch.float64)) for _ in range(2)]
    optimizer = kind([{"params": params, "constraint": ball}], lr=0.1, fused=fused, foreach=foreach)
    loss = sum((p**3).sum() for p in params)
    for p in params:
        p.grad = torch.ones_like(p)
    before = [p._version for p in params]
    optimizer.step()
    assert all(p._version > old for p, old in zip(params, before, strict=True))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("name", ADAPTIVE)
def test_compiled_updates_are_refused_where_there_is_none(name):
    ball = ADAPTIVE[name]
    group = [{"params": [nn.Parameter(ball.start((5,), torch.float32))], "constraint": ball}]
    for kind in (AdaSFW, AdamSFW):
        kind(group, lr=0.1, fused=True)
    if name == "linf":
        SFW(group, lr=0.1, fused=True)
        with pytest.raises(ValueError, match="there is none with rescale='short'"):
            SFW(group, lr=0.1, fused=True, rescale="short")
    else:
        with pytest.raises(ValueError, match="there is one for LInfBall only, not for"):
            SFW(group, lr=0.1, fused=True)
    box = adafw.Box(np.zeros(5), np.ones(5))
    group = [{"params": [nn.Parameter(torch.zeros(5))], "constraint": box}]
    with pytest.raises(ValueError, match="for LInfBall, Box, L1Ball, L2Ball, KSparse only, not"):
        AdaSFW(group, lr=0.1, fused=True)


@pytest.mark.parametrize("kind", [AdaSFW, AdamSFW])
@pytest.mark.parametrize("name", ADAPTIVE)
def test_the_bound_on_inner_steps_holds_in_compiled_updates(kind, name):
    """Steps that would be longer than the bound by far."""
    ball = ADAPTIVE[name]
    ends = [nn.Parameter(ball.start((7,), torch.float64)) for _ in range(2)]
    for p, fused in zip(ends, (True, False), strict=True):
        group = [{"params": [p], "constraint": ball}]
        optimizer = kind(group, lr=10.0, inner_steps=2, max_step=0.01, fused=fused)
        p.grad = torch.linspace(-2.0, 3.0, 7, dtype=torch.float64)
        optimizer.step()
    torch.testing.assert_close(*ends, rtol=0, atol=1e-12)
    start = ball.start((7,), torch.float64)
    vertex = ball.lmo(torch.linspace(-2.0, 3.0, 7, dtype=torch.float64))
    # The second vertex is the first one, or near it on a round ball.
    moved = start + (1 - 0.99**2) * (vertex - start)
    torch.testing.assert_close(ends[0].detach(), moved, rtol=0, atol=1e-4)


@pytest.mark.parametrize("make", [MAKERS["sfw"], MAKERS["adasfw5"], MAKERS["adamsfw"]])
def test_a_ball_of_ones_own_is_not_taken_for_the_one_it_is_made_of(make):
    class Still(adafw.LInfBall):
        def lmo(self, g):
            assert g.shape == (3, 1)
            return torch.full_like(g, 0.25)

    params = [nn.Parameter(torch.full((3, 1), 0.25)) for _ in range(2)]
    optimizer = make([{"params": params, "constraint": Still(1.0)}])
    for p in params:
        p.grad = torch.tensor([[1.0], [-2.0], [3.0]])
    optimizer.step()
    assert all((p == 0.25).all() for p in params)


def test_a_gradient_laid_out_otherwise_is_refused_where_compiled_code_is_asked_for():
    p = nn.Parameter(torch.zeros(4, 3))
    optimizer = AdamSFW([{"params": [p], "constraint": adafw.LInfBall(1.0)}], lr=0.1, fused=True)
    p.grad = torch.ones(3, 4).t()
    with pytest.raises(ValueError, match=r"fused=True needs contiguous tensors .* its gradient"):
        optimizer.step()
    assert not p.any()


@pytest.mark.parametrize(("size", "k"), [(7, 3), (7, 6), (5000, 2047), (5000, 2048), (5000, 3000)])
def test_of_entries_that_are_all_equal_the_first_are_taken(size, k):
    ball, g = adafw.KSparse(0.3, k), torch.ones(size, dtype=torch.float64)
    g[::2] = -1
    p = nn.Parameter(torch.zeros_like(g))
    optimizer = AdaSFW([{"params": [p], "constraint": ball}], lr=10.0, inner_steps=1, fused=True)
    p.grad = g.clone()
    optimizer.step()
    expected = torch.where(torch.arange(size) < k, -0.3 * g, torch.zeros_like(g))
    torch.testing.assert_close(p.detach(), expected)
