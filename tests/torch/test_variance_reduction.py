"""SVRF, SPIDER-FW and ORGFW against their formulas, and the locking of random numbers."""

import io
import random
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import adafw
from adafw.torch import ORGFW, SFW, SPIDERFW, SVRF, constrain, gap, make_feasible
from adafw.torch.measures import evaluate
from adafw.torch.training import train
from adafw.torch.variance_reduction import batch_size

BALL = adafw.L2Ball(2.0)


def problem(dropout=0.0, seed=0):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Dropout(dropout), nn.Linear(3, 1)).double()
    x = torch.randn(22, 4, dtype=torch.float64)
    y = torch.randn(22, 1, dtype=torch.float64)
    batches = [(x[i : i + 8], y[i : i + 8]) for i in range(0, 22, 8)]  # the last one is shorter
    return model, batches


def groups_of(model, constraint=BALL):
    groups = [{"params": list(model.parameters()), "constraint": constraint}]
    make_feasible(groups)
    return groups


def closure_of(model, optimizer, batch):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(batch[0]), batch[1])
    loss.backward()
    return loss


def gradient(model, point, batches):
    """The exact gradient over some batches at a point, one array per parameter."""
    with torch.no_grad():
        for p, x in zip(model.parameters(), point, strict=True):
            p.copy_(torch.tensor(x))
    x, y = (torch.cat(part) for part in zip(*batches, strict=True))
    found = torch.autograd.grad(nn.functional.mse_loss(model(x), y), list(model.parameters()))
    return [g.numpy().copy() for g in found]


def reference(kind, batches, epochs, gamma):
    """The formulas of Table 1 (SPIDER in its published, recursive form) with numpy."""
    model, _ = problem()
    groups_of(model)
    x = [p.detach().numpy().copy() for p in model.parameters()]
    anchor, estimate, t = None, None, 0
    for _ in range(epochs):
        if kind is not ORGFW:
            anchor, estimate = x, gradient(model, x, batches)
        for batch in batches:
            here = gradient(model, x, [batch])
            if kind is ORGFW:
                g = here
                if t > 0:
                    there, rho = gradient(model, anchor, [batch]), (t + 1) ** (-2 / 3)
                    g = [a + (1 - rho) * (e - b) for a, b, e in zip(here, there, estimate,
                                                                     strict=True)]  # fmt: skip
            else:
                there = gradient(model, anchor, [batch])
                g = [e + a - b for a, b, e in zip(here, there, estimate, strict=True)]
            if kind is not SVRF:
                anchor, estimate = x, g
            v = [-2.0 * d / np.linalg.norm(d) for d in g]
            x = [a + gamma * (b - a) for a, b in zip(x, v, strict=True)]
            t += 1
    return x


@pytest.mark.parametrize("kind", [SVRF, SPIDERFW, ORGFW])
def test_follows_its_formula(kind):
    model, batches = problem()
    optimizer = kind(groups_of(model), lr=0.05)
    train(model, optimizer, nn.functional.mse_loss, batches, 3)
    for p, x in zip(model.parameters(), reference(kind, batches, 3, 0.05), strict=True):
        np.testing.assert_allclose(p.detach().numpy(), x, rtol=0, atol=1e-12)
        assert BALL.contains(p.detach())


@pytest.mark.parametrize("kind", [SVRF, SPIDERFW])
def test_transforms_are_locked_so_that_equal_points_have_equal_gradients(kind):
    """Right after a snapshot both gradients of a batch are taken at one point: with the same
    dropout, and the same augmentation, they cancel exactly."""
    model, batches = problem(dropout=0.5)
    optimizer = kind(groups_of(model), lr=0.1)

    def closure(batch):
        noise = torch.tensor(random.random() + np.random.random())  # noqa: NPY002
        noisy = batch[0] + noise + torch.randn_like(batch[0])
        return closure_of(model, optimizer, (noisy, batch[1]))

    optimizer.snapshot(closure, batches)
    exact = [optimizer.state[p]["estimate"].clone() for p in model.parameters()]
    before = [p.detach().clone() for p in model.parameters()]
    optimizer.step(partial(closure, batches[0]))
    for p, g, x in zip(model.parameters(), exact, before, strict=True):
        torch.testing.assert_close(p.detach(), x + 0.1 * (BALL.lmo(g) - x), rtol=0, atol=1e-15)


