"""Muon, Scion, Lion and Signum against their formulas, written out once more, and torch's Muon."""

import copy
import io
import math

import pytest
import torch
from torch import nn

import adafw
from adafw.torch import SFW, Lion, Muon, RadiusSchedule, Scion, Signum, gap, make_feasible
from adafw.torch.optimizers import scaled

SHAPES = [(6, 6), (9, 4), (3, 11)]


def tensors(shapes=SHAPES, dtype=torch.float64, seed=0, scale=1.0):
    rng = torch.Generator().manual_seed(seed)
    return [nn.Parameter(scale * torch.randn(s, generator=rng, dtype=torch.float64).to(dtype))
            for s in shapes]  # fmt: skip


def gradients(params, steps, seed=1):
    rng = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        for p in params:
            p.grad = torch.randn(p.shape, generator=rng, dtype=torch.float64).to(p.dtype)
        yield [p.grad.clone() for p in params]


def polar(d):
    u, _, vt = torch.linalg.svd(d, full_matrices=False)
    return u @ vt


def close(params, xs, tolerance):
    for p, x in zip(params, xs, strict=True):
        torch.testing.assert_close(p.detach(), x, rtol=0, atol=tolerance)


# --- each against its formula --------------------------------------------------------------------


@pytest.mark.parametrize("decay", [0.1, 0.0])
@pytest.mark.parametrize("nesterov", [True, False])
@pytest.mark.parametrize("adjust", [None, "original", "match_rms_adamw"])
def test_muon_with_singular_values_is_its_formula(adjust, nesterov, decay):
    params = tensors()
    xs, ms = [p.detach().clone() for p in params], [0.0] * len(params)
    optimizer = Muon(params, 0.02, decay, 0.95, nesterov, adjust_lr_fn=adjust, lmo="exact")
    for gs in gradients(params, 30):
        optimizer.step()
        for i, g in enumerate(gs):
            rows, columns = g.shape
            a = (0.2 * math.sqrt(max(rows, columns)) if adjust == "match_rms_adamw"
                 else math.sqrt(max(1, rows / columns)))  # fmt: skip
            ms[i] = 0.95 * ms[i] + 0.05 * g
            d = 0.05 * g + 0.95 * ms[i] if nesterov else ms[i]
            xs[i] = xs[i] * (1 - 0.02 * decay) - 0.02 * a * polar(d)
    close(params, xs, 1e-8)


needs_muon = pytest.mark.skipif(
    not hasattr(torch.optim, "Muon"), reason="this torch has no Muon of its own (2.9 has)"
)


@needs_muon
@pytest.mark.parametrize("nesterov", [True, False])
@pytest.mark.parametrize("adjust", [None, "match_rms_adamw"])
def test_muon_with_torch_s_iteration_is_torch_s_muon(adjust, nesterov):
    options = dict(lr=0.02, weight_decay=0.1, nesterov=nesterov, adjust_lr_fn=adjust)
    ours, theirs = tensors(dtype=torch.float32), tensors(dtype=torch.float32)
    first, second = Muon(ours, lmo="torch", **options), torch.optim.Muon(theirs, **options)
    for gs in gradients(ours, 1):
        for p, g in zip(theirs, gs, strict=True):
            p.grad = g
        first.step()
        second.step()
    close(ours, [p.detach() for p in theirs], 1e-4)

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 24, bias=False), nn.Tanh(), nn.Linear(24, 4, bias=False))
    other = copy.deepcopy(model)
    x, y = torch.randn(64, 12), torch.randn(64, 4)
    first = Muon(model.parameters(), lmo="torch", **options)
    second = torch.optim.Muon(other.parameters(), **options)
    for _ in range(50):
        losses = []
        for net, optimizer in ((model, first), (other, second)):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[0] == pytest.approx(losses[1], abs=1e-3)


@pytest.mark.parametrize("fused", [None, False])
@pytest.mark.parametrize("decay", [0.3, 0.0])
def test_lion_is_its_formula(decay, fused):
    params = tensors([(7, 5), (300,), ()])
    xs, ms = [p.detach().clone() for p in params], [0.0] * 3
    optimizer = Lion(params, 0.01, (0.9, 0.99), decay, fused=fused)
    for gs in gradients(params, 300):
        optimizer.step()
        for i, g in enumerate(gs):
            xs[i] = xs[i] * (1 - 0.01 * decay) - 0.01 * torch.sign(0.9 * ms[i] + 0.1 * g)
            ms[i] = 0.99 * ms[i] + 0.01 * g
    close(params, xs, 1e-12)


