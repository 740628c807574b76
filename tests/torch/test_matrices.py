"""Matrix sets on tensors: (out, rest) shapes, and the two balls without decompositions."""

import math

import numpy as np
import pytest
import torch
from torch import nn

import adafw
from adafw.torch import (
    SFW,
    AdamSFW,
    AdaSFW,
    NewtonSchulzBall,
    PowerNuclearBall,
    constrain,
    gap,
    make_feasible,
    matrices,
    polar,
)
from adafw.torch.matrices import DecomposedBall, MuonBall

SHAPES = [(1, 1), (1, 6), (9, 1), (12, 30), (30, 12), (40, 40)]


def spectrum(kind, shape, seed):
    """A matrix with a given kind of singular values."""
    rng = torch.Generator().manual_seed(seed)
    k = min(shape)
    u, _ = torch.linalg.qr(torch.randn(shape[0], k, generator=rng, dtype=torch.float64))
    v, _ = torch.linalg.qr(torch.randn(shape[1], k, generator=rng, dtype=torch.float64))
    s = {
        "flat": torch.ones(k),
        "close": 1 - 0.3 * torch.arange(k) / k,
        "steep": 0.5 ** torch.arange(k),
        "small": 1e-30 * 0.9 ** torch.arange(k),
    }[kind].double()
    return (u * s) @ v.mT


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["flat", "close", "steep", "small"])
def test_the_power_method_is_as_accurate_as_it_says_and_stays_inside(kind, shape, dtype):
    for seed in range(5):
        g = spectrum(kind, shape, seed).to(dtype)
        ball = PowerNuclearBall(2.0, accuracy=0.02)
        v = ball.lmo(g)
        best = -2.0 * torch.linalg.matrix_norm(g.double(), 2)
        assert (g.double() * v.double()).sum() <= 0.98 * best
        assert ball.contains(v)
        assert v.dtype == dtype


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["flat", "close", "steep", "small"])
def test_newton_schulz_converges_from_below(kind, shape, dtype):
    g = spectrum(kind, shape, 0).to(dtype)
    ball = NewtonSchulzBall(2.0)
    v = ball.lmo(g)
    singular = torch.linalg.svdvals(v.double())
    assert singular.max() <= 2.0 * (1 + 1e-5)
    assert ball.contains(v)
    best = -2.0 * torch.linalg.svdvals(g.double()).sum()
    assert (g.double() * v.double()).sum() <= 0.99 * best


def test_more_iterations_give_the_exact_vertex():
    g = spectrum("close", (8, 5), 1)
    u, _, vt = torch.linalg.svd(g, full_matrices=False)
    torch.testing.assert_close(NewtonSchulzBall(1.0, iterations=30).lmo(g), -u @ vt)


@pytest.mark.parametrize("ball", [PowerNuclearBall(1.0), NewtonSchulzBall(1.0)])
def test_zero_gives_zero_and_nan_is_refused(ball):
    assert not ball.lmo(torch.zeros(4, 3)).any()
    with pytest.raises(ValueError, match="g must be finite"):
        ball.lmo(torch.tensor([[np.nan]]))
    with pytest.raises(ValueError, match="radius must be a number that is finite and > 0, got 0"):
        type(ball)(0.0)
    with pytest.raises(ValueError, match="p must be 2"):
        ball.diameter((3, 4), 1)
    with pytest.raises(TypeError, match="has no projection in a metric h"):
        ball.project(torch.ones(2, 2), torch.ones(2, 2))


@pytest.mark.parametrize("ball", [PowerNuclearBall(1.0), NewtonSchulzBall(1.0)])
def test_projections_are_nearest_points(ball):
    """<x - p, z - p> <= 0 for every point z of the set."""
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    p = ball.project(x)
    assert ball.contains(p)
    assert ball.gap(p, p - x) == pytest.approx(0.0, abs=1e-12)
    assert torch.allclose(ball.project(p), p)


@pytest.mark.parametrize("family", [PowerNuclearBall, NewtonSchulzBall])
@pytest.mark.parametrize("kind", [SFW, AdaSFW, AdamSFW])
def test_a_convolution_is_trained_as_a_matrix_and_stays_inside(family, kind):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 6, 3), nn.Flatten(), nn.Linear(24, 2))
    groups = constrain(model, family, diameter=1.5, show=False)
    assert make_feasible(groups)
    optimizer = kind(groups, lr=0.05)
    x, y = torch.randn(16, 3, 4, 4), torch.randn(16, 2)
    before = gap(model, nn.functional.mse_loss, [(x, y)], groups)
    for _ in range(40):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        for group in groups:
            for p in group["params"]:
                assert group["constraint"].contains(p.detach().reshape(len(p), -1))
    assert gap(model, nn.functional.mse_loss, [(x, y)], groups) < before