@pytest.mark.parametrize("kind", [SVRF, SPIDERFW, ORGFW])
def test_gradients_that_are_zeroed_in_place_count_as_those_that_are_dropped(kind):
    """The gradient at the older point must outlive the closure's next call."""
    ends = []
    for dropped in (True, False):
        model, batches = problem()
        optimizer = kind(groups_of(model), lr=0.05)

        def closure(batch, model=model, optimizer=optimizer, dropped=dropped):
            optimizer.zero_grad(set_to_none=dropped)
            loss = nn.functional.mse_loss(model(batch[0]), batch[1])
            loss.backward()
            return loss

        if kind.snapshots:
            optimizer.snapshot(closure, batches)
        for batch in batches:
            optimizer.step(partial(closure, batch))
        ends.append([p.detach().clone() for p in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))


def test_the_random_stream_goes_on_as_with_one_evaluation():
    streams = []
    for kind in (partial(SFW, momentum=0.0), ORGFW):
        model, batches = problem(dropout=0.5)
        optimizer = kind(groups_of(model), lr=0.1)
        torch.manual_seed(3)
        for batch in batches:
            optimizer.step(partial(closure_of, model, optimizer, batch))
        streams.append(torch.rand(4))
    assert torch.equal(*streams)


def test_a_snapshot_weighs_batches_by_their_size():
    model, batches = problem()
    optimizer = SVRF(groups_of(model), lr=0.1)
    loss = optimizer.snapshot(partial(closure_of, model, optimizer), batches)
    x, y = (torch.cat(part) for part in zip(*batches, strict=True))
    exact = nn.functional.mse_loss(model(x), y)
    assert loss == pytest.approx(exact.item(), rel=1e-14)
    for p, g in zip(model.parameters(), torch.autograd.grad(exact, list(model.parameters())),
                    strict=True):  # fmt: skip
        torch.testing.assert_close(optimizer.state[p]["estimate"], g, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("kind", [SVRF, SPIDERFW, ORGFW])
def test_resumes_bit_for_bit_in_the_middle_of_an_epoch(kind):
    model, batches = problem()
    optimizer = kind(groups_of(model), lr=0.1)
    train(model, optimizer, nn.functional.mse_loss, batches, 2)
    step = lambda m, o: [o.step(partial(closure_of, m, o, b)) for b in batches]  # noqa: E731
    file = io.BytesIO()
    torch.save([model.state_dict(), optimizer.state_dict()], file)
    step(model, optimizer)
    file.seek(0)
    weights, state = torch.load(file, weights_only=True)
    again, _ = problem(seed=5)
    again.load_state_dict(weights)
    resumed = kind(groups_of(again), lr=0.1)
    resumed.load_state_dict(state)
    step(again, resumed)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(),
                                                 strict=True))  # fmt: skip


def test_what_is_missing_is_said():
    model, batches = problem()
    svrf = SVRF(groups_of(model), lr=0.1)
    with pytest.raises(RuntimeError, match="has no exact gradient for parameter 0 of shape"):
        svrf.step(partial(closure_of, model, svrf, batches[0]))
    with pytest.raises(TypeError, match="needs the gradient at two points: call step"):
        svrf.step()
    with pytest.raises(ValueError, match="batches must go through the data once, got none"):
        svrf.snapshot(partial(closure_of, model, svrf), [])
    with pytest.raises(TypeError, match="ORGFW takes no snapshots"):
        ORGFW(groups_of(model), lr=0.1).snapshot(partial(closure_of, model, svrf), batches)
    with pytest.raises(ValueError, match="forgetting must be a number >= 0 and <= 1, got 2"):
        ORGFW(groups_of(model), lr=0.1, forgetting=2)