@pytest.mark.parametrize("fused", [None, False])
@pytest.mark.parametrize(("b", "decay"), [(0.9, 0.3), (0.9, 0.0), (0.0, 0.2)])
def test_signum_is_its_formula(b, decay, fused):
    params = tensors([(7, 5), (300,), ()])
    xs, ms = [p.detach().clone() for p in params], [0.0] * 3
    optimizer = Signum(params, 0.01, b, decay, fused=fused)
    for gs in gradients(params, 300):
        optimizer.step()
        for i, g in enumerate(gs):
            ms[i] = b * ms[i] + (1 - b) * g
            xs[i] = xs[i] * (1 - 0.01 * decay) - 0.01 * torch.sign(ms[i])
    close(params, xs, 1e-12)


SCION = {  # norm -> (shape, the direction for d of radius 1, written out)
    "spectral": ((8, 5), lambda d: math.sqrt(8 / 5) * polar(d)),
    "conv": ((6, 4, 3, 3), lambda d: math.sqrt(6 / 4) / 9 * polar(d.reshape(6, 36)).view(d.shape)),
    "sign": ((8, 5), lambda d: d.sign() / 5),
    "row": ((8, 5), lambda d: d / d.norm(dim=1, keepdim=True) / math.sqrt(5)),
    "column": ((8, 5), lambda d: math.sqrt(8) * d / d.norm(dim=0, keepdim=True)),
    "embedding": ((8, 5), lambda d: math.sqrt(5) * d / d.norm(dim=1, keepdim=True)),
    "rms": ((8,), lambda d: d / d.square().mean().sqrt()),
}


@pytest.mark.parametrize("unconstrained", [False, True])
@pytest.mark.parametrize("norm", SCION)
def test_scion_is_its_formula_in_every_norm(norm, unconstrained):
    shape, direction = SCION[norm]
    (p,) = tensors([shape], scale=0.1)
    x, m = p.detach().clone(), 0.0
    optimizer = Scion([{"params": [p], "norm": norm, "scale": 3.0}], lr=0.05, momentum=0.8,
                      unconstrained=unconstrained)  # fmt: skip
    for (g,) in gradients([p], 20):
        optimizer.step()
        m = 0.8 * m + 0.2 * g
        x = x * (1 if unconstrained else 0.95) - 0.05 * 3.0 * direction(m)
    # the spectral norms' polar factor is 0.99 exact, the others are exact
    close([p], [x], 0.05 if norm in ("spectral", "conv") else 1e-12)
    if norm in ("spectral", "conv") and not unconstrained:
        held = optimizer.held_groups()[0]["constraint"]
        assert held.contains(p.detach().reshape(shape[0], -1))


def test_auto_gives_each_kind_of_tensor_its_norm():
    params = tensors([(8, 5), (6, 4, 3, 3), (7,), ()])
    optimizer = Scion(params, lr=0.1)
    kinds = [type(g["constraint"]).__name__ for g in optimizer.held_groups()]
    assert kinds == ["NewtonSchulzBall", "NewtonSchulzBall", "RMSBall", "RMSBall"]


def test_scion_counts_the_entries_of_a_kernel():
    (p,) = tensors([(4, 3, 2, 2)])
    for norm, factor in (("sign", 1 / 12), ("row", 1 / math.sqrt(12)), ("column", 2.0),
                         ("embedding", math.sqrt(12))):  # fmt: skip
        optimizer = Scion([p], lr=0.1, norm=norm, scale=5.0)
        assert optimizer.set_of(optimizer.param_groups[0], p).radius == pytest.approx(5 * factor)


@pytest.mark.parametrize("fused", [None, False])
def test_tensors_of_one_group_have_steps_as_long_as_their_shapes_say(fused):
    params = tensors([(8, 5), (2, 3), (4, 5)])
    xs = [p.detach().clone() for p in params]
    optimizer = Scion(params, lr=0.05, momentum=0.0, norm="sign", scale=3.0, fused=fused)
    for gs in gradients(params, 3):
        optimizer.step()
        xs = [0.95 * x - 0.15 * g.sign() / x.shape[1] for x, g in zip(xs, gs, strict=True)]
    close(params, xs, 1e-14)


@pytest.mark.parametrize("norm", ["spectral", "conv", "row", "column", "embedding"])
def test_norms_of_matrices_are_not_for_vectors(norm):
    with pytest.raises(ValueError, match=f"norm='{norm}' is for matrices"):
        Scion(tensors([(3,)]), norm=norm)


@pytest.mark.parametrize("betas", [(0.0, 0.9), (0.9, 0.0), (0.0, 0.0)])
@pytest.mark.parametrize("fused", [None, False])
def test_either_beta_of_lion_may_be_zero(betas, fused):
    (p,) = tensors([(7,)])
    x, m = p.detach().clone(), 0.0
    optimizer = Lion([p], 0.1, betas, 0.5, fused=fused)
    for (g,) in gradients([p], 8):
        optimizer.step()
        x = 0.95 * x - 0.1 * (betas[0] * m + (1 - betas[0]) * g).sign()
        m = betas[1] * m + (1 - betas[1]) * g
    close([p], [x], 1e-14)
    if any(betas):
        torch.testing.assert_close(optimizer.state[p]["momentum"], m, rtol=0, atol=1e-14)