@pytest.mark.parametrize("name", ["NuclearBall", "SpectralBall"])
@pytest.mark.parametrize("kind", ["SFW", "AdaSFW", "AdamSFW"])
def test_the_exact_balls_follow_the_paper_step_by_step(name, kind):
    """The inner steps on (out, rest) matrices, written out with numpy's decomposition."""
    ball = getattr(adafw, name)(1.5)
    rng = np.random.default_rng(0)
    p = nn.Parameter(torch.tensor(0.1 * rng.standard_normal((4, 3, 2))))
    group = [{"params": [p], "constraint": ball}]
    make = {"SFW": lambda g: SFW(g, lr=0.1, momentum=0.0),
            "AdaSFW": lambda g: AdaSFW(g, lr=0.05, inner_steps=3),
            "AdamSFW": lambda g: AdamSFW(g, lr=0.05, inner_steps=3)}  # fmt: skip
    make_feasible(group)
    optimizer = make[kind](group)

    def lmo(g):
        u, _, vt = np.linalg.svd(g.reshape(4, 6), full_matrices=False)
        v = u[:, :1] @ vt[:1] if name == "NuclearBall" else u @ vt
        return -1.5 * v.reshape(g.shape)

    x, m, s, most = p.detach().numpy().copy(), 0.0, 0.0, 0.0
    for _ in range(15):
        g = rng.standard_normal((4, 3, 2))
        if kind == "SFW":
            x = x + 0.1 * (lmo(g) - x)
        else:
            m = g if kind == "AdaSFW" else 0.9 * m + 0.1 * g
            s = s + g**2 if kind == "AdaSFW" else 0.99 * s + 0.01 * g**2
            most = np.maximum(most, s)
            h, y = 1e-8 + np.sqrt(most), x
            for _ in range(3):
                q = m + h * (y - x) / 0.05
                d = lmo(q) - y
                y = y + min(-0.05 * (q * d).sum() / (d * h * d).sum(), 1.0) * d
            x = y
        p.grad = torch.tensor(g)
        optimizer.step()
        np.testing.assert_allclose(p.detach().numpy(), x, rtol=0, atol=1e-9)


def test_a_set_made_for_one_shape_takes_weights_of_that_size():
    """Here the rows of a matrix in a box, given to a convolution."""
    bounds = np.linspace(0.1, 0.2, 54).reshape(6, 9)
    conv = nn.Conv2d(1, 6, 3, bias=False)
    groups = [{"params": [conv.weight], "constraint": adafw.Box(-bounds, bounds)}]
    make_feasible(groups)
    optimizer = AdamSFW(groups, lr=0.1)
    conv(torch.ones(1, 1, 5, 5)).sum().backward()
    optimizer.step()
    assert groups[0]["constraint"].contains(conv.weight.detach().reshape(6, 9))
    wrong = [{"params": [conv.weight], "constraint": adafw.Box(-bounds[:2], bounds[:2])}]
    with pytest.raises(ValueError, match="this Box holds points of shape"):
        AdamSFW(wrong, lr=0.1)


@pytest.mark.parametrize("radius", [0.7, 3.0])
@pytest.mark.parametrize("ball", [DecomposedBall, NewtonSchulzBall, PowerNuclearBall])
def test_numbers_of_a_ball_are_those_of_the_exact_one(ball, radius):
    """Norms, gap, violation, projection and diameter, against the sets for arrays."""
    rng = np.random.default_rng(0)
    ours = ball(radius)
    exact = (adafw.NuclearBall if ball is PowerNuclearBall else adafw.SpectralBall)(radius)
    for scale in (0.01, 2.0):
        x, g = scale * rng.standard_normal((5, 3)), rng.standard_normal((5, 3))
        a, b = torch.from_numpy(x), torch.from_numpy(g)
        assert ours.gap(a, b) == pytest.approx(exact.gap(x, g))
        assert ours.violation(a) == pytest.approx(exact.violation(x), abs=1e-14)
        np.testing.assert_allclose(ours.project(a).numpy(), exact.project(x), atol=1e-12)
    assert ours.diameter((5, 3)) == pytest.approx(exact.diameter((5, 3)))
    assert math.isnan(ours.violation(torch.full((2, 2), torch.inf)))
    with pytest.raises(ValueError, match="p must be 2"):
        ours.diameter((5, 3), 1)
    with pytest.raises(TypeError, match="no projection in a metric"):
        ours.project(a, b)
    if ball is not PowerNuclearBall:
        assert ball(radius, split=4).diameter((4, 5, 3)) == pytest.approx(2 * radius * 12**0.5)


