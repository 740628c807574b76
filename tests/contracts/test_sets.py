"""What every set of the library promises. A new set is one line in SETS."""

import copy
import itertools
import json
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import adafw
from adafw.constraints.base import Constraint
from adafw.constraints.counted import CountedSet
from adafw.constraints.flat import FlatSet

GROUPS = np.array([3, 0, 0, 3, 7, 7, 7])
POINTS = np.random.default_rng(5).standard_normal((9, 4))
CUT = {  # a cube with a corner cut off, in a plane
    "A_ub": np.array([[1.0, 1.0, 1.0, 0.5], [-1.0, 2.0, 0.0, 0.0]]),
    "b_ub": np.array([2.0, 1.5]),
    "A_eq": np.array([[1.0, -1.0, 1.0, 1.0]]),
    "b_eq": np.array([0.5]),
    "bounds": [(-1, 1), (0, 2), (-1, 1), (-0.5, 1.5)],
}


def singular(g):
    return np.linalg.svd(g, compute_uv=False)


def largest(g, k):
    return np.sort(np.abs(g))[::-1][:k].sum()


def group_norms(g):
    return [np.linalg.norm(g[label == GROUPS]) for label in np.unique(GROUPS)]


def permutations(g):
    n = len(g)
    return min(sum(g[i, p[i]] for i in range(n)) for p in itertools.permutations(range(n)))


def vertices(A_ub, b_ub, A_eq, b_eq, bounds):
    """All points where n constraints are active and none is violated: brute force."""
    n = len(bounds)
    G = np.vstack([A_ub, -np.eye(n), np.eye(n)])
    b = np.concatenate([b_ub, [-low for low, _ in bounds], [high for _, high in bounds]])
    found = []
    for rows in itertools.combinations(range(len(G)), n - len(A_eq)):
        M = np.vstack([G[list(rows)], A_eq])
        if abs(np.linalg.det(M)) > 1e-9:
            v = np.linalg.solve(M, np.concatenate([b[list(rows)], b_eq]))
            if (G @ v <= b + 1e-9).all():
                found.append(v)
    return np.array(found)


CORNERS = vertices(**CUT)


def user_set():
    ball = adafw.L1Ball(2.0)
    return adafw.UserSet(ball.lmo, np.zeros(5), ball.contains, ball.project)


class Case(NamedTuple):
    name: str
    set: Any
    shape: tuple[int, ...]
    least: Callable[[np.ndarray], float]  # min <g, v> over the set, found without the library


# Radii that float32 does not hold: one that is rounded on the way to float64 is noticed.
SETS = [
    Case("L1Ball", adafw.L1Ball(2.0), (6,), lambda g: -2 * np.abs(g).max()),
    Case("L1Ball of matrices", adafw.L1Ball(0.3), (2, 3), lambda g: -0.3 * np.abs(g).max()),
    Case("L2Ball", adafw.L2Ball(3.3), (6,), lambda g: -3.3 * np.linalg.norm(g)),
    Case("LInfBall", adafw.LInfBall(0.1), (6,), lambda g: -0.1 * np.abs(g).sum()),
    Case("LpBall 1", adafw.LpBall(2.0, 1), (6,), lambda g: -2 * np.abs(g).max()),
    Case("LpBall 1.2", adafw.LpBall(2.0, 1.2), (6,), lambda g: -2 * np.linalg.norm(g, 6)),
    Case("LpBall 3", adafw.LpBall(0.7, 3.0), (2, 3),
         lambda g: -0.7 * np.linalg.norm(g.ravel(), 1.5)),
    Case("LpBall inf", adafw.LpBall(2.0, np.inf), (6,), lambda g: -2 * np.abs(g).sum()),
    Case("Box", adafw.Box(np.arange(-3, 2), np.arange(-1, 4)), (5,),
         lambda g: np.minimum(g * np.arange(-3, 2), g * np.arange(-1, 4)).sum()),
    Case("Nonnegative", adafw.Nonnegative(0.3), (6,), lambda g: 0.3 * np.minimum(g, 0).sum()),
    Case("Monotone", adafw.Monotone(0.3), (6,),
         lambda g: 0.3 * min(g[j:].sum() - g[:j].sum() for j in range(7))),
    Case("Simplex", adafw.Simplex(0.7), (6,), lambda g: 0.7 * g.min()),
    Case("UnitSimplex", adafw.UnitSimplex(0.3), (6,), lambda g: min(0, 0.3 * g.min())),
    Case("KSparse", adafw.KSparse(0.3, 2), (6,), lambda g: -0.3 * largest(g, 2)),
    Case("KSparse, all", adafw.KSparse(0.3, 9), (6,), lambda g: -0.3 * np.abs(g).sum()),
    Case("GroupBall", adafw.GroupBall(2.1, GROUPS), (7,), lambda g: -2.1 * max(group_norms(g))),
    Case("Hull", adafw.Hull(POINTS), (4,), lambda g: (POINTS @ g).min()),
    Case("NuclearBall", adafw.NuclearBall(2.1), (4, 3), lambda g: -2.1 * singular(g)[0]),
    Case("NuclearBall of vectors", adafw.NuclearBall(0.5, shape=(2, 4)), (8,),
         lambda g: -0.5 * singular(g.reshape(2, 4))[0]),
    Case("SpectralBall", adafw.SpectralBall(2.1), (3, 4), lambda g: -2.1 * singular(g).sum()),
    Case("SpectralBall of vectors", adafw.SpectralBall(0.5, shape=(3, 2)), (6,),
         lambda g: -0.5 * singular(g.reshape(3, 2)).sum()),
    Case("RowBall", adafw.RowBall(0.3), (3, 4), lambda g: -0.3 * np.linalg.norm(g, axis=1).sum()),
    Case("RowBall of vectors", adafw.RowBall(0.3, shape=(2, 3)), (6,),
         lambda g: -0.3 * np.linalg.norm(g.reshape(2, 3), axis=1).sum()),
    Case("ColumnBall", adafw.ColumnBall(2.1), (3, 4),
         lambda g: -2.1 * np.linalg.norm(g, axis=0).sum()),
    Case("RMSBall", adafw.RMSBall(0.3), (2, 4), lambda g: -0.3 * 8**0.5 * np.linalg.norm(g)),
    Case("Columns", adafw.Columns(adafw.Simplex(0.7)), (4, 3), lambda g: 0.7 * g.min(axis=0).sum()),
    Case("Columns of balls", adafw.Columns(adafw.L2Ball(2.1)), (3, 2),
         lambda g: -2.1 * np.linalg.norm(g, axis=0).sum()),
    Case("Birkhoff", adafw.Birkhoff(), (4, 4), permutations),
    Case("Polytope", adafw.Polytope(**CUT), (4,), lambda g: (CORNERS @ g).min()),
    Case("Product", adafw.Product([(adafw.L2Ball(2.0), 3), (adafw.Birkhoff(), (2, 2)),
                                   (adafw.Product([(adafw.Simplex(0.5), 2)]), 2)]), (9,),
         lambda g: (-2 * np.linalg.norm(g[:3]) + permutations(g[3:7].reshape(2, 2))
                    + 0.5 * g[7:].min())),
    Case("UserSet", user_set(), (5,), lambda g: -2 * np.abs(g).max()),
]  # fmt: skip