# --- the one form, as Frank-Wolfe ----------------------------------------------------------------


@pytest.mark.parametrize("fused", [None, False])
@pytest.mark.parametrize("start", ["gradient", "zero"])
@pytest.mark.parametrize("options", [{"betas": (0.9, 0.99)}, {"momentum": 0.9, "nesterov": True},
                                     {"momentum": 0.7}, {"betas": (0.0, 0.5)}])  # fmt: skip
def test_sfw_is_the_one_form(options, start, fused):
    for ball in (adafw.LInfBall(0.7), adafw.L2Ball(0.7)):
        (p,) = tensors([(4, 3)], scale=0.05)
        x, m = p.detach().clone(), None
        b = options.get("momentum")
        b1, b2 = options.get("betas", (b * b if options.get("nesterov") else b, b) if b else None)
        optimizer = SFW([{"params": [p], "constraint": ball}], lr=0.1, start=start, fused=fused,
                        **options)  # fmt: skip
        for (g,) in gradients([p], 25):
            optimizer.step()
            m = (g if start == "gradient" else 0 * g) if m is None else m
            d = b1 * m + (1 - b1) * g
            x = x + 0.1 * (ball.lmo(d) - x)
            m = b2 * m + (1 - b2) * g
        close([p], [x], 1e-13)


@pytest.mark.parametrize("fused", [None, False])
@pytest.mark.parametrize("betas", [(0.5, 0.0), (0.0, 0.5), (0.0, 0.0)])
def test_either_weight_of_the_momentum_may_be_zero(betas, fused):
    """With (b, 0) the last gradient is remembered, and only that."""
    (p,) = tensors([(4, 3)], scale=0.05)
    x, m, ball = p.detach().clone(), None, adafw.LInfBall(0.7)
    group = [{"params": [p], "constraint": ball}]
    optimizer = SFW(group, lr=0.1, betas=betas, fused=fused)
    for (g,) in gradients([p], 6):
        optimizer.step()
        m = g if m is None else m
        x = x + 0.1 * (ball.lmo(betas[0] * m + (1 - betas[0]) * g) - x)
        m = betas[1] * m + (1 - betas[1]) * g
    close([p], [x], 1e-13)
    assert ("momentum" in optimizer.state[p]) == any(betas)
    if any(betas):
        torch.testing.assert_close(optimizer.state[p]["momentum"], m)


def test_a_scaled_set_is_so_many_times_its_own_size():
    assert scaled(adafw.LInfBall(0.5), 3.0) == adafw.LInfBall(1.5)
    assert scaled(adafw.KSparse(0.5, 2), 3.0) == adafw.KSparse(1.5, 2)
    assert scaled(adafw.Box(-1.0, 2.0), 3.0) == adafw.Box(-3.0, 6.0)
    ball = adafw.L2Ball(2.0)
    assert scaled(ball, 1.0) is ball
    assert scaled(None, 3.0) is None
    assert ball == adafw.L2Ball(2.0)


def test_a_step_without_a_set_may_be_as_long_as_one_likes():
    (p,) = tensors([(2,)])
    x = p.detach().clone()
    optimizer = SFW([{"params": [p], "constraint": None}], lr=2.5, momentum=0.0)
    p.grad = torch.ones_like(p)
    optimizer.step()
    close([p], [x - 2.5], 1e-15)
    with pytest.raises(ValueError, match="lr must be a number >= 0 and <= 1, as it is the step"):
        SFW([{"params": [p], "constraint": adafw.L2Ball(9.0)}], lr=2.5)
    SFW([{"params": [p], "constraint": adafw.L2Ball(9.0)}], lr=2.5, rescale="diameter")


@pytest.mark.parametrize("rescale", ["gradient", "short"])
@pytest.mark.parametrize("name", ["linf", "l2", "nuclear"])
def test_sfw_with_betas_is_rescaled_by_its_direction(name, rescale):
    """d is neither the momentum nor the gradient, and must outlive the way to its vertex."""
    ball = {"linf": adafw.LInfBall, "l2": adafw.L2Ball, "nuclear": adafw.NuclearBall}[name](0.7)
    (p,) = tensors([(4, 3)], scale=0.05)
    x, m = p.detach().clone(), None
    group = [{"params": [p], "constraint": ball}]
    optimizer = SFW(group, lr=0.1, betas=(0.5, 0.9), rescale=rescale)
    for (g,) in gradients([p], 8):
        optimizer.step()
        m = g if m is None else m
        d = 0.5 * m + 0.5 * g
        away = x - ball.lmo(d)
        gamma = {"gradient": 0.1 * d.norm() / away.norm(),
                 "short": 0.1 * (d * away).sum() / (away * away).sum()}[rescale]  # fmt: skip
        x = x - min(1.0, float(gamma)) * away
        m = 0.9 * m + 0.1 * g
        close([p], [x], 1e-12)


