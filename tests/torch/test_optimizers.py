"""The optimizers against the paper, written out once more, against the core, and as torch users
use them."""

import copy
import inspect
import io
import math
import pickle

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call, grad

import adafw
from adafw import metrics, steps
from adafw.torch import (
    SFW,
    AdaGrad,
    AdamSFW,
    AdaSFW,
    AMSGrad,
    NewtonSchulzBall,
    PowerNuclearBall,
    constrain,
    make_feasible,
    updates,
)

SETS = {
    "linf": adafw.LInfBall(0.3),
    "l1": adafw.L1Ball(2.0),
    "l2": adafw.L2Ball(0.9),
    "simplex": adafw.Simplex(1.5),
    "unit_simplex": adafw.UnitSimplex(1.5),
    "box": adafw.Box(-0.2, 0.4),
}
OPTIMIZERS = {
    "SFW": lambda p, **k: SFW(p, lr=0.05, **k),
    "AdaSFW": lambda p, **k: AdaSFW(p, lr=0.05, inner_steps=3, **k),
    "AdamSFW": lambda p, **k: AdamSFW(p, lr=0.02, inner_steps=4, **k),
    "AdaGrad": lambda p: AdaGrad(p, lr=0.05),
    "AMSGrad": lambda p: AMSGrad(p, lr=0.02),
}


def network(dtype=torch.float64, seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2)).to(dtype)


def batches(n=25, dtype=torch.float64, seed=1):
    rng = torch.Generator().manual_seed(seed)
    draw = lambda *s: torch.randn(*s, generator=rng, dtype=torch.float64).to(dtype)  # noqa: E731
    return [(draw(8, 6), draw(8, 2)) for _ in range(n)]


def groups_of(model, constraint):
    groups = [{"params": [p], "names": [name], "constraint": constraint}
              for name, p in model.named_parameters()]  # fmt: skip
    make_feasible(groups)
    return groups


def train(model, optimizer, data, after=None):
    for x, y in data:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        if after:
            after()
    return model


def same(a, b):
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


