"""No vertex of the spectral ball leaves it, whatever the matrix: float32, to 1e-6 of the radius."""

import pytest
import torch

from adafw.torch import NewtonSchulzBall, polar

KINDS = ("gaussian", "condition", "rank", "tails", "signs", "sparse", "equal", "one entry")
#: Powers of ten of the largest entry, down to float32's subnormal numbers and up to its end.
SCALES = (-44, -38, -30, -10, 0, 0, 0, 10, 30, 38)


def hard(seed, least=1, largest=96, long=1):
    """A matrix of a kind and a scale that go round with the seed, in float32.

    Its sides lie between `least` and `largest`, one of them is made `long` times as long.
    """
    rng = torch.Generator().manual_seed(seed)

    def number(low, high):
        return int(torch.randint(low, high, (), generator=rng))

    def draw(*shape):
        return torch.randn(shape, generator=rng, dtype=torch.float64)

    rows, columns = number(least, largest + 1), number(least, largest + 1)
    rows, columns = (long * rows, columns) if seed % 3 else (rows, long * columns)
    kind, scale = KINDS[seed % len(KINDS)], SCALES[number(0, len(SCALES))]
    g = draw(rows, columns)
    if kind == "condition":
        u, s, vt = torch.linalg.svd(g, full_matrices=False)
        s = 10 ** (-12 * torch.rand(len(s), generator=rng, dtype=torch.float64))
        g = (u * s) @ vt
    elif kind == "rank":
        rank = number(1, 4)
        g = draw(rows, rank) @ draw(rank, columns)
    elif kind == "tails":
        g = g / torch.rand(rows, columns, generator=rng, dtype=torch.float64) ** 4
    elif kind == "signs":
        g = g.sign()
    elif kind == "sparse":
        g = g * (torch.rand(rows, columns, generator=rng, dtype=torch.float64) < 0.02)
    elif kind == "equal":
        g = torch.ones_like(g) + 1e-7 * g
    elif kind == "one entry":
        g = 1e-9 * g
        g[number(0, rows), number(0, columns)] = 1.0
    peak = g.abs().max()
    return (g / peak * 3.0 * 10.0**scale if peak > 0 else g).float()


def worst(seeds, **sides):
    """The largest singular value of a vertex over the radius, and the seed that had it."""
    found = []
    for seed in seeds:
        ball = NewtonSchulzBall((1.0, 3.7e-5, 2.9e7)[seed % 3])
        v = ball.lmo(hard(seed, **sides)).double()
        found.append((float(torch.linalg.matrix_norm(v, 2)) / ball.radius, seed))
    return max(found)


#: Squares and their like, matrices that go by their Gram matrix, and those made by blocks.
FORMS = {
    "plain": {},
    "gram": {"largest": 24, "long": 25},
    "blocks": {"least": polar.HALVED, "largest": 2 * polar.HALVED},
}


@pytest.mark.parametrize(("form", "count"), [("plain", 150), ("gram", 40), ("blocks", 3)])
def test_vertices_stay_inside(form, count):
    size, seed = worst(range(count), **FORMS[form])
    assert size <= 1 + 1e-6, seed


@pytest.mark.slow
@pytest.mark.parametrize(("form", "count"), [("plain", 10_000), ("gram", 1000), ("blocks", 64)])
def test_ten_thousand_vertices_stay_inside(form, count):
    size, seed = worst(range(count), **FORMS[form])
    assert size <= 1 + 1e-6, seed


def test_the_factor_of_the_gram_matrix_gives_the_same_vertex():
    for seed in range(200):
        g = hard(seed).double()
        g = g / g.abs().amax()  # squares are made of it as it is
        g = g if g.shape[0] >= g.shape[1] else g.mT
        sides = g.abs().sum(0).amax() * g.abs().sum(1).amax()
        made = g @ polar.gram_factor(g.mT @ g, sides)
        torch.testing.assert_close(made, polar.feasible(g), rtol=0, atol=1e-9)
        assert torch.linalg.matrix_norm(made, 2) <= 1 + 1e-9


def test_long_matrices_of_low_rank_are_made_in_float64():
    """Noise of float32 in what should be 0 would grow two thousandfold with every product."""
    rng = torch.Generator().manual_seed(0)
    for shape in ((200, 20), (20, 200), (3, 700), (4, 160, 16)):
        *stack, rows, columns = shape
        low = torch.randn(*stack, rows, 2, generator=rng) @ torch.randn(
            *stack, 2, columns, generator=rng
        )
        made, exact = polar.feasible(low), polar.feasible(low.double())
        assert made.dtype is torch.float32
        torch.testing.assert_close(made.double(), exact, rtol=0, atol=2e-7)
        assert torch.linalg.matrix_norm(made.double(), 2).amax() <= 1 + 1e-6
        assert polar.is_far(shape)


def test_a_small_matrix_is_rounded_as_in_a_stack():
    """Or a rank that owns two matrices would find another vertex than one that owns three.

    To the bit in a stack of one. How a BLAS with several threads rounds longer stacks is its own
    business, so the singular values here are such that no rounding grows.
    """
    rng = torch.Generator().manual_seed(0)
    for shape in ((3, 3), (3, 20), (5, 3), (1, 9), (17, 41), (90, 90)):
        stack = torch.randn(5, *shape, generator=rng)
        for g in stack:
            assert torch.equal(polar.feasible(g), polar.feasible(g[None])[0])
        u, _, vt = torch.linalg.svd(stack, full_matrices=False)
        stack = (u * torch.linspace(1, 2, min(shape))) @ vt
        one_by_one = torch.stack([polar.feasible(g) for g in stack])
        torch.testing.assert_close(polar.feasible(stack), one_by_one, rtol=0, atol=1e-6)


def test_symmetric_products_by_blocks():
    rng = torch.Generator().manual_seed(0)
    for rows in (383, 384, 401, 800):
        x = torch.randn(rows, 30, generator=rng, dtype=torch.float64)
        a = polar._gram(x)
        torch.testing.assert_close(a, x @ x.mT, rtol=0, atol=1e-12)
        made = polar._quadratic(a, 0.3, -0.7)
        torch.testing.assert_close(made, 0.3 * a - 0.7 * (a @ a), rtol=0, atol=1e-9)
    g = torch.randn(400, 401, generator=rng)
    exact = polar.feasible(g.double())
    torch.testing.assert_close(polar.feasible(g).double(), exact, rtol=0, atol=1e-5)
    assert torch.linalg.matrix_norm(polar.feasible(g).double(), 2) <= 1 + 1e-6