@pytest.mark.parametrize(
    ("preset", "ball", "form"),
    [
        (lambda p: Lion(p, 0.02, weight_decay=0.5), adafw.LInfBall(2.0), {"betas": (0.9, 0.99)}),
        (lambda p: Signum(p, 0.02, 0.8, weight_decay=0.5), adafw.LInfBall(2.0), {"momentum": 0.8}),
        (lambda p: Muon(p, 0.02, 0.5, lmo="exact"), adafw.SpectralBall(2.0),
         {"betas": (0.9025, 0.95)}),
    ],
    ids=["Lion", "Signum", "Muon"],
)  # fmt: skip
def test_decoupled_decay_is_frank_wolfe_with_gamma_lr_wd(preset, ball, form):
    (p,), (q,) = tensors([(5, 5)], scale=0.1), tensors([(5, 5)], scale=0.1)
    first = preset([p])
    second = SFW([{"params": [q], "constraint": ball}], lr=0.01, start="zero", **form)
    for (g,) in gradients([p], 30):
        q.grad = g
        first.step()
        second.step()
    close([p], [q.detach()], 1e-12)
    assert ball.contains(p.detach())
    held = first.held_groups()[0]["constraint"]
    assert held.radius == 2.0


def test_a_start_outside_its_ball_is_drawn_in_by_one_minus_gamma_a_step():
    (p,) = tensors([(5, 4)], scale=10.0)
    optimizer = Lion([p], lr=0.1, weight_decay=1.0)
    outside = p.detach().abs().max().item() - 1
    assert f"outside by {100 * outside:.3g} %" in optimizer.describe()
    for _ in gradients([p], 40):
        optimizer.step()
        outside *= 0.9
        assert p.detach().abs().max().item() - 1 <= outside + 1e-12
    for _ in gradients([p], 200):
        optimizer.step()
    assert "inside" in optimizer.describe()


def test_the_short_step_goes_to_the_minimum_along_the_line():
    """On ||x - c||^2 / (2 lr), whose curvature is 1 / lr, it is exact line search."""
    ball, c = adafw.L2Ball(2.0), torch.tensor([0.5, -0.2, 0.1], dtype=torch.float64)
    p = nn.Parameter(torch.tensor([1.0, 1.0, -1.0], dtype=torch.float64))
    optimizer = SFW([{"params": [p], "constraint": ball}], lr=0.5, momentum=0, rescale="short")
    for _ in range(10):
        x, g = p.detach().clone(), (p.detach() - c) / 0.5
        p.grad = g
        optimizer.step()
        v = ball.lmo(g)
        ts = torch.linspace(0, 1, 100_001, dtype=torch.float64)
        values = ((x + ts[:, None] * (v - x) - c) ** 2).sum(1)
        best = x + ts[values.argmin()] * (v - x)
        torch.testing.assert_close(p.detach(), best, rtol=0, atol=1e-4)


def test_a_short_step_from_outside_goes_nowhere_uphill():
    """Where a set has shrunk behind a point, the way to a vertex may rise: the step is then 0."""
    p = nn.Parameter(torch.full((2,), -0.9, dtype=torch.float64))
    group = [{"params": [p], "constraint": adafw.LInfBall(1.0)}]
    optimizer = SFW(group, lr=0.0, momentum=0.0, rescale="short")
    p.grad = torch.ones(2, dtype=torch.float64)
    optimizer.step()
    optimizer.param_groups[0].update(lr=0.5, radius_scale=0.1)
    optimizer.step()
    assert p.tolist() == [-0.9, -0.9]
    p.grad = -torch.ones(2, dtype=torch.float64)
    optimizer.step()
    assert p.detach().tolist() == pytest.approx([-0.4, -0.4])  # 0.5 of the way of length 1


def test_radii_follow_a_schedule_and_resume():
    (p,), (q,) = tensors([(6,)], scale=0.1), tensors([(6,)], scale=0.1)
    optimizer = SFW([{"params": [p], "constraint": adafw.LInfBall(1.0)}], lr=0.5, momentum=0.0)
    schedule = RadiusSchedule(optimizer, lambda t: 2.0 / (1 + t))
    x = p.detach().clone()
    for t, (g,) in enumerate(gradients([p], 6)):
        optimizer.step()
        schedule.step()
        x = 0.5 * x - 0.5 * 2.0 / (1 + t) * g.sign()
        close([p], [x], 1e-14)
    again = RadiusSchedule(
        SFW([{"params": [q], "constraint": adafw.LInfBall(1.0)}], lr=0.5), lambda t: 2.0 / (1 + t)
    )
    again.load_state_dict(schedule.state_dict())
    assert again.optimizer.param_groups[0]["radius_scale"] == 2.0 / 7
    with pytest.raises(TypeError, match="optimizer must be an SFW, got Lion; Muon, Lion and"):
        RadiusSchedule(Lion([p]), lambda t: 1.0)
    hull = adafw.Hull(torch.eye(6).numpy())
    point = nn.Parameter(hull.start((6,), torch.float64))
    with pytest.raises(TypeError, match="radius_scale must be 1 for a set without a radius"):
        SFW([{"params": [point], "constraint": hull}], lr=0.1, radius_scale=2.0)