def weights(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


# --- the paper, written out with numpy --------------------------------------------------------


def paper_lmo(name, g):
    """Minimisers of <g, v>, from the definitions of the sets above."""
    v = np.zeros_like(g)
    if name == "linf":
        return -0.3 * np.sign(g)
    if name == "box":
        return np.where(g > 0, -0.2, np.where(g < 0, 0.4, 0.1))
    if name == "l2":
        return -0.9 * g / np.sqrt((g**2).sum())
    flat = v.reshape(-1)
    if name == "l1":
        i = int(np.argmax(abs(g)))
        flat[i] = -2.0 * np.sign(g.reshape(-1)[i])
    else:
        i = int(np.argmin(g))
        flat[i] = 1.5 if name == "simplex" or g.min() < 0 else 0.0
    return v


def paper_inner(x, m, h, eta, K, name):
    """Lines 9 to 16 of Algorithm 7."""
    y = x
    for _ in range(K):
        q = m + h * (y - x) / eta
        v = paper_lmo(name, q)
        num, den = (q * (y - v)).sum(), ((y - v) * h * (y - v)).sum()
        y = y + (min(eta * num / den, 1.0) if num > 0 else 0.0) * (v - y)
    return y


class PaperRun:
    """One parameter under one of the paper's algorithms."""

    def __init__(self, kind, name):
        self.kind, self.name, self.t = kind, name, 0
        self.m = self.s = self.largest = 0.0

    def __call__(self, x, g):
        t, self.t = self.t, self.t + 1
        if self.kind == "SFW":
            self.m = g if t == 0 else 0.9 * self.m + 0.1 * g
            return x + 0.05 * (paper_lmo(self.name, self.m) - x)
        if self.kind == "AdaSFW":
            self.s = self.s + g**2
            return paper_inner(x, g, 1e-8 + np.sqrt(self.s), 0.05, 3, self.name)
        self.m = 0.9 * self.m + 0.1 * g
        self.s = 0.99 * self.s + 0.01 * g**2
        self.largest = np.maximum(self.largest, self.s)
        return paper_inner(x, self.m, 1e-8 + np.sqrt(self.largest), 0.02, 4, self.name)


@pytest.mark.parametrize("fused", [None, False])
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("kind", ["SFW", "AdaSFW", "AdamSFW"])
def test_follows_the_paper_step_by_step(kind, name, fused):
    model = network()
    optimizer = OPTIMIZERS[kind](groups_of(model, SETS[name]), fused=fused)
    reference = {n: p.detach().numpy().copy() for n, p in model.named_parameters()}
    runs = {n: PaperRun(kind, name) for n in reference}

    def loss(params, x, y):
        return nn.functional.mse_loss(functional_call(model, params, (x,)), y)

    for x, y in batches():
        gradients = grad(loss)({n: torch.tensor(w) for n, w in reference.items()}, x, y)
        reference = {n: runs[n](w, gradients[n].numpy()) for n, w in reference.items()}
        train(model, optimizer, [(x, y)])
        for n, p in model.named_parameters():
            np.testing.assert_allclose(p.detach().numpy(), reference[n], rtol=0, atol=1e-12)


CORE = {
    "SFW": steps.FrankWolfeStep(0.05),
    "AdaSFW": steps.AdaptiveStep(0.05, 3),
    "AdamSFW": steps.AdaptiveStep(0.02, 4, metric=metrics.AMSGrad()),
    "AdaGrad": steps.ProjectedStep(0.05),
    "AMSGrad": steps.ProjectedStep(0.02, metrics.AMSGrad()),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("kind", CORE)
def test_equals_the_core_steps(kind, name):
    constraint, step = SETS[name], CORE[kind]
    rng = np.random.default_rng(0)
    p = nn.Parameter(torch.tensor(constraint.lmo(rng.standard_normal((4, 7))) * 0.9))
    group = [{"params": [p], "constraint": constraint}]
    make_feasible(group)
    optimizer = SFW(group, lr=0.05, momentum=0) if kind == "SFW" else OPTIMIZERS[kind](group)
    x = p.detach().numpy().copy()
    state = step.init(x)
    for t in range(30):
        g = rng.standard_normal((4, 7)) if t != 7 else np.zeros((4, 7))
        x, state = step.update(None, constraint, x, g, t, state)
        p.grad = torch.tensor(g)
        optimizer.step()
        np.testing.assert_allclose(p.detach().numpy(), x, rtol=0, atol=1e-12)
        assert constraint.contains(p.detach())


def test_max_step_bounds_each_inner_step_as_in_the_core():
    rng = np.random.default_rng(3)
    x = np.zeros((3, 3))
    p = nn.Parameter(torch.tensor(x))
    optimizer = AdaSFW([{"params": [p], "constraint": SETS["linf"]}], lr=10.0, max_step=0.01)
    step, state = steps.AdaptiveStep(10.0, 2, 0.01), steps.AdaptiveStep(10.0).init(x)
    for t in range(5):
        g = rng.standard_normal((3, 3))
        x, state = step.update(None, SETS["linf"], x, g, t, state)
        p.grad = torch.tensor(g)
        optimizer.step()
        np.testing.assert_allclose(p.detach().numpy(), x, rtol=0, atol=1e-14)


# --- without a set, and the options of SFW -----------------------------------------------------


@pytest.mark.filterwarnings("ignore:.* was given no set")
def test_without_a_set_adagrad_is_torch_s_own():
    ours, theirs = network(), network()
    for kind in (AdaSFW, AdaGrad):
        train(ours, kind(ours.parameters(), lr=0.1, offset=1e-10), batches())
        train(theirs, torch.optim.Adagrad(theirs.parameters(), lr=0.1, eps=1e-10), batches())
        torch.testing.assert_close(weights(ours), weights(theirs), rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore:.* was given no set")
@pytest.mark.parametrize("kind", [AdamSFW, AMSGrad])
def test_without_a_set_the_adaptive_step_is_x_minus_lr_m_over_h(kind):
    p = nn.Parameter(torch.ones(3, dtype=torch.float64))
    p.grad = torch.tensor([1.0, -2.0, 0.0], dtype=torch.float64)
    kind([p], lr=0.5, betas=(0.9, 0.99)).step()
    m, h = 0.1 * p.grad, 1e-8 + (0.01 * p.grad**2).sqrt()
    torch.testing.assert_close(p.detach(), 1 - 0.5 * m / h, rtol=1e-14, atol=0)


@pytest.mark.filterwarnings("ignore:.* was given no set")
def test_without_a_set_sfw_is_gradient_descent_with_momentum():
    ours, theirs = network(), network()
    train(ours, SFW(ours.parameters(), lr=0.1, momentum=0.0), batches())
    train(theirs, torch.optim.SGD(theirs.parameters(), lr=0.1), batches())
    torch.testing.assert_close(weights(ours), weights(theirs), rtol=0, atol=1e-13)


def test_rescale_gradient_makes_the_step_as_long_as_the_gradient_s():
    p = nn.Parameter(torch.full((4,), 0.1, dtype=torch.float64))
    p.grad = torch.tensor([3.0, -1.0, 2.0, 0.5], dtype=torch.float64)
    before = p.detach().clone()
    SFW([{"params": [p], "constraint": adafw.L2Ball(5.0)}], lr=0.01, rescale="gradient").step()
    length = torch.linalg.vector_norm(p.detach() - before)
    torch.testing.assert_close(length, 0.01 * torch.linalg.vector_norm(p.grad))
    SFW([{"params": [p], "constraint": adafw.L2Ball(5.0)}], lr=1e9, rescale="gradient").step()
    torch.testing.assert_close(p.detach(), adafw.L2Ball(5.0).lmo(p.grad))


def test_rescale_diameter_divides_by_the_diameter():
    p = nn.Parameter(torch.zeros(4, dtype=torch.float64))
    p.grad = torch.ones(4, dtype=torch.float64)
    SFW([{"params": [p], "constraint": adafw.LInfBall(1.0)}], lr=0.8, rescale="diameter").step()
    torch.testing.assert_close(p.detach(), torch.full((4,), -0.8 / 4.0, dtype=torch.float64))
    # Longer than the set is wide: to the vertex, not beyond.
    SFW([{"params": [p], "constraint": adafw.LInfBall(1.0)}], lr=9.0, rescale="diameter").step()
    torch.testing.assert_close(p.detach(), torch.full((4,), -1.0, dtype=torch.float64))


def test_a_set_of_one_point_has_no_diameter_to_divide_by():
    p = nn.Parameter(torch.tensor([1.5], dtype=torch.float64))
    group = [{"params": [p], "constraint": SETS["simplex"]}]
    p.grad = torch.ones_like(p)
    for rescale in ("diameter", "gradient", "short"):
        SFW(group, lr=0.2, rescale=rescale).step()
        assert p.item() == 1.5


# --- torch's habits ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_weights_stay_in_their_sets_and_the_loss_falls(kind):
    model = network(torch.float32)
    groups = constrain(model, adafw.LInfBall, diameter=4.0, show=False)
    optimizer = OPTIMIZERS[kind](groups)

    def inside():
        for group in optimizer.param_groups:
            assert all(group["constraint"].contains(p.detach()) for p in group["params"])

    x, y = batches(1, torch.float32)[0]
    before = nn.functional.mse_loss(model(x), y).item()
    train(model, optimizer, [(x, y)] * 60, inside)
    assert nn.functional.mse_loss(model(x), y).item() < 0.8 * before


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_schedulers_set_the_learning_rate(kind):
    """A run under a scheduler equals one whose learning rate is set by hand."""
    first, second = network(), network()
    a = OPTIMIZERS[kind](groups_of(first, SETS["linf"]))
    b = OPTIMIZERS[kind](groups_of(second, SETS["linf"]))
    scheduler = torch.optim.lr_scheduler.StepLR(a, step_size=2, gamma=0.5)
    for t, batch in enumerate(batches(6)):
        for group in b.param_groups:
            group["lr"] = group["initial_lr"] = a.defaults["lr"] * 0.5 ** (t // 2)
        train(first, a, [batch], scheduler.step)
        train(second, b, [batch])
    assert torch.equal(weights(first), weights(second))
    fixed = network()
    train(fixed, OPTIMIZERS[kind](groups_of(fixed, SETS["linf"])), batches(6))
    assert not torch.equal(weights(first), weights(fixed))


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_learning_rate_zero_changes_nothing(kind):
    model = network()
    optimizer = OPTIMIZERS[kind](groups_of(model, SETS["l2"]))
    train(model, optimizer, batches(2))
    before, state = weights(model).clone(), copy.deepcopy(optimizer.state_dict()["state"])
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    train(model, optimizer, batches(3))
    assert torch.equal(weights(model), before)
    after = optimizer.state_dict()["state"]
    assert all(same(after[i][k], v) for i, s in state.items() for k, v in s.items())


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_checkpoints_load_with_weights_only_and_resume_bit_for_bit(kind, dtype):
    data = batches(10, dtype)
    model = network(dtype)
    optimizer = OPTIMIZERS[kind](groups_of(model, SETS["linf"]))
    train(model, optimizer, data[:5])
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    train(model, optimizer, data[5:])

    file.seek(0)
    saved = torch.load(file, weights_only=True)
    resumed = network(dtype, seed=9)
    resumed.load_state_dict(saved["model"])
    again = OPTIMIZERS[kind](groups_of(resumed, SETS["linf"]))
    again.load_state_dict(saved["optimizer"])
    assert saved["optimizer"]["param_groups"][0]["constraint"] == SETS["linf"].describe()
    train(resumed, again, data[5:])
    assert torch.equal(weights(model), weights(resumed))
    for p in resumed.parameters():
        assert all(again.state[p][k].dtype == torch.promote_types(dtype, torch.float32)
                   for k in again.buffers)  # fmt: skip


def test_a_loaded_state_is_a_copy():
    model, other = network(), network()
    first = OPTIMIZERS["AdaSFW"](groups_of(model, SETS["l1"]))
    train(model, first, batches(2))
    second = OPTIMIZERS["AdaSFW"](groups_of(other, SETS["l1"]))
    second.load_state_dict(first.state_dict())
    kept = second.state[other[0].weight]["sum_squares"].clone()
    train(model, first, batches(2))
    assert torch.equal(second.state[other[0].weight]["sum_squares"], kept)


def test_a_checkpoint_with_other_sets_is_refused():
    model = network()
    saved = AdaSFW(groups_of(model, SETS["linf"]), lr=0.1).state_dict()
    other = AdaSFW(groups_of(model, adafw.LInfBall(0.4)), lr=0.1)
    with pytest.raises(ValueError, match=r"group 0 is held to LInfBall\(radius=0.4\), but"):
        other.load_state_dict(saved)
    assert other.param_groups[0]["constraint"] == adafw.LInfBall(0.4)


@pytest.mark.filterwarnings("ignore:.* was given no set")
@pytest.mark.parametrize(
    ("other", "differs"),
    [
        (lambda p: AdamSFW(p, lr=0.1), "max_squares, mean_squares, momentum"),
        (lambda p: SFW(p, lr=0.1), "inner_steps, max_step, momentum, offset"),
        (lambda p: torch.optim.SGD(p, lr=0.1), "constraint, inner_steps, max_step, offset"),
    ],
    ids=["AdamSFW", "SFW", "SGD"],
)
def test_a_checkpoint_of_another_optimizer_is_refused(other, differs):
    model = network()
    saved = other(list(model.parameters()))
    train(model, saved, batches(1))
    ours = AdaSFW(list(model.parameters()), lr=0.1)
    with pytest.raises(ValueError, match=f"was not made by AdaSFW: .* differs in {differs}"):
        ours.load_state_dict(saved.state_dict())
    assert not ours.state


@pytest.mark.parametrize("fused", [None, False])
def test_momentum_may_be_turned_on_later(fused):
    """As schedulers that cycle it do; it then begins at the gradient."""
    p = nn.Parameter(torch.zeros(2, dtype=torch.float64))
    group = [{"params": [p], "constraint": adafw.LInfBall(1.0)}]
    optimizer = SFW(group, lr=0.5, momentum=0.0, fused=fused)
    for g, momentum, x in (([1.0, 1.0], 0.0, [-0.5, -0.5]), ([3.0, -1.0], 0.9, [-0.75, 0.25]),
                           ([-9.0, 2.0], 0.9, [-0.875, 0.625])):  # fmt: skip
        optimizer.param_groups[0]["momentum"] = momentum
        p.grad = torch.tensor(g, dtype=torch.float64)
        optimizer.step()
        assert p.tolist() == x
    torch.testing.assert_close(
        optimizer.state[p]["momentum"], torch.tensor([1.8, -0.7], dtype=torch.float64)
    )


@pytest.mark.parametrize("fused", [None, False])
@pytest.mark.parametrize(("start", "first"), [("zero", [0.3, -0.1]), ("gradient", [3.0, -1.0])])
def test_a_momentum_that_comes_later_begins_as_told(start, first, fused):
    p = nn.Parameter(torch.zeros(2, dtype=torch.float64))
    group = [{"params": [p], "constraint": adafw.LInfBall(1.0)}]
    optimizer = SFW(group, lr=0.5, momentum=0.0, start=start, fused=fused)
    for g, momentum in (([1.0, 1.0], 0.0), ([3.0, -1.0], 0.9)):
        optimizer.param_groups[0]["momentum"] = momentum
        p.grad = torch.tensor(g, dtype=torch.float64)
        optimizer.step()
    assert optimizer.state[p]["momentum"].tolist() == pytest.approx(first)


@pytest.mark.filterwarnings("ignore:.* was given no set")
def test_a_group_added_later_is_trained_and_checked():
    model = network()
    optimizer = AdamSFW(model[0].parameters(), lr=0.01)
    optimizer.add_param_group({"params": model[2].parameters(), "constraint": adafw.LInfBall(1.0)})
    train(model, optimizer, batches(3))
    assert optimizer.param_groups[1]["lr"] == 0.01
    assert optimizer.state[model[2].weight]["momentum"].any()
    outside = nn.Parameter(torch.full((2,), 3.0))
    with pytest.raises(ValueError, match="starts outside"):
        optimizer.add_param_group({"params": [outside], "constraint": adafw.LInfBall(1.0)})
    assert len(optimizer.param_groups) == 2


def test_groups_can_serve_two_optimizers():
    """torch writes defaults into the caller's dicts; a second optimizer would inherit them."""
    groups = groups_of(network(), SETS["linf"])
    SFW(groups, lr=0.5)
    assert AdamSFW(groups, lr=1e-3).param_groups[0]["lr"] == 1e-3


def test_closures_are_called_with_gradients_on():
    model = network()
    optimizer = AdaSFW(groups_of(model, SETS["linf"]), lr=0.1)
    x, y = batches(1)[0]

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    with torch.no_grad():
        first = optimizer.step(closure)
    assert optimizer.step(closure) < first


def test_grad_scaler_unscales_and_skips_overflowing_steps():
    model, plain = network(torch.float32), network(torch.float32)
    optimizer = AdamSFW(groups_of(model, SETS["linf"]), lr=0.01)
    other = AdamSFW(groups_of(plain, SETS["linf"]), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for x, y in batches(4, torch.float32):
        optimizer.zero_grad()
        scaler.scale(nn.functional.mse_loss(model(x), y)).backward()
        scaler.step(optimizer)
        scaler.update()
    train(plain, other, batches(4, torch.float32))
    assert torch.equal(weights(model), weights(plain))  # the scale is a power of two
    before = weights(model).clone()
    optimizer.zero_grad()
    (scaler.scale(model(torch.ones(1, 6)).sum()) * torch.inf).backward()
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(weights(model), before)
    assert scaler.get_scale() == 512.0


def test_autocast_with_bfloat16_weights_keeps_float32_state():
    model = network(torch.bfloat16)
    optimizer = AdamSFW(groups_of(model, adafw.LInfBall(0.25)), lr=0.01)
    train(model, optimizer, batches(20, torch.bfloat16))
    for p in model.parameters():
        assert optimizer.state[p]["mean_squares"].dtype == torch.float32
        assert p.abs().max() <= 0.25


def test_compiled_models_train_as_eager_ones():
    model, eager = network(), network()
    compiled = torch.compile(model, backend="eager")
    optimizer = AdaSFW(constrain(compiled, adafw.LInfBall, diameter=6.0, show=False), lr=0.1)
    other = AdaSFW(constrain(eager, adafw.LInfBall, diameter=6.0, show=False), lr=0.1)
    train(compiled, optimizer, batches(3))
    train(eager, other, batches(3))
    assert torch.equal(weights(model), weights(eager))


def test_lightning_style_step_with_hooks():
    """Trainers pass a closure that does everything, and register hooks around the step."""
    model = network()
    optimizer = AdamSFW(groups_of(model, SETS["l2"]), lr=0.01)
    calls = []
    optimizer.register_step_pre_hook(lambda *_: calls.append("before"))
    optimizer.register_step_post_hook(lambda *_: calls.append("after"))
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.05, total_steps=10)
    for x, y in batches(5):

        def closure(x=x, y=y):
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            return loss

        optimizer.step(closure)
        scheduler.step()
    assert calls == ["before", "after"] * 5
    assert optimizer.param_groups[0]["betas"][0] != 0.9  # the schedule moves the momentum too


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))]
)
def test_copies_go_on_as_the_original_does(kind, duplicate):
    model = network()
    optimizer = OPTIMIZERS[kind](groups_of(model, SETS["l2"]))
    train(model, optimizer, batches(3))
    other, again = duplicate((model, optimizer))
    train(model, optimizer, batches(3))
    assert not torch.equal(weights(model), weights(other))
    train(other, again, batches(3))
    assert torch.equal(weights(model), weights(other))