every_set = pytest.mark.parametrize("case", SETS, ids=lambda case: case.name)
both_dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])
plain = [case for case in SETS if case.name != "UserSet"]
projected = [case for case in SETS if case.set.projection == "metric"]
every_projection = pytest.mark.parametrize("case", projected, ids=lambda case: case.name)
ball_like = pytest.mark.parametrize("case", plain, ids=lambda case: case.name)


def draw(case, seed, dtype=np.float64):
    """A direction; some have ties and zeros, in which sets are most easily wrong."""
    rng = np.random.default_rng(seed)
    g = rng.standard_normal(case.shape)
    if seed % 3 == 1:
        g = np.round(g)
    return g.astype(dtype)


def inner_point(case, seed):
    """A convex combination of vertices."""
    weights = np.random.default_rng(seed).dirichlet(np.ones(6))
    return sum(w * case.set.lmo(draw(case, seed + i)) for i, w in enumerate(weights))


def metric(case, seed, orders):
    return 10.0 ** np.random.default_rng(seed + 99).uniform(-orders, orders, case.shape)


def test_every_set_is_held_to_it(nothing_left_out):
    tried, where = [case.set for case in SETS], "SETS of tests/contracts/test_sets.py"
    nothing_left_out(Constraint, "constraints", tried, where, {CountedSet, FlatSet})
    fewer = [constraint for constraint in tried if not isinstance(constraint, adafw.Birkhoff)]
    with pytest.raises(AssertionError, match=f"add a line for Birkhoff to {where}"):
        nothing_left_out(Constraint, "constraints", fewer, where, {CountedSet, FlatSet})


def test_a_counted_set_passes_everything_on():
    """What a set can say of itself, a counted one says too, but for what follows from the rest."""
    public = {name for name in vars(Constraint) if not name.startswith("_")}
    assert public - set(vars(CountedSet)) - set(vars(CountedSet(adafw.L2Ball(1.0)))) == set()


@every_set
def test_a_set_with_a_radius_says_so(case):
    """Others take tolerances, and the set ten times as large, from what it says."""
    assert case.set.radial == hasattr(case.set, "radius"), (
        f"derive {type(case.set).__name__} from RadialSet of constraints/base.py"
    )
    if case.set.radial:
        assert case.set.scale == case.set.radius


@every_set
def test_a_counted_set_answers_as_the_set_does(case):
    counted = CountedSet(case.set)
    g, x = draw(case, 0), inner_point(case, 1)
    np.testing.assert_array_equal(counted.lmo(g), case.set.lmo(g))
    np.testing.assert_array_equal(counted.start(case.shape), case.set.start(case.shape))
    assert counted.gap(x, g) == case.set.gap(x, g)
    assert (counted.lmo_calls, counted.projections) == (2, 0)
    if case.set.projection:
        np.testing.assert_array_equal(counted.project(3 * g), case.set.project(3 * g))
        assert (counted.lmo_calls, counted.projections) == (2, 1)
    for name in ("called", "projection", "exact_diameter", "radial", "scale", "shape"):
        assert getattr(counted, name) == getattr(case.set, name)
    assert counted.describe() == case.set.describe()
    assert counted.contains(x) == case.set.contains(x)
    if case.name != "UserSet":
        assert counted.diameter(case.shape) == case.set.diameter(case.shape)
        assert counted.violation(2 * x) == case.set.violation(2 * x)