def test_a_schedule_sets_all_radii_and_goes_on_from_a_saved_count():
    held = [{"params": [p], "constraint": adafw.LInfBall(1.0)}
            for p in tensors([(2,), (3,)], scale=0.01)]  # fmt: skip
    optimizer = SFW(held, lr=0.5)
    schedule = RadiusSchedule(optimizer, lambda t: 3.0 - t)
    for scale in (2.0, 1.0):
        schedule.step()
        assert [group["radius_scale"] for group in optimizer.param_groups] == [scale, scale]
    assert schedule.state_dict() == {"t": 2}
    with pytest.raises(ValueError, match=r"factor\(t\) must be a number that is finite and > 0"):
        schedule.step()
    schedule.load_state_dict({"t": 1})
    assert schedule.state_dict() == {"t": 1}
    assert [group["radius_scale"] for group in optimizer.param_groups] == [2.0, 2.0]
    with pytest.raises(ValueError, match=r"factor\(t\) must be a number that is finite and > 0"):
        RadiusSchedule(optimizer, lambda t: 0.0)


# --- as torch optimizers ------------------------------------------------------------------------


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.Tanh(), nn.Linear(8, 2)).double()


def groups_of(model):
    matrices = [p for p in model.parameters() if p.dim() == 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    return [{"params": matrices}, {"params": rest, "adamw": True, "lr": 0.003}]


PRESETS = {
    "Muon": lambda g: Muon(g, lr=0.02),
    "Muon, exact": lambda g: Muon(g, lr=0.02, lmo="exact"),
    "Lion": lambda g: Lion(g, lr=0.003, weight_decay=0.1),
    "Signum": lambda g: Signum(g, lr=0.003, weight_decay=0.1),
    "Scion": lambda g: Scion(g, lr=0.01),
}


def train(model, optimizer, steps, seed=3):
    rng = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        x = torch.randn(16, 6, generator=rng, dtype=torch.float64)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), x[:, :2] * x[:, 2:4]).backward()
        optimizer.step()