def test_an_error_in_the_closure_leaves_the_weights():
    model, batches = problem()
    optimizer = ORGFW(groups_of(model), lr=0.1)
    optimizer.step(partial(closure_of, model, optimizer, batches[0]))
    before = [p.detach().clone() for p in model.parameters()]

    def broken():
        raise KeyError("x")

    with pytest.raises(KeyError):
        optimizer.step(broken)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_the_gap_is_that_of_the_definition_and_leaves_the_model_alone():
    model, batches = problem(dropout=0.5)
    groups = constrain(model, adafw.LInfBall, diameter=6.0, show=False)
    model[2].eval()
    model[0].weight.grad = torch.ones_like(model[0].weight)
    value = gap(model, nn.functional.mse_loss, batches, groups)
    assert model.training
    assert not model[2].training
    assert torch.equal(model[0].weight.grad, torch.ones_like(model[0].weight))

    x, y = (torch.cat(part) for part in zip(*batches, strict=True))
    model.eval()
    expected = 0.0
    for group in groups:
        for p in group["params"]:
            if group["constraint"] is not None:
                g = torch.autograd.grad(nn.functional.mse_loss(model(x), y), p)[0]
                r = group["constraint"].radius
                expected += float((g * p.detach()).sum() + r * g.abs().sum())
    assert value == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ValueError, match="loader must go through the data once"):
        gap(model, nn.functional.mse_loss, [], groups)
    with pytest.raises(ValueError, match="groups must hold a trainable parameter with a set"):
        gap(model, nn.functional.mse_loss, batches, [{"params": list(model.parameters())}])


def test_the_gap_is_that_of_the_weights_alone():
    """Dropout is off while it is measured, frozen weights do not count, modes come back."""
    model, batches = problem(dropout=0.5)
    groups = constrain(model, adafw.L2Ball, radius=5.0, show=False)
    model[0].weight.requires_grad_(False)
    values = [gap(model, nn.functional.mse_loss, batches, groups) for _ in range(2)]
    assert values[0] == values[1]
    assert all(module.training for module in model.modules())
    model.eval()
    x, y = (torch.cat(part) for part in zip(*batches, strict=True))
    moving = [p for p in model.parameters() if p.requires_grad]
    assert len(moving) == 3
    gs = torch.autograd.grad(nn.functional.mse_loss(model(x), y), moving)
    expected = sum(
        float((g * p.detach()).sum() + 5 * g.norm()) for g, p in zip(gs, moving, strict=True)
    )
    assert values[0] == pytest.approx(expected, rel=1e-12)
    assert gap(model, nn.functional.mse_loss, batches, groups) == values[0]
    assert not any(module.training for module in model.modules())


def test_what_lies_deep_in_a_model_keeps_its_mode():
    """Layers frozen by hand stay frozen, all others go on training."""
    inner = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))
    model = nn.Sequential(nn.Sequential(inner), nn.Linear(3, 1)).double()
    inner[1].eval()
    modes = [module.training for module in model.modules()]
    _, batches = problem()
    groups = constrain(model, adafw.L2Ball, radius=5.0, show=False)
    gap(model, nn.functional.mse_loss, batches, groups)
    assert [module.training for module in model.modules()] == modes
    evaluate(model, nn.functional.mse_loss, batches, lambda out, y: (out > 0) == (y > 0))
    assert [module.training for module in model.modules()] == modes


def test_the_gap_falls_in_training():
    model, batches = problem()
    groups = constrain(model, adafw.L2Ball, diameter=3.0, show=False)
    make_feasible(groups)
    before = gap(model, nn.functional.mse_loss, batches, groups)
    optimizer = SVRF(groups, lr=0.05)
    seen = []
    train(model, optimizer, nn.functional.mse_loss, batches, 30, seen.append)
    assert seen == list(range(1, 31))
    assert gap(model, nn.functional.mse_loss, batches, groups) < 0.5 * before


def test_the_size_of_a_batch_is_that_of_its_targets():
    mask, y = torch.zeros(1, 9), torch.zeros(7)
    for batch in (
        y,
        (mask, y),
        [mask, mask, y],
        {"mask": mask, "y": y},
        (mask, {"a": mask, "b": y}),
    ):
        assert batch_size(batch) == 7


def steps_of(kind, gradients, dtype=torch.float64, **options):
    """An optimizer of one number in [-1e6, 1e6], and a closure that hands on what is listed."""
    p = nn.Parameter(torch.zeros(1, dtype=dtype))
    optimizer = kind([{"params": [p], "constraint": adafw.LInfBall(1e6)}], lr=1e-9, **options)
    listed = iter(gradients)

    def closure(batch=None):
        g = next(listed)
        p.grad = None if g is None else torch.full_like(p, g)
        return 0.0

    return p, optimizer, closure