def test_in_place_changes_are_seen_by_autograd():
    model = nn.Linear(3, 2)
    optimizer = AdamSFW(groups_of(model, SETS["linf"]), lr=0.1)
    x = torch.ones(1, 3, requires_grad=True)
    loss = (model(x) ** 2).sum()
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("fused", [None, False])
@pytest.mark.parametrize(
    "constraint", [*SETS.values(), PowerNuclearBall(2.0), NewtonSchulzBall(2.0)], ids=repr
)
def test_a_default_device_that_is_not_the_parameter_s_does_not_matter(constraint, fused):
    """With torch.set_default_device, tensors made inside the step must still follow the weights."""
    ends = []
    for device in ("cpu", "meta"):
        updates._memory.__dict__.clear()
        p = nn.Parameter(constraint.start((3, 4), torch.float32))
        g = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
        with torch.device(device):
            for kind in (SFW, AdaSFW, AdamSFW):
                optimizer = kind([{"params": [p], "constraint": constraint}], lr=0.1, fused=fused)
                p.grad = g
                optimizer.step()
        ends.append(p.detach())
    assert torch.equal(*ends)


@pytest.mark.skipif(not hasattr(torch.Tensor, "grad_dtype"), reason="torch before 2.10")
@pytest.mark.parametrize("name", ["linf", "l1"])
def test_gradients_of_lower_precision_than_the_weights_are_taken(name):
    g = torch.tensor([1.0, -2.0, 0.5])
    ends = []
    for dtype in (torch.float32, torch.bfloat16):
        p = nn.Parameter(torch.zeros(3))
        p.grad_dtype = None
        p.grad = g.to(dtype)
        AdamSFW([{"params": [p], "constraint": SETS[name]}], lr=0.1).step()
        ends.append(p.detach())
    assert torch.equal(*ends)