def weights(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


@pytest.mark.parametrize("kind", PRESETS)
def test_checkpoints_of_presets_resume_bit_for_bit_and_load_twice(kind):
    model = network()
    optimizer = PRESETS[kind](groups_of(model))
    train(model, optimizer, 4)
    file = io.BytesIO()
    torch.save((model.state_dict(), optimizer.state_dict()), file)
    train(model, optimizer, 4, seed=5)
    file.seek(0)
    weights_then, state = torch.load(file, weights_only=True)
    other = network()
    again = PRESETS[kind](groups_of(other))
    for _ in range(2):
        again.load_state_dict(state)
        other.load_state_dict(weights_then)
        train(other, again, 4, seed=5)
        assert torch.equal(weights(model), weights(other))
    pair = copy.deepcopy((other, again))
    train(other, again, 2)
    train(*pair, 2)
    assert torch.equal(weights(other), weights(pair[0]))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_group_of_adamw_is_torch_s_adamw(dtype):
    ours, theirs = tensors([(4, 3), (5,)], dtype), tensors([(4, 3), (5,)], dtype)
    first = Muon([{"params": ours, "adamw": True, "lr": 0.01}])
    masters = [nn.Parameter(p.detach().to(torch.promote_types(dtype, torch.float32)))
               for p in theirs]  # fmt: skip
    second = torch.optim.AdamW(masters, lr=0.01, betas=(0.9, 0.95), weight_decay=0.1)
    for gs in gradients(ours, 10):
        for p, g in zip(masters, gs, strict=True):
            p.grad = g.to(p.dtype)
        first.step()
        second.step()
        if dtype == torch.bfloat16:  # which rounds the weights after every step
            for p, q in zip(masters, ours, strict=True):
                torch.testing.assert_close(p.detach().to(dtype), q.detach(), rtol=1e-2, atol=1e-3)
                p.data.copy_(q.detach())
    close([p.to(torch.float64) for p in ours], [p.detach().double() for p in masters],
          {torch.float64: 1e-12, torch.float32: 1e-6, torch.bfloat16: 1e-6}[dtype])  # fmt: skip


@pytest.mark.parametrize("fused", [None, False])
@pytest.mark.parametrize("kind", [Muon, Lion, Signum, Scion])
def test_adamw_takes_its_own_numbers(kind, fused):
    ours, theirs = tensors([(4, 3), (5,)]), tensors([(4, 3), (5,)])
    numbers = {"adamw_betas": (0.5, 0.8), "adamw_eps": 0.1}
    first = kind(
        [{"params": ours, "adamw": True, "lr": 0.05, "weight_decay": 0.3}], fused=fused, **numbers
    )
    second = torch.optim.AdamW(theirs, lr=0.05, betas=(0.5, 0.8), eps=0.1, weight_decay=0.3)
    for gs in gradients(ours, 6):
        for p, g in zip(theirs, gs, strict=True):
            p.grad = g
        first.step()
        second.step()
    close(ours, [p.detach() for p in theirs], 1e-13)
    assert [float(first.state[p]["step"]) for p in ours] == [6, 6]


def test_each_group_of_adamw_has_its_own_numbers():
    numbers = [{"lr": 0.05, "weight_decay": 0.3}, {"lr": 0.02, "weight_decay": 0.0}]
    ours, theirs = tensors([(4, 3), (5,)]), tensors([(4, 3), (5,)])
    first = Muon([{"params": [p], "adamw": True, **n} for p, n in zip(ours, numbers, strict=True)])
    second = torch.optim.AdamW(
        [{"params": [p], **n} for p, n in zip(theirs, numbers, strict=True)], betas=(0.9, 0.95)
    )
    for gs in gradients(ours, 4):
        for p, g in zip(theirs, gs, strict=True):
            p.grad = g
        first.step()
        second.step()
    close(ours, [p.detach() for p in theirs], 1e-13)


def test_the_numbers_of_adamw_are_checked_and_bound_by_no_ball():
    for wrong, message in (({"adamw_betas": (0.9, 1.0)}, "b2 of betas must be"),
                           ({"adamw_betas": 0.9}, "betas must be a pair"),
                           ({"adamw_eps": -1.0}, "adamw_eps must be a num")):  # fmt: skip
        for kind in (Muon, Scion, Lion, Signum):
            with pytest.raises(ValueError, match=message):
                kind(tensors([(9, 4)]), **wrong)
    group = {"params": tensors([(5,)]), "adamw": True, "lr": 20.0, "weight_decay": 0.1}
    assert Muon([group]).param_groups[0]["lr"] == 20.0


@pytest.mark.parametrize("fused", [None, False])
@pytest.mark.parametrize("kind", [Muon, Lion, Signum, Scion])
def test_ascent_is_descent_on_the_negative(kind, fused):
    """In the balls and beside them, alone and several at once."""
    ends = []
    for sign in (1, -1):
        params = tensors([(4, 3), (4, 3), (5,)], scale=0.1)
        groups = [{"params": params[:2]}, {"params": params[2:], "adamw": True}]
        optimizer = kind(groups, lr=0.05, fused=fused, maximize=sign < 0)
        for gs in gradients(params, 3):
            for p, g in zip(params, gs, strict=True):
                p.grad = sign * g
            optimizer.step()
        ends.append(params)
    assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))


def test_muon_hands_its_options_to_the_ball():
    (p,) = tensors([(6, 4)])
    group = {"params": [p], "split": 3}
    optimizer = Muon([group], lmo="torch", ns_coefficients=[2.0, -1.5, 0.5], ns_steps=3, eps=0.25)
    ball = optimizer.unit_ball(optimizer.param_groups[0], p)
    assert (ball.radius, ball.split, ball.coefficients) == (1.0, 3, (2.0, -1.5, 0.5))
    assert (ball.steps, ball.eps) == (3, 0.25)


@pytest.mark.parametrize("fused", [None, False])
def test_a_default_device_that_is_not_the_parameter_s_does_not_matter(fused):
    ends = []
    for device in ("cpu", "meta"):
        params = tensors([(4, 3), (3, 4), (4, 3), (5,)], torch.float32)
        groups = [{"params": params[:3]}, {"params": params[3:], "adamw": True}]
        wanted = list(gradients(params, 2))
        with torch.device(device):
            optimizer = Muon(groups, lr=0.05, fused=fused)
            for gs in wanted:
                for p, g in zip(params, gs, strict=True):
                    p.grad = g
                optimizer.step()
        ends.append(params)
    assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))


def test_a_loaded_count_of_adamw_is_a_copy():
    (p,), (q,) = tensors([(3,)]), tensors([(3,)])
    first, second = (Muon([{"params": [x], "adamw": True, "lr": 0.01}]) for x in (p, q))
    for gs in gradients([p], 2):
        p.grad = gs[0]
        first.step()
    second.load_state_dict(first.state_dict())
    first.step()
    assert float(first.state[p]["step"]) == 3
    assert float(second.state[q]["step"]) == 2
    assert not torch.equal(first.state[p]["exp_avg"], second.state[q]["exp_avg"])


