import numpy as np
import pytest

from adafw import NuclearBall, SpectralBall
from adafw.constraints.nuclear_ball import Shrinking
from adafw.constraints.spectral_ball import Clipping
from adafw.constraints.spectral_projection import _Lagrangian, project, projection_derivative

BALLS = pytest.mark.parametrize(
    "ball", [Shrinking(2.0), Clipping(1.0)], ids=["nuclear", "spectral"]
)


def euclidean(z, ball):
    u, s, vt = np.linalg.svd(z, full_matrices=False)
    return (u * ball.shrink(s)[0]) @ vt


@BALLS
@pytest.mark.parametrize("shape", [(5, 5), (7, 4), (3, 1)])
def test_derivative_of_the_euclidean_projection(ball, shape):
    rng = np.random.default_rng(0)
    for scale in (0.05, 1.0, 5.0):  # inside, across and outside the ball
        z, d = scale * rng.standard_normal(shape), rng.standard_normal(shape)
        apply, diagonal = projection_derivative(np.linalg.svd(z, full_matrices=False), ball)
        step = 1e-6
        slope = (euclidean(z + step * d, ball) - euclidean(z - step * d, ball)) / (2 * step)
        np.testing.assert_allclose(apply(d), slope, atol=1e-6)
        e = rng.standard_normal(shape)
        assert np.vdot(apply(d), e) == pytest.approx(np.vdot(d, apply(e)))
        assert 0 <= np.vdot(d, apply(d)) <= np.vdot(d, d) * (1 + 1e-12)
        assert ((diagonal >= 0) & (diagonal <= 1)).all()


@BALLS
@pytest.mark.parametrize("orders", [0.5, 2, 4])
@pytest.mark.parametrize("shape", [(4, 6), (25, 20)])
def test_the_error_is_what_it_is_proven_to_be(ball, shape, orders):
    """Against the same problem solved from another start: x moved along the normal at v."""
    rng = np.random.default_rng([1, int(orders), *shape])
    x, h = 3 * rng.standard_normal(shape), 10 ** rng.uniform(-orders, orders, shape)
    v = project(x, h, ball, "test")
    # Every point v + t (x - v), t > 0, has the projection v.
    for t in (0.1, 3.0):
        again = project(v + t * (x - v), h, ball, "test")
        moved = np.sqrt(np.sum(h * (again - v) ** 2))
        assert moved <= 1e-8 * np.sqrt(np.sum(h * v**2))


def test_an_even_metric_is_the_euclidean_one():
    rng = np.random.default_rng(2)
    x = 3 * rng.standard_normal((5, 4))
    for ball, inner in ((NuclearBall(2.0), Shrinking(2.0)), (SpectralBall(1.0), Clipping(1.0))):
        np.testing.assert_array_equal(ball.project(x, np.full((5, 4), 7.0)), ball.project(x))
        ours = project(x, np.full((5, 4), 7.0), inner, "test")
        np.testing.assert_allclose(ours, ball.project(x), atol=1e-8)


def test_the_metric_of_an_adaptive_method_on_few_observations():
    """Most entries were never seen and have the metric's offset only."""
    rng = np.random.default_rng(3)
    shape = (30, 25)
    seen = rng.random(shape) < 0.2
    x = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 25)) + seen * rng.standard_normal(
        shape
    )
    h = 1e-8 + seen * np.abs(rng.standard_normal(shape))
    ball = NuclearBall(0.5 * np.linalg.norm(x, "nuc"))
    v = ball.project(x, h)
    assert ball.violation(v) <= 1e-13
    g = h * (v - x)
    assert ball.gap(v, g) <= 1e-8 * np.vdot(g, v - x) + 1e-13 * np.sum(h * v * v)


@pytest.mark.parametrize("seed", range(5))
def test_a_point_just_outside_costs_no_more_than_another(seed, monkeypatch):
    """The distance has few digits there, and steps that only move rounding must end the search."""
    calls, svd = [], np.linalg.svd
    monkeypatch.setattr(np.linalg, "svd", lambda *a, **k: calls.append(1) or svd(*a, **k))
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((10, 10))
    x *= 1.0003 / svd(x, compute_uv=False).sum()
    h = np.where(rng.random((10, 10)) < 0.3, rng.random((10, 10)) + 0.01, 6e-4)
    v = project(x, h, Shrinking(1.0), "test")
    assert len(calls) < 150  # about 50; hundreds to thousands if rounding is fought
    assert svd(v, compute_uv=False).sum() <= 1 + 1e-12
    g = h * (v - x)
    gap = np.vdot(g, v) + svd(g, compute_uv=False)[0]
    assert gap <= 1e-9 * np.vdot(v - x, g) + 1e-14 * np.vdot(v, h * v)


