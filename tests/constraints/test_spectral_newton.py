"""The last digits of projections onto balls of singular values, held against optimality itself."""

import numpy as np
import pytest

import adafw
from adafw.constraints import spectral_newton, spectral_projection
from adafw.constraints.nuclear_ball import Shrinking
from adafw.constraints.spectral_ball import Clipping

BALLS = {"nuclear": Shrinking(1.0), "spectral": Clipping(1.0)}


def missed(name, v, aim, h):
    """By how much h (aim - v) is no normal of the ball at v, relative to its size.

    Normals have the singular vectors of v: to the largest of their singular values for the nuclear
    norm, and only to those of length one for the spectral norm.
    """
    pull = h * (aim - v)
    u, s, wt = np.linalg.svd(v, full_matrices=False)
    size = np.linalg.norm(pull, 2)
    assert s.sum() <= 1 + 1e-12 if name == "nuclear" else s[0] <= 1 + 1e-12
    if name == "nuclear":
        u, wt = u[:, s > 1e-9], wt[s > 1e-9]
        return np.abs(pull @ wt.T - size * u).max() / size
    core = u[:, s > 1 - 1e-9].T @ pull @ wt[s > 1 - 1e-9].T
    assert np.linalg.eigvalsh(core + core.T).min() >= -1e-9 * size
    rest = pull - u[:, s > 1 - 1e-9] @ core @ wt[s > 1 - 1e-9]
    return max(np.abs(rest).max(), np.abs(core - core.T).max()) / size


@pytest.mark.parametrize("name", BALLS)
@pytest.mark.parametrize("shape", [(4, 3), (3, 6), (14, 10)])
@pytest.mark.parametrize("seed", range(3))
def test_the_point_found_is_optimal_to_rounding(name, shape, seed):
    rng = np.random.default_rng(seed)
    aim, h = rng.standard_normal(shape), 10 ** rng.uniform(-2, 2, shape)
    v = spectral_newton.project(aim, h, BALLS[name], name)
    assert missed(name, v, aim, h) <= 1e-11
    before = spectral_projection.project(aim, h, BALLS[name], name)
    np.testing.assert_allclose(v, before, atol=1e-8)
    assert missed(name, v, aim, h) < missed(name, before, aim, h)


@pytest.mark.parametrize("name", BALLS)
def test_far_starts_and_hopeless_metrics_say_so(name):
    rng = np.random.default_rng(0)
    aim, h = rng.standard_normal((6, 4)), 10 ** rng.uniform(-1, 1, (6, 4))
    exact = spectral_newton.project(aim, h, BALLS[name], name)
    found = spectral_newton.nearest(aim, h, BALLS[name], np.zeros((6, 4)))
    assert found is None or np.abs(found - exact).max() <= 1e-9
    h[0, 0] = 1e-40
    assert spectral_newton.nearest(aim, h, BALLS[name], np.zeros((6, 4))) is None


def test_balls_use_it():
    rng = np.random.default_rng(1)
    x, h = 5 * rng.standard_normal((6, 4)), 10 ** rng.uniform(-2, 2, (6, 4))
    for name, ball in (("nuclear", adafw.NuclearBall(2.0)), ("spectral", adafw.SpectralBall(2.0))):
        assert missed(name, ball.project(x, h) / 2, x / 2, h) <= 1e-11