@pytest.mark.parametrize("kind", PRESETS)
def test_presets_train_have_a_set_a_table_and_a_gap(kind):
    model = network()
    optimizer = PRESETS[kind](groups_of(model))
    x = torch.randn(64, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    loader = [(x, x[:, :2] * x[:, 2:4])]
    loss = nn.functional.mse_loss(model(x), loader[0][1]).item()
    train(model, optimizer, 150)
    assert nn.functional.mse_loss(model(x), loader[0][1]).item() < 0.8 * loss
    value = gap(model, nn.functional.mse_loss, loader, optimizer)
    assert value > 0
    held = optimizer.held_groups()
    assert value == pytest.approx(gap(model, nn.functional.mse_loss, loader, held))
    table = optimizer.describe().splitlines()
    assert table[0].split()[:5] == ["parameter", "shape", "set", "radius", "gamma"]
    assert sum("none (AdamW)" in line for line in table) == 4
    assert make_feasible(held) == []


def test_the_table_names_set_radius_gamma_and_pair():
    (w,) = tensors([(9, 4)], scale=0.01)
    line = Muon([{"params": [w], "names": ["fc.weight"]}], lr=0.02).describe().splitlines()[1]
    assert line.split() == ["fc.weight", "9x4", "NewtonSchulzBall", "15", "0.002", "(0.02,",
                            "0.1)", "inside"]  # fmt: skip
    line = Scion([w], lr=0.1, scale=2.0).describe().splitlines()[1]
    assert line.split()[3:] == ["NewtonSchulzBall", "3", "0.1", "(0.2,", "0.5)", "inside"]
    line = Lion([w], lr=0.02).describe().splitlines()[1]
    assert line.split()[2:] == ["9x4", "none", "0", "(0.02,", "0)"]
    free = Scion([w], lr=0.1, scale=2.0, unconstrained=True).describe().splitlines()[1]
    assert free.split()[2:] == ["9x4", "none", "0", "(0.2,", "0)"]
    adamw = Muon([{"params": [w], "adamw": True, "lr": 0.02}]).describe().splitlines()[1]
    assert adamw.split()[2:] == ["9x4", "none", "(AdamW)", "(0.02,", "0.1)"]
    far = adafw.LInfBall(w.detach().abs().max().item() / 1.5)
    outside = Lion([w], lr=0.01, weight_decay=1 / far.radius).describe().splitlines()[1]
    assert outside.split()[-3:] == ["by", "50", "%"]
    held = {"params": [w], "constraint": adafw.LInfBall(4.0)}
    told = SFW([held], lr=0.1, rescale="gradient").describe().splitlines()[1]
    assert told.split()[3:] == ["LInfBall", "4", "in", "the", "step", "inside"]
    box = {"params": [w], "constraint": adafw.Box(-4.0, 5.0)}
    told = SFW([box], lr=0.1).describe().splitlines()[1]
    assert told.split()[3:] == ["Box(lower=-4.,", "upper=5.)", "0.1", "inside"]
    sfw = SFW([{"params": [w], "constraint": adafw.LInfBall(4.0)}], lr=0.1)
    line = sfw.describe().splitlines()[1]
    assert line.split()[3:] == ["LInfBall", "4", "0.1", "(0.4,", "0.25)", "inside"]


def test_the_table_has_a_line_for_parameters_of_every_kind():
    empty, scalar = nn.Parameter(torch.zeros(0, 3)), nn.Parameter(torch.tensor(0.5))
    bare = nn.Parameter(torch.zeros(2, 3, device="meta"))
    half = nn.Parameter(torch.tensor([0.3], dtype=torch.bfloat16))  # rounded to 0.3008
    groups = [{"params": [empty, bare, scalar], "constraint": adafw.LInfBall(1.0)},
              {"params": [half], "constraint": adafw.LInfBall(0.3), "lr": 0.2}]  # fmt: skip
    lines = [line.split()[2:] for line in SFW(groups, lr=0.1).describe().splitlines()[1:]]
    assert lines == [
        ["0x3", "LInfBall", "1", "0.1", "(0.1,", "1)"],
        ["2x3", "LInfBall", "1", "0.1", "(0.1,", "1)"],
        ["scalar", "LInfBall", "1", "0.1", "(0.1,", "1)", "inside"],
        ["1", "LInfBall", "0.3", "0.2", "(0.06,", "3.333)", "inside"],
    ]
    rest = {"params": tensors([(4,)]), "adamw": True, "lr": 0.02, "weight_decay": 0.3}
    held = [{"params": tensors([(9, 4)], scale=0.01)}, rest]
    line = Muon(held, lr=0.5, weight_decay=0.1).describe().splitlines()[2]
    assert line.split()[2:] == ["4", "none", "(AdamW)", "(0.02,", "0.3)"]


def test_stacked_matrices_are_steps_of_each():
    """Query, key and value in one weight, and experts in a tensor of three dimensions."""
    (qkv, experts), gs = tensors([(6, 4), (3, 2, 4)]), tensors([(6, 4)], seed=1)
    parts = [nn.Parameter(qkv.detach()[2 * i : 2 * i + 2].clone()) for i in range(3)]
    experts.data.copy_(qkv.detach().view(3, 2, 4))
    g = gs[0].detach()
    qkv.grad, experts.grad = g.clone(), g.view(3, 2, 4).clone()
    for i, p in enumerate(parts):
        p.grad = g[2 * i : 2 * i + 2].clone()
    for make in (lambda p, **k: Muon([{"params": p, **k}], lr=0.1, adjust_lr_fn="match_rms_adamw"),
                 lambda p, **k: Muon([{"params": p, **k}], lr=0.1, lmo="exact"),
                 lambda p, **k: Scion([{"params": p, **k}], lr=0.1)):  # fmt: skip
        make([qkv, experts], split=3).step()
        make(parts).step()
        whole = torch.cat([p.detach() for p in parts])
        torch.testing.assert_close(qkv.detach(), whole, rtol=0, atol=1e-12)
        torch.testing.assert_close(experts.detach().view(6, 4), whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: Muon(p, adjust_lr_fn="x"), "adjust_lr_fn must be None, 'original' or 'match_r"),
        (lambda p: Muon(p, lmo="svd"), "lmo must be 'feasible', 'torch' or 'exact', got 'svd'"),
        (lambda p: Muon(p, ns_steps=0), "ns_steps must be an integer >= 1, got 0"),
        (lambda p: Muon(p, momentum=1.0), "momentum must be a number >= 0 and < 1"),
        (lambda p: Muon(p, weight_decay=-1.0), "weight_decay must be a number that is finite and"),
        (lambda p: Muon([{"params": p, "split": 5}]), r"split must divide the rows .* shape \(9, "),
        (lambda p: Muon([nn.Parameter(torch.zeros(3))]), r"trains matrices, .* \(3,\); put it in"),
        (lambda p: Muon(p, lr=20.0, weight_decay=0.1), r"gamma = lr \* weight_decay must be <= 1"),
        (lambda p: Scion(p, lr=1.5), "the step size gamma = lr must be <= 1, got 1.5"),
        (lambda p: Scion(p, norm="nuclear"), "norm must be 'auto' or one of spectral, conv"),
        (lambda p: Scion(p, scale=0.0), "scale must be a number that is finite and > 0"),
        (lambda p: Scion([nn.Parameter(torch.zeros(3))], norm="row"), "norm='row' is for matrices"),
        (lambda p: Scion([{"params": p, "weight_decay": 0.5}]), "take scale=2 for the same ball"),
        (lambda p: Lion(p, betas=(0.9, 1.0)), "b2 of betas must be a number >= 0 and < 1"),
        (lambda p: Lion(p, betas=0.9), "betas must be a pair"),
        (lambda p: Lion([{"params": p, "constraint": adafw.LInfBall(1.0)}]), "makes its own ball"),
        (lambda p: Muon(p, fused=True), "fused=True needs a compiled update, but there is one for"),
        (lambda p: SFW([{"params": p, "constraint": None}], lr=0.1, betas=(0.9, 0.9),
                       nesterov=True), "nesterov must be False where betas are given"),
        (lambda p: SFW([{"params": p, "constraint": None}], lr=0.1, betas=(0.9, 0.9), momentum=0.0,
                       nesterov=True), "nesterov must be False where betas are given"),
        (lambda p: SFW([{"params": p, "constraint": None}], lr=0.1, start="one"),
         "start must be 'gradient' or 'zero', got 'one'"),
    ],
)  # fmt: skip
def test_options_out_of_range_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make(tensors([(9, 4)]))