@BALLS
def test_the_gap_is_that_of_the_linear_problem(ball):
    """<G, V> less the least over the ball, G = H (V - X), and relative to the squared distance."""
    rng = np.random.default_rng(5)
    x, h = 3 * rng.standard_normal((6, 4)), rng.uniform(0.01, 1, (6, 4))
    problem = _Lagrangian(x, h, ball)
    v = euclidean(rng.standard_normal((6, 4)), ball)
    whole = NuclearBall(2.0) if isinstance(ball, Shrinking) else SpectralBall(1.0)
    gap = problem.gap(v)
    assert gap == pytest.approx(whole.gap(v, h * (v - x)), rel=1e-12)
    assert problem.length(v) == pytest.approx(np.sqrt(np.sum(h * v * v)))
    share = gap / (np.sum(h * (v - x) ** 2) + 1e-5 * np.sum(h * v * v))
    assert problem.relative_gap(v, gap) == pytest.approx(share, rel=1e-12)


@BALLS
@pytest.mark.parametrize("orders", [0.5, 2, 4])
def test_the_error_of_any_point_is_bounded(ball, orders):
    """By the residual in the norm of 1 / H as well as by the gap, wherever the search stands."""
    rng = np.random.default_rng(6)
    x, h = 3 * rng.standard_normal((6, 5)), 10 ** rng.uniform(-orders, 0, (6, 5))
    h /= h.max()
    best = project(x, h, ball, "test")
    problem = _Lagrangian(x, h, ball)
    for size in (1e-6, 1e-3, 0.1, 1.0) * 10:
        problem.penalty = 10 ** rng.uniform(-2, 1)
        # At the solution H (X - V) is the multiplier.
        off = size * rng.standard_normal(x.shape)
        problem.multiplier = h * (x - best) + off * h
        p = problem.at(best + size * rng.standard_normal(x.shape))
        apart = problem.length(p.inside - best)
        reach, distance = problem.length(p.inside), problem.length(p.inside - x)
        bound = problem.error(p) * (min(distance, reach) + 1e-5 * reach)
        assert apart <= bound * (1 + 1e-6) + 1e-8
        residual = h * (p.inside - x) + problem.penalty * (p.z - p.inside)
        by_residual = np.sqrt(np.sum(residual**2 / h))
        by_gap = np.sqrt(problem.gap(p.inside))
        wanted = min(by_residual, by_gap) / (min(distance, reach) + 1e-5 * reach)
        wanted = max(wanted, 100 * problem.relative_gap(p.inside, problem.gap(p.inside)))
        assert problem.error(p) == pytest.approx(wanted, rel=1e-9)


@BALLS
def test_value_and_gradient_of_the_subproblem(ball):
    rng = np.random.default_rng(7)
    x, h, v, d = (rng.uniform(0.1, 2, (5, 4)) for _ in range(4))
    problem = _Lagrangian(3 * x, h, ball)
    problem.penalty, problem.multiplier = 0.7, rng.standard_normal((5, 4))
    at = problem.at(v)
    z = v + problem.multiplier / 0.7
    distance = np.sum((z - euclidean(z, ball)) ** 2)
    assert at.value == pytest.approx(0.5 * np.sum(h * (v - 3 * x) ** 2) + 0.35 * distance)
    np.testing.assert_allclose(at.inside, euclidean(z, ball))
    step = 1e-6
    slope = (problem.at(v + step * d).value - problem.at(v - step * d).value) / (2 * step)
    assert np.vdot(at.gradient, d) == pytest.approx(slope, rel=1e-6)


def test_how_many_decompositions_uneven_metrics_cost(monkeypatch):
    """Where full steps of Newton's method go too far: shorter ones are tried the same way."""
    calls, svd = [], np.linalg.svd
    monkeypatch.setattr(np.linalg, "svd", lambda *a, **k: calls.append(1) or svd(*a, **k))
    hard = [(0, Clipping(1.0), 1), (0, Clipping(1.0), 3), (5, Shrinking(2.0), 3),
            (3, Clipping(1.0), 3), (5, Clipping(1.0), 3)]  # fmt: skip
    for seed, ball, orders in hard:
        rng = np.random.default_rng(seed)
        x, h = 3 * rng.standard_normal((8, 6)), 10 ** rng.uniform(-orders, orders, (8, 6))
        project(x, h, ball, "test")
    assert len(calls) < 570  # 481