# --- the bugs of other implementations ----------------------------------------------------------


def test_a_frozen_parameter_shifts_no_constraint():
    """Positional lists give later layers the wrong set when an earlier one is frozen."""
    model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 3), nn.Linear(3, 1))
    groups = constrain(model, adafw.LInfBall, diameter=6.0, show=False)
    radii = {n: g["constraint"].radius for g in groups for n in g["names"]}
    model[0].requires_grad_(False)
    frozen = model[0].weight.clone()
    make_feasible(groups)
    optimizer = SFW(groups, lr=1.0, momentum=0.0)
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    assert torch.equal(model[0].weight, frozen)
    for key, p in model.named_parameters():
        if not key.startswith("0."):
            vertex = p.detach().abs()  # lr = 1 lands on a vertex, where ties give 0
            torch.testing.assert_close(vertex, vertex.sign() * radii[key])
            assert vertex.any()


def test_building_constraints_leaves_the_weights_and_the_random_state_alone():
    """Others measure the expected norm by re-initialising the live model."""
    model = network()
    before, state = weights(model).clone(), torch.get_rng_state()
    constrain(model, adafw.L2Ball, diameter=6.0, show=False)
    assert torch.equal(weights(model), before)
    assert torch.equal(torch.get_rng_state(), state)


def test_the_learning_rate_is_read_from_the_group_at_every_step():
    """Others read it in the constructor, so that schedulers do nothing."""
    p = nn.Parameter(torch.zeros(2))
    optimizer = SFW([{"params": [p], "constraint": adafw.LInfBall(1.0)}], lr=0.5, momentum=0.0)
    for lr in (0.5, 0.25, 1.0):
        optimizer.param_groups[0]["lr"] = lr
        p.grad = torch.tensor([1.0, -1.0])
        before = p.detach().clone()
        optimizer.step()
        expected = before + lr * (torch.tensor([-1.0, 1.0]) - before)
        torch.testing.assert_close(p.detach(), expected)


