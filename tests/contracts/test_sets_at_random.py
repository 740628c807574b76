"""Ten thousand random cases per set, against closed forms, linear programs and decompositions.

Each case draws a set, a direction and a metric; every other one in float32, every fourth through
torch. `-rP` shows the worst errors.
"""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

import adafw

CASES = 10_000


def size(rng, most=12):
    return int(rng.integers(1, most + 1))


def radius(rng):
    return float(10 ** rng.uniform(-2, 2))


def l1_ball(rng):
    r, n = radius(rng), size(rng)
    return adafw.L1Ball(r), (n,), lambda g: -r * np.abs(g).max()


def l2_ball(rng):
    r, n = radius(rng), size(rng)
    return adafw.L2Ball(r), (n,), lambda g: -r * np.linalg.norm(g)


def linf_ball(rng):
    r, n = radius(rng), size(rng)
    return adafw.LInfBall(r), (n,), lambda g: -r * np.abs(g).sum()


def lp_ball(rng):
    r, n, p = radius(rng), size(rng), float(1 + 10 ** rng.uniform(-1.5, 2))
    q = p / (p - 1)
    return adafw.LpBall(r, p), (n,), lambda g: -r * scaled_norm(g, q)


def scaled_norm(g, q):
    largest = np.abs(g).max()
    return largest and largest * np.sum((np.abs(g) / largest) ** q) ** (1 / q)


def box(rng):
    n = size(rng)
    ends = np.sort(rng.standard_normal((2, n)) * radius(rng), axis=0)
    return adafw.Box(*ends), (n,), lambda g: np.minimum(g * ends[0], g * ends[1]).sum()


def simplex(rng):
    r, n = radius(rng), size(rng)
    return adafw.Simplex(r), (n,), lambda g: r * g.min()


def unit_simplex(rng):
    r, n = radius(rng), size(rng)
    return adafw.UnitSimplex(r), (n,), lambda g: min(0.0, r * g.min())


def k_sparse(rng):
    r, n, k = radius(rng), size(rng), size(rng, 6)
    return adafw.KSparse(r, k), (n,), lambda g: -r * np.sort(np.abs(g))[::-1][:k].sum()


def group_ball(rng):
    r, n = radius(rng), size(rng)
    labels = rng.integers(-3, 3, n)
    return (
        adafw.GroupBall(r, labels),
        (n,),
        lambda g: -r * max(np.linalg.norm(g[labels == k]) for k in set(labels)),
    )


def hull(rng):
    n, m = size(rng, 8), size(rng, 20)
    points = rng.standard_normal((m, n)) * radius(rng) + rng.choice([0.0, 1.0])
    return adafw.Hull(points), (n,), lambda g: (points @ g).min()


def nuclear_ball(rng):
    r, shape = radius(rng), (size(rng, 6), size(rng, 6))
    return adafw.NuclearBall(r), shape, lambda g: -r * np.linalg.norm(g, 2)


def spectral_ball(rng):
    r, shape = radius(rng), (size(rng, 6), size(rng, 6))
    return adafw.SpectralBall(r), shape, lambda g: -r * np.linalg.norm(g, "nuc")


def row_ball(rng):
    r, shape = radius(rng), (size(rng, 6), size(rng, 6))
    return adafw.RowBall(r), shape, lambda g: -r * np.linalg.norm(g, axis=1).sum()


def column_ball(rng):
    r, shape = radius(rng), (size(rng, 6), size(rng, 6))
    return adafw.ColumnBall(r), shape, lambda g: -r * np.linalg.norm(g, axis=0).sum()


def rms_ball(rng):
    r, n = radius(rng), size(rng, 9)
    return adafw.RMSBall(r), (n,), lambda g: -r * np.sqrt(n) * np.linalg.norm(g)


def birkhoff(rng):
    n = size(rng, 5)
    orders = np.array(list(itertools.permutations(range(n))))
    return adafw.Birkhoff(), (n, n), lambda g: g[np.arange(n), orders].sum(axis=1).min()


def polytope(rng):
    n, m, k = size(rng, 6), size(rng, 8), int(rng.integers(0, 2))
    inside = rng.uniform(-1, 1, n)
    A, E = rng.standard_normal((m, n)), rng.standard_normal((k, n))
    parts = A, A @ inside + rng.uniform(0, 1, m), E, E @ inside
    ends = np.column_stack([inside - rng.uniform(0, 2, n), inside + rng.uniform(0, 2, n)])

    def least(g):
        scale = np.abs(g).max() or 1.0
        return scale * linprog(g / scale, *parts, bounds=ends, method="highs-ipm").fun

    return adafw.Polytope(*parts, bounds=ends), (n,), least


def product(rng):
    parts = [make(rng) for make in (l2_ball, birkhoff, k_sparse)]
    ends = np.cumsum([0] + [np.prod(shape) for _, shape, _ in parts])

    def least(g):
        return sum(
            low(g[i:j].reshape(shape))
            for (_, shape, low), i, j in zip(parts, ends, ends[1:], strict=False)
        )

    return adafw.Product([(part, shape) for part, shape, _ in parts]), (int(ends[-1]),), least


MAKERS = [
    l1_ball, l2_ball, linf_ball, lp_ball, box, simplex, unit_simplex, k_sparse, group_ball, hull,
    nuclear_ball, spectral_ball, row_ball, column_ball, rms_ball, birkhoff, polytope, product,
]  # fmt: skip


def errors(make, seed, orders):
    """How far lmo and project are from what they should be, relative to their sizes."""
    rng = np.random.default_rng([seed, MAKERS.index(make)])
    constraint, shape, least = make(rng)
    single = seed % 2 == 1
    dtype = np.float32 if single else np.float64
    g = rng.standard_normal(shape).astype(dtype)
    if seed % 5 == 0:
        g = np.round(g)
    given = g
    if seed % 4 >= 2:
        torch = pytest.importorskip("torch")
        given = torch.from_numpy(g)
    v = np.asarray(constraint.lmo(given), dtype=np.float64)
    g = g.astype(np.float64)
    value, low = np.vdot(g, v), least(g)
    lmo = abs(value - low) / (np.sum(np.abs(g * v)) + abs(low) + 1e-300)

    x = rng.standard_normal(shape) * constraint.scale * 10 ** rng.uniform(-1, 2)
    h = 10 ** rng.uniform(-orders, orders, shape)
    if single:
        x, h = x.astype(np.float32), h.astype(np.float32)
    p = constraint.project(x, h)
    assert p.dtype == x.dtype
    outside = max(constraint.violation(v), constraint.violation(p))
    x, h, p = (a.astype(np.float64) for a in (x, h, p))
    pull = h * (p - x)
    missed = (np.vdot(pull, p) - least(pull)) / (np.sum(h * (x * x + p * p)) + 1e-300)
    return lmo, missed, outside


@pytest.mark.slow
@pytest.mark.parametrize("orders", [0, 2, 4])
@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_random_cases(make, orders):
    worst = np.zeros((2, 3))
    for seed in range(orders, CASES, 3) if orders else range(0, CASES, 3):
        worst[seed % 2] = np.maximum(worst[seed % 2], errors(make, seed, orders))
    for row, kind in zip(worst, ("float64", "float32"), strict=True):
        print(f"{kind}: lmo {row[0]:.1e}  projection {row[1]:.1e}  outside by {row[2]:.1e}")
    # ||p - p*||_h^2 is at most what the projection missed, relative to ||x||_h^2 + ||p||_h^2.
    assert (worst[0] <= [1e-9, 1e-10, 1e-11]).all()
    assert (worst[1] <= [2e-6, 2e-5, 5e-6]).all()