@every_set
def test_a_flat_set_answers_as_the_set_does(case):
    flat = FlatSet(case.set, case.shape)
    g, x = draw(case, 0), inner_point(case, 1)
    np.testing.assert_array_equal(flat.lmo(g.reshape(-1)), case.set.lmo(g).reshape(-1))
    if case.set.projection is not None:
        ours, own = flat.project(3 * g.reshape(-1)), case.set.project(3 * g)
        np.testing.assert_array_equal(ours, own.reshape(-1))
    np.testing.assert_array_equal(flat.start(()), case.set.start(case.shape).reshape(-1))
    assert (flat.projection, flat.scale) == (case.set.projection, case.set.scale)
    assert flat.describe() == case.set.describe()
    if case.name != "UserSet":
        assert flat.diameter(()) == case.set.diameter(case.shape)
        assert flat.violation(2 * x.reshape(-1)) == case.set.violation(2 * x)


@pytest.mark.parametrize(
    "case", [case for case in SETS if len(case.shape) == 1], ids=lambda case: case.name
)
@pytest.mark.parametrize("rank", [2, 9])
def test_a_quadratic_is_minimised_where_a_formula_is_known(case, rank):
    n = case.shape[0]
    for seed in range(5):
        rng = np.random.default_rng(seed)
        B = rng.standard_normal((n, rank))
        H, x, g = B @ B.T, inner_point(case, seed), 10.0 ** (seed - 2) * rng.standard_normal(n)
        y = case.set.minimise_quadratic(x, g, H)
        counted = CountedSet(case.set).minimise_quadratic(x, g, H)
        if y is None:
            assert counted is None
            assert case.name != "L2Ball"
            continue
        np.testing.assert_array_equal(counted, y)
        assert case.set.contains(y)
        slope = g + H @ (y - x)
        assert case.set.gap(y, slope) <= 1e-9 * (np.linalg.norm(slope) + np.linalg.norm(g))


def test_a_flat_ball_minimises_a_quadratic_as_the_ball_does():
    rng = np.random.default_rng(0)
    H, x, g = np.diag(rng.random(6)), rng.standard_normal(6) / 9, rng.standard_normal(6)
    flat = FlatSet(adafw.L2Ball(1.0), (2, 3))
    wanted = adafw.L2Ball(1.0).minimise_quadratic(x, g, H)
    np.testing.assert_array_equal(flat.minimise_quadratic(x, g, H), wanted)
    assert FlatSet(adafw.L1Ball(1.0), (2, 3)).minimise_quadratic(x, g, H) is None


def test_a_quadratic_without_curvature_is_minimised_by_the_lmo():
    ball, x, flat = adafw.L2Ball(2.0), np.array([0.3, -0.4]), np.zeros((2, 2))
    for g in (np.array([3.0, 4.0]), 1e-9 * np.array([3.0, 4.0])):
        np.testing.assert_allclose(ball.minimise_quadratic(x, g, flat), ball.lmo(g), rtol=1e-12)
    assert ball.contains(ball.minimise_quadratic(x, np.zeros(2), flat))
    y = ball.minimise_quadratic(x, np.array([1.0, 0.0]), np.diag([1.0, 0.0]))
    np.testing.assert_allclose(y, [-0.7, -0.4], rtol=0.05)  # nothing moves the second entry


@pytest.mark.parametrize("library", ["numpy", "torch"])
@every_set
def test_lmo_of_zero_has_no_negative_zeros(case, library):
    """-radius * 0 is -0, which prints as such and whose reciprocal is minus infinity."""
    g = np.zeros(case.shape)
    if library == "torch":
        g = pytest.importorskip("torch").from_numpy(g)
    v = np.asarray(case.set.lmo(g))
    assert not np.signbit(v[v == 0]).any()


@both_dtypes
@every_set
def test_lmo_attains_the_minimum_in_the_set(case, dtype):
    digits = 1e-12 if dtype is np.float64 else 1e-5
    for seed in range(30):
        g = draw(case, seed, dtype)
        v = case.set.lmo(g)
        assert v.dtype == dtype
        assert v.shape == g.shape
        least = case.least(g.astype(np.float64))
        value = np.vdot(g.astype(np.float64), v.astype(np.float64))
        assert abs(value - least) <= digits * (1 + abs(least))
        assert case.set.contains(v)


@every_set
def test_lmo_is_blind_to_the_length_of_g(case):
    for seed, power in itertools.product(range(4), (-300, -155, 155, 300)):
        g = draw(case, seed)
        # A power of two scales without rounding, so that ties stay ties.
        v = case.set.lmo(g * 2.0 ** round(power / np.log10(2)))
        np.testing.assert_allclose(v, case.set.lmo(g), rtol=0, atol=1e-12)