def test_the_simplex_is_not_left_when_all_gradients_are_negative():
    p = nn.Parameter(torch.tensor([1.0, 0.0, 0.0]))
    p.grad = torch.tensor([-1.0, -3.0, -2.0])
    SFW([{"params": [p], "constraint": adafw.Simplex(1.0)}], lr=1.0).step()
    assert p.tolist() == [0.0, 1.0, 0.0]


def test_the_projected_baselines_project_in_the_norm_of_their_metric():
    """Projecting in the Euclidean norm gives another point."""
    p = nn.Parameter(torch.zeros(3, dtype=torch.float64))
    optimizer = AdaGrad([{"params": [p], "constraint": adafw.L1Ball(1.0)}], lr=1.0)
    p.grad = torch.tensor([1.0, 0.1, 0.0], dtype=torch.float64)
    optimizer.step()
    p.grad = torch.tensor([1.0, 1.0, 0.5], dtype=torch.float64)
    x = p.detach().clone()
    optimizer.step()
    h = 1e-8 + torch.tensor([2.0, 1.01, 0.25], dtype=torch.float64).sqrt()
    z = x - p.grad / h
    torch.testing.assert_close(p.detach(), adafw.L1Ball(1.0).project(z, h))
    assert (p.detach() - adafw.L1Ball(1.0).project(z)).abs().max() > 0.01