def test_nothing_is_forgotten_with_forgetting_zero():
    """g_t = g_{t-1} + grad_B(x_t) - grad_B(x_{t-1})."""
    p, optimizer, closure = steps_of(ORGFW, [5.0, 2.0, 10.0], forgetting=0.0)
    optimizer.step(closure)
    optimizer.step(closure)
    assert optimizer.state[p]["estimate"].item() == 5 + 10 - 2
    p, optimizer, closure = steps_of(ORGFW, [5.0, 2.0, 10.0])
    optimizer.step(closure)
    optimizer.step(closure)
    rho = 2 ** (-2 / 3)
    assert optimizer.state[p]["estimate"].item() == pytest.approx(10 + (1 - rho) * (5 - 2))


def test_half_precision_is_summed_and_subtracted_in_single():
    gradients = [256.0, 1.0, 1.0, -1.0, 256.0]
    p, optimizer, closure = steps_of(SPIDERFW, gradients, torch.bfloat16)
    optimizer.snapshot(closure, [torch.zeros(1)] * 3)
    assert optimizer.state[p]["estimate"].item() == 258 / 3
    optimizer.step(closure)
    assert optimizer.state[p]["estimate"].item() == 258 / 3 + 257
    assert optimizer.state[p]["estimate"].dtype is torch.float32


def test_no_gradient_at_the_anchor_counts_as_zero():
    p, optimizer, closure = steps_of(SPIDERFW, [3.0, None, 5.0])
    optimizer.snapshot(closure, [torch.zeros(2)])
    optimizer.step(closure)
    assert optimizer.state[p]["estimate"].item() == 8


def test_a_parameter_that_a_snapshot_does_not_reach_has_the_gradient_zero():
    p, optimizer, closure = steps_of(SVRF, [3.0, None])
    optimizer.snapshot(closure, [torch.zeros(2)])
    assert optimizer.state[p]["estimate"].item() == 3
    optimizer.snapshot(closure, [torch.zeros(2)])
    assert optimizer.state[p]["estimate"].item() == 0
    p, optimizer, closure = steps_of(SVRF, [None, None, 4.0])
    optimizer.snapshot(closure, [torch.zeros(2)])
    optimizer.step(closure)
    assert p.item() < 0


@pytest.mark.parametrize("kind", [SVRF, SPIDERFW, ORGFW])
def test_a_group_at_learning_rate_zero_stays_and_lets_others_move(kind):
    model, batches = problem()
    still, moving = list(model[0].parameters()), list(model[3].parameters())
    groups = [{"params": still, "constraint": BALL, "lr": 0.0},
              {"params": moving, "constraint": BALL}]  # fmt: skip
    make_feasible(groups)
    optimizer = kind(groups, lr=0.1)
    closure = partial(closure_of, model, optimizer)
    if kind.snapshots:
        optimizer.snapshot(closure, batches)
    before = [p.detach().clone() for p in still + moving]
    for batch in batches:
        optimizer.step(partial(closure, batch))
    same = [torch.equal(a, b) for a, b in zip(before, still + moving, strict=True)]
    assert same == [True, True, False, False]
    if not kind.snapshots:
        assert not any(optimizer.state.get(p) for p in still)


@pytest.mark.parametrize("kind", [SVRF, SPIDERFW, ORGFW])
def test_gradients_that_are_not_finite_are_refused_at_every_point(kind):
    good = [1.0] if kind is ORGFW else [1.0, 1.0, 1.0]
    p, optimizer, closure = steps_of(kind, [*good, 2.0, float("nan")])
    if kind.snapshots:
        optimizer.snapshot(closure, [torch.zeros(1)])
    optimizer.step(closure)
    before = p.item()
    with pytest.raises(ValueError, match=r"gradient of parameter 0 .* must be finite"):
        optimizer.step(closure)
    assert p.item() == before
    if kind.snapshots:
        _, optimizer, closure = steps_of(kind, [1.0, float("inf")])
        with pytest.raises(ValueError, match=r"gradient of parameter 0 .* must be finite"):
            optimizer.snapshot(closure, [torch.zeros(1)] * 2)


@pytest.mark.parametrize("kind", [SVRF, SPIDERFW, ORGFW])
def test_a_decay_beside_the_set_is_refused(kind):
    with pytest.raises(ValueError, match=r"weight_decay must be 0, got 0.5"):
        steps_of(kind, [], weight_decay=0.5)


