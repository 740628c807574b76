"""Projections in a diagonal metric against an independent search for the multiplier."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import adafw
from adafw import arrays
from adafw.arrays import LONG
from adafw.constraints import projections

SIZES = st.integers(1, 12)


@st.composite
def problems(draw, spread=8):
    n = draw(SIZES)
    ordinary = st.floats(-20, 20, allow_subnormal=False)
    x = draw(hnp.arrays(np.float64, n, elements=ordinary | st.sampled_from([0.0, 1.0, -1.0])))
    exponent = draw(hnp.arrays(np.float64, n, elements=st.floats(-spread, spread)))
    radius = draw(st.floats(1e-3, 30))
    return x, 10.0**exponent, radius


def multiplier_by_bisection(size, radius, high=1.0):
    """The smallest l >= 0 with size(l) <= radius, size decreasing, to the last bit."""
    while size(high) > radius:
        high *= 4
    low = 0.0
    for _ in range(2000):
        middle = np.sqrt(low * high) if low > 0 else high / 1e10
        if middle in (low, high) or middle == 0:
            break
        low, high = (middle, high) if size(middle) > radius else (low, middle)
        if high <= low * (1 + 4e-16):
            break
    return high


def in_metric(a, b, h):
    """The distance of two points, as the objective of the projection sees it."""
    return np.sqrt((h * (a - b) ** 2).sum())


def nearest(x, h, at, size, radius):
    return x if size(x) <= radius else at(multiplier_by_bisection(lambda l: size(at(l)), radius))


def check(v, expected, x, h, radius):
    """v is as near to x as the expected point, and equal to it as far as the metric can tell."""
    scale = max(in_metric(x, expected, h), in_metric(x, 0 * x, h), 1e-300)
    assert in_metric(x, v, h) <= in_metric(x, expected, h) + 1e-12 * scale
    assert in_metric(v, expected, h) <= 1e-6 * scale


@given(problems())
def test_l1_ball(problem):
    x, h, radius = problem
    ball = adafw.L1Ball(radius)
    v = ball.project(x, h)
    expected = nearest(
        x, h, lambda l: np.sign(x) * np.maximum(np.abs(x) - l / h, 0),
        lambda z: np.abs(z).sum(), radius,
    )  # fmt: skip
    assert ball.contains(v, 1e-14)
    check(v, expected, x, h, radius)
    assert (v * x >= 0).all()


@given(problems())
def test_l2_ball(problem):
    x, h, radius = problem
    ball = adafw.L2Ball(radius)
    v = ball.project(x, h)
    expected = nearest(x, h, lambda l: x * (h / (h + l)), lambda z: np.sqrt((z**2).sum()), radius)
    assert ball.contains(v, 1e-14)
    check(v, expected, x, h, radius)
    assert (np.abs(v) <= np.abs(x) * (1 + 1e-12)).all()


@given(problems(spread=4))
def test_simplices_satisfy_the_optimality_conditions(problem):
    """h_i (v_i - x_i) is one number on the support and not smaller off it."""
    x, h, radius = problem
    for constraint in (adafw.Simplex(radius), adafw.UnitSimplex(radius)):
        v = constraint.project(x, h)
        assert constraint.contains(v, 1e-13)
        slope = h * (v - x)
        scale = (h * (np.abs(x) + radius)).max()
        on = v > 0
        if on.any():
            assert np.ptp(slope[on]) <= 1e-12 * scale
            assert slope.min() >= slope[on].max() - 1e-12 * scale
        if isinstance(constraint, adafw.UnitSimplex):
            assert slope.max() <= 1e-12 * scale or v.sum() < radius * (1 - 1e-12) or on.any()
            inside = np.maximum(x, 0)
            if inside.sum() <= radius:
                assert np.array_equal(v, inside)


@given(problems())
def test_clipping_is_the_same_in_every_metric(problem):
    x, h, radius = problem
    assert np.array_equal(adafw.LInfBall(radius).project(x, h), np.clip(x, -radius, radius))
    box = adafw.Box(-radius, radius / 2)
    assert np.array_equal(box.project(x, h), np.clip(x, -radius, radius / 2))


SETS = [adafw.L1Ball, adafw.L2Ball, adafw.LInfBall, adafw.Simplex, adafw.UnitSimplex]


@pytest.mark.parametrize("make", SETS)
def test_the_euclidean_projection_is_that_of_any_constant_metric(make):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 5))
    for scale in (1e-12, 1.0, 1e12):
        h = np.full((4, 5), scale)
        assert np.allclose(make(0.7).project(x, h), make(0.7).project(x), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("make", SETS)
def test_a_point_inside_is_returned_as_it_is(make):
    x = np.full((2, 3), 0.5 / 6)
    if make is adafw.Simplex:
        x = np.full((2, 3), 1 / 6)
        assert np.allclose(make(1.0).project(x, 1 + x), x, atol=1e-16)
    else:
        assert np.array_equal(make(1.0).project(x, 1 + x), x)


@pytest.mark.parametrize("make", SETS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_torch_gives_what_numpy_gives(make, dtype):
    rng = np.random.default_rng(1)
    x, h = rng.normal(size=(3, 4)), rng.uniform(0.1, 3, size=(3, 4))
    for metric in (None, h):
        v = make(0.8).project(
            torch.tensor(x, dtype=dtype), None if metric is None else torch.tensor(h, dtype=dtype)
        )
        assert v.dtype == dtype
        assert v.shape == (3, 4)
        tolerance = 1e-6 if dtype == torch.float32 else 1e-14
        assert np.abs(v.numpy() - make(0.8).project(x, metric)).max() <= tolerance


@pytest.mark.parametrize("make", SETS)
def test_bad_input_is_refused(make):
    x = np.ones(3)
    with pytest.raises(ValueError, match="x must be finite"):
        make(1.0).project(np.array([1.0, np.nan, 0.0]))
    with pytest.raises(ValueError, match="h must be finite"):
        make(1.0).project(x, np.array([1.0, np.inf, 1.0]))
    with pytest.raises(ValueError, match="h must be positive"):
        make(1.0).project(x, np.array([1.0, 0.0, 1.0]))
    with pytest.raises(ValueError, match="h must have the shape of x"):
        make(1.0).project(x, np.ones(4))


def test_the_condition_that_the_papers_footnote_corrects():
    """Duchi et al. test sum v_i <= c where it must be sum a_i v_i <= c: with h below 1 their test
    would take a point outside for one inside, and the other way round."""
    for h in (np.array([0.1, 0.2]), np.array([10.0, 20.0])):
        inside, outside = np.array([0.6, 0.3]), np.array([0.9, 0.8])
        assert np.array_equal(adafw.L1Ball(1.0).project(inside, h), inside)
        assert np.abs(adafw.L1Ball(1.0).project(outside, h)).sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize(
    ("x", "h", "expected"),
    [
        ([3e16, 0.0, 3e16, 1e16, -3e16], None, [1 / 3, 0, 1 / 3, 0, -1 / 3]),
        ([1e308, 1e308], None, [0.5, 0.5]),
        ([3.0, 3.0], [5e-324, 5e-324], [0.5, 0.5]),
        ([3.0, 3.0], [1e308, 1e-308], [1.0, 0.0]),
        ([0.9, 0.6], [1e308, 1e-308], [0.9, 0.1]),
    ],
)
def test_l1_ball_far_out_and_in_extreme_metrics(x, h, expected):
    v = adafw.L1Ball(1.0).project(np.array(x), None if h is None else np.array(h))
    assert np.allclose(v, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("radius", [1e-300, 1e-160, 1e140, 1e151])
@pytest.mark.parametrize("make", SETS)
def test_tiny_and_huge_radii(make, radius):
    x, h = np.array([3.0, -1.0, 2.0, 0.5]) * 1e3, np.array([1.0, 2.0, 0.1, 1.0])
    for metric in (None, h):
        v = make(radius).project(x * radius, metric)
        assert np.allclose(v / radius, make(1.0).project(x, metric), rtol=0, atol=1e-14)


def test_huge_points_end_on_the_boundary():
    for make in SETS:
        x = np.array([1e18, -3e17, 2.0, 0.0])
        v = make(1.0).project(x, np.array([1.0, 1e-6, 1e6, 1.0]))
        assert make(1.0).contains(v)


class CountingNumpy:
    """numpy, counting the calls of `clip`."""

    calls = 0

    def __getattr__(self, name):
        self.calls += name == "clip"
        return getattr(np, name)


def test_searches_for_multipliers_end_where_only_rounding_is_left(monkeypatch):
    """Steps that move the last bit to and fro, in one call of thirty, once went on to the limit."""
    rng = np.random.default_rng(0)
    labels = np.arange(60) // 5
    for _ in range(300):
        counting = CountingNumpy()
        monkeypatch.setattr(projections, "namespace", lambda x, counting=counting: counting)
        x, h = 3 * rng.standard_normal(60), 10 ** rng.uniform(-3, 0, 60)
        projections.group_ball(x, h, 1.0, labels, 12)
        assert counting.calls <= 60  # about 20
        counting.calls = 0
        projections.k_sparse(x, h, 1.0, 7)
        assert counting.calls <= 60  # about 15


def test_a_knapsack_that_is_full_but_for_rounding_stays_so():
    size = np.array([5.0, 5.0, -3.0, -4.0])
    for total in (2 - 2e-16, 2.0, 2 + 4e-16):
        l = projections._knapsack(size, np.ones(4), 1.0, total)
        assert abs(np.clip(size - l, 0, 1).sum() - total) <= 1e-15


def test_all_ways_to_a_level_find_the_same():
    """By rounds, by rounds in one pass over long vectors, and by sorting."""
    for n, seed in itertools.product((1, 2, 50, LONG - 1, LONG, LONG + 1), range(3)):
        rng = np.random.default_rng(seed)
        a, h = np.abs(rng.standard_cauchy(n)), 10 ** rng.uniform(-2, 2, n)
        total = 0.3 * a.sum()
        kept = a.copy()
        level = projections._level(a, h, total)
        assert np.maximum(a - level / h, 0).sum() == pytest.approx(total)
        assert projections._level_by_sorting(a, 1 / h, total) == pytest.approx(level)
        np.testing.assert_array_equal(a, kept)


def test_a_level_that_takes_many_rounds_is_found_by_sorting():
    """Entries that grow geometrically leave one by one."""
    for n in (60, LONG + 60):
        a = np.zeros(n)
        a[:60] = 3.0 ** np.arange(60)
        level = projections._level(a, np.ones(n), 1e-3)
        assert level == pytest.approx(3.0**59 - 1e-3)
        assert np.maximum(a - level, 0)[:59].max() == 0


def test_order_from_large_to_small_keeps_ties():
    order = arrays.argsort_descending(np.array([1.0, 3, 2, 3, -1, 2]))
    np.testing.assert_array_equal(order, [1, 3, 2, 5, 0, 4])


@pytest.mark.parametrize("make", SETS)
def test_long_vectors_of_float32_are_projected_in_double_precision(make):
    """And matrices as the vectors that they hold."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(40, 25)).astype(np.float32)
    h = rng.uniform(0.1, 3, size=(40, 25)).astype(np.float32)
    wide = x.astype(np.float64), h.astype(np.float64)
    for radius in (0.3, 7.7):
        for found, wanted in (
            (make(radius).project(x), make(radius).project(wide[0].ravel())),
            (make(radius).project(x, h), make(radius).project(*(v.ravel() for v in wide))),
        ):
            assert (found.dtype, found.shape) == (np.float32, (40, 25))
            np.testing.assert_array_equal(found.ravel(), wanted.astype(np.float32))


@pytest.mark.filterwarnings("error")
def test_points_so_far_out_that_the_radius_is_rounded_off():
    rng = np.random.default_rng(0)
    for _ in range(100):
        n = int(rng.integers(1, 7))
        x = rng.standard_normal(n) * 10 ** rng.uniform(17, 300)
        h = 10 ** rng.uniform(-8, 8, n)
        v = projections.l1_ball(x, h, 1.0)
        assert np.abs(v).sum() == pytest.approx(1, abs=1e-12)
        assert (v * x >= 0).all()
        assert v[np.argmax(h * np.abs(x))] != 0