@pytest.mark.parametrize("order", [1.2, 1.5, 1.9])
def test_lp_balls_of_order_between_one_and_two_are_trained(order):
    """Others raise for them."""
    model = network()
    groups = groups_of(model, adafw.LpBall(1.0, order))
    train(model, AdamSFW(groups, lr=0.01), batches(10))
    assert all(
        group["constraint"].contains(p.detach()) for group in groups for p in group["params"]
    )


def test_state_may_be_looked_at_before_the_first_step():
    model = network()
    optimizer = AdamSFW(groups_of(model, SETS["linf"]), lr=0.01)
    assert not optimizer.state[model[0].weight]
    train(model, optimizer, batches(1))
    assert optimizer.state[model[0].weight]["momentum"].any()


@pytest.mark.parametrize("kind", ["SFW", "AdaSFW", "AdamSFW", "AdaGrad", "AMSGrad"])
def test_a_zero_gradient_moves_nothing_and_nothing_becomes_nan(kind):
    for constraint in SETS.values():
        p = nn.Parameter(constraint.start((2, 3), torch.float64))
        optimizer = OPTIMIZERS[kind]([{"params": [p], "constraint": constraint}])
        before = p.detach().clone()
        p.grad = torch.zeros_like(p)
        optimizer.step()
        assert torch.equal(p.detach(), before)


@pytest.mark.parametrize("fused", [None, False])
@pytest.mark.parametrize("lr", [1e30, 1e-30, 1e-320, torch.tensor(0.1)])
def test_learning_rates_of_any_size_keep_the_weights_finite_and_inside(lr, fused):
    p = nn.Parameter(torch.zeros(50))
    optimizer = AdamSFW([{"params": [p], "constraint": SETS["linf"]}], lr=lr, fused=fused)
    for seed in range(3):
        p.grad = torch.randn(50, generator=torch.Generator().manual_seed(seed))
        optimizer.step()
        assert SETS["linf"].contains(p.detach())


# --- parameters of all kinds, and what is refused -------------------------------------------------


def test_tied_weights_are_one_parameter_and_unused_ones_are_skipped():
    model = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Linear(4, 4), "c": nn.Linear(2, 2)})
    model["b"].weight = model["a"].weight
    groups = constrain(model, adafw.LInfBall, diameter=9.0, show=False)
    names = [n for g in groups for n in g["names"]]
    assert sorted(names) == ["a.bias", "a.weight", "b.bias", "c.bias", "c.weight"]
    optimizer = AdaSFW(groups, lr=0.1)
    unused = model["c"].weight.clone()
    model["b"](model["a"](torch.ones(1, 4))).sum().backward()
    optimizer.step()
    assert torch.equal(model["c"].weight, unused)
    assert model["c"].weight not in optimizer.state


@pytest.mark.parametrize("fused", [None, False])
def test_scalars_empty_tensors_and_channels_last_are_trained(fused):
    scalar = nn.Parameter(torch.tensor(0.5))
    empty = nn.Parameter(torch.zeros(0, 3))
    image = nn.Parameter(torch.zeros(2, 3, 4, 4).to(memory_format=torch.channels_last))
    g = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    for p, gradient in ((scalar, torch.tensor(1.0)), (empty, torch.zeros(0, 3)), (image, g)):
        p.grad = gradient
    for constraint in (adafw.LInfBall(1.0), adafw.L1Ball(50.0), adafw.L2Ball(50.0)):
        flat = nn.Parameter(image.detach().clone(memory_format=torch.contiguous_format))
        flat.grad = g.clone()
        groups = [{"params": [scalar, empty, image], "constraint": constraint}]
        AdamSFW(groups, lr=0.1, fused=fused).step()
        AdamSFW([{"params": [flat], "constraint": constraint}], lr=0.1).step()
        torch.testing.assert_close(image.detach(), flat.detach())
    assert scalar.item() < 0.5