def test_rows_that_are_cut_into_parts():
    ball = DecomposedBall(1.0, split=3)
    assert ball.stacked((6, 4)) == (3, 2, 4)
    assert ball.stacked((3, 6, 4)) == (3, 6, 4)
    assert ball.stacked((3, 6, 4, 2)) == (3, 6, 8)
    assert ball.stacked((6, 5, 2)) == (3, 2, 10)
    assert DecomposedBall(1.0).stacked((6, 5, 2)) == (6, 10)
    assert DecomposedBall(1.0).stacked(()) == (1, 1)
    with pytest.raises(ValueError, match="split must divide the rows"):
        ball.stacked((4, 4))


def test_the_power_method_knows_how_many_products_it_needs():
    """0.824 sqrt(n) (1 - e)^(k - 1/2) <= 0.1, and not at k - 1."""
    for accuracy, n in ((0.05, 1), (0.05, 300), (0.5, 40), (0.99, 7)):
        k = PowerNuclearBall(1.0, accuracy).products(n)
        left = (1 - accuracy) ** 2
        assert 0.824 * n**0.5 * left ** (k - 0.5) <= 0.1 * (1 + 1e-9)
        assert 0.824 * n**0.5 * left ** (k - 1.5) > 0.1


#: The schedule of Amsel et al. for singular values from 1/1000 on, the last one repeating.
SCHEDULE = [
    (8.2051, -22.9019, 16.4607), (4.0664, -2.8612, 0.5184), (3.9096, -2.8234, 0.5250),
    (3.2856, -2.4153, 0.4853), (2.2779, -1.6198, 0.3985), (1.8726, -1.2307, 0.3585),
    (1.8564, -1.2132, 0.3568), (1.875, -1.25, 0.375), (1.875, -1.25, 0.375),
]  # fmt: skip


def by_schedule(s, iterations):
    for a, b, c in SCHEDULE[:iterations]:
        s = a * s + b * s**3 + c * s**5
    return 1.5 * s - 0.5 * s**3


@pytest.mark.parametrize("iterations", [4, 5, 6, 7, 8, 9])
@pytest.mark.parametrize("rows", [12, 300])
def test_singular_values_follow_the_schedule(iterations, rows):
    """Of diagonal matrices, square and tall; in float32 the tall one by its Gram matrix."""
    s = torch.logspace(-4, 0, 12, dtype=torch.float64)
    expected = by_schedule(s, iterations)
    assert expected.max() <= 1
    if iterations >= 6:
        assert expected[s >= 0.01].min() >= 0.99
    x = torch.zeros(rows, 12, dtype=torch.float64)
    x[:12] = torch.diag(s)
    for dtype, exact in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        for g in (3 * x, 3 * x.mT):
            found = polar.feasible(g.to(dtype), iterations).double()
            assert found.shape == g.shape
            torch.testing.assert_close(torch.diagonal(found), expected, rtol=0, atol=exact)
            assert (found.abs() > 1e-4).sum() == (expected > 1e-4).sum()


def test_sizes_are_bounded_by_the_smaller_of_two_norms():
    """A matrix of ones has the norm 6 by either; one row of ones and a diagonal tell them apart."""
    ones, row = torch.ones(4, 9, dtype=torch.float64), torch.eye(5, dtype=torch.float64)
    assert polar._scaled(ones).tolist() == [[1 / 6] * 9] * 4
    torch.testing.assert_close(polar._scaled(7 * row), row)  # not 1 / sqrt(5)
    row[0] = 1.0
    frobenius, sides = 9**0.5, (2 * 5) ** 0.5
    assert frobenius < sides
    torch.testing.assert_close(polar._scaled(row), row / frobenius)
    for scale in (1e-300, 1e300):
        torch.testing.assert_close(polar._scaled(scale * row), row / frobenius)
    assert not polar._scaled(torch.zeros(3, 2)).any()


def test_half_precision_is_for_products_that_asked_for_it():
    g = spectrum("close", (24, 16), 0).float()
    exact, rough = NewtonSchulzBall(1.0).lmo(g), NewtonSchulzBall(1.0, bf16=True).lmo(g)
    assert rough.dtype is torch.float32
    off = (exact - rough).abs().max()
    assert 1e-4 < off < 0.05
    assert NewtonSchulzBall(1.0).contains(rough)
    assert not torch.equal(MuonBall(1.0).lmo(1e-8 * g), MuonBall(1.0, eps=1e-30).lmo(1e-8 * g))


