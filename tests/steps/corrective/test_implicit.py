"""Implicit steps: norms of groups, projections and how they move, and models that are solved."""

import numpy as np
import pytest

import adafw
from adafw.steps.corrective.groups import norms_of
from adafw.steps.corrective.implicit import _MOST, Curved, Norms, _guess, _newton, minimise

N = 24
SETS = {
    "groups": adafw.GroupBall(2.0, np.random.default_rng(1).integers(0, 7, N)),
    "single": adafw.GroupBall(2.0, np.arange(N)),
    "one": adafw.GroupBall(2.0, np.zeros(N)),
    "sparse": adafw.KSparse(0.7, 4),
    "sparsest": adafw.KSparse(0.7, 1),
    "box": adafw.KSparse(0.7, N),
}
every_set = pytest.mark.parametrize("name", SETS)


def norms(name, rng):
    """The set in a metric that is a number a group, and that metric a coordinate."""
    known = norms_of(SETS[name], np.ones(N))
    found = Norms(
        known.labels, np.exp(rng.standard_normal(known.scale.size)), known.most, known.total
    )
    return found, found.scale[found.labels]


@every_set
@pytest.mark.parametrize("size", [0.1, 1.0, 1e3, 1e8])
def test_a_landing_is_the_projection_in_the_metric(name, size):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        found, h = norms(name, rng)
        u = size * rng.standard_normal(N)
        there = found.landing(u).point
        np.testing.assert_allclose(there, SETS[name].project(u, h), atol=1e-12)
        assert SETS[name].violation(there) <= 1e-15


@every_set
@pytest.mark.parametrize("size", [1e12, 1e17, 1e30, 1e100])
def test_landings_from_far_outside_are_in_the_set(name, size):
    rng = np.random.default_rng(0)
    for _ in range(20):
        found, _ = norms(name, rng)
        there = found.landing(size * rng.standard_normal(N)).point
        assert SETS[name].violation(there) <= 1e-15
        assert np.count_nonzero(there)


@every_set
def test_gaps_are_those_of_the_set(name):
    rng = np.random.default_rng(0)
    found, _ = norms(name, rng)
    for _ in range(5):
        g, x = rng.standard_normal((2, N))
        assert found.gap(g, x) == pytest.approx(SETS[name].gap(x, g), rel=1e-12)


def test_a_gap_where_the_sum_ends_within_a_norm():
    found = Norms(np.arange(4), np.ones(4), 1.0, 2.5)
    assert found.gap(np.array([4.0, -3.0, 2.0, 1.0]), np.zeros(4)) == 4 + 3 + 2 / 2


@every_set
@pytest.mark.parametrize("size", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("way", ["matrix", "products"])
def test_newton_steps_solve_what_the_landing_makes_linear(name, size, way):
    """d + P'(s H d) = -missed, P' by differences of the projection."""
    rng = np.random.default_rng(3)
    found, h = norms(name, rng)
    A = rng.standard_normal((40, N))
    H, give, u, missed = A.T @ A / 40, 3.0 / h, size * rng.standard_normal(N), rng.random(N)
    model = Curved(lambda d: H @ d, np.diagonal(H).copy(), None, 0.0)
    model.matrix = H if way == "matrix" else None
    d = _newton(found, found.landing(u), missed, give, model)
    pull, e = give * (H @ d), 1e-7
    moved = (found.landing(u + e * pull).point - found.landing(u - e * pull).point) / (2 * e)
    close = 1e-5 if way == "matrix" else 0.3
    assert np.linalg.norm(d + moved + missed) <= close * np.linalg.norm(missed)


@every_set
@pytest.mark.parametrize("spike", [0.0, 1e3, 1e6])
@pytest.mark.parametrize("rank", [5, 40])
def test_models_are_solved_however_ill_conditioned(name, spike, rank):
    rng = np.random.default_rng(rank)
    A = rng.standard_normal((rank, N)) + spike * rng.uniform(0.5, 1.5, N)
    H = A.T @ A / rank
    found = norms_of(SETS[name], np.diagonal(H).copy())
    x = 0.4 * SETS[name].lmo(rng.standard_normal(N))
    slopes = H @ (x - rng.standard_normal(N)) / max(1.0, spike)
    wanted = 1e-9 * found.gap(slopes, x)
    y, done = minimise(
        found, x, slopes, Curved(lambda d: H @ d, np.diagonal(H), lambda: H, 0.0), wanted
    )
    noise = 1e-14 * found.total * max(1.0, spike) ** 2
    assert done
    assert found.gap(slopes + H @ (y - x), y) <= wanted + noise
    assert SETS[name].violation(y) <= 1e-15


def test_a_model_without_curvature_ends_at_a_vertex():
    found = Norms(np.arange(4), np.ones(4), 1.0, 2.0)
    slopes = np.array([1.0, -3.0, 2.0, 0.0])
    flat = Curved(lambda d: 0 * d, np.ones(4), None, 0.0)
    y, done = minimise(found, np.zeros(4), slopes, flat, 1e-9)
    assert done
    np.testing.assert_allclose(y, [0, 1, -1, 0], atol=1e-9)


def test_a_matrix_is_made_once_products_have_cost_as_much():
    H, made = np.diag([1.0, 2.0]), []

    def whole():
        made.append(1)
        return H

    model = Curved(lambda d: H @ d, np.ones(2), whole, 3.0)
    for k in range(6):
        np.testing.assert_array_equal(model.image(np.ones(2)), [1, 2])
        assert len(made) == (k >= 3)
    never = Curved(lambda d: H @ d, np.ones(2), None, 3.0)
    for k in range(_MOST + 1):
        assert never.dear == (k > _MOST)
        never.image(np.ones(2))
    assert never.dear


@every_set
@pytest.mark.parametrize("pull", [0.1, 3.0, 100.0])
def test_guessed_faces_lower_the_model_inside_the_set(name, pull):
    rng = np.random.default_rng(2)
    A = rng.standard_normal((60, N))
    H, found = A.T @ A / 60, norms_of(SETS[name], np.ones(N))
    x = 0.4 * SETS[name].lmo(rng.standard_normal(N))
    slopes = pull * rng.standard_normal(N)
    y, at = x, slopes
    for _ in range(8):
        if found.gap(at, y) <= 1e-7 * found.gap(slopes, x):
            break
        there = _guess(found, y, at, Curved(lambda d: H @ d, np.ones(N), None, 0.0))
        assert there is not None
        d = there[0] - y
        assert at @ d + d @ H @ d / 2 < 0
        assert SETS[name].violation(there[0]) <= 1e-14
        y, at = there
        np.testing.assert_allclose(at, slopes + H @ (y - x), atol=1e-10 * pull)
    assert found.gap(at, y) < 1e-2 * found.gap(slopes, x)
    assert _guess(found, y, 0 * at, Curved(lambda d: H @ d, np.ones(N), None, 0.0)) is None