@every_set
def test_lmo_of_zero_is_a_point_of_the_set(case):
    v = case.set.lmo(np.zeros(case.shape))
    assert case.set.contains(v, 1e-15)


@every_set
def test_gap_is_the_distance_to_the_least_value(case):
    for seed in range(10):
        x, g = inner_point(case, seed), draw(case, seed + 50)
        expected = np.vdot(g, x) - case.least(g)
        assert case.set.gap(x, g) == pytest.approx(expected, abs=1e-9)


@both_dtypes
@every_set
def test_numpy_and_torch_agree(case, dtype):
    torch = pytest.importorskip("torch")
    digits = 1e-9 if dtype is np.float64 else 1e-4
    for seed in range(6):
        g = draw(case, seed, dtype)
        tensor = torch.from_numpy(g.copy())
        h = metric(case, seed, 1).astype(dtype)
        answers = [(case.set.lmo(g), case.set.lmo(tensor))]
        if case.set.projection:
            theirs = case.set.project(3 * tensor, torch.from_numpy(h.copy()))
            answers += [
                (case.set.project(3 * g), case.set.project(3 * tensor)),
                (case.set.project(3 * g, h), theirs),
            ]
        for ours, theirs in answers:
            assert isinstance(theirs, torch.Tensor)
            assert theirs.dtype == tensor.dtype
            assert theirs.shape == tensor.shape
            np.testing.assert_allclose(theirs.numpy(), ours, rtol=0, atol=digits)
        assert case.set.violation(tensor) == pytest.approx(case.set.violation(g), abs=digits)


@ball_like
def test_torch_keeps_low_precision(case):
    torch = pytest.importorskip("torch")
    g = torch.from_numpy(draw(case, 0)).to(torch.bfloat16)
    v = case.set.lmo(g)
    assert v.dtype == torch.bfloat16
    assert case.set.contains(v, 0.05)


@pytest.mark.parametrize("orders", [None, 0, 2, 4])
@both_dtypes
@every_projection
def test_projection_is_the_nearest_point(case, dtype, orders):
    """p is nearest iff <h (x - p), v - p> <= 0 for all v, and then ||p - p*||_h^2 <= the excess."""
    for seed in range(8):
        x = (draw(case, seed) * 10.0 ** (seed % 4 - 1)).astype(dtype)
        h = None if orders is None else metric(case, seed, orders).astype(dtype)
        p = case.set.project(x, h)
        assert p.dtype == dtype
        assert case.set.contains(p)
        if dtype is np.float64:
            assert missed(case, x, p, h) <= 1e-10


@pytest.mark.parametrize("orders", [None, 2])
@every_projection
def test_projections_are_computed_in_double_precision(case, orders):
    """Of float32 the answer alone is rounded."""
    for seed in range(4):
        x = (100 * draw(case, seed)).astype(np.float32)
        h = None if orders is None else metric(case, seed, orders).astype(np.float32)
        wanted = case.set.project(x.astype(float), None if h is None else h.astype(float))
        found = case.set.project(x, h)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=6.1e-8 * np.abs(wanted).max())


@every_projection
def test_projection_is_blind_to_the_size_of_the_metric(case):
    """Only ratios of h matter; powers of two scale without rounding."""
    for seed, power in enumerate((-900, 900)):
        x, h = 3 * draw(case, seed), metric(case, seed, 2)
        wanted = case.set.project(x, h)
        found = case.set.project(x, h * 2.0**power)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * np.abs(wanted).max())


@every_projection
def test_projection_in_metrics_over_sixteen_orders(case):
    for seed in range(4):
        x, h = 3 * draw(case, seed), metric(case, seed, 8)
        p = case.set.project(x, h)
        assert case.set.violation(p) <= 1e-11 or case.name == "UserSet"
        assert missed(case, x, p, h) <= 1e-10


def missed(case, x, p, h):
    """A bound of ||p - p*||_h^2, relative to ||x||_h^2 + ||p||_h^2."""
    h = np.ones_like(x) if h is None else h
    g = h * (p - x)
    return max(0.0, np.vdot(g, p) - case.least(g)) / np.sum(h * (x * x + p * p))


@every_projection
def test_projection_leaves_points_of_the_set_alone(case):
    for seed, orders in itertools.product(range(5), (0, 2)):
        x, h = inner_point(case, seed), metric(case, seed, orders)
        np.testing.assert_allclose(case.set.project(x, h), x, rtol=0, atol=1e-9)
        p = case.set.project(5 * draw(case, seed), h)
        np.testing.assert_allclose(case.set.project(p, h), p, rtol=0, atol=1e-7)


@every_projection
def test_projection_does_not_expand_in_its_metric(case):
    for seed in range(8):
        h = metric(case, seed, 2)
        x, y = 2 * draw(case, seed), 2 * draw(case, seed + 1)
        before = np.sqrt(np.sum(h * (x - y) ** 2))
        after = np.sqrt(np.sum(h * (case.set.project(x, h) - case.set.project(y, h)) ** 2))
        assert after <= before * (1 + 1e-7)