def test_schedulers_cycle_the_momentum_of_presets():
    plain = SFW([{"params": tensors(), "constraint": None}], lr=0.1)
    for optimizer, key in ((Signum(tensors()), "momentum"), (Lion(tensors()), "betas"),
                           (plain, "momentum")):  # fmt: skip
        before = optimizer.param_groups[0][key]
        torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.01, total_steps=10)
        assert optimizer.param_groups[0][key] != before


def test_a_step_as_long_as_the_way_to_the_vertex_is_allowed():
    p = torch.nn.Parameter(torch.ones(3, 2, dtype=torch.float64))
    p.grad = torch.ones_like(p)
    Scion([p], lr=1.0, norm="sign").step()
    torch.testing.assert_close(p.detach(), torch.full((3, 2), -0.5, dtype=torch.float64))


def test_the_steps_of_newton_and_schulz_are_as_many_as_asked_for():
    found = []
    for steps in (1, 2, 5):
        p = torch.nn.Parameter(torch.zeros(3, 2))
        p.grad = torch.tensor([[1.0, 2.0], [0.5, -1.0], [3.0, 0.1]])
        Muon([p], lr=0.1, lmo="torch", ns_steps=steps).step()
        found.append(p.detach().clone())
    assert not torch.equal(found[0], found[1])
    assert not torch.equal(found[1], found[2])
