import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import losses
from adafw.steps.corrective import descent
from adafw.steps.corrective.point import Point


def working(seed, spread=0.2, evenness=0.3, n=6):
    """Columns much like each other, weights on a sphere, some of which are tiny; or not."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((30, 1)) + spread * rng.standard_normal((30, n))
    y = np.where(rng.random(30) < 0.5, 1.0, -1.0)
    f = adafw.LinearModel(sparse.csr_array(A), y, losses.Logistic())
    x = np.maximum(rng.dirichlet(np.full(n, evenness)), 1e-6) * rng.choice([-1.0, 1.0], n)
    x *= 2 / np.abs(x).sum()
    at = descent.Working(
        f.rows, np.arange(n), x, f.gradient(x), radius=2.0, signed=True, bound=True, price=0.0,
        calm=True, seed=0,
    )  # fmt: skip
    return f, at


@pytest.mark.parametrize("seed", range(30))
def test_polishing_never_raises_the_model(seed):
    """What is cut off where a weight would change its sign may be worth more than all the rest."""
    f, at = working(seed)
    n, H = at.x.size, f.hessian(at.x)
    w = at.x.copy()
    model = descent._Model(at, Point(f, at.x))
    done = model._polish(w, np.arange(n))
    d = w - at.x
    change = at.g @ d + d @ H @ d / 2
    assert change < 0 or (not done and not d.any())
    assert (w * at.x >= 0).all()


def test_polishing_finds_the_minimum_on_its_face():
    """Where no weight would change its sign: the gradient of the model is level along the face."""
    found = 0
    for seed in range(30):
        f, at = working(seed, spread=3.0, evenness=30.0)
        w = at.x.copy()
        if not descent._Model(at, Point(f, at.x))._polish(w, np.arange(w.size)) or not w.all():
            continue
        found += 1
        slope = (at.g + f.hessian(at.x) @ (w - at.x)) * np.sign(w)
        before = at.g * np.sign(w)
        assert np.ptp(slope) <= 0.1 * np.ptp(before)
        assert np.abs(w).sum() == pytest.approx(2.0)
    assert found > 5


def test_violations_of_optimality():
    """|g + multiplier sign(x)| where x is not 0, else what |g| or -g exceeds the multiplier by."""
    g, x = np.array([3.0, -3.0, 0.5, -1.0]), np.array([0.0, 0.0, -2.0, 1.0])
    assert descent._violation(g, x, 1.0, True) == 2 + 2 + 0.5 + 0
    assert descent._violation(g, x, 1.0, False) == 0 + 2 + 0.5 + 0


def test_onto_the_sphere_by_the_shortest_way():
    w, diagonal = np.array([1.0, 0.0, -2.0, 0.1]), np.array([1.0, 1.0, 2.0, 0.5])
    new = w.copy()
    descent._onto_sphere(new, np.flatnonzero(w), diagonal, 10.0)
    assert np.abs(new).sum() == pytest.approx(10.0)
    moved = (new - w)[[0, 2, 3]] * diagonal[[0, 2, 3]] * np.sign(w[[0, 2, 3]])
    np.testing.assert_allclose(moved, moved[0])  # the same price everywhere
    descent._onto_sphere(w, np.flatnonzero(w), diagonal, 1.0)
    assert w[3] == 0  # a sign does not change