@every_projection
def test_projection_is_not_the_euclidean_one(case):
    """Peers' "projected" adaptive methods project in the Euclidean norm whatever h is."""
    x, h = 10 * draw(case, 0), metric(case, 0, 2)
    separable = case.name in ("LInfBall", "LpBall inf", "Box", "Nonnegative", "KSparse, all")
    same = np.allclose(case.set.project(x, h), case.set.project(x), atol=1e-6)
    assert same == separable


@every_set
def test_bad_input_is_refused(case):
    for bad in (np.nan, np.inf, -np.inf):
        g = draw(case, 0)
        g.flat[0] = bad
        with pytest.raises(ValueError, match="g must be finite"):
            case.set.lmo(g)
    with pytest.raises(ValueError, match="at least one entry"):
        case.set.lmo(np.zeros(0))
    if case.set.shape is not None and case.name != "UserSet":
        with pytest.raises(ValueError, match=r"shape|holds"):
            case.set.lmo(np.ones(draw(case, 0).size + 1))


@every_projection
def test_bad_input_of_a_projection_is_refused(case):
    x = draw(case, 0)
    for bad in (np.nan, np.inf, -np.inf):
        g = draw(case, 0)
        g.flat[0] = bad
        with pytest.raises(ValueError, match="x must be finite"):
            case.set.project(g)
        with pytest.raises(ValueError, match="h must be finite"):
            case.set.project(x, g)
    with pytest.raises(ValueError, match="h must be positive"):
        case.set.project(x, np.zeros_like(x))
    for shape in ((x.size + 1,), (*x.shape, 2), (len(x), 1, 1)):
        with pytest.raises(ValueError, match="h must have the shape of x"):
            case.set.project(x, np.ones(shape))


@every_projection
def test_float32_is_rounded_once_by_a_projection(case):
    """At the end: in between it is as if float64 had come in."""
    for seed in range(3):
        x, h = (3 * draw(case, seed)).astype(np.float32), metric(case, seed, 2).astype(np.float32)
        exact = x.astype(np.float64), h.astype(np.float64)
        for found, wanted in (
            (case.set.project(x), case.set.project(exact[0])),
            (case.set.project(x, h), case.set.project(*exact)),
        ):
            assert found.dtype == np.float32
            np.testing.assert_array_equal(found, wanted.astype(np.float32))


@every_projection
def test_a_metric_may_be_a_list_or_of_another_library(case):
    torch = pytest.importorskip("torch")
    x, h = 3 * draw(case, 0), metric(case, 0, 1)
    expected = case.set.project(x, h)
    np.testing.assert_array_equal(case.set.project(x, h.tolist()), expected)
    np.testing.assert_array_equal(case.set.project(x, torch.from_numpy(h.copy())), expected)
    for other in (h, h.tolist()):
        found = case.set.project(torch.from_numpy(x.copy()), other)
        assert isinstance(found, torch.Tensor)
        assert found.dtype == torch.float64
        np.testing.assert_allclose(found.numpy(), expected, rtol=0, atol=1e-6)


@ball_like
def test_contains_tells_inside_from_outside(case):
    for seed in range(5):
        x = inner_point(case, seed)
        assert case.set.contains(x)
        assert case.set.violation(x) <= 1e-14
        far = 1e3 * (draw(case, seed) + 0.1)
        assert not case.set.contains(far)
        x.flat[0] = np.nan
        assert not case.set.contains(x)
        if case.set.projection:
            # Just outside: beyond the nearest point, along the way from it.
            p = case.set.project(far)
            just = p + 1e-4 * case.set.scale * (far - p) / np.linalg.norm(far - p)
            assert 0 < case.set.violation(just) < 1e-3
            assert not case.set.contains(just)
            assert case.set.contains(just, 1e-3)


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float32"])
@ball_like
def test_violations_are_measured_in_double_precision(case, name):
    """Sums of few digits would have none left; bounds alone are rounded as the points are."""
    torch = pytest.importorskip("torch")
    rounded = isinstance(case.set, adafw.Box | adafw.LInfBall)
    for seed in range(4):
        x = torch.from_numpy(3 * draw(case, seed) + 0.05).to(getattr(torch, name))
        wanted = case.set.violation(x.double())
        assert case.set.violation(x) == pytest.approx(wanted, rel=0.02 if rounded else 1e-14)
        if name == "float32":
            ours = case.set.violation(x.numpy())
            assert ours == pytest.approx(wanted, rel=1e-6 if rounded else 1e-14)


@ball_like
def test_nan_and_infinity_anywhere_are_no_point(case):
    for place in range(draw(case, 0).size):
        x = inner_point(case, 0)
        x.flat[place] = np.nan
        assert np.isnan(case.set.violation(x))
        assert not case.set.contains(x, 1e9)
        x.flat[place] = np.inf
        with np.errstate(invalid="ignore"):
            assert not case.set.contains(x, 1e9)


@every_projection
def test_a_point_inside_comes_back_as_a_copy(case):
    """What is done to the projection is not done to the point."""
    h = metric(case, 0, 1)
    for x in (0.5 * inner_point(case, 0) + 0.5 * inner_point(case, 1), case.set.start(case.shape)):
        kept = x.copy()
        for p in (case.set.project(x), case.set.project(x, h)):
            p[...] = 7.0
            np.testing.assert_array_equal(x, kept)