def test_sparse_gradients_are_refused():
    layer = nn.EmbeddingBag(5, 2, mode="sum", sparse=True)
    groups = [{"params": layer.parameters(), "constraint": adafw.LInfBall(9.0)}]
    optimizer = AdaSFW(groups, lr=0.1)
    layer(torch.tensor([[1, 2]])).sum().backward()
    with pytest.raises(TypeError, match="is sparse, which is refused as a Frank-Wolfe step moves"):
        optimizer.step()


@pytest.mark.parametrize("kind", [SFW, AdaSFW, AdamSFW, AdaGrad, AMSGrad])
def test_weight_decay_is_refused(kind):
    p = nn.Parameter(torch.zeros(2))
    with pytest.raises(ValueError, match=r"weight_decay must be 0, got 0\.1: the set already"):
        kind([p], lr=0.1, weight_decay=0.1)
    with pytest.raises(ValueError, match=r"weight_decay must be 0, got 0\.1: the set already"):
        kind([{"params": [p], "weight_decay": 0.1}], lr=0.1)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_is_refused_before_anything_moves(bad):
    model = network()
    optimizer = AdamSFW(groups_of(model, SETS["linf"]), lr=0.1)
    x, y = batches(1)[0]
    train(model, optimizer, [(x, y)])
    before, state = weights(model).clone(), copy.deepcopy(optimizer.state_dict()["state"])
    model[2].bias.grad[0] = bad
    with pytest.raises(ValueError, match=r"gradient of parameter '2\.bias' must be finite"):
        optimizer.step()
    assert torch.equal(weights(model), before)
    after = optimizer.state_dict()["state"]
    assert all(same(after[i][k], v) for i, s in state.items() for k, v in s.items())


def test_a_start_outside_its_set_names_the_parameter_and_its_norm():
    model = nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[1.0, -2.0], [0.5, 0.0]]))
    for constraint, norm in ((adafw.LInfBall(0.1), "2"), (adafw.L1Ball(0.1), "3.5"),
                             (adafw.L2Ball(0.1), "2.29129")):  # fmt: skip
        named = [{"params": [model.weight], "names": ["fc.weight"], "constraint": constraint}]
        with pytest.raises(ValueError, match=rf"'fc.weight' starts outside .*its norm is {norm};"):
            AdamSFW(named, lr=0.1)
    named = [{"params": model.named_parameters(), "constraint": adafw.Simplex(1.0)}]
    with pytest.raises(ValueError, match=r"'weight' starts outside Simplex.*norm of 2\.29129"):
        AdamSFW(named, lr=0.1)


def test_a_frozen_parameter_outside_its_set_is_refused_when_it_starts_to_move():
    p = nn.Parameter(torch.full((2,), 3.0), requires_grad=False)
    optimizer = AdaSFW([{"params": [p], "constraint": adafw.LInfBall(1.0)}], lr=0.1)
    p.requires_grad_(True)
    p.grad = torch.ones(2)
    with pytest.raises(ValueError, match="starts outside"):
        optimizer.step()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: AdaSFW(p, lr=-1.0), "lr must be a number that is finite and >= 0, got -1"),
        (lambda p: AdaSFW(p, lr=0.1, inner_steps=0), "inner_steps must be an integer >= 1, got 0"),
        (lambda p: AdaSFW(p, lr=0.1, offset=0.0), "offset must be a number that is finite and > 0"),
        (lambda p: AdamSFW(p, lr=0.1, betas=(0.99, 0.9)), "betas must satisfy"),
        (lambda p: AdamSFW(p, lr=0.1, max_step=2.0), "max_step must be a number >= 0 and <= 1"),
        (lambda p: SFW(p, lr=0.1, momentum=1.0), "momentum must be a number >= 0 and < 1"),
        (
            lambda p: SFW(p, lr=0.1, rescale="norm"),
            "rescale must be None, 'gradient', 'diameter' or 'short'",
        ),
        (lambda p: SFW(p, lr=0.1, rescale=""), "rescale must be None, 'gradient'"),
        (lambda p: SFW([{"params": p, "constraint": SETS["l1"]}], lr=1.5), "as it is the step"),
    ],
)
def test_options_out_of_range_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make([nn.Parameter(torch.zeros(2))])


def test_wrong_constraints_are_refused():
    p = [nn.Parameter(torch.zeros(2))]
    with pytest.raises(TypeError, match="constraint must be a set such as"):
        AdaSFW([{"params": p, "constraint": adafw.LInfBall}], lr=0.1)
    user = adafw.UserSet(lambda g: -g.sign(), np.zeros(2))
    with pytest.raises(TypeError, match="needs a set with a projection in a diagonal metric"):
        AdaGrad([{"params": p, "constraint": user}], lr=0.1)