@pytest.mark.parametrize("steps", [1, 5])
def test_muons_iteration_is_its_own(steps):
    g = spectrum("close", (6, 9), 0).float()
    x = (g / g.norm()).double()
    for _ in range(steps):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    for given, wanted in ((g, x), (g.mT, x.mT), (torch.stack([g, 2 * g]), torch.stack([x, x]))):
        found = polar.muon(given, polar.MUON, steps, 1e-7)
        assert found.dtype is torch.float32
        torch.testing.assert_close(found.double(), wanted, rtol=0, atol=0.03)


def test_directions_without_size_are_not_taken_by_the_exact_factor():
    u, _ = torch.linalg.qr(torch.randn(7, 4, generator=torch.Generator().manual_seed(0)).double())
    rounding = 12 * torch.finfo(torch.float64).eps  # of 3, times less than the seven rows
    g = u @ torch.diag(torch.tensor([3.0, 1.0, 1e-9, rounding], dtype=torch.float64))
    expected = u.clone()
    expected[:, 3] = 0
    torch.testing.assert_close(polar.exact(g), expected, rtol=0, atol=1e-6)
    assert not polar.exact(torch.zeros(3, 2)).any()


@pytest.mark.parametrize("size", [384, 385, 401])
def test_symmetric_products_by_blocks_are_those_of_the_whole(size):
    x = torch.randn(size, 20, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    gram = polar._gram(x)
    torch.testing.assert_close(gram, x @ x.mT)
    half = size // 2
    assert torch.equal(gram[:half, half:], gram[half:, :half].mT)
    torch.testing.assert_close(polar._quadratic(gram, 0.5, -2.0), 0.5 * gram - 2 * gram @ gram)


def test_a_set_of_matrices_on_tensors_of_any_shape():
    for shape, wanted in (((), (1, 1)), ((5,), (5, 1)), ((4, 3, 2), (4, 6)), ((4, 6), (4, 6))):
        assert matrices.matrix_shape(adafw.NuclearBall(1.0), shape) == wanted
        assert matrices.matrix_shape(NewtonSchulzBall(1.0), shape) == wanted
        assert matrices.matrix_shape(adafw.L2Ball(1.0), shape) == shape
    box = adafw.Box(np.zeros((2, 6)), np.ones((2, 6)))
    assert matrices.matrix_shape(box, (4, 3)) == (2, 6)
    assert matrices.matrix_shape(box, (4, 4)) == (4, 4)  # refused by the set itself


@pytest.mark.parametrize("shape", [(9, 5), (5, 9)])
def test_the_power_method_takes_the_best_of_four_seeded_starts(shape):
    """Few products, so that the starts end at different places; the same ones every time."""
    ball = PowerNuclearBall(2.0, accuracy=0.9)
    k = ball.products(5)
    assert k <= 2
    chosen = set()
    for seed in range(12):
        g = spectrum("close", shape, seed)
        tall = g if shape[0] > shape[1] else g.mT
        v = torch.randn(5, 4, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
        for _ in range(k):
            v = tall.mT @ tall @ v
            v = v / v.norm(dim=0)
        lengths = (tall @ v).norm(dim=0)
        assert lengths.max() > lengths.min() * (1 + 1e-6)
        best = int(lengths.argmax())
        chosen.add(best)
        vertex = -2 * torch.outer(tall @ v[:, best] / lengths[best], v[:, best])
        found = ball.lmo(g)
        torch.testing.assert_close(found, vertex if shape[0] > shape[1] else vertex.mT)
        assert torch.equal(found, ball.lmo(g))
    assert len(chosen) > 2


@pytest.mark.parametrize(
    "ball", [PowerNuclearBall(1.0), NewtonSchulzBall(1.0), DecomposedBall(1.0)]
)
def test_single_precision_is_measured_in_double_and_stays_single(ball):
    for seed in range(5):
        x = torch.randn(6, 4, generator=torch.Generator().manual_seed(seed))
        assert ball.violation(x) == ball.violation(x.double())
        assert ball.project(x).dtype is torch.float32
        assert ball.project(x.double()).dtype is torch.float64
        assert ball.lmo(x).dtype is torch.float32
        torch.testing.assert_close(ball.project(x), ball.project(x.double()).float())
    assert ball.start((3, 2), torch.float32).tolist() == [[0.0, 0.0]] * 3


def test_numbers_of_balls_out_of_range_are_refused():
    for make, message in (
        (lambda: NewtonSchulzBall(1.0, split=0), "split must be an integer >= 1, got 0"),
        (lambda: NewtonSchulzBall(1.0, iterations=3), "iterations must be an integer >= 4, got 3"),
        (lambda: PowerNuclearBall(1.0, 1.0), "accuracy must be a number > 0 and <= 0.99"),
        (lambda: PowerNuclearBall(1.0, 0.0), "accuracy must be a number > 0 and <= 0.99"),
    ):
        with pytest.raises(ValueError, match=message):
            make()
    for ball in (NewtonSchulzBall(1.0), PowerNuclearBall(1.0)):
        for bad in (np.nan, np.inf):
            with pytest.raises(ValueError, match="x must be finite"):
                ball.project(torch.tensor([[1.0, bad]]))


def test_every_set_of_matrices_gets_rows_and_the_rest():
    for ball in (adafw.NuclearBall(1.0), adafw.SpectralBall(1.0), adafw.RowBall(1.0),
                 adafw.ColumnBall(1.0), adafw.Birkhoff(), PowerNuclearBall(1.0)):  # fmt: skip
        assert matrices.matrix_shape(ball, (6, 2, 3)) == (6, 6)
        assert matrices.matrix_shape(ball, ()) == (1, 1)
    assert matrices.matrix_shape(adafw.L2Ball(1.0), (6, 2, 3)) == (6, 2, 3)


def test_a_stack_is_as_far_outside_as_its_worst_matrix():
    stack = torch.stack([0.5 * torch.eye(3), torch.diag(torch.tensor([3.0, 1.0, 0.1]))]).double()
    for order in ([0, 1], [1, 0]):
        assert DecomposedBall(2.0, split=2).violation(stack[order]) == pytest.approx(0.5)


def test_the_power_method_minds_the_size_of_entries_of_any_sign():
    for sign in (1.0, -1.0):
        g = sign * torch.tensor([[1.0, 2.0], [2.0, 4.0], [0.5, 1.0]])
        for scale in (1e-30, 1.0, 1e30):
            v = PowerNuclearBall(2.0).lmo(scale * g)
            torch.testing.assert_close(v, -2.0 * g / g.norm())


@pytest.mark.parametrize("shape", [(5, 4), (3, 40), (40, 3)])
def test_matrices_of_a_stack_are_scaled_each_by_itself(shape):
    rng = torch.Generator().manual_seed(0)
    stack = torch.stack([scale * torch.randn(shape, generator=rng) for scale in (1.0, 1e15, 1e-15)])
    for factor, near in (
        (polar.feasible, 1e-4),
        (lambda g: polar.muon(g, polar.MUON, 5, 1e-30), 0.05),
    ):
        together = factor(stack)
        for whole, g in zip(together, stack, strict=True):
            torch.testing.assert_close(whole, factor(g), rtol=0, atol=near)


def test_bounds_by_rows_and_columns_are_those_of_each_matrix_of_a_stack():
    """One entry in each row: there they are tighter than the Frobenius norm."""
    one = torch.zeros(24, 3)
    one[torch.arange(24), torch.arange(24) % 3] = torch.linspace(0.5, 1.0, 24)
    for g in (one, one.mT, one[:4]):
        stack = torch.stack([g, 1e3 * g, 1e-3 * g])
        for factor in polar.feasible(stack):
            torch.testing.assert_close(factor, polar.feasible(g), rtol=0, atol=1e-6)


def test_muon_divides_by_eps_what_is_shorter_than_it():
    g = torch.tensor([[3.0, 0.0], [0.0, 4.0]])
    a, b, c = 2.0, -1.5, 0.5
    for eps, length in ((10.0, 10.0), (1e-7, 5.0)):
        s = torch.tensor([3.0, 4.0]) / length
        expected = torch.diag(a * s + b * s**3 + c * s**5)
        torch.testing.assert_close(polar.muon(g, (a, b, c), 1, eps), expected, rtol=0, atol=0.01)


def test_defaults_of_the_balls():
    ball = NewtonSchulzBall(1.0)
    assert (ball.split, ball.iterations, ball.bf16) == (1, 6, False)
    assert PowerNuclearBall(1.0).accuracy == 0.05
    muon = MuonBall(1.0)
    assert (muon.split, muon.coefficients) == (1, (3.4445, -4.775, 2.0315))
    assert (muon.steps, muon.eps) == (5, 1e-7)
    g = torch.randn(40, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for x in (g, g[:6], g.float(), g[:6].float()):
        assert torch.equal(polar.feasible(x), polar.feasible(x, 6, False))
    a, sides = g.mT @ g, g.abs().sum(0).max() * g.abs().sum(1).max()
    assert torch.equal(polar.gram_factor(a, sides), polar.gram_factor(a, sides, 6))