@both_dtypes
@every_set
def test_start_lies_in_the_set(case, dtype):
    x = case.set.start(case.shape, dtype)
    assert x.dtype == dtype
    assert x.shape == case.shape
    assert case.set.contains(x)


@ball_like
def test_start_takes_a_dtype_of_torch(case):
    torch = pytest.importorskip("torch")
    x = case.set.start(case.shape, torch.float32)
    np.testing.assert_array_equal(x.numpy(), case.set.start(case.shape, np.float32))


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, np.inf])
@ball_like
def test_no_two_points_are_further_apart_than_the_diameter(case, p):
    points = [case.set.lmo(draw(case, seed)).ravel() for seed in range(40)]
    diameter = case.set.diameter(case.shape, p)
    apart = [np.linalg.norm(a - b, p) for a, b in itertools.combinations(points, 2)]
    assert max(apart) <= diameter * (1 + 1e-12)
    assert diameter <= 5 * max(apart)  # and it is no guess


@pytest.mark.parametrize(
    "case", [case for case in plain if case.set.shape is not None], ids=lambda case: case.name
)
def test_start_and_diameter_refuse_a_shape_that_is_not_the_sets(case):
    for shape in ((case.shape[0] + 1,), (2, 2, 2)):
        with pytest.raises(ValueError, match="holds"):
            case.set.start(shape)
        with pytest.raises(ValueError, match="holds"):
            case.set.diameter(shape)


@pytest.mark.parametrize(
    "case", [case for case in plain if case.set.shape is not None], ids=lambda case: case.name
)
def test_a_point_of_another_shape_is_refused(case):
    other = np.ones(draw(case, 0).size + 1)
    asked = [case.set.lmo, case.set.violation, case.set.contains]
    for ask in asked + [case.set.project] * (case.set.projection is not None):
        with pytest.raises(ValueError, match="holds"):
            ask(other)


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, np.inf])
@ball_like
def test_the_diameter_is_reached(case, p):
    """From vertex to vertex, each furthest from the last along the slope of the norm."""
    known = case.set.exact_diameter and not (isinstance(case.set, adafw.SpectralBall) and p < 2)
    reached = 0.0
    for seed in range(40 if known else 0):
        slope = draw(case, seed)
        for _ in range(8):
            apart = case.set.lmo(-slope) - case.set.lmo(slope)
            size = np.abs(apart)
            power = size == size.max() if np.isinf(p) else size ** (p - 1)
            slope = np.sign(apart) * power
        reached = max(reached, np.linalg.norm(apart.ravel(), p))
    if known:
        assert case.set.diameter(case.shape, p) == pytest.approx(reached, rel=1e-4)


@pytest.mark.parametrize(
    ("constraint", "shape", "expected"),
    [(adafw.Simplex(2.0), 1, 0.0), (adafw.UnitSimplex(2.0), 1, 2.0),
     (adafw.Birkhoff(), (1, 1), 0.0), (adafw.KSparse(2.0, 5), 1, 4.0)],
    ids=repr,
)  # fmt: skip
def test_the_diameter_on_one_coordinate(constraint, shape, expected):
    for p in (1, 2, np.inf):
        assert constraint.diameter(shape, p) == expected


@ball_like
def test_wrappers_pass_on_the_order_the_metric_and_the_dtype(case):
    """A counted set, and a flat one, forget no argument."""
    x, h = 3 * draw(case, 1), metric(case, 1, 2)
    flat, counted = FlatSet(case.set, case.shape), CountedSet(case.set)
    for p in (1, 3, np.inf):
        wanted = case.set.diameter(case.shape, p)
        assert flat.diameter((), p) == counted.diameter(case.shape, p) == wanted
    if case.set.projection:
        wanted = case.set.project(x, h)
        np.testing.assert_array_equal(counted.project(x, h), wanted)
        ours = flat.project(x.ravel(), h.ravel())
        np.testing.assert_array_equal(ours.reshape(case.shape), wanted)
    for wrapped, shape in ((flat, ()), (counted, case.shape)):
        assert wrapped.start(shape, np.float32).dtype == np.float32
    just = 1e-6 * (2 * inner_point(case, 0) + 1) + case.set.lmo(x)
    for tol in (1e-9, 1e-3, None):
        assert counted.contains(just, tol) == case.set.contains(just, tol)
    assert CountedSet(counted).bare is case.set
    assert flat.bare is flat


@pytest.mark.parametrize(
    "constraint",
    [adafw.Box(0, 0), adafw.Hull(np.zeros((2, 3))), adafw.Polytope(bounds=[(0, 0)] * 3)],
    ids=repr,
)
def test_a_set_that_is_the_origin_measures_in_units_of_one(constraint):
    assert constraint.scale == 1.0
    x = np.array([0.0, -0.5, 0.25])
    assert constraint.violation(x) == pytest.approx(0.5, rel=0.2)  # of the largest, or their norm
    assert constraint.contains(np.zeros(3))
    np.testing.assert_array_equal(constraint.project(x), np.zeros(3))
    np.testing.assert_array_equal(constraint.lmo(x), np.zeros(3))
    assert constraint.diameter(3) == 0.0


