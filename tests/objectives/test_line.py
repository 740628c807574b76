"""The restriction of an objective to a line, and its smoothness constant."""

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import losses
from adafw.objectives import Quadratic

LOSSES = [
    losses.Squared(),
    losses.Logistic(),
    losses.SquaredHinge(),
    losses.Huber(0.7),
    losses.SmoothedHinge(0.5),
    losses.Poisson(),
]


def model(loss, weighted=False, kind=np.asarray, seed=0):
    rng = np.random.default_rng(seed)
    A, y = rng.standard_normal((20, 6)), rng.choice([-1.0, 1.0], 20)
    y = np.abs(y) if isinstance(loss, losses.Poisson) else y
    weight = rng.random(20) if weighted else None
    return adafw.LinearModel(kind(A), y, loss, sample_weight=weight)


def as_user_sum(f):
    return adafw.UserSum(f.n_terms, f.value, f.gradient, convex=f.convex)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_line_is_the_objective_on_the_line(loss, weighted, kind):
    f = model(loss, weighted, kind)
    rng = np.random.default_rng(1)
    x, d = rng.standard_normal(6), rng.standard_normal(6)
    for g in (f, as_user_sum(f), adafw.Counted(f)):
        line = g.along(x, d)
        for gamma in (0.0, 0.3, 1.0):
            assert line.value(gamma) == pytest.approx(f.value(x + gamma * d), rel=1e-12)
            slope = f.gradient(x + gamma * d) @ d
            assert line.slope(gamma) == pytest.approx(slope, rel=1e-11, abs=1e-13)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_quadratic_knows_its_curvature_along_d(weighted):
    f = model(losses.Squared(), weighted)
    rng = np.random.default_rng(1)
    x, d = rng.standard_normal(6), rng.standard_normal(6)
    line = f.along(x, d)
    assert line.curvature == pytest.approx(line.slope(1.0) - line.slope(0.0), rel=1e-12)
    assert model(losses.Huber()).along(x, d).curvature is None


def test_counted_counts_what_a_line_evaluates():
    f = adafw.Counted(model(losses.Logistic()))
    line = f.along(np.zeros(6), np.ones(6))
    assert (f.values, f.gradients) == (0, 0)
    line.value(0.5)
    line.slope(0.5)
    line.slope(0.6)
    assert (f.values, f.gradients) == (1, 40)


@pytest.mark.parametrize("loss", LOSSES[:-1], ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_change_no_faster_than_smoothness_says(loss, weighted):
    f = model(loss, weighted)
    rng = np.random.default_rng(2)
    worst = 0.0
    for _ in range(300):
        x = rng.standard_normal(6) * 10.0 ** rng.uniform(-3, 1)
        d = rng.standard_normal(6) * 10.0 ** rng.uniform(-6, 1)
        change = np.linalg.norm(f.gradient(x + d) - f.gradient(x))
        worst = max(worst, change / np.linalg.norm(d))
    assert worst <= f.smoothness * (1 + 1e-6)
    assert adafw.Counted(f).smoothness == f.smoothness


def test_smoothness_of_a_quadratic_is_its_largest_eigenvalue():
    f = model(losses.Squared(), weighted=True)
    basis = np.eye(6)
    H = np.array([f.gradient(e) - f.gradient(np.zeros(6)) for e in basis])
    assert f.smoothness == pytest.approx(np.linalg.eigvalsh(H)[-1], rel=1e-12)


def test_objectives_without_smoothness_say_so():
    with pytest.raises(TypeError, match="Poisson has no bound on its curvature"):
        _ = model(losses.Poisson()).smoothness
    with pytest.raises(TypeError, match="does not know its smoothness constant L"):
        _ = as_user_sum(model(losses.Squared())).smoothness


def test_a_line_through_a_quadratic_model():
    rng = np.random.default_rng(3)
    B, x, d = rng.standard_normal((4, 4)), rng.standard_normal(4), rng.standard_normal(4)
    f = Quadratic(rng.standard_normal(4), rng.standard_normal(4), B @ B.T)
    line = f.along(x, d)
    for gamma in (0.0, 0.3, 1.0):
        assert line.value(gamma) == pytest.approx(f.value(x + gamma * d), rel=1e-12)
        assert line.slope(gamma) == pytest.approx(f.gradient(x + gamma * d) @ d, rel=1e-12)
    assert line.curvature == pytest.approx(d @ B @ B.T @ d, rel=1e-12)
    assert f.value(f.centre) == 0
    np.testing.assert_array_equal(f.gradient(f.centre), f.linear)
    step = 1e-6
    slope = (f.value(x + step * d) - f.value(x - step * d)) / (2 * step)
    assert f.gradient(x) @ d == pytest.approx(slope, rel=1e-7)
    np.testing.assert_allclose(f.hessian_product(x)(d), f.gradient(x + d) - f.gradient(x))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_quadratic_model_is_of_the_precision_of_its_centre(dtype):
    f = Quadratic(np.ones(3, dtype), np.zeros(3, dtype), np.eye(3, dtype=dtype))
    assert (f.shape, f.dtype) == ((3,), dtype)
    assert f.gradient(np.zeros(3, dtype)).dtype == dtype
    assert adafw.minimize(f, adafw.L2Ball(2.0), adafw.FW(), max_iterations=3).x.dtype == dtype
