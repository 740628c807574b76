import numpy as np
import pytest

from adafw import L1Ball
from adafw.fused import problem
from adafw.kernels import l1


def shrunk(u, h, radius, level=0.0):
    """(y, level) of the kernel."""
    active = problem.active(np.arange(u.size), 0, u.size)
    _, sizes, widths, us, ys, _ = active
    sizes[:], widths[:], us[:] = np.abs(u), 1 / h, u
    level = l1.shrink(active, u.size, level, radius)
    return ys.copy(), level


@pytest.mark.parametrize("far", [2.0, 1e3, 1e10, 1e14])
def test_what_is_shrunk_has_the_norm_of_the_radius(far):
    """From far out, |u| - l / h is what rounding leaves; it is scaled, not the norm missed."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        u, h = far * (1 + rng.random(9)) * rng.choice([-1.0, 1.0], 9), np.ones(9)
        u[1:4] = np.sign(u[1:4]) * (np.abs(u).max() + rng.random(3))
        y, _ = shrunk(u, h, 1.7)
        assert np.abs(y).sum() == pytest.approx(1.7, rel=1e-14)
        assert (y * u >= 0).all()


def test_it_is_the_projection():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        u, h = 5 * rng.standard_normal(9), 10 ** rng.uniform(-1, 1, 9)
        y, level = shrunk(u, h, 1.7)
        np.testing.assert_allclose(y, L1Ball(1.7).project(u, h), atol=1e-12)
        again, same = shrunk(u, h, 1.7, 0.9 * level)  # from any level below
        np.testing.assert_allclose(again, y, atol=1e-12)
        assert same == pytest.approx(level)
