"""The monitor tells what a step does, and changes nothing."""

import math

import pytest
import torch
from torch import nn

import adafw
from adafw.torch import SFW, AdamSFW, Lion, Monitor, Muon, NewtonSchulzBall, make_feasible
from adafw.torch.monitor import gauge


def model_of(constraint, make):
    torch.manual_seed(0)
    model = nn.Linear(6, 4).double()
    groups = [{"params": [model.weight], "names": ["w"], "constraint": constraint},
              {"params": [model.bias], "names": ["b"], "constraint": None}]  # fmt: skip
    make_feasible(groups)
    return model, make(groups)


def train(model, optimizer, steps):
    rng = torch.Generator().manual_seed(1)
    for _ in range(steps):
        x = torch.randn(8, 6, generator=rng, dtype=torch.float64)
        optimizer.zero_grad()
        (model(x) - 3).square().mean().backward()
        optimizer.step()


MAKERS = {
    "SFW": lambda g: SFW(g, lr=0.1),
    "SFW by gradient": lambda g: SFW(g, lr=0.1, rescale="gradient"),
    "AdamSFW": lambda g: AdamSFW(g, lr=0.1),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_it_changes_no_bit_and_looks_as_often_as_asked(kind):
    ball = adafw.L2Ball(0.5)
    (model, optimizer), (other, watched) = (model_of(ball, MAKERS[kind]) for _ in range(2))
    monitor = Monitor(watched, every=3)
    train(model, optimizer, 8)
    train(other, watched, 8)
    assert torch.equal(model.weight, other.weight)
    assert [(row.step, row.name) for row in monitor.rows] == [(0, "w"), (3, "w"), (6, "w")]
    assert monitor.table().splitlines()[0].split() == list(monitor.rows[0]._fields)
    assert len(monitor.table().splitlines()) == 2
    monitor.remove()
    train(other, watched, 8)
    assert len(monitor.rows) == 3


def test_the_numbers_are_those_of_the_step():
    model, optimizer = model_of(adafw.LInfBall(0.5), lambda g: SFW(g, lr=0.1, momentum=0.0))
    monitor = Monitor(optimizer, every=1)
    x = model.weight.detach().clone()
    train(model, optimizer, 1)
    g, row = model.weight.grad, monitor.rows[0]
    assert row.gap == pytest.approx(adafw.LInfBall(0.5).gap(x, g))
    assert row.norm == pytest.approx(x.abs().max().item() / 0.5)
    assert (row.kappa, row.gamma, row.clipped) == (pytest.approx(1.0), 0.1, 0.0)


def test_steps_that_are_cut_are_counted():
    make = lambda g: SFW(g, lr=1e9, rescale="gradient", momentum=0.0)  # noqa: E731
    model, optimizer = model_of(adafw.L2Ball(0.5), make)
    optimizer.param_groups[1]["lr"] = 0.0  # the bias has no set to stop it
    monitor = Monitor(optimizer, every=1)
    train(model, optimizer, 2)
    assert [row.clipped for row in monitor.rows] == [1.0, 1.0]
    optimizer.param_groups[0]["lr"] = 1e-9
    train(model, optimizer, 2)
    assert monitor.rows[-1].clipped == 0.5


def test_matrices_and_presets(tmp_path):
    torch.manual_seed(0)
    model = nn.Linear(30, 20).double()
    groups = [{"params": [model.weight], "names": ["w"]},
              {"params": [model.bias], "adamw": True}]  # fmt: skip
    optimizer = Muon(groups, lr=0.02)
    numbers = {}

    class Kept:
        def add_scalar(self, tag, value, step):
            numbers[tag, step] = value

    monitor = Monitor(optimizer, every=2, writer=Kept())
    x = torch.randn(9, 30, dtype=torch.float64)
    for _ in range(3):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    row = monitor.rows[-1]
    assert 0.99 < row.kappa <= 1
    assert row.gamma == pytest.approx(0.002)
    assert 0 < row.norm < 1
    assert numbers["w/gap", 2] == row.gap
    Monitor(Lion([model.weight], weight_decay=0.1), writer=tmp_path)
    assert list(tmp_path.iterdir())
    with pytest.raises(TypeError, match="optimizer must be one of adafw"):
        Monitor(torch.optim.SGD(model.parameters(), lr=0.1))


@pytest.mark.parametrize(
    ("ball", "norm"),
    [
        (adafw.LInfBall(0.3), lambda x: x.abs().max()),
        (adafw.L1Ball(0.3), lambda x: x.abs().sum()),
        (adafw.L2Ball(0.3), lambda x: x.norm()),
        (adafw.RowBall(0.3), lambda x: x.norm(dim=1).max()),
        (adafw.ColumnBall(0.3), lambda x: x.norm(dim=0).max()),
        (adafw.RMSBall(0.3), lambda x: x.square().mean().sqrt()),
        (adafw.NuclearBall(0.3), lambda x: torch.linalg.svdvals(x).sum()),
        (NewtonSchulzBall(0.3), lambda x: torch.linalg.matrix_norm(x, 2)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_gauge_is_the_norm_over_the_radius(ball, norm):
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for scale in (1e-3, 1.0, 1e3):
        assert gauge(ball, scale * x) == pytest.approx(norm(scale * x).item() / 0.3, rel=1e-9)
    for other in (adafw.Simplex(1.0), adafw.UnitSimplex(1.0), adafw.Box(-1.0, 1.0)):
        assert math.isnan(gauge(other, x))


@pytest.mark.parametrize("kind", MAKERS)
def test_a_gradient_of_zero_has_nothing_to_attain(kind):
    """The first looks of a parameter that is not used yet: no 0 / 0, and no gap."""
    model, optimizer = model_of(adafw.LInfBall(1.0), MAKERS[kind])
    monitor = Monitor(optimizer)
    optimizer.zero_grad()
    (0 * model(torch.ones(2, 6, dtype=torch.float64)).sum()).backward()
    optimizer.step()
    (row,) = monitor.rows
    assert math.isnan(row.kappa)
    assert row.gap == 0


def test_kappa_is_what_the_lmo_attains():
    for constraint in (adafw.LInfBall(1.0), NewtonSchulzBall(1.0)):
        model, optimizer = model_of(constraint, MAKERS["SFW"])
        monitor = Monitor(optimizer, every=2)
        train(model, optimizer, 4)
        assert [row.step for row in monitor.rows] == [0, 2]
        exact = isinstance(constraint, adafw.LInfBall)
        for row in monitor.rows:
            assert row.kappa == pytest.approx(1, rel=1e-12 if exact else 0.05)
            assert row.kappa <= 1 + 1e-12


def looked(make, x, g, every=1, steps=1, **group):
    """The rows of a monitor of one parameter whose gradient is always g."""
    p = nn.Parameter(x.clone())
    optimizer = make([{"params": [p], "names": ["w"], **group}])
    monitor = Monitor(optimizer, every=every)
    for _ in range(steps):
        p.grad = g.clone()
        optimizer.step()
    return monitor


X = torch.tensor([0.3, -0.2, 0.1], dtype=torch.float64)
G = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)


@pytest.mark.parametrize("maximize", [False, True])
def test_a_look_at_an_ascent_is_that_of_the_turned_gradient(maximize):
    ball, d = adafw.LInfBall(0.5), -G if maximize else G
    make = lambda p: SFW(p, lr=0.1, momentum=0.0, maximize=maximize)  # noqa: E731
    (row,) = looked(make, X, G, constraint=ball).rows
    assert row.gap == pytest.approx(float(d @ X + 0.5 * d.abs().sum()))


@pytest.mark.parametrize("max_step", [1.0, 0.01])
def test_adaptive_steps_tell_the_first_inner_one(max_step):
    """gamma = min(lr <m, d> / <d, h d>, max_step) with m and h of the coming step."""
    ball = adafw.LInfBall(0.5)
    make = lambda p: AdamSFW(p, lr=0.1, max_step=max_step)  # noqa: E731
    (row,) = looked(make, X, G, constraint=ball).rows
    m, h = 0.1 * G, 1e-8 + (0.01 * G**2).sqrt()
    d = X + 0.5 * G.sign()
    gamma = float(0.1 * (m @ d) / (d * h * d).sum())
    assert 0.01 < gamma < 1
    assert row.gap == pytest.approx(float(m @ d))
    assert row.gamma == pytest.approx(min(gamma, max_step))
    assert row.clipped == (max_step < gamma)
    assert row.norm == pytest.approx(0.6)


@pytest.mark.parametrize("rescale", ["gradient", "short", "diameter"])
def test_rescaled_steps_tell_their_size(rescale):
    ball = adafw.L2Ball(2.0)
    make = lambda p: SFW(p, lr=0.1, momentum=0.0, rescale=rescale)  # noqa: E731
    (row,) = looked(make, X, G, constraint=ball).rows
    d = X + 2.0 * G / G.norm()
    sizes = {"gradient": 0.1 * G.norm() / d.norm(), "short": 0.1 * (G @ d) / (d @ d)}
    if rescale == "diameter":
        assert math.isnan(row.gamma)
        assert math.isnan(row.clipped)
    else:
        assert row.gamma == pytest.approx(float(sizes[rescale]))
        assert row.clipped == 0


def test_the_direction_is_that_of_the_momentum():
    """The first is the gradient itself, the next a mean; looks leave the state as it is."""
    ball = adafw.LInfBall(0.5)
    p = nn.Parameter(X.clone())
    optimizer = SFW([{"params": [p], "constraint": ball}], lr=0.1, momentum=0.5)
    monitor = Monitor(optimizer, every=1)
    for g in (G, -3 * G):
        before = p.detach().clone()
        p.grad = g.clone()
        optimizer.step()
        d = optimizer.state[p]["momentum"]
        assert monitor.rows[-1].gap == pytest.approx(ball.gap(before, d))
    assert monitor.rows[-1].name == "parameter 0"
    torch.testing.assert_close(optimizer.state[p]["momentum"], -G)


def test_the_table_is_the_last_look_and_numbers_without_meaning_are_left_out():
    written = []

    class Kept:
        def add_scalar(self, tag, value, step):
            written.append((tag, step))

    simplex = adafw.Simplex(1.0)
    p = nn.Parameter(simplex.start((3,), torch.float64))
    optimizer = SFW([{"params": [p], "names": ["w"], "constraint": simplex}], lr=0.5)
    monitor = Monitor(optimizer, every=2, writer=Kept())
    for _ in range(5):
        p.grad = G.clone()
        optimizer.step()
    head, line = monitor.table().splitlines()
    assert head.split() == ["step", "name", "gap", "kappa", "norm", "gamma", "clipped"]
    assert line.split()[:2] == ["4", "w"]
    assert line.split()[-2:] == ["0.5", "0"]
    assert [row.step for row in monitor.rows] == [0, 2, 4]
    assert all(math.isnan(row.norm) for row in monitor.rows)
    assert {tag for tag, _ in written} == {"w/gap", "w/kappa", "w/gamma", "w/clipped"}
    assert sorted({step for _, step in written}) == [0, 2, 4]
    with pytest.raises(ValueError, match="every must be an integer >= 1"):
        Monitor(optimizer, every=0)


def test_every_parameter_is_counted_for_itself():
    cut, free, empty = nn.Parameter(X.clone()), nn.Parameter(X.clone()), nn.Parameter(X[:0].clone())
    groups = [{"params": [cut, empty], "names": ["cut", "empty"], "lr": 1e9},
              {"params": [free], "names": ["free"], "lr": 1e-9}]  # fmt: skip
    for group in groups:
        group["constraint"] = adafw.L2Ball(2.0)
    optimizer = SFW(groups, lr=0.1, momentum=0.0, rescale="gradient")
    monitor = Monitor(optimizer, every=1)
    for _ in range(3):
        for p in (cut, free, empty):
            p.grad = G[: p.numel()].clone()
        optimizer.step()
    assert [(row.name, row.clipped) for row in monitor.rows] == 3 * [("cut", 1.0), ("free", 0.0)]


def test_weights_in_half_precision_are_measured_in_full():
    """Products of 8 bits would round: the gap is that of the weights as they are."""
    x = torch.tensor([0.3, -0.2, 0.11]).bfloat16()
    g = torch.tensor([1.01, -2.03, 0.507]).bfloat16()
    (row,) = looked(
        lambda p: SFW(p, lr=0.1, momentum=0.0), x, g, constraint=adafw.LInfBall(0.5)
    ).rows
    exact = g.double() @ x.double() + 0.5 * g.double().abs().sum()
    assert row.gap == pytest.approx(float(exact), rel=1e-6)


def test_gaps_are_summed_in_double_precision():
    x, g = torch.zeros(3), torch.tensor([1e8, 1.0, -1.0])
    (row,) = looked(
        lambda p: SFW(p, lr=0.1, momentum=0.0), x, g, constraint=adafw.LInfBall(1.0)
    ).rows
    assert row.gap == 1e8 + 2


def test_a_hundred_steps_lie_between_two_looks_unless_told():
    p = nn.Parameter(X.clone())
    optimizer = SFW([{"params": [p], "constraint": adafw.LInfBall(1.0)}], lr=0.1)
    monitor = Monitor(optimizer)
    p.grad = G.clone()
    for _ in range(201):
        optimizer.step()
    assert [row.step for row in monitor.rows] == [0, 100, 200]
    assert monitor.writer is None


def test_small_gradients_are_looked_at_as_large_ones_are():
    make = lambda p: SFW(p, lr=0.1, momentum=0.0)  # noqa: E731
    for scale in (1e-9, 1.0, 1e9):
        (row,) = looked(make, X, scale * G, constraint=adafw.LInfBall(0.5)).rows
        assert row.kappa == pytest.approx(1.0)
        assert row.gap == pytest.approx(scale * float(G @ X + 0.5 * G.abs().sum()))