@ball_like
def test_diameter_refuses_an_order_below_one(case):
    with pytest.raises(ValueError, match="p must be a number"):
        case.set.diameter(case.shape, 0.5)


@every_set
def test_description_is_plain_and_survives_copies(case):
    plain_text = json.dumps(case.set.describe())
    assert json.loads(plain_text)["name"] == type(case.set).__name__
    if case.name == "UserSet":
        return
    for twin in (copy.deepcopy(case.set), pickle.loads(pickle.dumps(case.set))):
        assert twin == case.set
        assert hash(twin) == hash(case.set)
        assert json.dumps(twin.describe()) == plain_text
        g = draw(case, 3)
        np.testing.assert_array_equal(twin.lmo(g), case.set.lmo(g))
    assert isinstance(repr(case.set), str)


def test_no_two_sets_are_equal():
    for one, other in itertools.combinations(SETS, 2):
        assert one.set != other.set


def test_a_set_is_not_what_is_wrapped_around_it_nor_anything_else():
    ball = adafw.L1Ball(2.0)
    assert ball != CountedSet(ball)
    assert ball != adafw.L2Ball(2.0)
    for other in (None, 2.0, "l1", ball.describe()):
        assert ball != other


@ball_like
def test_sets_are_frozen(case):
    with pytest.raises(AttributeError):
        case.set.radius = 3.0


RADIAL = [
    adafw.L1Ball, adafw.L2Ball, adafw.LInfBall, lambda r: adafw.LpBall(r, 3.0), adafw.Nonnegative,
    adafw.Monotone, adafw.Simplex, adafw.UnitSimplex, lambda r: adafw.KSparse(r, 2),
    lambda r: adafw.GroupBall(r, [0, 1]), adafw.NuclearBall, adafw.SpectralBall, adafw.RowBall,
    adafw.ColumnBall, adafw.RMSBall,
]  # fmt: skip


@pytest.mark.parametrize("make", RADIAL)
def test_a_radius_is_a_positive_number(make):
    kinds = {type(case.set) for case in SETS if case.set.radial}
    assert kinds == {type(radial(1)) for radial in RADIAL}
    for radius in (0.0, -1.0, np.nan, np.inf, 1e200, "1", None, True):
        with pytest.raises((ValueError, TypeError), match="radius must be"):
            make(radius)
    # A number of any kind is kept as a float, which a file can hold.
    assert type(make(np.float32(2)).radius) is type(make(2).radius) is float
    assert make(np.float32(2)) == make(2)


@ball_like
def test_arguments_are_left_alone(case):
    x, h = 3 * draw(case, 2), metric(case, 2, 2)
    before = x.copy(), h.copy()
    case.set.lmo(x)[...] = 7
    if case.set.projection:
        case.set.project(x, h)[...] = 7
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(h, before[1])
    assert case.set.contains(case.set.lmo(x))


TINY = [
    (adafw.L1Ball(2.0), (1,)), (adafw.L2Ball(2.0), (1,)), (adafw.LInfBall(2.0), (1,)),
    (adafw.LpBall(2.0, 1.5), (1,)), (adafw.LpBall(2.0, 4.0), (1,)), (adafw.Box(-2, 2), (1,)),
    (adafw.KSparse(2.0, 1), (1,)), (adafw.GroupBall(2.0, [5]), (1,)),
    (adafw.Hull([[-2.0], [2.0]]), (1,)), (adafw.NuclearBall(2.0), (1, 1)),
    (adafw.SpectralBall(2.0), (1, 1)), (adafw.Polytope(bounds=[(-2, 2)]), (1,)),
    (adafw.Product([(adafw.L2Ball(2.0), 1)]), (1,)),
]  # fmt: skip


@pytest.mark.parametrize(("constraint", "shape"), TINY, ids=lambda part: repr(part))
def test_on_one_coordinate_every_ball_is_an_interval(constraint, shape):
    for sign in (-1.0, 1.0):
        x = np.full(shape, 3 * sign)
        np.testing.assert_allclose(constraint.lmo(x), -2 * sign, rtol=1e-12)
        np.testing.assert_allclose(constraint.project(x), 2 * sign, rtol=1e-9)
        np.testing.assert_allclose(constraint.project(x, np.full(shape, 9.0)), 2 * sign, rtol=1e-9)
    np.testing.assert_allclose(constraint.project(np.full(shape, 0.5)), 0.5, rtol=1e-12)
    assert constraint.diameter(shape) == pytest.approx(4.0)


SCALED = [
    (adafw.L1Ball, (5,)), (adafw.L2Ball, (5,)), (adafw.LInfBall, (5,)),
    (lambda r: adafw.LpBall(r, 1.3), (5,)), (lambda r: adafw.LpBall(r, 4), (5,)),
    (lambda r: adafw.Box(-r, r), (5,)), (adafw.Simplex, (5,)), (adafw.UnitSimplex, (5,)),
    (lambda r: adafw.KSparse(r, 2), (5,)), (lambda r: adafw.GroupBall(r, [0, 0, 1, 1, 1]), (5,)),
    (lambda r: adafw.Hull(r * POINTS), (4,)), (adafw.NuclearBall, (3, 2)),
    (adafw.SpectralBall, (3, 2)),
    (lambda r: adafw.Polytope([[1, 2, 3]], [r], bounds=[(-r, r)] * 3), (3,)),
]  # fmt: skip