def test_a_gap_in_which_not_every_parameter_has_a_part():
    model = nn.ModuleDict({"used": nn.Linear(4, 1), "unused": nn.Linear(4, 1)}).double()
    _, batches = problem()
    ball, empty = adafw.L1Ball(2.0), nn.Parameter(torch.zeros(0, 4, dtype=torch.float64))
    groups = [{"params": [empty, *model.parameters()], "constraint": ball}]
    value = gap(model["used"], nn.functional.mse_loss, batches, groups)
    used = [{"params": list(model["used"].parameters()), "constraint": ball}]
    assert value == gap(model["used"], nn.functional.mse_loss, batches, used) > 0


def test_losses_and_right_answers_are_means_over_the_data():
    """Batches of 8, 8 and 6: the mean of their means would be another number."""
    model, batches = problem()
    x, y = (torch.cat(part) for part in zip(*batches, strict=True))
    right = lambda out, target: (out > 0) == (target > 0)  # noqa: E731
    loss, accuracy = evaluate(model, nn.functional.mse_loss, batches, right)
    with torch.no_grad():
        assert loss == pytest.approx(nn.functional.mse_loss(model(x), y).item(), rel=1e-14)
        assert accuracy == pytest.approx(right(model(x), y).double().mean().item(), rel=1e-14)
    with pytest.raises(ValueError, match="loader must go through the data once"):
        evaluate(model, nn.functional.mse_loss, [], right)


@pytest.mark.parametrize("kind", [SVRF, SPIDERFW, ORGFW])
def test_at_learning_rate_zero_the_loss_is_made_once_and_nothing_moves(kind):
    model, batches = problem()
    optimizer = kind(groups_of(model), lr=0.0)
    before, losses = [p.detach().clone() for p in model.parameters()], []

    def closure():
        losses.append(closure_of(model, optimizer, batches[0]))
        return losses[-1]

    assert optimizer.step(closure) is losses[0]
    assert len(losses) == 1
    assert losses[0].requires_grad
    optimizer.step()  # how torch's distributed checkpoints have the state made
    for p, x in zip(model.parameters(), before, strict=True):
        assert torch.equal(p, x)
        assert set(optimizer.state[p]) == {"anchor", "estimate", "step"}


def test_a_gap_can_be_asked_for_where_gradients_are_off():
    model, batches = problem()
    groups = constrain(model, adafw.LInfBall, diameter=6.0, show=False)
    value = gap(model, nn.functional.mse_loss, batches, groups)
    with torch.no_grad():
        assert gap(model, nn.functional.mse_loss, batches, groups) == value
        assert not torch.is_grad_enabled()


@pytest.mark.parametrize("kind", [SVRF, SPIDERFW])
def test_frozen_parameters_are_no_part_of_a_snapshot(kind):
    """Not even where they lie outside the set: they are checked when they begin to move."""
    model, batches = problem()
    groups = groups_of(model)
    frozen = model[0].weight.requires_grad_(False)
    frozen.fill_(9.0)
    optimizer = kind(groups, lr=0.1)
    optimizer.snapshot(partial(closure_of, model, optimizer), batches)
    optimizer.step(partial(closure_of, model, optimizer, batches[0]))
    assert not optimizer.state.get(frozen)
    assert (frozen == 9).all()
    assert all(optimizer.state[p]["begun"] for p in model.parameters() if p is not frozen)


@pytest.mark.parametrize("kind", [SVRF, SPIDERFW])
def test_options_that_no_optimizer_has_are_refused(kind):
    for name in ("amsgrad", "momentum", "forgetting"):
        with pytest.raises(TypeError, match=f"{kind.__name__} has no option {name}"):
            steps_of(kind, [], **{name: 0.9})
    for flags in ({"maximize": True}, {"foreach": False}, {"masters": True}, {"fused": False}):
        _, optimizer, _ = steps_of(kind, [], **flags)
        assert optimizer.param_groups[0].items() >= flags.items()


@pytest.mark.parametrize("kind", [SVRF, SPIDERFW])
def test_estimates_of_an_ascent_are_those_of_the_gradient(kind):
    for maximize in (False, True):
        p, optimizer, closure = steps_of(kind, [3.0, 1.0, 2.0], maximize=maximize)
        optimizer.snapshot(closure, [torch.zeros(2)])
        optimizer.step(closure)
        assert (p.item() > 0) is maximize