def test_nothing_makes_the_host_wait_for_an_accelerator():
    """Tensors without data raise when a number is read from them, as a synchronisation would."""
    for constraint in [*SETS.values(), None]:
        p = nn.Parameter(torch.zeros(3, 4, device="meta"))
        group = [{"params": [p], "constraint": constraint}]
        optimizers = [AdaSFW(group, lr=0.1), AdamSFW(group, lr=0.1), SFW(group, lr=0.1),
                      SFW(group, lr=0.1, rescale="gradient")]  # fmt: skip
        for optimizer in optimizers:
            p.grad = torch.zeros(3, 4, device="meta")
            optimizer.step()
            optimizer.step()


FLAGS = {"maximize": False, "foreach": None, "capturable": False, "differentiable": False,
         "fused": None, "masters": False, "constraint": None}  # fmt: skip
NORM = {"adamw": False, "adamw_betas": (0.9, 0.95), "adamw_eps": 1e-8, "start": "zero"}
DEFAULTS = {
    "SFW": {"lr": 0.1, "momentum": 0.9, "rescale": None, "nesterov": False, "start": "gradient",
            "radius_scale": 1.0},
    "AdaSFW": {"lr": 0.1, "inner_steps": 2, "offset": 1e-8, "max_step": 1.0},
    "AdamSFW": {"lr": 0.1, "inner_steps": 5, "betas": (0.9, 0.99), "offset": 1e-8,
                "max_step": 1.0},
    "AdaGrad": {"lr": 0.1, "offset": 1e-8},
    "AMSGrad": {"lr": 0.1, "betas": (0.9, 0.99), "offset": 1e-8},
    "SVRF": {"lr": 0.1, "rescale": None},
    "SPIDERFW": {"lr": 0.1, "rescale": None},
    "ORGFW": {"lr": 0.1, "rescale": None, "forgetting": None},
    "Muon": {"lr": 1e-3, "weight_decay": 0.1, "momentum": 0.95, "nesterov": True,
             "ns_coefficients": (3.4445, -4.775, 2.0315), "eps": 1e-7, "ns_steps": 5,
             "adjust_lr_fn": None, "lmo": "feasible", "split": 1, **NORM},
    "Lion": {"lr": 1e-4, "betas": (0.9, 0.99), "weight_decay": 0.0, **NORM},
    "Signum": {"lr": 1e-3, "momentum": 0.9, "weight_decay": 0.0, "nesterov": False, **NORM},
    "Scion": {"lr": 1e-3, "momentum": 0.9, "scale": 1.0, "nesterov": False,
              "unconstrained": False, "norm": "auto", "split": 1, "weight_decay": 0.0, **NORM},
}  # fmt: skip


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults(name):
    p = nn.Parameter(torch.zeros(3, 2))
    own = name in ("Muon", "Lion", "Signum", "Scion")
    groups = [{"params": [p]}] if own else [{"params": [p], "constraint": adafw.LInfBall(1.0)}]
    optimizer = getattr(adafw.torch, name)(groups, **({} if own else {"lr": 0.1}))
    assert optimizer.defaults == {**FLAGS, **DEFAULTS[name]}


def given(name):
    """Every default changed."""
    changed = {
        "lr": 0.25, "momentum": 0.5, "rescale": "short", "nesterov": True, "start": "zero",
        "radius_scale": 2.0, "inner_steps": 7, "offset": 1e-3, "max_step": 0.5,
        "betas": (0.25, 0.5), "forgetting": 0.5, "weight_decay": 0.75,
        "ns_coefficients": (3, -4, 2),
        "eps": 1e-3, "ns_steps": 2, "adjust_lr_fn": "match_rms_adamw", "lmo": "exact",
        "adamw_betas": (0.5, 0.6), "adamw_eps": 1e-4, "scale": 3.0, "unconstrained": True,
        "norm": "sign",
    }  # fmt: skip
    kind = getattr(adafw.torch, name)
    taken = inspect.signature(kind).parameters
    return {k: v for k, v in changed.items() if k in taken and (k, name) not in {
        ("betas", "SFW"), ("weight_decay", "SFW")}}  # fmt: skip


@pytest.mark.parametrize("name", DEFAULTS)
def test_every_option_arrives_in_the_groups(name):
    p = nn.Parameter(torch.zeros(3, 2))
    own = name in ("Muon", "Lion", "Signum", "Scion")
    options = given(name)
    if not own:
        options.pop("weight_decay", None)  # refused: the set is one
    if name == "Muon":
        options["nesterov"] = False
    groups = [{"params": [p]}] if own else [{"params": [p], "constraint": adafw.LInfBall(1.0)}]
    optimizer = getattr(adafw.torch, name)(groups, **options)
    (group,) = optimizer.param_groups
    for key, value in options.items():
        assert group[key] == value, key
        assert optimizer.defaults[key] == value
    assert len(options) >= (1 if name in ("SVRF", "SPIDERFW") else 2)