@pytest.mark.parametrize("radius", [2.0**-500, 2.0**-40, 2.0**40, 2.0**500])
@pytest.mark.parametrize(("make", "shape"), SCALED, ids=[repr(make(1.0)) for make, _ in SCALED])
def test_a_set_of_any_size_is_the_unit_one_scaled(make, shape, radius):
    rng = np.random.default_rng(0)
    g, x, h = rng.standard_normal(shape), 3 * rng.standard_normal(shape), rng.uniform(0.1, 1, shape)
    one, other = make(1.0), make(radius)
    np.testing.assert_allclose(other.lmo(g) / radius, one.lmo(g), atol=1e-14)
    np.testing.assert_allclose(other.project(radius * x) / radius, one.project(x), atol=1e-14)
    np.testing.assert_allclose(other.project(radius * x, h) / radius, one.project(x, h), atol=1e-9)
    assert other.violation(radius * x) == pytest.approx(one.violation(x))
    assert other.diameter(shape) == pytest.approx(radius * one.diameter(shape))


SINGLE = [
    (adafw.Simplex(2.0), (1,), 2.0), (adafw.Hull([[2.0]]), (1,), 2.0),
    (adafw.Birkhoff(), (1, 1), 1.0), (adafw.Polytope(bounds=[(2, 2)]), (1,), 2.0),
    (adafw.Box(2.0, 2.0), (1,), 2.0),
]  # fmt: skip


@pytest.mark.parametrize(("constraint", "shape", "only"), SINGLE, ids=lambda part: repr(part))
def test_a_set_of_one_point_has_nowhere_to_go(constraint, shape, only):
    for value in (-1.0, 0.0, 5.0):
        x = np.full(shape, value)
        np.testing.assert_allclose(constraint.lmo(x), only)
        np.testing.assert_allclose(constraint.project(x), only)
    assert constraint.diameter(shape) == 0


@pytest.mark.parametrize(
    "algorithm",
    [adafw.FW(), adafw.AdaSFW(learning_rate=0.3), adafw.AdaGrad(learning_rate=0.3)],
    ids=str,
)
@every_set
def test_runs_stay_inside_and_end_with_a_small_gap(case, algorithm):
    """f(x) = ||x - target||^2 / 2, whose minimiser is the projection of the target."""
    targets = np.stack([draw(case, seed) for seed in range(20)])
    f = adafw.UserSum(
        20,
        lambda x: 0.5 * np.mean(np.sum((x - targets).reshape(20, -1) ** 2, axis=1)),
        lambda x, batch: x - targets[slice(None) if batch is None else batch].mean(axis=0),
        convex=True,
    )
    x0 = case.set.start(case.shape)
    if isinstance(algorithm.step, adafw.steps.ProjectedStep) and case.set.projection != "metric":
        with pytest.raises(TypeError, match="needs a set with a projection"):
            adafw.minimize(f, case.set, algorithm, x0=x0)
        return
    r = adafw.minimize(f, case.set, algorithm, x0=x0, max_iterations=60)
    if case.name != "UserSet":
        assert max(r.trace["violation"]) <= 1e-12
    if case.set.projection:
        nearest = f.value(case.set.project(targets.mean(axis=0)))
        assert r.lower_bound <= nearest + 1e-9 <= r.value + 2e-9
    assert r.best.gap <= 0.3 * max(r.trace["gap"]) + 1e-9


def test_a_set_laid_out_flat_has_the_gap_of_the_set():
    """Whose linear minimiser may not be exact: what it may have missed counts."""
    rng = np.random.default_rng(0)
    g = rng.normal(size=(30, 20))
    for ball in (adafw.NuclearBall(2.0), adafw.L2Ball(2.0)):
        x = ball.start(g.shape)
        assert FlatSet(ball, g.shape).gap(x.ravel(), g.ravel()) == ball.gap(x, g)
        assert FlatSet(ball, g.shape).gap(x.ravel(), g.ravel()) > 0


@pytest.mark.parametrize("kind", [adafw.L1Ball, adafw.L2Ball, adafw.Simplex, adafw.UnitSimplex])
def test_a_gap_is_of_a_point_and_a_gradient_of_one_shape(kind):
    for other in (np.ones(7), np.ones((2, 3))):
        with pytest.raises(ValueError, match="shape"):
            kind(2.0).gap(np.zeros(6), other)


@pytest.mark.parametrize("kind", [adafw.L1Ball, adafw.L2Ball, adafw.Simplex, adafw.UnitSimplex])
def test_gaps_of_tensors_of_two_dtypes(kind):
    torch = pytest.importorskip("torch")
    x, g = np.arange(6.0) / 8, np.arange(6.0) - 2
    expected = kind(2.0).gap(x, g)
    for a, b in ((torch.float32, torch.float64), (torch.float64, torch.float32)):
        found = kind(2.0).gap(torch.tensor(x, dtype=a), torch.tensor(g, dtype=b))
        assert found == pytest.approx(expected, rel=1e-6)
