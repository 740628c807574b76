"""Linear models with an intercept take the fast paths, too."""

import numpy as np
import pytest
from fused_problems import after, linear_model

import adafw
from adafw import paths, solver
from adafw.objectives import WithIntercept

ALGORITHMS = {
    "CSFW": adafw.CSFW(batch_size=7),
    "AdaCSFW": adafw.AdaCSFW(learning_rate=0.5, inner_steps=3, batch_size=7),
    "projected": adafw.AdaGrad(0.3, gradient=adafw.gradients.CSFW(7)),
}


def with_intercept(kind, weighted=False):
    f = WithIntercept(linear_model(60, 25, seed=1, kind=kind, weighted=weighted))
    f.intercept = 0.7
    return f


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("kind", ["csr", "dense"])
@pytest.mark.parametrize("constraint", [adafw.L1Ball(3.0), adafw.LInfBall(0.4)], ids=["l1", "linf"])
def test_fused_equals_generic(name, kind, constraint):
    f, algorithm = with_intercept(kind, weighted=True), ALGORITHMS[name]
    fast = after(paths.find(f, constraint, algorithm).run, f, constraint, algorithm, [5, 25])
    plain = after(solver.run, f, constraint, algorithm, [30])
    np.testing.assert_allclose(fast.x, plain.x, atol=1e-9)
    f.intercept = -2.0
    other = after(solver.run, f, constraint, algorithm, [30])
    assert np.abs(other.x - plain.x).max() > 1e-3  # so that the agreement means something


@pytest.mark.parametrize("name", ["CSFW", "AdaCSFW"])
def test_lazy_equals_generic(name):
    f, constraint, algorithm = with_intercept("csr"), adafw.L1Ball(3.0), ALGORITHMS[name]
    lazy = after(
        paths.find(f, constraint, algorithm, "lazy").run, f, constraint, algorithm, [5, 25]
    )
    plain = after(solver.run, f, constraint, algorithm, [30])
    np.testing.assert_allclose(lazy.x, plain.x, atol=1e-9)


def test_snapshots_are_left_to_the_one_loop():
    path = paths.find(with_intercept("csr"), adafw.L1Ball(3.0), adafw.SVRF())
    assert path.name == "generic"


@pytest.mark.parametrize("path", ["generic", "fused", "lazy"])
def test_a_point_moved_in_place_is_measured_anew(path):
    """What is remembered of the last x must not outlive its entries."""
    f, constraint = with_intercept("csr"), adafw.L1Ball(3.0)
    r = adafw.minimize(
        f, constraint, ALGORITHMS["CSFW"], max_iterations=40, record_every=4, path=path
    )
    again = WithIntercept(f.model)
    assert r.value == again.value(r.x)
    assert r.gap == pytest.approx(constraint.gap(r.x, again.gradient(r.x)), rel=1e-12)
